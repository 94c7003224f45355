/*
 * CQE writer. One job at a time holds a CQ's context line: a completion, or what is pending for a CQ
 * (arms, a failed write). CQE writes are pipelined; an event follows its CQE on PCIe because it is
 * passed on when the CQE's write has been answered.
 *
 *   IDLE       choose a job (round robin: tx, rx, pending), ask for the CQC line
 *   ACQUIRING  wait for the line
 *   HOLDING    do the job, release the line
 *   READING    the ring looks full: read the consumer index from the doorbell record, then HOLDING
 *
 * Exact: pass parity, overrun check, arming (ADR 19), order within a CQ. A real overrun, or
 * a CQE that cannot be written, puts the CQ into its error state (byte 0 of the line, the one byte of
 * the configuration half that this block writes) and raises EQE_CQ_ERROR.
 * Left out: moderation, compression, resizing under load.
 */
#include "nic/cqe/cqe.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "nic/cqe/internal.h"
#include "sim/buffer.h"

#define RN_PARAM_OWNER rn_cqe_params
RN_PARAM_TABLE(rn_cqe_param_table, "cqe", RN_CQE_PARAMS);

#define CQE_ROW(field, unit, help) RN_COUNTER_ROW(struct cqe_counters, field, unit, help)

static const struct rn_counter_desc cqe_counter_descs[] = {CQE_COUNTERS(CQE_ROW)};

static void free_slot(struct rn_cqe *cqe, uint16_t idx)
{
	RN_ASSERT(cqe->slot[idx].is_used && cqe->free_count < cqe->params.in_flight);
	cqe->slot[idx].is_used = false;
	cqe->free_slot[cqe->free_count++] = idx;
}

/* Answers of the DMA engine */

static void take_ci(struct rn_cqe *cqe, const struct rn_dma_rsp *rsp)
{
	RN_ASSERT(cqe->state == READING);
	struct rn_hw_cqc *cqc = held_cqc(cqe);

	/* Unreadable: the ring stays full. */
	if (rsp->status == RN_DMA_OK)
		cqc->ci =
			rn_get_le32(rn_buffer_data(cqe->env->buffers, cqe->ci_buf)) & CQ_INDEX_MASK;
	rn_buffer_put(cqe->env->buffers, cqe->ci_buf);
	cqe->ci_buf = RN_BUFFER_NONE;
	cqe->is_ci_fresh = true;
	cqe->state = HOLDING;
}

static void take_written(struct rn_cqe *cqe, const struct rn_dma_rsp *rsp)
{
	struct cqe_slot *slot = &cqe->slot[rsp->token];

	RN_ASSERT(slot->is_used && slot->buf != RN_BUFFER_NONE);
	rn_buffer_put(cqe->env->buffers, slot->buf);
	slot->buf = RN_BUFFER_NONE;
	if (rsp->status != RN_DMA_OK) {
		cqe->count.cq_write_errors++;
		rn_cq_arms_add_failure(cqe->arms, slot->cqn);
		free_slot(cqe, rsp->token);
	} else if (slot->fires) {
		RN_ASSERT(cqe->event_count < cqe->params.in_flight);
		cqe->event[(cqe->event_head + cqe->event_count++) % cqe->params.in_flight] =
			rsp->token;
	} else {
		free_slot(cqe, rsp->token);
	}
}

static bool take_answers(struct rn_cqe *cqe)
{
	struct rn_dma_rsp rsp;
	bool busy = false;

	for (; rn_fifo_pop(cqe->ports.dma_rsp, &rsp); busy = true) {
		if (rsp.token == cqe->params.in_flight) {
			take_ci(cqe, &rsp);
		} else {
			RN_ASSERT(rsp.token < cqe->params.in_flight);
			take_written(cqe, &rsp);
		}
	}
	return busy;
}

static bool send_event(struct rn_cqe *cqe)
{
	if (!cqe->event_count)
		return false;
	if (!rn_fifo_can_push(cqe->ports.event)) {
		cqe->stall = RN_STALL_OUTPUT;
		return false;
	}
	uint16_t idx = cqe->event[cqe->event_head];

	rn_cqe_push_event(cqe, cqe->slot[idx].eqn, RN_EQE_COMPLETION, cqe->slot[idx].cqn);
	free_slot(cqe, idx);
	cqe->event_head = (cqe->event_head + 1) % cqe->params.in_flight;
	if (--cqe->event_count)
		rn_block_wake_next(&cqe->block);
	return true;
}

/* Choosing and acquiring */

