/* Clients that do not behave: the server ends them, and nobody else notices. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rng.h"
#include "run_suite.h"
#include "server_rig.h"

static bool is_readable(void)
{
	struct epoll_event event;

	return epoll_wait(rn_server_epoll_fd(server), &event, 1, 0) > 0;
}

/* --- misbehaving --- */

START_TEST(a_write_outside_the_own_pages_ends_the_client)
{
	struct peer peer, witness;
	const uint64_t value = 1;
	static const uint32_t bad[][3] = {
		{1, 0, 8}, {0, 4096, 8}, {0, 0, 3}, {0, 60, 8}, {0, 0, 200}};

	server_rig_join(&witness, RN_UAPI_VERSION, 0);
	for (size_t n = 0; n < sizeof(bad) / sizeof(bad[0]); n++) {
		server_rig_join(&peer, RN_UAPI_VERSION, 0);
		rn_channel_post(peer.channel, 0, bad[n][0], bad[n][1], &value, 8);
		peer.channel->entry[0].len = bad[n][2];
		ck_assert(server_rig_has_hung_up(peer.fd));
		ck_assert_uint_eq(atomic_load(&peer.channel->dead), 1);
		server_rig_quit(&peer);
	}
	ck_assert_uint_eq(fake_nic_writes(rig.nic), 0);
	ck_assert_int_eq(server_rig_call(witness.fd,
					 &(struct rn_uapi_req){RN_UAPI_ALLOC_PD,
							       sizeof(struct rn_uapi_req), 0, 0},
					 sizeof(struct rn_uapi_req)),
			 0);
	server_rig_quit(&witness);
}
END_TEST

START_TEST(corrupt_indexes_end_the_client)
{
	struct peer peer;

	for (int n = 0; n < 3; n++) {
		server_rig_join(&peer, RN_UAPI_VERSION, 0);
		if (n == 0)
			atomic_store(&peer.channel->tail, RN_CHANNEL_ENTRIES + 1);
		else if (n == 1)
			atomic_store(&peer.channel->tail, UINT64_MAX);
		else
			peer.channel->entry[atomic_fetch_add(&peer.channel->tail, 1)].len = 0;
		ck_assert(server_rig_has_hung_up(peer.fd));
		server_rig_quit(&peer);
	}
}
END_TEST

START_TEST(punched_holes_in_shared_memory_harm_nobody)
{
	struct peer peer;
	const uint64_t value = 1;

	server_rig_join(&peer, RN_UAPI_VERSION, 0);
	rn_channel_post(peer.channel, 0, 0, 0, &value, 8);
	server_rig_pump();
	ck_assert_int_eq(fallocate(peer.channel_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				   (off_t)peer.attach.channel_bytes),
			 0);
	ck_assert_int_eq(fallocate(peer.arena_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				   (off_t)peer.attach.arena_bytes),
			 0);
	ck_assert(server_rig_has_hung_up(peer.fd));
	server_rig_quit(&peer);
}
END_TEST

START_TEST(garbage_before_attaching_ends_the_connection)
{
	static const size_t sizes[] = {1, 15, 16, 31, 32, 100, 4096};
	uint8_t garbage[4096];

	memset(garbage, 0xa5, sizeof(garbage));
	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		const int fd = server_rig_plug_in();

		ck_assert_int_gt(send(fd, garbage, sizes[n], MSG_NOSIGNAL), 0);
		ck_assert(server_rig_has_hung_up(fd));
		close(fd);
	}
}
END_TEST

START_TEST(a_message_longer_than_any_request_ends_the_client)
{
	struct peer peer;
	static uint8_t large[RN_UAPI_MAX_BYTES + 1];

	server_rig_join(&peer, RN_UAPI_VERSION, 0);
	ck_assert_int_gt(send(peer.fd, large, sizeof(large), MSG_NOSIGNAL), 0);
	ck_assert(server_rig_has_hung_up(peer.fd));
	server_rig_quit(&peer);
}
END_TEST

START_TEST(a_client_that_never_reads_its_answers_is_ended)
{
	struct peer peer;
	struct rn_uapi_req query = {RN_UAPI_QUERY_PORT, sizeof(query), 0, 0};

	server_rig_join(&peer, RN_UAPI_VERSION, 0);
	while (rn_server_connections(server)) {
		send(peer.fd, &query, sizeof(query), MSG_DONTWAIT | MSG_NOSIGNAL);
		server_rig_pump();
	}
	server_rig_quit(&peer);
}
END_TEST

/* The client keeps the descriptor, so closing it at the server's side alone would not be enough. */
START_TEST(a_doorbell_rung_after_the_clients_end_wakes_nobody)
{
	struct peer peer;
	const uint64_t one = 1;

	server_rig_join(&peer, RN_UAPI_VERSION, 0);
	atomic_store(&peer.channel->tail, UINT64_MAX);
	ck_assert(server_rig_has_hung_up(peer.fd));
	server_rig_wait_for_clients(0);
	ck_assert_int_eq(write(peer.wake_fd, &one, sizeof(one)), sizeof(one));
	ck_assert(!is_readable());
	server_rig_quit(&peer);
}
END_TEST

