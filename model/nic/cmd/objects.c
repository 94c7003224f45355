/*
 * Steps that check and change objects: MPT entries, CQ and QP contexts, the NIC's set-up. The line
 * is held alone, so nobody reads what is half written. The driver has checked attributes by its tables; here
 * stands what a block relies on.
 */
#include <string.h>

#include "base/bits.h"
#include "nic/cmd/state.h"

enum { OBJECT_FREE, OBJECT_LIVE };

#define MAX_LOG_NUMBERS 24 /* QPN, CQN, SRQN and MPT index have 24 bits */
#define MAX_LOG_MTTS 40
#define MAX_LOG_QUEUE 16 /* WQEBBs, receive WQEs: their indexes have 16 bits */
#define MAX_LOG_CQES 23	 /* consumer indexes have 24 bits, one to tell full from empty */

static bool is_table(uint64_t pa, uint8_t log_entries, uint8_t max_log)
{
	return log_entries <= max_log && pa % 64 == 0 && pa >> 63 == 0;
}

static bool is_init(const struct rn_hw_init_hca *hca)
{
	return is_table(hca->qpc_pa, hca->log_qps, MAX_LOG_NUMBERS) &&
	       is_table(hca->cqc_pa, hca->log_cqs, MAX_LOG_NUMBERS) &&
	       is_table(hca->srqc_pa, hca->log_srqs, MAX_LOG_NUMBERS) &&
	       is_table(hca->mpt_pa, hca->log_mpts, MAX_LOG_NUMBERS) &&
	       is_table(hca->mtt_pa, hca->log_mtts, MAX_LOG_MTTS);
}

/* One context base a call, then the PTE cache's; true when the last is out. */
static bool push_bases(struct rn_cmd *cmd)
{
	const struct rn_hw_init_hca *hca = &cmd->in.hca;
	const struct rn_context_base bases[RN_CONTEXT_TYPES] = {
		{.type = RN_CONTEXT_QP, .log_entries = hca->log_qps, .base_pa = hca->qpc_pa},
		{.type = RN_CONTEXT_CQ, .log_entries = hca->log_cqs, .base_pa = hca->cqc_pa},
		{.type = RN_CONTEXT_SRQ, .log_entries = hca->log_srqs, .base_pa = hca->srqc_pa},
	};
	const struct rn_pte_base pte = {.mpt_pa = hca->mpt_pa,
					.mtt_pa = hca->mtt_pa,
					.log_mpts = hca->log_mpts,
					.log_mtts = hca->log_mtts};
	bool is_last = cmd->sent_count == RN_CONTEXT_TYPES;
	struct rn_fifo *fifo = is_last ? cmd->ports.pte_base : cmd->ports.context_base;

	if (!rn_fifo_can_push(fifo))
		return false;
	rn_fifo_push(fifo, is_last ? (const void *)&pte : &bases[cmd->sent_count]);
	if (!is_last)
		rn_block_wake_next(&cmd->block);
	cmd->sent_count++;
	return is_last;
}

bool rn_cmd_step_init(struct rn_cmd *cmd)
{
	const struct rn_hw_init_hca *hca = &cmd->in.hca;

	if (cmd->is_initialised)
		return rn_cmd_fail(cmd, RN_CMD_BAD_STATE);
	if (!is_init(hca))
		return rn_cmd_fail(cmd, RN_CMD_BAD_PARAMETER);
	if (cmd->ports.status && !rn_fifo_can_push(cmd->ports.status))
		return false;
	if (!push_bases(cmd))
		return false;
	if (cmd->ports.status)
		rn_fifo_push(cmd->ports.status, &(uint32_t){1});
	cmd->hca = *hca;
	cmd->is_initialised = true;
	memcpy(cmd->ports.identity->smac, hca->smac, sizeof(hca->smac));
	memcpy(cmd->ports.identity->gid, hca->gid_table, sizeof(hca->gid_table));
	return true;
}

/* --- memory keys --- */

uint64_t rn_cmd_mtt_count(const struct rn_hw_mpt *mpt)
{
	if (!mpt->length || mpt->log_page_bytes > 63)
		return 0;
	return ((mpt->start_va + mpt->length - 1) >> mpt->log_page_bytes) -
	       (mpt->start_va >> mpt->log_page_bytes) + 1;
}