static bool take_job(struct rn_cqe *cqe, enum cqe_source source)
{
	struct rn_fifo *fifo =
		source == SOURCE_TX ? cqe->ports.tx_completion : cqe->ports.rx_completion;

	if (source == SOURCE_PENDING)
		return rn_cq_arms_take(cqe->arms, &cqe->cqn, &cqe->pending);
	if (!rn_fifo_pop(fifo, &cqe->completion))
		return false;
	cqe->cqn = cqe->completion.cqn;
	cqe->taken[source]++;
	return true;
}

static bool has_work(const struct rn_cqe *cqe)
{
	return !rn_cq_arms_is_empty(cqe->arms) || rn_fifo_peek(cqe->ports.tx_completion) ||
	       rn_fifo_peek(cqe->ports.rx_completion);
}

static bool choose(struct rn_cqe *cqe, uint64_t cycle)
{
	if (!has_work(cqe))
		return false;
	if (cycle < cqe->next_acquire_cycle) {
		rn_block_wake_in(&cqe->block, cqe->next_acquire_cycle - cycle);
		return false;
	}
	if (!rn_fifo_can_push(cqe->ports.context_req)) {
		cqe->stall = RN_STALL_OUTPUT;
		return false;
	}
	for (unsigned i = 0; i < SOURCES; i++) {
		cqe->source = (cqe->turn + i) % SOURCES;
		if (!take_job(cqe, cqe->source))
			continue;
		cqe->turn = (cqe->source + 1) % SOURCES;
		cqe->is_ci_fresh = false;
		cqe->state = ACQUIRING;
		cqe->next_acquire_cycle = cycle + cqe->params.interval_cycles;
		rn_fifo_push(cqe->ports.context_req,
			     &(struct rn_context_req){.op = RN_CONTEXT_ACQUIRE,
						      .type = RN_CONTEXT_CQ,
						      .number = cqe->cqn});
		return true;
	}
	return false;
}

static bool take_line(struct rn_cqe *cqe)
{
	struct rn_context_rsp rsp;

	if (!rn_fifo_pop(cqe->ports.context_rsp, &rsp)) {
		cqe->stall = RN_STALL_MISS;
		return false;
	}
	cqe->line = rsp.line;
	cqe->state = HOLDING;
	if (rsp.status == RN_CONTEXT_OK)
		return true;
	cqe->state = IDLE;
	if (cqe->source == SOURCE_PENDING)
		cqe->count.arms_ignored += cqe->pending.arms;
	else
		cqe->count.completions_dropped++;
	return true;
}

/* One transition of the job's state machine a cycle, but a line is worked on as soon as it is there. */
static bool step(struct rn_cqe *cqe, uint64_t cycle)
{
	bool busy = false;

	if (cqe->state == READING)
		cqe->stall = RN_STALL_MISS;
	if (cqe->state == ACQUIRING)
		busy = take_line(cqe);
	if (cqe->state == HOLDING)
		busy |= rn_cqe_do_job(cqe);
	else if (cqe->state == IDLE)
		busy |= choose(cqe, cycle);
	if (busy && cqe->state == IDLE && has_work(cqe))
		rn_block_wake_next(&cqe->block);
	return busy;
}

/* Control */

/* Entries that were pushed before this cycle, visible or not. */
static uint32_t pushed_before(const struct rn_cqe *cqe, const struct rn_fifo *fifo)
{
	uint64_t now_ps = rn_block_edge_in_ps(&cqe->block, fifo->latency_cycles);
	uint32_t held = rn_fifo_occupancy(fifo);
	uint32_t count = 0;

	while (count < held &&
	       rn_fifo_ready_ps(fifo, (fifo->head_slot + count) % fifo->depth) < now_ps)
		count++;
	return count;
}

static bool is_in_use(const struct rn_cqe *cqe, uint32_t cqn)
{
	if ((cqe->state != IDLE && cqe->cqn == cqn) || rn_cq_arms_has_failure(cqe->arms, cqn))
		return true;
	for (uint32_t i = 0; i < cqe->params.in_flight; i++)
		if (cqe->slot[i].is_used && cqe->slot[i].cqn == cqn)
			return true;
	return false;
}

/*
 * Behind the completions that were there when the request came, and behind their CQEs. Arms that
 * are pending stay: a resize must not lose one, and a dead CQ ignores it.
 */
