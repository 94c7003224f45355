/*
 * Steps that wait for other blocks: DMA, context lines, invalidation, control of queues. Each is called
 * until it returns true; a fifo that is full or empty wakes the block when that changes.
 */
#include <string.h>

#include "base/assert.h"
#include "nic/cmd/state.h"
#include "sim/buffer.h"

static bool push_dma(struct rn_cmd *cmd, const struct rn_dma_req *req, const void *from)
{
	struct rn_dma_req full = *req;

	if (!rn_fifo_can_push(cmd->ports.dma_req))
		return false;
	cmd->buf = rn_buffer_get(cmd->env.buffers);
	if (from)
		memcpy(rn_buffer_data(cmd->env.buffers, cmd->buf), from, req->len);
	full.buf = cmd->buf;
	full.flags |= RN_DMA_PHYSICAL;
	rn_fifo_push(cmd->ports.dma_req, &full);
	cmd->is_sent = true;
	return true;
}

/* True when the answer has come; @to gets the bytes of a successful read. */
static bool take_dma(struct rn_cmd *cmd, void *to, uint32_t len)
{
	struct rn_dma_rsp rsp;

	if (!rn_fifo_pop(cmd->ports.dma_rsp, &rsp))
		return false;
	if (rsp.status != RN_DMA_OK)
		rn_cmd_fail(cmd, RN_CMD_DMA_ERROR);
	else if (to)
		memcpy(to, rn_buffer_data(cmd->env.buffers, cmd->buf), len);
	rn_buffer_put(cmd->env.buffers, cmd->buf);
	cmd->buf = RN_BUFFER_NONE;
	return true;
}

bool rn_cmd_dma_read(struct rn_cmd *cmd, uint64_t pa, void *to, uint32_t len)
{
	if (cmd->is_sent)
		return take_dma(cmd, to, len);
	push_dma(cmd, &(struct rn_dma_req){.op = RN_DMA_READ, .addr = pa, .len = len}, NULL);
	return false;
}

bool rn_cmd_dma_write(struct rn_cmd *cmd, uint64_t pa, const void *from, uint32_t len,
		      uint8_t flags)
{
	if (cmd->is_sent)
		return take_dma(cmd, NULL, 0);
	push_dma(cmd,
		 &(struct rn_dma_req){.op = RN_DMA_WRITE, .flags = flags, .addr = pa, .len = len},
		 from);
	return false;
}

bool rn_cmd_step_read_in(struct rn_cmd *cmd)
{
	return rn_cmd_dma_read(cmd, cmd->entry.in_pa, &cmd->in, cmd->desc->in_bytes);
}

bool rn_cmd_step_write_out(struct rn_cmd *cmd)
{
	return rn_cmd_dma_write(cmd, cmd->entry.out_pa, cmd->out, cmd->desc->out_bytes, 0);
}

static uint64_t mpt_pa(const struct rn_cmd *cmd)
{
	return cmd->hca.mpt_pa + (uint64_t)cmd->entry.modifier * RN_MPT_BYTES;
}

bool rn_cmd_step_read_mpt(struct rn_cmd *cmd)
{
	return rn_cmd_dma_read(cmd, mpt_pa(cmd), &cmd->mpt, sizeof(cmd->mpt));
}

bool rn_cmd_step_write_mpt(struct rn_cmd *cmd)
{
	return rn_cmd_dma_write(cmd, mpt_pa(cmd), &cmd->mpt, sizeof(cmd->mpt), 0);
}

bool rn_cmd_step_execute(struct rn_cmd *cmd)
{
	uint64_t now_ps = rn_sim_now_ps(cmd->env.sim);

	if (!cmd->is_sent) {
		uint32_t ns;

		memcpy(&ns, (const char *)&cmd->params + cmd->desc->latency, sizeof(ns));
		cmd->ready_ps = now_ps + ns * UINT64_C(1000);
		cmd->is_sent = true;
	}
	if (now_ps >= cmd->ready_ps)
		return true;
	rn_block_wake_at(&cmd->block, cmd->ready_ps);
	return false;
}

static bool push_context(struct rn_cmd *cmd, uint8_t op)
{
	if (!rn_fifo_can_push(cmd->ports.context_req))
		return false;
	rn_fifo_push(cmd->ports.context_req, &(struct rn_context_req){
						     .op = op,
						     .type = rn_cmd_context_type(cmd),
						     .dirty = cmd->is_dirty,
						     .exclusive = op == RN_CONTEXT_ACQUIRE,
						     .number = cmd->entry.modifier,
					     });
	cmd->is_sent = true;
	return true;
}

/* True when the cache has answered; a bad answer fails the command. */
static bool take_context(struct rn_cmd *cmd, struct rn_context_rsp *rsp)
{
	if (!rn_fifo_pop(cmd->ports.context_rsp, rsp))
		return false;
	if (rsp->status == RN_CONTEXT_BAD_NUMBER)
		rn_cmd_fail(cmd, RN_CMD_BAD_INDEX);
	else if (rsp->status != RN_CONTEXT_OK)
		rn_cmd_fail(cmd, RN_CMD_DMA_ERROR);
	return true;
}

bool rn_cmd_step_acquire(struct rn_cmd *cmd)
{
	struct rn_context_rsp rsp;

	if (!cmd->is_sent) {
		push_context(cmd, RN_CONTEXT_ACQUIRE);
		return false;
	}
	if (!take_context(cmd, &rsp))
		return false;
	cmd->holds_line = rsp.status == RN_CONTEXT_OK;
	cmd->is_dirty = false;
	cmd->line = rsp.line;
	return true;
}

