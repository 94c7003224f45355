/* Completion and asynchronous events: who gets them, full pipes, and what destroy takes back. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rig.h"
#include "run_suite.h"

#define VA UINT64_C(0x10000000)
#define EVENT_CQ_ERR 0u
#define EVENT_QP_FATAL 1u
#define EVENT_SQ_DRAINED 5u
#define EVENT_PORT_ERR 10u

static struct rig rig;
static struct user user;
static uint32_t channel, cqn[2];
static int channel_fd;

static void set_up(void)
{
	rig_init(&rig);
	user_init(&user, &rig);
	ck_assert_int_eq(user_op(&user, RN_UAPI_CREATE_CHANNEL, 0), 0);
	channel = user.answer.rsp.handle;
	channel_fd = user.fd;
	user.fd = -1;
	ck_assert_int_eq(user_pin(&user, VA, 16, true), 0);
	for (uint32_t n = 0; n < 2; n++)
		ck_assert_int_eq(user_create_cq(&user, VA + n * 0x1000, 32, channel, &cqn[n]), 0);
}

static void tear_down(void)
{
	close(channel_fd);
	user_fini(&user);
	rig_fini(&rig);
}

static uint64_t cookie(uint32_t n)
{
	return 0xc0ffee0000 + VA + n * 0x1000;
}

static void complete(uint32_t n)
{
	fake_nic_raise(rig.nic, fake_nic_cqc(rig.nic, cqn[n])->eqn, RN_EQE_COMPLETION, 0, cqn[n]);
	rig_run(&rig);
}

/* The next record, or -1 when there is none. */
static int read_event(int fd, void *record, size_t bytes)
{
	return (int)recv(fd, record, bytes, MSG_DONTWAIT);
}

static void expect(uint64_t want)
{
	uint64_t got = 0;

	ck_assert_int_eq(read_event(channel_fd, &got, sizeof(got)), 8);
	ck_assert_uint_eq(got, want);
}

static void expect_none(void)
{
	uint64_t got;

	ck_assert_int_eq(read_event(channel_fd, &got, sizeof(got)), -1);
}

static uint32_t destroy_cq(uint32_t n)
{
	ck_assert_int_eq(user_op(&user, RN_UAPI_DESTROY_CQ, cqn[n]), 0);
	return user.answer.destroy.comp_events;
}

START_TEST(events_name_their_cq_in_order)
{
	complete(1);
	complete(0);
	complete(1);
	expect(cookie(1));
	expect(cookie(0));
	expect(cookie(1));
	expect_none();
	ck_assert_uint_eq(destroy_cq(0), 1);
	ck_assert_uint_eq(destroy_cq(1), 2);
}
END_TEST

START_TEST(an_event_is_an_ordinary_read_and_comes_after_the_interrupt)
{
	uint64_t got;

	fake_nic_raise(rig.nic, 1, RN_EQE_COMPLETION, 0, cqn[0]);
	expect_none();
	rn_sim_run(rig.sim, rn_sim_now_ps(rig.sim) + 1499999, UINT64_MAX);
	expect_none();
	rn_sim_run(rig.sim, rn_sim_now_ps(rig.sim) + 1, UINT64_MAX);
	ck_assert_int_eq(read(channel_fd, &got, sizeof(got)), 8);
	ck_assert_uint_eq(got, cookie(0));
	ck_assert_int_eq(fcntl(channel_fd, F_GETFL) & O_NONBLOCK, 0);
}
END_TEST

START_TEST(unread_events_go_with_their_cq_and_only_with_it)
{
	complete(0);
	complete(1);
	complete(0);
	expect(cookie(0));
	ck_assert_uint_eq(destroy_cq(0), 1); /* the other was taken back */
	expect(cookie(1));
	expect_none();
	ck_assert_uint_eq(destroy_cq(1), 1);
}
END_TEST