static bool take_ctl(struct rn_cqe *cqe)
{
	const struct rn_cq_ctl *ctl = rn_fifo_peek(cqe->ports.ctl);

	if (!ctl)
		return false;
	if (!cqe->has_ctl) {
		cqe->has_ctl = true;
		cqe->ctl_behind[SOURCE_TX] =
			cqe->taken[SOURCE_TX] + pushed_before(cqe, cqe->ports.tx_completion);
		cqe->ctl_behind[SOURCE_RX] =
			cqe->taken[SOURCE_RX] + pushed_before(cqe, cqe->ports.rx_completion);
	}
	if (cqe->taken[SOURCE_TX] < cqe->ctl_behind[SOURCE_TX] ||
	    cqe->taken[SOURCE_RX] < cqe->ctl_behind[SOURCE_RX] || is_in_use(cqe, ctl->cqn) ||
	    !rn_fifo_can_push(cqe->ports.ctl_done))
		return false;
	rn_fifo_push(cqe->ports.ctl_done, &(struct rn_ctl_done){.token = ctl->token});
	rn_fifo_drop(cqe->ports.ctl);
	cqe->has_ctl = false;
	return true;
}

static bool take_arm(struct rn_cqe *cqe)
{
	struct rn_cq_ring ring;

	if (!rn_fifo_pop(cqe->ports.cq_ring, &ring))
		return false;
	cqe->count.arms++;
	if (!rn_cq_arms_add(cqe->arms, &ring))
		cqe->count.arms_ignored++;
	return true;
}

static void tick(void *self, uint64_t cycle)
{
	struct rn_cqe *cqe = self;
	bool busy;

	cqe->stall = RN_STALL_NONE;
	busy = take_answers(cqe);
	busy |= take_arm(cqe);
	busy |= send_event(cqe);
	busy |= step(cqe, cycle);
	busy |= take_ctl(cqe);
	rn_block_account(&cqe->block, busy, cqe->stall);
}

static void connect(struct rn_cqe *cqe)
{
	struct rn_cqe_ports *p = &cqe->ports;

	rn_fifo_set_consumer(p->tx_completion, &cqe->block);
	rn_fifo_set_consumer(p->rx_completion, &cqe->block);
	rn_fifo_set_consumer(p->cq_ring, &cqe->block);
	rn_fifo_set_consumer(p->ctl, &cqe->block);
	rn_fifo_set_consumer(p->context_rsp, &cqe->block);
	rn_fifo_set_consumer(p->dma_rsp, &cqe->block);
	rn_fifo_set_producer(p->event, &cqe->block);
	rn_fifo_set_producer(p->ctl_done, &cqe->block);
	rn_fifo_set_producer(p->context_req, &cqe->block);
	rn_fifo_set_producer(p->dma_req, &cqe->block);
}

struct rn_cqe *rn_cqe_new(const struct rn_nic_env *env, const struct rn_cqe_params *params,
			  const struct rn_cqe_ports *ports)
{
	struct rn_cqe *cqe = rn_calloc(1, sizeof(*cqe));

	cqe->env = env;
	cqe->params = *params;
	cqe->ports = *ports;
	cqe->name = rn_asprintf("%s.cqe", env->name);
	cqe->arms = rn_cq_arms_new(params->max_cqs);
	cqe->ci_buf = RN_BUFFER_NONE;
	cqe->slot = rn_calloc(params->in_flight, sizeof(struct cqe_slot));
	cqe->free_slot = rn_calloc(params->in_flight, sizeof(uint16_t));
	cqe->event = rn_calloc(params->in_flight, sizeof(uint16_t));
	for (uint32_t i = 0; i < params->in_flight; i++) {
		cqe->slot[i].buf = RN_BUFFER_NONE;
		cqe->free_slot[cqe->free_count++] = (uint16_t)(params->in_flight - 1 - i);
	}
	rn_block_init(&cqe->block, env->sim, env->core, cqe->name, tick, cqe);
	connect(cqe);
	rn_stats_add_block(env->stats, &cqe->block);
	rn_stats_add_counters(env->stats, cqe->name, cqe_counter_descs,
			      RN_ARRAY_LEN(cqe_counter_descs), &cqe->count);
	return cqe;
}

void rn_cqe_free(struct rn_cqe *cqe)
{
	if (!cqe)
		return;
	for (uint32_t i = 0; i < cqe->params.in_flight; i++)
		rn_buffer_put(cqe->env->buffers, cqe->slot[i].buf);
	rn_buffer_put(cqe->env->buffers, cqe->ci_buf);
	free(cqe->event);
	free(cqe->free_slot);
	free(cqe->slot);
	rn_cq_arms_free(cqe->arms);
	free(cqe->name);
	free(cqe);
}
