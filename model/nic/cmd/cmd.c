/*
 * Command unit: fetches commands from the queue in host memory, executes them strictly one after another,
 * writes the entry back and raises an event on EQ 0. A command is a list of steps (table.c), at most one
 * a cycle; its time is its latency parameter plus the DMA, cache and control traffic that it really makes.
 *
 *   IDLE -> FETCH -> RUN (steps) -> COMPLETE -> EVENT -> IDLE
 *
 * Exact: order, checks of index, state and mailbox, everything that goes through the caches.
 * Approximated: the work of the firmware between the accesses is one latency per class of command.
 * Left out: several commands in flight, health and page commands, SRQs.
 */
#include "nic/cmd/cmd.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "nic/cmd/state.h"
#include "sim/buffer.h"

#define RN_PARAM_OWNER rn_cmd_params
RN_PARAM_TABLE(rn_cmd_param_table, "cmd", RN_CMD_PARAMS);

#define COUNTER_ROW(field, unit, help) RN_COUNTER_ROW(struct rn_cmd_counters, field, unit, help)
static const struct rn_counter_desc counter_descs[] = {RN_CMD_COUNTERS(COUNTER_ROW)};

static bool (*const steps[RN_CMD_STEP_COUNT])(struct rn_cmd *cmd) = {
#define STEP_FUNCTION(name) [RN_CMD_STEP_##name] = rn_cmd_step_##name,
	RN_CMD_STEPS(STEP_FUNCTION)
#undef STEP_FUNCTION
};

static uint64_t entry_pa(const struct rn_cmd *cmd)
{
	return cmd->queue_pa + (uint64_t)(cmd->ci % RN_CMD_QUEUE_ENTRIES) * RN_CMD_BYTES;
}

/* Another base is another queue, whose indexes start at 0. */
static void take_ring(struct rn_cmd *cmd)
{
	const struct rn_cmd_ring *ring = rn_fifo_peek(cmd->ports.cmd_ring);

	if (!ring)
		return;
	if (ring->queue_pa != cmd->queue_pa) {
		if (cmd->state != RN_CMD_IDLE)
			return;
		cmd->queue_pa = ring->queue_pa;
		cmd->ci = cmd->pi = 0;
	}
	if (ring->pi - cmd->ci <= RN_CMD_QUEUE_ENTRIES && ring->pi - cmd->ci >= cmd->pi - cmd->ci)
		cmd->pi = ring->pi;
	else
		cmd->counters.bad_rings++;
	rn_fifo_drop(cmd->ports.cmd_ring);
}

static bool is_mailbox(uint64_t pa, uint32_t bytes, uint32_t needed)
{
	return !needed || (pa && pa % 8 == 0 && bytes >= needed && bytes <= RN_MAILBOX_BYTES);
}

static bool is_index(const struct rn_cmd *cmd)
{
	uint32_t modifier = cmd->entry.modifier;
	uint32_t eqs = cmd->ports.eqs ? cmd->ports.eqs : RN_ARRAY_LEN(cmd->eq_live);

	switch (cmd->desc->index) {
	case RN_CMD_INDEX_EQ:
		return modifier < eqs;
	case RN_CMD_INDEX_MPT:
		return modifier >> cmd->hca.log_mpts == 0;
	case RN_CMD_INDEX_CQ:
		return modifier >> cmd->hca.log_cqs == 0;
	case RN_CMD_INDEX_QP:
		return modifier >> cmd->hca.log_qps == 0;
	default:
		return true;
	}
}

static uint8_t check_entry(const struct rn_cmd *cmd)
{
	const struct rn_hw_cmd *entry = &cmd->entry;
	const struct rn_cmd_desc *desc = cmd->desc;

	if (!desc)
		return RN_CMD_BAD_OPCODE;
	if (!cmd->is_initialised && !desc->before_init)
		return RN_CMD_BAD_STATE;
	if (!is_index(cmd))
		return RN_CMD_BAD_INDEX;
	if (!(entry->owner & 1) || !is_mailbox(entry->in_pa, entry->in_bytes, desc->in_bytes) ||
	    !is_mailbox(entry->out_pa, entry->out_bytes, desc->out_bytes))
		return RN_CMD_BAD_PARAMETER;
	return RN_CMD_OK;
}

static void enter(struct rn_cmd *cmd, enum rn_cmd_state state)
{
	cmd->state = state;
	cmd->is_sent = false;
	cmd->sent_count = 0;
	rn_block_wake_next(&cmd->block);
}

static void leave_entry(struct rn_cmd *cmd)
{
	cmd->ci++;
	enter(cmd, RN_CMD_IDLE);
}

static void fetch(struct rn_cmd *cmd)
{
	if (!rn_cmd_dma_read(cmd, entry_pa(cmd), &cmd->entry, sizeof(cmd->entry)))
		return;
	if (cmd->status != RN_CMD_OK) {
		cmd->counters.lost++;
		leave_entry(cmd);
		return;
	}
	cmd->desc = rn_cmd_find(cmd->entry.opcode);
	cmd->status = check_entry(cmd);
	enter(cmd, cmd->status == RN_CMD_OK ? RN_CMD_RUN : RN_CMD_COMPLETE);
}