START_TEST(a_full_pipe_holds_events_up_and_loses_none)
{
	enum { COUNT = 3000 };
	uint32_t seen[2] = {0};
	uint64_t got;

	for (uint32_t n = 0; n < COUNT; n++)
		complete(n % 2);
	for (;;) {
		uint32_t before = seen[0] + seen[1];

		while (read_event(channel_fd, &got, sizeof(got)) == 8)
			seen[got == cookie(1)]++;
		rn_driver_poll(rig.driver);
		if (seen[0] + seen[1] == before)
			break;
	}
	ck_assert_uint_eq(seen[0], COUNT / 2);
	ck_assert_uint_eq(seen[1], COUNT / 2);
	ck_assert_uint_eq(destroy_cq(0), COUNT / 2);
}
END_TEST

START_TEST(held_events_of_a_destroyed_cq_are_dropped)
{
	uint32_t seen = 0;
	uint64_t got;

	for (uint32_t n = 0; n < 3000; n++)
		complete(n % 2);
	ck_assert_uint_eq(destroy_cq(0), 0);
	do {
		rn_driver_poll(rig.driver);
		for (got = 0; read_event(channel_fd, &got, sizeof(got)) == 8; seen++)
			ck_assert_uint_eq(got, cookie(1));
	} while (got);
	ck_assert_uint_eq(seen, 1500);
}
END_TEST

START_TEST(a_program_that_shuts_its_end_harms_nobody)
{
	shutdown(channel_fd, SHUT_RDWR);
	for (uint32_t n = 0; n < 10; n++)
		complete(0);
	rn_driver_poll(rig.driver);
	ck_assert_int_eq(user_op(&user, RN_UAPI_DESTROY_CQ, cqn[0]), 0);
	complete(1);
}
END_TEST

START_TEST(events_of_nobody_are_ignored)
{
	static const uint32_t numbers[] = {0, 1, 0xffff, 0x10000, UINT32_MAX};

	for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++)
		for (uint8_t type = 0; type < 10; type++)
			fake_nic_raise(rig.nic, n % 2, type, 7, numbers[n]);
	rig_run(&rig);
	expect_none();
	ck_assert_int_eq(user_op(&user, RN_UAPI_ALLOC_PD, 0), 0);
}
END_TEST

START_TEST(the_event_queue_wraps_without_losing_an_event)
{
	uint64_t got;

	for (uint32_t n = 0; n < 10000; n++) {
		complete(0);
		ck_assert_int_eq(read_event(channel_fd, &got, sizeof(got)), 8);
	}
	expect_none();
}
END_TEST

START_TEST(a_cq_without_channel_raises_no_event)
{
	uint32_t plain;

	ck_assert_int_eq(user_create_cq(&user, VA + 0x3000, 32, 0, &plain), 0);
	fake_nic_raise(rig.nic, 1, RN_EQE_COMPLETION, 0, plain);
	rig_run(&rig);
	expect_none();
}
END_TEST

/* --- asynchronous --- */

static void expect_async(int fd, uint32_t type, uint32_t object, uint64_t want)
{
	struct rn_uapi_async_event event;

	ck_assert_int_eq(read_event(fd, &event, sizeof(event)), sizeof(event));
	ck_assert_uint_eq(event.event_type, type);
	ck_assert_uint_eq(event.object, object);
	ck_assert_uint_eq(event.cookie, want);
}

