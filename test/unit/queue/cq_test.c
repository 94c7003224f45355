/* Completion queue: ownership by parity, arming, removal. */
#include <stddef.h>
#include <string.h>

#include "queue/cq.h"
#include "run_suite.h"

#define CQES 8u

static struct rn_hw_cqe ring[CQES];
static struct rn_hw_cq_dbr dbr;
static struct rn_cq cq;
static uint32_t written;

static void make_cq(void)
{
	memset(ring, 0xff, sizeof(ring));
	rn_cq_init(&cq, ring, &dbr, CQES);
	cq.cqn = 0x33;
	written = 0;
}

/* What the NIC does. */
static void complete(uint32_t qpn)
{
	struct rn_hw_cqe *cqe = &ring[written % CQES];

	*cqe = (struct rn_hw_cqe){
		.qpn = qpn, .wqe_idx = (uint16_t)written, .owner = written / CQES % 2 ? 0 : 1};
	written++;
}

static uint32_t take(void)
{
	const struct rn_hw_cqe *cqe = rn_cq_peek(&cq);
	uint32_t qpn;

	ck_assert_ptr_nonnull(cqe);
	qpn = cqe->qpn;
	rn_cq_advance(&cq);
	return qpn;
}

START_TEST(an_empty_queue_shows_nothing_in_any_pass)
{
	for (unsigned pass = 0; pass < 5; pass++) {
		for (unsigned i = 0; i < CQES; i++) {
			ck_assert_ptr_null(rn_cq_peek(&cq));
			complete(i);
			ck_assert_uint_eq(take(), i);
		}
	}
	ck_assert_ptr_null(rn_cq_peek(&cq));
}
END_TEST

START_TEST(a_full_queue_is_read_to_its_end_and_no_further)
{
	for (unsigned pass = 0; pass < 3; pass++) {
		for (unsigned i = 0; i < CQES; i++)
			complete(i);
		for (unsigned i = 0; i < CQES; i++)
			ck_assert_uint_eq(take(), i);
		ck_assert_ptr_null(rn_cq_peek(&cq));
	}
}
END_TEST

START_TEST(the_consumer_index_is_published_in_the_record)
{
	complete(1);
	take();
	ck_assert_uint_eq(dbr.ci, 0);
	rn_cq_publish(&cq);
	ck_assert_uint_eq(dbr.ci, 1);
}
END_TEST

START_TEST(arming_names_queue_kind_sequence_and_index)
{
	struct rn_hw_cq_arm arm;

	complete(1);
	take();
	arm = rn_cq_arm(&cq, false);
	ck_assert_uint_eq(arm.cqn_cmd, 0x33);
	ck_assert_uint_eq(arm.ci, 1);
	rn_cq_event(&cq);
	arm = rn_cq_arm(&cq, true);
	ck_assert_uint_eq(arm.cqn_cmd, 0x33 | 1u << 24 | 1u << 28);
	ck_assert_uint_eq(dbr.arm, arm.cqn_cmd);
}
END_TEST

START_TEST(a_completion_that_had_its_event_raises_no_second)
{
	ck_assert_uint_eq(rn_cq_arm(&cq, false).ci, 0);
	complete(1);
	rn_cq_event(&cq);
	/* Armed before it is polled: only what comes behind it counts. */
	ck_assert_uint_eq(rn_cq_arm(&cq, false).ci, 1);
	take();
	ck_assert_uint_eq(rn_cq_arm(&cq, false).ci, 1);
	complete(1);
	complete(1);
	take();
	take();
	ck_assert_uint_eq(rn_cq_arm(&cq, false).ci, 3);
}
END_TEST

static uint32_t dropped;

static void drop(void *user, const struct rn_hw_cqe *cqe)
{
	ck_assert_ptr_eq(user, &dropped);
	ck_assert_uint_eq(cqe->qpn, 7);
	dropped++;
}

START_TEST(completions_of_a_dead_qp_go_and_the_others_keep_their_order)
{
	static const uint32_t qpns[] = {1, 7, 2, 7, 7, 3};

	for (unsigned start = 0; start < 2 * CQES; start++) {
		dropped = 0;
		for (unsigned i = 0; i < 6; i++)
			complete(qpns[i]);
		ck_assert_uint_eq(rn_cq_clean(&cq, 7, drop, &dropped), 3);
		ck_assert_uint_eq(dropped, 3);
		for (unsigned i = 1; i <= 3; i++)
			ck_assert_uint_eq(take(), i);
		ck_assert_ptr_null(rn_cq_peek(&cq));
		/* The next round begins one further in the ring. */
		complete(9);
		ck_assert_uint_eq(take(), 9);
	}
}
END_TEST

START_TEST(cleaning_a_full_queue_frees_it)
{
	for (unsigned i = 0; i < CQES; i++)
		complete(7);
	ck_assert_uint_eq(rn_cq_clean(&cq, 7, NULL, NULL), CQES);
	ck_assert_uint_eq(dbr.ci, CQES);
	ck_assert_ptr_null(rn_cq_peek(&cq));
	ck_assert_uint_eq(rn_cq_clean(&cq, 7, NULL, NULL), 0);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("cq");

	tcase_add_checked_fixture(tc, make_cq, NULL);
	tcase_add_test(tc, an_empty_queue_shows_nothing_in_any_pass);
	tcase_add_test(tc, a_full_queue_is_read_to_its_end_and_no_further);
	tcase_add_test(tc, the_consumer_index_is_published_in_the_record);
	tcase_add_test(tc, arming_names_queue_kind_sequence_and_index);
	tcase_add_test(tc, a_completion_that_had_its_event_raises_no_second);
	tcase_add_test(tc, completions_of_a_dead_qp_go_and_the_others_keep_their_order);
	tcase_add_test(tc, cleaning_a_full_queue_frees_it);
	return run_suite(tc, "cq");
}
