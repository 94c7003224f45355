/* The server and clients that behave: attaching, requests, doorbells, sleeping, ends. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_suite.h"
#include "server_rig.h"

/* --- well-behaved --- */

START_TEST(the_socket_is_its_owners_alone)
{
	struct stat status;
	struct rn_server *second;

	ck_assert_int_eq(stat(server_path, &status), 0);
	ck_assert_uint_eq(status.st_mode & 0777, 0600);
	ck_assert_int_eq(server_rig_listen(&second), EADDRINUSE);
	ck_assert_int_eq(stat(server_path, &status), 0);
}
END_TEST

START_TEST(attaching_gives_a_sealed_channel_and_a_sealed_arena)
{
	struct peer peer;

	server_rig_join(&peer, RN_UAPI_VERSION, 0);
	ck_assert_uint_eq(peer.channel->magic, RN_CHANNEL_MAGIC);
	ck_assert_uint_eq(peer.attach.uar_pages, 1);
	ck_assert_uint_eq(peer.attach.free_run, 1);
	ck_assert_int_ne(ftruncate(peer.channel_fd, 0), 0);
	ck_assert_int_ne(ftruncate(peer.arena_fd, 0), 0);
	ck_assert_uint_eq((uint64_t)lseek(peer.arena_fd, 0, SEEK_END), peer.attach.arena_bytes);
	ck_assert_int_eq(fcntl(peer.wake_fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	server_rig_quit(&peer);
}
END_TEST

START_TEST(another_version_or_host_is_refused)
{
	struct peer peer;

	server_rig_join(&peer, RN_UAPI_VERSION + 1, 0);
	ck_assert_int_eq(peer.attach.rsp.error, EPROTONOSUPPORT);
	server_rig_quit(&peer);
	server_rig_join(&peer, RN_UAPI_VERSION, 1);
	ck_assert_int_eq(peer.attach.rsp.error, ENODEV);
	server_rig_quit(&peer);
}
END_TEST

START_TEST(requests_that_take_simulated_time_are_answered)
{
	struct peer peer;
	struct rn_uapi_req alloc = {RN_UAPI_ALLOC_PD, sizeof(alloc), 0, 0};
	struct rn_uapi_reg_mr reg = {.req = {RN_UAPI_REG_MR, sizeof(reg), 0, 0}, .pd = 2};

	server_rig_join(&peer, RN_UAPI_VERSION, 0);
	ck_assert_int_eq(server_rig_call(peer.fd, &alloc, sizeof(alloc)), 0);
	for (int n = 0; n < 10; n++)
		ck_assert_int_eq(server_rig_call(peer.fd, &reg, sizeof(reg)), 0);
	/* Several at once: one after another, in order. */
	for (int n = 0; n < 5; n++)
		ck_assert_int_gt(send(peer.fd, n % 2 ? (void *)&reg : (void *)&alloc,
				      n % 2 ? sizeof(reg) : sizeof(alloc), 0),
				 0);
	for (int n = 0; n < 5; n++) {
		struct rn_uapi_reg_mr_rsp answer;

		ck_assert_int_eq(server_rig_get_answer(peer.fd, &answer, sizeof(answer), NULL),
				 n % 2 ? sizeof(answer) : sizeof(answer.rsp));
	}
	server_rig_quit(&peer);
}
END_TEST

START_TEST(doorbells_arrive_in_order_and_wait_when_the_host_queue_is_full)
{
	struct peer peer;
	uint64_t value = 0;

	server_rig_join(&peer, RN_UAPI_VERSION, 0);
	fake_nic_set_full(rig.nic, true);
	for (; value < 100; value++)
		ck_assert(rn_channel_post(peer.channel, 0, 0, 0, &value, 8));
	for (int n = 0; n < 10; n++)
		server_rig_pump();
	ck_assert_uint_eq(fake_nic_writes(rig.nic), 0);
	ck_assert_uint_eq(atomic_load(&peer.channel->head), 1);
	fake_nic_set_full(rig.nic, false);
	while (fake_nic_writes(rig.nic) < 100)
		server_rig_pump();
	for (uint32_t n = 0; n < 100; n++) {
		uint64_t got;

		memcpy(&got, fake_nic_write(rig.nic, n)->data, 8);
		ck_assert_uint_eq(got, n);
	}
	server_rig_quit(&peer);
}
END_TEST

START_TEST(a_flood_of_one_does_not_shut_out_another)
{
	struct peer flood, quiet;
	uint64_t value = 1;
	const uint64_t mark = 0x6d61726b;

	server_rig_join(&flood, RN_UAPI_VERSION, 0);
	server_rig_join(&quiet, RN_UAPI_VERSION, 0);
	while (rn_channel_post(flood.channel, 0, 0, 0, &value, 8))
		;
	ck_assert(rn_channel_post(quiet.channel, 0, 0, 0, &mark, 8));
	rn_server_poll(server);
	ck_assert_uint_eq(atomic_load(&quiet.channel->head), 1);
	ck_assert_uint_lt(atomic_load(&flood.channel->head), RN_CHANNEL_ENTRIES / 2);
	server_rig_quit(&flood);
	server_rig_quit(&quiet);
}
END_TEST

static bool is_readable(void)
{
	struct epoll_event event;

	return epoll_wait(rn_server_epoll_fd(server), &event, 1, 0) > 0;
}

START_TEST(no_wake_up_is_lost)
{
	struct peer peer;
	const uint64_t value = 1;

	server_rig_join(&peer, RN_UAPI_VERSION, 0);
	while (is_readable())
		server_rig_pump();
	/* Posted before: do not sleep. */
	rn_channel_post(peer.channel, 0, 0, 0, &value, 8);
	rn_channel_kick(peer.channel, peer.wake_fd);
	ck_assert(!is_readable());
	ck_assert(!rn_server_prepare_sleep(server));
	rn_server_wake(server);
	server_rig_pump();
	/* Posted after: woken. */
	ck_assert(rn_server_prepare_sleep(server));
	ck_assert(!is_readable());
	rn_channel_post(peer.channel, 0, 0, 0, &value, 8);
	rn_channel_kick(peer.channel, peer.wake_fd);
	ck_assert(is_readable());
	rn_server_wake(server);
	server_rig_pump();
	ck_assert_uint_eq(fake_nic_writes(rig.nic), 2);
	/* Awake: no system call by the client. */
	rn_channel_post(peer.channel, 0, 0, 0, &value, 8);
	rn_channel_kick(peer.channel, peer.wake_fd);
	ck_assert(!is_readable());
	server_rig_quit(&peer);
	ck_assert(is_readable());
}
END_TEST

/* --- ends --- */

START_TEST(a_closed_socket_frees_everything)
{
	struct peer peer;
	struct rn_uapi_req alloc = {RN_UAPI_ALLOC_PD, sizeof(alloc), 0, 0};
	struct rn_uapi_reg_mr reg = {.req = {RN_UAPI_REG_MR, sizeof(reg), 0, 0}, .pd = 2};

	for (int n = 0; n < 20; n++) {
		server_rig_join(&peer, RN_UAPI_VERSION, 0);
		reg.pd = 2;
		server_rig_call(peer.fd, &alloc, sizeof(alloc));
		ck_assert_int_gt(send(peer.fd, &reg, sizeof(reg), 0), 0);
		if (n % 2)
			rn_server_poll(server);
		server_rig_quit(&peer);
		server_rig_wait_for_clients(0);
	}
}
END_TEST

START_TEST(a_killed_process_is_noticed_even_if_its_child_keeps_the_socket)
{
	int ready[2];
	char byte;
	pid_t pid, grandchild;

	ck_assert_int_eq(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		struct rn_uapi_attach request = {.req = {.op = RN_UAPI_ATTACH,
							 .bytes = sizeof(request)},
						 .version = RN_UAPI_VERSION};
		const int fd = server_rig_plug_in();

		if (send(fd, &request, sizeof(request), 0) < 0 || recv(fd, &byte, 1, 0) < 0)
			_exit(1);
		grandchild = fork();
		if (!grandchild) {
			pause();
			_exit(0);
		}
		if (write(ready[1], &grandchild, sizeof(grandchild)) < 0)
			_exit(1);
		pause();
		_exit(0);
	}
	server_rig_wait_for_clients(1);
	ck_assert_int_eq(read(ready[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
	kill(pid, SIGKILL);
	server_rig_wait_for_clients(0);
	kill(grandchild, SIGKILL);
	waitpid(pid, NULL, 0);
}
END_TEST

START_TEST(the_channel_says_when_the_server_has_hung_up)
{
	struct peer peer;

	server_rig_join(&peer, RN_UAPI_VERSION, 0);
	ck_assert_uint_eq(atomic_load(&peer.channel->dead), 0);
	rn_server_disconnect_all(server);
	ck_assert_uint_eq(atomic_load(&peer.channel->dead), 1);
	server_rig_quit(&peer);
}
END_TEST
int main(void)
{
	TCase *tcase = tcase_create("server");

	tcase_add_checked_fixture(tcase, server_rig_set_up, server_rig_tear_down);
	tcase_add_test(tcase, the_socket_is_its_owners_alone);
	tcase_add_test(tcase, attaching_gives_a_sealed_channel_and_a_sealed_arena);
	tcase_add_test(tcase, another_version_or_host_is_refused);
	tcase_add_test(tcase, requests_that_take_simulated_time_are_answered);
	tcase_add_test(tcase, doorbells_arrive_in_order_and_wait_when_the_host_queue_is_full);
	tcase_add_test(tcase, a_flood_of_one_does_not_shut_out_another);
	tcase_add_test(tcase, no_wake_up_is_lost);
	tcase_add_test(tcase, a_closed_socket_frees_everything);
	tcase_add_test(tcase, a_killed_process_is_noticed_even_if_its_child_keeps_the_socket);
	tcase_add_test(tcase, the_channel_says_when_the_server_has_hung_up);
	return run_suite(tcase, "driver_server");
}