bool rn_cmd_step_acquire_reset(struct rn_cmd *cmd)
{
	return cmd->new_state == RN_QPS_RESET ? rn_cmd_step_acquire(cmd) : true;
}

bool rn_cmd_step_release(struct rn_cmd *cmd)
{
	if (!cmd->holds_line)
		return true;
	if (!push_context(cmd, RN_CONTEXT_RELEASE))
		return false;
	cmd->holds_line = false;
	cmd->is_dirty = false;
	return true;
}

bool rn_cmd_step_flush(struct rn_cmd *cmd)
{
	struct rn_context_rsp rsp;

	if (!cmd->is_sent) {
		push_context(cmd, RN_CONTEXT_FLUSH);
		return false;
	}
	return take_context(cmd, &rsp);
}

bool rn_cmd_step_invalidate(struct rn_cmd *cmd)
{
	struct rn_pte_inval_done done;

	if (cmd->is_sent) {
		if (!rn_fifo_pop(cmd->ports.inval_done, &done))
			return false;
		RN_ASSERT(done.token == cmd->token);
		return true;
	}
	if (!rn_fifo_can_push(cmd->ports.inval))
		return false;
	rn_fifo_push(cmd->ports.inval, &(struct rn_pte_inval){
					       .token = ++cmd->token,
					       .key = cmd->entry.modifier << 8,
					       .mtt_index = cmd->mpt.mtt_index,
					       .mtt_count = rn_cmd_mtt_count(&cmd->mpt),
				       });
	cmd->is_sent = true;
	return false;
}

bool rn_cmd_step_drain_cq(struct rn_cmd *cmd)
{
	struct rn_ctl_done done;

	if (cmd->is_sent) {
		if (!rn_fifo_pop(cmd->ports.cq_ctl_done, &done))
			return false;
		RN_ASSERT(done.token == cmd->token);
		return true;
	}
	if (!rn_fifo_can_push(cmd->ports.cq_ctl))
		return false;
	rn_fifo_push(cmd->ports.cq_ctl, &(struct rn_cq_ctl){
						.token = ++cmd->token,
						.cqn = cmd->entry.modifier,
						.drain_only = cmd->entry.opcode == RN_CMD_MODIFY_CQ,
					});
	cmd->is_sent = true;
	return false;
}

static bool take_done(struct rn_cmd *cmd, struct rn_fifo *fifo, bool *waits)
{
	struct rn_ctl_done done;

	if (*waits && rn_fifo_pop(fifo, &done)) {
		RN_ASSERT(done.token == cmd->token);
		*waits = false;
	}
	return !*waits;
}

/* The same request to both halves of transport, and both answers. */
static bool control_qp(struct rn_cmd *cmd, uint8_t op)
{
	if (cmd->is_sent) {
		bool tx_done = take_done(cmd, cmd->ports.tx_ctl_done, &cmd->tx_waits);
		bool rx_done = take_done(cmd, cmd->ports.rx_ctl_done, &cmd->rx_waits);

		return tx_done && rx_done;
	}
	if (!rn_fifo_can_push(cmd->ports.tx_ctl) || !rn_fifo_can_push(cmd->ports.rx_ctl))
		return false;

	struct rn_qp_ctl ctl = {
		.token = ++cmd->token,
		.qpn = cmd->entry.modifier,
		.op = op,
		.old_state = cmd->old_state,
		.new_state = cmd->new_state,
	};

	rn_fifo_push(cmd->ports.tx_ctl, &ctl);
	rn_fifo_push(cmd->ports.rx_ctl, &ctl);
	cmd->tx_waits = cmd->rx_waits = cmd->is_sent = true;
	return false;
}

bool rn_cmd_step_pause(struct rn_cmd *cmd)
{
	if (!control_qp(cmd, RN_QP_PAUSE))
		return false;
	cmd->is_paused = true;
	return true;
}

bool rn_cmd_step_end_pause(struct rn_cmd *cmd)
{
	bool forgets = cmd->status == RN_CMD_OK &&
		       (cmd->entry.opcode == RN_CMD_DESTROY_QP ||
			(cmd->entry.opcode == RN_CMD_MODIFY_QP && cmd->new_state == RN_QPS_RESET));

	if (!cmd->is_paused)
		return true;
	if (!control_qp(cmd, forgets ? RN_QP_FORGET : RN_QP_RESUME))
		return false;
	cmd->is_paused = false;
	return true;
}

bool rn_cmd_step_eq_ctl(struct rn_cmd *cmd)
{
	bool create = cmd->entry.opcode == RN_CMD_CREATE_EQ;
	uint8_t *live = &cmd->eq_live[cmd->entry.modifier];
	const struct rn_hw_eqc *eqc = &cmd->in.eqc;
	struct rn_ctl_done done;

	if (cmd->is_sent) {
		if (!rn_fifo_pop(cmd->ports.eq_ctl_done, &done))
			return false;
		*live = create;
		return true;
	}
	if (*live == create)
		return rn_cmd_fail(cmd, RN_CMD_BAD_STATE);
	if (create && (eqc->log_eqes > 24 || eqc->base_pa % RN_EQE_BYTES))
		return rn_cmd_fail(cmd, RN_CMD_BAD_PARAMETER);
	if (!rn_fifo_can_push(cmd->ports.eq_ctl))
		return false;

	struct rn_eq_ctl ctl = {.create = create, .eqn = (uint8_t)cmd->entry.modifier};

	if (create) {
		ctl.log_eqes = eqc->log_eqes;
		ctl.vector = eqc->vector;
		ctl.base_pa = eqc->base_pa;
	}
	rn_fifo_push(cmd->ports.eq_ctl, &ctl);
	cmd->is_sent = true;
	return false;
}
