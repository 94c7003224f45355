/*
 * Nothing behind a failed request succeeds: every operation that fails, in every way, with every operation behind
 * it, near and far, and with others before it that succeed.
 */
#include <string.h>

#include "error_rig.h"
#include "run_suite.h"

#define BEFORE 3u
#define RECEIVES 16u
#define MOST 32u

static struct error_rig rig;

static const uint8_t opcodes[] = {RN_WQE_SEND, RN_WQE_SEND_IMM, RN_WQE_RDMA_WRITE,
				  RN_WQE_RDMA_WRITE_IMM, RN_WQE_RDMA_READ};

#define OPCODES ((int)(sizeof(opcodes) / sizeof(opcodes[0])))

enum error { LOCAL_KEY, REMOTE_KEY, SHORT_RECEIVE, NO_RECEIVE, MALFORMED, ERRORS };

static bool has_remote_key(uint8_t opcode)
{
	return opcode == RN_WQE_RDMA_WRITE || opcode == RN_WQE_RDMA_WRITE_IMM ||
	       opcode == RN_WQE_RDMA_READ;
}

static bool has_receive(uint8_t opcode)
{
	return opcode == RN_WQE_SEND || opcode == RN_WQE_SEND_IMM;
}

static bool can_fail(uint8_t opcode, enum error error)
{
	if (error == REMOTE_KEY)
		return has_remote_key(opcode);
	if (error == SHORT_RECEIVE)
		return has_receive(opcode);
	return error != NO_RECEIVE || has_receive(opcode) || opcode == RN_WQE_RDMA_WRITE_IMM;
}

static uint8_t spoil(struct rn_scripted_wr *wr, enum error error)
{
	switch (error) {
	case LOCAL_KEY:
		wr->lkey ^= 1;
		return RN_WC_LOC_PROT_ERR;
	case REMOTE_KEY:
		wr->rkey ^= 1;
		return RN_WC_REM_ACCESS_ERR;
	case SHORT_RECEIVE:
		wr->bytes = ERROR_BYTES + 1;
		return RN_WC_REM_INV_REQ_ERR;
	case NO_RECEIVE:
		return RN_WC_RNR_RETRY_EXC_ERR;
	default:
		wr->bytes = (1u << 31) + 1; /* no segment is so long */
		return RN_WC_LOC_QP_OP_ERR;
	}
}

static void connect(enum error error)
{
	struct rn_scripted_path path = RN_SCRIPTED_PATH;

	path.mtu_bytes = ERROR_MTU;
	path.timeout = 8;
	path.retry_cnt = 1;
	path.rnr_retry = 0;
	world_connect(&rig.world, ERROR_BUFFER, &path, &rig.link);
	/* Those before the failing one have theirs. */
	world_post_recv(&rig.link, error == NO_RECEIVE ? BEFORE : RECEIVES, ERROR_BYTES);
}

static void post(uint8_t opcode, uint32_t bytes, unsigned count, unsigned *posted)
{
	struct rn_scripted_wr wr = world_wr(&rig.link, opcode, bytes);

	for (unsigned i = 0; i < count; i++)
		error_post(&rig, &wr, (*posted)++);
}

static void check(uint8_t opcode, enum error error, uint8_t behind, uint32_t bytes, unsigned depth)
{
	struct rn_scripted_wr bad;
	uint8_t statuses[MOST];
	unsigned posted = 0;

	connect(error);
	bad = world_wr(&rig.link, opcode, ERROR_BYTES);
	memset(statuses, RN_WC_WR_FLUSH_ERR, sizeof(statuses));
	memset(statuses, RN_WC_SUCCESS, BEFORE);
	statuses[BEFORE] = spoil(&bad, error);
	post(RN_WQE_SEND, ERROR_BYTES, BEFORE, &posted);
	error_post(&rig, &bad, posted++);
	post(behind, bytes, depth, &posted);
	rn_scripted_ring(rig.link.qp[0]);
	error_expect(&rig, 0, 0, statuses, posted);
	ck_assert_uint_eq(rn_scripted_state(rig.link.qp[0]), RN_QPS_ERR);
	/* Nor does what comes later. */
	post(behind, bytes, 2, &posted);
	rn_scripted_ring(rig.link.qp[0]);
	error_expect(&rig, 0, posted - 2, statuses + BEFORE + 1, 2);
	for (unsigned side = 0; side < 2; side++) {
		ck_assert_int_eq(rn_scripted_qp_free(rig.link.qp[side]), 0);
		ck_assert_int_eq(rn_scripted_cq_free(rig.link.cq[side]), 0);
	}
}

START_TEST(nothing_behind_a_failed_request_succeeds)
{
	static const uint32_t sizes[] = {0, 64, ERROR_BYTES};
	const uint8_t opcode = opcodes[_i % OPCODES];
	const enum error error = (enum error)(_i / OPCODES);

	if (!can_fail(opcode, error))
		return;
	error_start(&rig);
	for (int behind = 0; behind < OPCODES; behind++)
		for (unsigned size = 0; size < 3; size++)
			for (unsigned depth = 1; depth <= 9; depth += 8)
				check(opcode, error, opcodes[behind], sizes[size], depth);
	world_end(&rig.world);
	world_fini(&rig.world);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("rc_behind");

	tcase_add_loop_test(tcase, nothing_behind_a_failed_request_succeeds, 0, ERRORS * OPCODES);
	return run_suite(tcase, "rc_behind");
}