static bool is_mpt(const struct rn_cmd *cmd, const struct rn_hw_mpt *mpt)
{
	uint64_t mtts = UINT64_C(1) << cmd->hca.log_mtts;

	return mpt->key >> 8 == cmd->entry.modifier && mpt->log_page_bytes >= 12 &&
	       mpt->log_page_bytes <= 30 &&
	       (!mpt->length || mpt->start_va <= UINT64_MAX - (mpt->length - 1)) &&
	       mpt->mtt_index <= mtts && rn_cmd_mtt_count(mpt) <= mtts - mpt->mtt_index;
}

bool rn_cmd_step_make_mpt(struct rn_cmd *cmd)
{
	if (cmd->mpt.state != OBJECT_FREE)
		return rn_cmd_fail(cmd, RN_CMD_BAD_STATE);
	if (!is_mpt(cmd, &cmd->in.mpt))
		return rn_cmd_fail(cmd, RN_CMD_BAD_PARAMETER);
	cmd->mpt = cmd->in.mpt;
	cmd->mpt.state = OBJECT_LIVE;
	return true;
}

bool rn_cmd_step_kill_mpt(struct rn_cmd *cmd)
{
	if (cmd->mpt.state == OBJECT_FREE)
		return rn_cmd_fail(cmd, RN_CMD_BAD_STATE);
	cmd->mpt.state = OBJECT_FREE;
	return true;
}

/* --- completion queues --- */

static bool is_cq(const struct rn_cmd *cmd, const struct rn_hw_cqc *cqc)
{
	uint32_t eqs = cmd->ports.eqs ? cmd->ports.eqs : RN_ARRAY_LEN(cmd->eq_live);

	return cqc->log_cqes <= MAX_LOG_CQES && cqc->eqn < eqs &&
	       cqc->dbr_pa % sizeof(struct rn_hw_cq_dbr) == 0;
}

bool rn_cmd_step_check_cq(struct rn_cmd *cmd)
{
	const struct rn_hw_cqc *cqc = rn_cmd_line(cmd);

	return cqc->state == OBJECT_FREE ? rn_cmd_fail(cmd, RN_CMD_BAD_STATE) : true;
}

bool rn_cmd_step_create_cq(struct rn_cmd *cmd)
{
	struct rn_hw_cqc *cqc = rn_cmd_line(cmd);
	struct rn_hw_cqc fresh = {0};

	if (cqc->state != OBJECT_FREE)
		return rn_cmd_fail(cmd, RN_CMD_BAD_STATE);
	if (!is_cq(cmd, &cmd->in.cqc))
		return rn_cmd_fail(cmd, RN_CMD_BAD_PARAMETER);
	memcpy(&fresh, &cmd->in.cqc, offsetof(struct rn_hw_cqc, pi));
	fresh.state = OBJECT_LIVE;
	fresh.cqn = cmd->entry.modifier;
	*cqc = fresh;
	cmd->is_dirty = true;
	return true;
}

/* A resize: CQEs from here on go to the new ring, at their index modulo its size. */
bool rn_cmd_step_modify_cq(struct rn_cmd *cmd)
{
	struct rn_hw_cqc *cqc = rn_cmd_line(cmd);

	if (cqc->state == OBJECT_FREE)
		return rn_cmd_fail(cmd, RN_CMD_BAD_STATE);
	if (cmd->in.cqc.log_cqes > MAX_LOG_CQES)
		return rn_cmd_fail(cmd, RN_CMD_BAD_PARAMETER);
	cqc->log_cqes = cmd->in.cqc.log_cqes;
	cqc->mkey = cmd->in.cqc.mkey;
	cmd->is_dirty = true;
	return true;
}

bool rn_cmd_step_kill_cq(struct rn_cmd *cmd)
{
	struct rn_hw_cqc *cqc = rn_cmd_line(cmd);

	cqc->state = OBJECT_FREE;
	cmd->is_dirty = true;
	return true;
}

/* --- queue pairs: free while the service is 0 --- */

static bool is_queues(const struct rn_cmd *cmd, const struct rn_hw_qpc *qpc)
{
	return qpc->service == RN_QPT_RC && qpc->log_sq_wqebbs <= MAX_LOG_QUEUE &&
	       qpc->log_rq_wqes <= MAX_LOG_QUEUE && qpc->log_rq_segments <= 6 &&
	       qpc->send_cqn >> cmd->hca.log_cqs == 0 && qpc->recv_cqn >> cmd->hca.log_cqs == 0 &&
	       qpc->dbr_pa % sizeof(struct rn_hw_qp_dbr) == 0;
}