/* It may switch O_NONBLOCK off and read the count itself: a server that read it could wait for ever. */
START_TEST(a_doorbell_wakes_the_server_once_and_is_never_read_by_it)
{
	struct peer peer;
	uint64_t count = 1;

	server_rig_join(&peer, RN_UAPI_VERSION, 0);
	for (int n = 0; n < 3; n++) {
		ck_assert(!is_readable());
		ck_assert_int_eq(write(peer.wake_fd, &count, sizeof(count)), sizeof(count));
		ck_assert(is_readable());
		server_rig_pump();
	}
	ck_assert_int_eq(read(peer.wake_fd, &count, sizeof(count)), sizeof(count));
	ck_assert_uint_eq(count, 3);
	server_rig_quit(&peer);
}
END_TEST

START_TEST(descriptors_that_a_client_sends_do_not_pile_up)
{
	struct peer peer;
	struct rn_uapi_req alloc = {RN_UAPI_ALLOC_PD, sizeof(alloc), 0, 0};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS}};
	struct iovec part = {&alloc, sizeof(alloc)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	struct rn_uapi_rsp answer;
	int before, after;

	server_rig_join(&peer, RN_UAPI_VERSION, 0);
	memcpy(CMSG_DATA(&control.header), &peer.fd, sizeof(int));
	before = dup(0);
	close(before);
	for (int n = 0; n < 50; n++) {
		ck_assert_int_gt(sendmsg(peer.fd, &message, 0), 0);
		ck_assert_int_gt(server_rig_get_answer(peer.fd, &answer, sizeof(answer), NULL), 0);
	}
	after = dup(0);
	close(after);
	ck_assert_int_eq(before, after);
	server_rig_quit(&peer);
}
END_TEST

START_TEST(idle_and_half_dead_connections_do_not_keep_the_server_awake)
{
	const int idle = server_rig_plug_in(), closed = server_rig_plug_in();

	close(closed);
	while (is_readable())
		server_rig_pump();
	ck_assert_uint_eq(rn_server_connections(server), 1);
	close(idle);
}
END_TEST

/* Random operations with random contents; a client that lives through them works on. */
static void fuzz_once(struct rn_rng *rng)
{
	struct peer peer;
	uint8_t message[512];

	server_rig_join(&peer, RN_UAPI_VERSION, 0);
	for (int n = 0; n < 40; n++) {
		const size_t bytes = sizeof(struct rn_uapi_req) + rn_rng_below(rng, 400);
		struct rn_uapi_req *req = (void *)message;

		for (size_t k = 0; k < sizeof(message); k++)
			message[k] = rn_rng_below(rng, 3) ? 0 : (uint8_t)rn_rng_next(rng);
		req->op = (uint32_t)rn_rng_below(rng, 22);
		req->bytes = (uint32_t)bytes;
		req->handle = (uint32_t)rn_rng_below(rng, 6);
		send(peer.fd, message, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
		server_rig_pump();
	}
	peer.channel->entry[0] =
		(struct rn_channel_entry){.offset = (uint32_t)rn_rng_below(rng, 5000),
					  .len = (uint32_t)rn_rng_below(rng, 80)};
	atomic_store(&peer.channel->tail, rn_rng_below(rng, 3));
	server_rig_pump();
	server_rig_quit(&peer);
}

START_TEST(random_requests_leave_nothing_behind)
{
	struct rn_rng rng;

	rn_rng_init(&rng, 1, "fuzz");
	for (int n = 0; n < 100; n++)
		fuzz_once(&rng);
	server_rig_wait_for_clients(0);
}
END_TEST

/* All of these are of one process, which may have an eighth of them all. */
START_TEST(connections_beyond_the_limit_are_refused_and_others_live)
{
	int fds[1030];
	uint32_t count = 0;
	struct peer peer;
	char byte;

	server_rig_join(&peer, RN_UAPI_VERSION, 0);
	for (; count < 1030; count++) {
		fds[count] = server_rig_plug_in();
		server_rig_pump();
	}
	ck_assert_uint_eq(rn_server_connections(server), 1024 / 8);
	ck_assert_int_eq(recv(fds[1024 / 8], &byte, 1, MSG_DONTWAIT), 0);
	ck_assert_int_eq(recv(fds[1029], &byte, 1, MSG_DONTWAIT), 0);
	while (count)
		close(fds[--count]);
	server_rig_wait_for_clients(1);
	server_rig_quit(&peer);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("hostile");

	tcase_add_checked_fixture(tcase, server_rig_set_up, server_rig_tear_down);
	tcase_add_test(tcase, a_write_outside_the_own_pages_ends_the_client);
	tcase_add_test(tcase, corrupt_indexes_end_the_client);
	tcase_add_test(tcase, punched_holes_in_shared_memory_harm_nobody);
	tcase_add_test(tcase, garbage_before_attaching_ends_the_connection);
	tcase_add_test(tcase, a_message_longer_than_any_request_ends_the_client);
	tcase_add_test(tcase, a_client_that_never_reads_its_answers_is_ended);
	tcase_add_test(tcase, a_doorbell_rung_after_the_clients_end_wakes_nobody);
	tcase_add_test(tcase, a_doorbell_wakes_the_server_once_and_is_never_read_by_it);
	tcase_add_test(tcase, descriptors_that_a_client_sends_do_not_pile_up);
	tcase_add_test(tcase, idle_and_half_dead_connections_do_not_keep_the_server_awake);
	tcase_add_test(tcase, random_requests_leave_nothing_behind);
	tcase_add_test(tcase, connections_beyond_the_limit_are_refused_and_others_live);
	return run_suite(tcase, "driver_hostile");
}