START_TEST(asynchronous_events_reach_the_owner_alone)
{
	uint32_t pd, cq, qpn, more = 0;
	struct user other;

	user_init(&other, &rig);
	ck_assert_int_eq(user_op(&user, RN_UAPI_OPEN_ASYNC, 0), 0);
	ck_assert_int_eq(user_op(&other, RN_UAPI_OPEN_ASYNC, 0), 0);
	user_make_qp(&user, VA + 0x100000, &pd, &cq, &qpn);
	fake_nic_raise(rig.nic, 0, RN_EQE_QP_EVENT, EVENT_SQ_DRAINED, qpn);
	fake_nic_raise(rig.nic, 0, RN_EQE_CQ_ERROR, 0, cq);
	fake_nic_raise(rig.nic, 0, RN_EQE_PORT_EVENT, EVENT_PORT_ERR, 1);
	rig_run(&rig);
	expect_async(user.fd, EVENT_SQ_DRAINED, qpn, 0xbeef0000 + VA + 0x102000);
	expect_async(user.fd, EVENT_CQ_ERR, cq, 0xc0ffee0000 + VA + 0x100000);
	expect_async(user.fd, EVENT_PORT_ERR, 1, 0);
	expect_async(other.fd, EVENT_PORT_ERR, 1, 0);
	ck_assert_int_eq(read_event(other.fd, &more, sizeof(more)), -1);
	ck_assert_int_eq(user_op(&user, RN_UAPI_DESTROY_QP, qpn), 0);
	ck_assert_uint_eq(user.answer.destroy.async_events, 1);
	ck_assert_int_eq(user_op(&user, RN_UAPI_DESTROY_CQ, cq), 0);
	ck_assert_uint_eq(user.answer.destroy.async_events, 1);
	user_fini(&other);
}
END_TEST

START_TEST(a_fatal_event_puts_the_qp_into_error)
{
	uint32_t pd, cq, qpn;

	user_make_qp(&user, VA + 0x100000, &pd, &cq, &qpn);
	ck_assert_int_eq(user_connect(&user, qpn), 0);
	fake_nic_raise(rig.nic, 0, RN_EQE_QP_EVENT, EVENT_QP_FATAL, qpn);
	rig_run(&rig);
	ck_assert_int_eq(user_op(&user, RN_UAPI_QUERY_QP, qpn), 0);
	ck_assert_uint_eq(user.answer.qp.attr.qp_state, RN_QPS_ERR);
}
END_TEST

START_TEST(unread_asynchronous_events_go_with_their_qp)
{
	uint32_t pd, cq, qpn;
	char byte;

	ck_assert_int_eq(user_op(&user, RN_UAPI_OPEN_ASYNC, 0), 0);
	user_make_qp(&user, VA + 0x100000, &pd, &cq, &qpn);
	for (int n = 0; n < 300; n++) {
		fake_nic_raise(rig.nic, 0, RN_EQE_QP_EVENT, EVENT_SQ_DRAINED, qpn);
		rig_run(&rig);
	}
	fake_nic_raise(rig.nic, 0, RN_EQE_CQ_ERROR, 0, cq);
	rig_run(&rig);
	ck_assert_int_eq(user_op(&user, RN_UAPI_DESTROY_QP, qpn), 0);
	ck_assert_uint_eq(user.answer.destroy.async_events, 0);
	expect_async(user.fd, EVENT_CQ_ERR, cq, 0xc0ffee0000 + VA + 0x100000);
	ck_assert_int_eq(read_event(user.fd, &byte, 1), -1);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("events");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, events_name_their_cq_in_order);
	tcase_add_test(tcase, an_event_is_an_ordinary_read_and_comes_after_the_interrupt);
	tcase_add_test(tcase, unread_events_go_with_their_cq_and_only_with_it);
	tcase_add_test(tcase, a_full_pipe_holds_events_up_and_loses_none);
	tcase_add_test(tcase, held_events_of_a_destroyed_cq_are_dropped);
	tcase_add_test(tcase, a_program_that_shuts_its_end_harms_nobody);
	tcase_add_test(tcase, events_of_nobody_are_ignored);
	tcase_add_test(tcase, the_event_queue_wraps_without_losing_an_event);
	tcase_add_test(tcase, a_cq_without_channel_raises_no_event);
	tcase_add_test(tcase, asynchronous_events_reach_the_owner_alone);
	tcase_add_test(tcase, a_fatal_event_puts_the_qp_into_error);
	tcase_add_test(tcase, unread_asynchronous_events_go_with_their_qp);
	return run_suite(tcase, "driver_events");
}
