/*
 * The commands: one row each, indexed by opcode, with the steps in order.
 */
#include "base/bits.h"
#include "nic/cmd/state.h"

#define LATENCY(key) .latency = offsetof(struct rn_cmd_params, key)
#define STEP(name) RN_CMD_STEP_##name

static const struct rn_cmd_desc descs[] = {
	[RN_CMD_INIT_HCA] =
		{
			.before_init = 1,
			.in_bytes = sizeof(struct rn_hw_init_hca),
			LATENCY(init_ns),
			.steps = {STEP(read_in), STEP(execute), STEP(init)},
		},
	[RN_CMD_CREATE_EQ] =
		{
			.index = RN_CMD_INDEX_EQ,
			.before_init = 1,
			.in_bytes = sizeof(struct rn_hw_eqc),
			LATENCY(create_ns),
			.steps = {STEP(read_in), STEP(execute), STEP(eq_ctl)},
		},
	[RN_CMD_DESTROY_EQ] =
		{
			.index = RN_CMD_INDEX_EQ,
			.before_init = 1,
			LATENCY(destroy_ns),
			.steps = {STEP(execute), STEP(eq_ctl)},
		},
	[RN_CMD_CREATE_MKEY] =
		{
			.index = RN_CMD_INDEX_MPT,
			.in_bytes = sizeof(struct rn_hw_mpt),
			LATENCY(mkey_ns),
			/* The MTT entries are new: lines of the cache that hold older ones go first. */
			.steps = {STEP(read_in), STEP(execute), STEP(read_mpt), STEP(make_mpt),
				  STEP(invalidate), STEP(write_mpt)},
		},
	[RN_CMD_DESTROY_MKEY] =
		{
			.index = RN_CMD_INDEX_MPT,
			LATENCY(mkey_ns),
			.steps = {STEP(execute), STEP(read_mpt), STEP(kill_mpt), STEP(write_mpt),
				  STEP(invalidate)},
		},
	[RN_CMD_CREATE_CQ] =
		{
			.index = RN_CMD_INDEX_CQ,
			.in_bytes = sizeof(struct rn_hw_cqc),
			LATENCY(create_ns),
			.steps = {STEP(read_in), STEP(execute), STEP(acquire), STEP(create_cq),
				  STEP(release)},
		},
	[RN_CMD_DESTROY_CQ] =
		{
			.index = RN_CMD_INDEX_CQ,
			LATENCY(destroy_ns),
			.steps = {STEP(execute), STEP(acquire), STEP(check_cq), STEP(release),
				  STEP(drain_cq), STEP(acquire), STEP(kill_cq), STEP(release),
				  STEP(flush)},
		},
	[RN_CMD_QUERY_CQ] =
		{
			.index = RN_CMD_INDEX_CQ,
			.out_bytes = sizeof(struct rn_hw_cqc),
			LATENCY(query_ns),
			.steps = {STEP(execute), STEP(acquire), STEP(check_cq), STEP(copy_line),
				  STEP(release), STEP(write_out)},
		},
	[RN_CMD_MODIFY_CQ] =
		{
			.index = RN_CMD_INDEX_CQ,
			.in_bytes = sizeof(struct rn_hw_cqc),
			LATENCY(modify_ns),
			/* Completed when the CQEs that went to the old ring are there. */
			.steps = {STEP(read_in), STEP(execute), STEP(acquire), STEP(modify_cq),
				  STEP(release), STEP(drain_cq)},
		},
	[RN_CMD_CREATE_QP] =
		{
			.index = RN_CMD_INDEX_QP,
			.in_bytes = RN_CMD_CONFIG_BYTES,
			LATENCY(create_ns),
			.steps = {STEP(read_in), STEP(execute), STEP(acquire), STEP(create_qp),
				  STEP(release)},
		},
	[RN_CMD_MODIFY_QP] =
		{
			.index = RN_CMD_INDEX_QP,
			.in_bytes = sizeof(struct rn_hw_modify_qp),
			LATENCY(modify_ns),
			.steps = {STEP(read_in), STEP(execute), STEP(pause), STEP(acquire),
				  STEP(modify_qp), STEP(release), STEP(end_pause),
				  STEP(acquire_reset), STEP(clear_qp), STEP(release)},
		},
	[RN_CMD_QUERY_QP] =
		{
			.index = RN_CMD_INDEX_QP,
			.out_bytes = sizeof(struct rn_hw_qpc),
			LATENCY(query_ns),
			.steps = {STEP(execute), STEP(pause), STEP(acquire), STEP(copy_line),
				  STEP(release), STEP(end_pause), STEP(write_out)},
		},
	[RN_CMD_DESTROY_QP] =
		{
			.index = RN_CMD_INDEX_QP,
			LATENCY(destroy_ns),
			.steps = {STEP(execute), STEP(pause), STEP(acquire), STEP(kill_qp),
				  STEP(release), STEP(end_pause), STEP(flush)},
		},
};

const struct rn_cmd_desc *rn_cmd_find(uint8_t opcode)
{
	return opcode < RN_ARRAY_LEN(descs) && descs[opcode].steps[0] ? &descs[opcode] : NULL;
}