static bool puts_right(uint8_t step)
{
	return step == RN_CMD_STEP_release || step == RN_CMD_STEP_end_pause;
}

static void run_step(struct rn_cmd *cmd)
{
	uint8_t step = cmd->desc->steps[cmd->step];

	if ((cmd->status == RN_CMD_OK || puts_right(step)) && !steps[step](cmd))
		return;
	cmd->step++;
	RN_ASSERT(cmd->step < RN_CMD_MAX_STEPS);
	enter(cmd, cmd->desc->steps[cmd->step] == RN_CMD_STEP_END ? RN_CMD_COMPLETE : RN_CMD_RUN);
}

static void complete(struct rn_cmd *cmd)
{
	struct rn_hw_cmd entry = cmd->entry;

	RN_ASSERT(!cmd->holds_line && !cmd->is_paused);
	if (!cmd->is_sent)
		cmd->entry.status = cmd->status;
	entry.status = cmd->entry.status;
	entry.owner = 0;
	cmd->status = RN_CMD_OK;
	if (!rn_cmd_dma_write(cmd, entry_pa(cmd), &entry, sizeof(entry), RN_DMA_LAST))
		return;
	cmd->counters.commands++;
	cmd->counters.failed += entry.status != RN_CMD_OK;
	cmd->counters.lost += cmd->status != RN_CMD_OK;
	enter(cmd, RN_CMD_EVENT);
}

static void raise_event(struct rn_cmd *cmd)
{
	if (!rn_fifo_can_push(cmd->ports.event))
		return;
	rn_fifo_push(cmd->ports.event, &(struct rn_event){
					       .type = RN_EQE_COMMAND,
					       .number = cmd->ci % RN_CMD_QUEUE_ENTRIES,
				       });
	leave_entry(cmd);
}

static void start(struct rn_cmd *cmd)
{
	if (cmd->ci == cmd->pi)
		return;
	cmd->status = RN_CMD_OK;
	cmd->step = 0;
	cmd->old_state = cmd->new_state = RN_QPS_RESET;
	enter(cmd, RN_CMD_FETCH);
}

static void tick(void *self, uint64_t cycle)
{
	struct rn_cmd *cmd = self;

	(void)cycle;
	take_ring(cmd);
	switch (cmd->state) {
	case RN_CMD_IDLE:
		start(cmd);
		break;
	case RN_CMD_FETCH:
		fetch(cmd);
		break;
	case RN_CMD_RUN:
		run_step(cmd);
		break;
	case RN_CMD_COMPLETE:
		complete(cmd);
		break;
	case RN_CMD_EVENT:
		raise_event(cmd);
		break;
	}
	rn_block_account(&cmd->block, cmd->state != RN_CMD_IDLE, RN_STALL_NONE);
}

static void connect(struct rn_cmd *cmd)
{
	const struct rn_cmd_ports *p = &cmd->ports;
	struct rn_fifo *const in[] = {p->cmd_ring,    p->context_rsp, p->inval_done,
				      p->dma_rsp,     p->tx_ctl_done, p->rx_ctl_done,
				      p->cq_ctl_done, p->eq_ctl_done};
	struct rn_fifo *const out[] = {p->context_req, p->context_base, p->pte_base, p->inval,
				       p->dma_req,     p->tx_ctl,	p->rx_ctl,   p->cq_ctl,
				       p->eq_ctl,      p->event};

	for (size_t i = 0; i < RN_ARRAY_LEN(in); i++)
		rn_fifo_set_consumer(in[i], &cmd->block);
	for (size_t i = 0; i < RN_ARRAY_LEN(out); i++)
		rn_fifo_set_producer(out[i], &cmd->block);
	if (p->status)
		rn_fifo_set_producer(p->status, &cmd->block);
}

struct rn_cmd *rn_cmd_new(const struct rn_nic_env *env, const struct rn_cmd_params *params,
			  const struct rn_cmd_ports *ports)
{
	struct rn_cmd *cmd = rn_calloc(1, sizeof(*cmd));

	RN_ASSERT(ports->eqs <= RN_ARRAY_LEN(cmd->eq_live));
	cmd->env = *env;
	cmd->params = *params;
	cmd->ports = *ports;
	cmd->buf = RN_BUFFER_NONE;
	cmd->name = rn_asprintf("%s.cmd", env->name);
	rn_block_init(&cmd->block, env->sim, env->core, cmd->name, tick, cmd);
	connect(cmd);
	rn_stats_add_block(env->stats, &cmd->block);
	rn_stats_add_counters(env->stats, cmd->name, counter_descs, RN_ARRAY_LEN(counter_descs),
			      &cmd->counters);
	return cmd;
}

void rn_cmd_free(struct rn_cmd *cmd)
{
	if (!cmd)
		return;
	rn_buffer_put(cmd->env.buffers, cmd->buf);
	free(cmd->name);
	free(cmd);
}