/* What transport relies on from RTR on. */
static bool is_connection(const struct rn_hw_qpc *qpc)
{
	const uint32_t max_24 = (1u << 24) - 1;

	return qpc->mtu_log2 >= 8 && qpc->mtu_log2 <= 12 && qpc->sgid_idx < 16 &&
	       qpc->dest_qpn <= max_24 && qpc->sq_psn <= max_24 && qpc->rq_psn <= max_24 &&
	       qpc->timeout <= 31 && qpc->retry_cnt <= 7 && qpc->rnr_retry <= 7 &&
	       qpc->min_rnr_timer <= 31;
}

static bool is_config(const struct rn_cmd *cmd, const struct rn_hw_qpc *qpc, uint8_t state)
{
	bool is_connected = state == RN_QPS_RTR || state == RN_QPS_RTS || state == RN_QPS_SQD;

	return state <= RN_QPS_ERR && is_queues(cmd, qpc) && (!is_connected || is_connection(qpc));
}

bool rn_cmd_step_create_qp(struct rn_cmd *cmd)
{
	struct rn_hw_qpc *qpc = rn_cmd_line(cmd);
	struct rn_hw_qpc fresh = {0};

	if (qpc->service)
		return rn_cmd_fail(cmd, RN_CMD_BAD_STATE);
	memcpy(&fresh, cmd->in.config, RN_CMD_CONFIG_BYTES);
	fresh.state = RN_QPS_RESET;
	fresh.qpn = cmd->entry.modifier;
	if (!is_config(cmd, &fresh, RN_QPS_RESET))
		return rn_cmd_fail(cmd, RN_CMD_BAD_PARAMETER);
	*qpc = fresh;
	cmd->is_dirty = true;
	return true;
}

bool rn_cmd_step_modify_qp(struct rn_cmd *cmd)
{
	const struct rn_hw_modify_qp *modify = &cmd->in.modify;
	struct rn_hw_qpc *qpc = rn_cmd_line(cmd);
	struct rn_hw_qpc fresh = {0};

	cmd->old_state = cmd->new_state = qpc->state;
	if (!qpc->service || qpc->state != modify->cur_state)
		return rn_cmd_fail(cmd, RN_CMD_BAD_STATE);
	memcpy(&fresh, modify->config, RN_CMD_CONFIG_BYTES);
	fresh.state = modify->new_state;
	fresh.qpn = cmd->entry.modifier;
	if (!is_config(cmd, &fresh, modify->new_state))
		return rn_cmd_fail(cmd, RN_CMD_BAD_PARAMETER);
	memcpy(qpc, &fresh, RN_CMD_CONFIG_BYTES);
	cmd->new_state = modify->new_state;
	cmd->is_dirty = true;
	return true;
}

/* Paused, tx and rx drop what comes for it until they forget it: the service is 0. */
bool rn_cmd_step_kill_qp(struct rn_cmd *cmd)
{
	struct rn_hw_qpc *qpc = rn_cmd_line(cmd);

	cmd->old_state = cmd->new_state = qpc->state;
	if (!qpc->service)
		return rn_cmd_fail(cmd, RN_CMD_BAD_STATE);
	memset(qpc, 0, RN_CMD_CONFIG_BYTES);
	cmd->is_dirty = true;
	return true;
}

/* They have forgotten the QP and its state is RESET: nobody writes the sections any more. */
bool rn_cmd_step_clear_qp(struct rn_cmd *cmd)
{
	struct rn_hw_qpc *qpc = rn_cmd_line(cmd);

	if (!cmd->holds_line)
		return true;
	memset(qpc->requester, 0, sizeof(qpc->requester));
	memset(qpc->responder, 0, sizeof(qpc->responder));
	cmd->is_dirty = true;
	return true;
}

bool rn_cmd_step_copy_line(struct rn_cmd *cmd)
{
	const struct rn_hw_qpc *qpc = rn_cmd_line(cmd);

	memcpy(cmd->out, qpc, cmd->desc->out_bytes);
	if (cmd->desc->index == RN_CMD_INDEX_CQ)
		return true;
	cmd->old_state = cmd->new_state = qpc->state;
	return qpc->service ? true : rn_cmd_fail(cmd, RN_CMD_BAD_STATE);
}
