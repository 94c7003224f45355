/*
 * The jobs of the CQE writer that hold a CQ's context line.
 */
#include <stddef.h>
#include <string.h>

#include "base/bits.h"
#include "nic/cqe/internal.h"
#include "sim/buffer.h"
#include "sim/stamp.h"

enum { CQ_LIVE = 1, CQ_ERROR = 2 };
enum { CQ_ARMED_ANY = 1, CQ_ARMED_SOLICITED = 2 };

void rn_cqe_push_event(struct rn_cqe *cqe, uint8_t eqn, uint8_t type, uint32_t cqn)
{
	rn_fifo_push(cqe->ports.event, &(struct rn_event){.eqn = eqn, .type = type, .number = cqn});
	if (type == RN_EQE_COMPLETION)
		cqe->count.completion_events++;
}

static void release(struct rn_cqe *cqe, bool dirty)
{
	struct rn_context_req req = {.op = RN_CONTEXT_RELEASE,
				     .type = RN_CONTEXT_CQ,
				     .dirty = dirty,
				     .number = cqe->cqn};

	rn_fifo_push(cqe->ports.context_req, &req);
	cqe->state = IDLE;
}

static bool fail_cq(struct rn_cqe *cqe, struct rn_hw_cqc *cqc)
{
	if (!rn_fifo_can_push(cqe->ports.event))
		return false;
	cqc->state = CQ_ERROR;
	cqc->armed = 0;
	rn_cqe_push_event(cqe, cqc->eqn, RN_EQE_CQ_ERROR, cqe->cqn);
	return true;
}

static bool read_ci(struct rn_cqe *cqe, const struct rn_hw_cqc *cqc)
{
	if (!rn_fifo_can_push(cqe->ports.dma_req))
		return false;
	cqe->ci_buf = rn_buffer_get(cqe->env->buffers);
	rn_fifo_push(cqe->ports.dma_req,
		     &(struct rn_dma_req){.op = RN_DMA_READ,
					  .flags = RN_DMA_PHYSICAL,
					  .token = (uint16_t)cqe->params.in_flight,
					  .buf = cqe->ci_buf,
					  .len = sizeof(uint32_t),
					  .addr = cqc->dbr_pa + offsetof(struct rn_hw_cq_dbr, ci)});
	cqe->count.ci_reads++;
	cqe->state = READING;
	return true;
}

static uint32_t make_cqe(struct rn_cqe *cqe, const struct rn_hw_cqc *cqc)
{
	const struct rn_completion *c = &cqe->completion;
	struct rn_hw_cqe entry = {
		.qpn = c->qpn,
		.wqe_idx = c->wqe_idx,
		.opcode = c->opcode,
		.status = c->status,
		.byte_len = c->byte_len,
		.imm_be = c->imm_be,
		.req_opcode = c->req_opcode,
		.flags = c->solicited != 0,
		.vendor_syndrome = c->vendor_syndrome,
		.src_qpn = c->src_qpn,
		.timestamp_ps = rn_sim_now_ps(cqe->env->sim),
		.owner = !(cqc->pi >> cqc->log_cqes & 1),
	};
	uint32_t buf = rn_buffer_get(cqe->env->buffers);

	memcpy(rn_buffer_data(cqe->env->buffers, buf), &entry, sizeof(entry));
	return buf;
}

static bool is_receive(const struct rn_completion *c)
{
	return c->opcode != RN_CQE_REQ && c->opcode != RN_CQE_REQ_ERR;
}

static void stamp(const struct rn_cqe *cqe)
{
	const struct rn_completion *c = &cqe->completion;

	rn_stamps_record(cqe->env->stamps, &(struct rn_stamp){.at_ps = rn_sim_now_ps(cqe->env->sim),
							      .host = cqe->env->host,
							      .qpn = c->qpn,
							      .wqe_idx = c->wqe_idx,
							      .stage = RN_STAMP_CQE,
							      .receive = is_receive(c)});
}

/* Move the producer index on; true when the CQE is what the CQ is armed for. */
static bool advance(struct rn_hw_cqc *cqc, bool is_solicited)
{
	bool fires =
		cqc->armed == CQ_ARMED_ANY || (cqc->armed == CQ_ARMED_SOLICITED && is_solicited);

	cqc->pi++;
	if (is_solicited)
		cqc->pi_solicited = cqc->pi;
	/* Keep it near enough for comparisons of 24 bits. */
	else if (cqc->pi - cqc->pi_solicited > CQ_INDEX_MASK / 2)
		cqc->pi_solicited = cqc->pi - CQ_INDEX_MASK / 2;
	if (fires)
		cqc->armed = 0;
	return fires;
}

static void write_cqe(struct rn_cqe *cqe, struct rn_hw_cqc *cqc)
{
	const struct rn_completion *c = &cqe->completion;
	uint32_t mask = (UINT32_C(1) << cqc->log_cqes) - 1;
	uint16_t idx = cqe->free_slot[--cqe->free_count];
	struct cqe_slot *slot = &cqe->slot[idx];
	bool is_error = c->status != RN_WC_SUCCESS;

	*slot = (struct cqe_slot){.order = cqe->written++,
				  .buf = make_cqe(cqe, cqc),
				  .cqn = cqe->cqn,
				  .eqn = cqc->eqn,
				  .is_used = true};
	rn_fifo_push(cqe->ports.dma_req,
		     &(struct rn_dma_req){.op = RN_DMA_WRITE,
					  .access = RN_ACCESS_LOCAL_WRITE,
					  .token = idx,
					  .buf = slot->buf,
					  .len = RN_CQE_BYTES,
					  .key = cqc->mkey,
					  .pd = cqc->pd,
					  .addr = (uint64_t)(cqc->pi & mask) * RN_CQE_BYTES,
					  .trace = RN_DMA_TRACE_VISIBLE,
					  .trace_qpn = c->qpn,
					  .trace_wqe = c->wqe_idx,
					  .trace_receive = is_receive(c)});
	slot->fires = advance(cqc, c->solicited || is_error);
	cqe->count.cqes++;
	cqe->count.error_cqes += is_error;
	stamp(cqe);
}

static bool do_completion(struct rn_cqe *cqe)
{
	struct rn_hw_cqc *cqc = held_cqc(cqe);

	if (cqc->state != CQ_LIVE || cqc->log_cqes > 23) {
		cqe->count.completions_dropped++;
		release(cqe, false);
		return true;
	}
	if (((cqc->pi - cqc->ci) & CQ_INDEX_MASK) >= UINT32_C(1) << cqc->log_cqes) {
		if (!cqe->is_ci_fresh)
			return read_ci(cqe, cqc);
		if (!fail_cq(cqe, cqc))
			return false;
		cqe->count.cq_overruns++;
		cqe->count.completions_dropped++;
		release(cqe, true);
		return true;
	}
	if (!cqe->free_count) {
		cqe->stall = RN_STALL_TAG;
		return false;
	}
	if (!rn_fifo_can_push(cqe->ports.dma_req))
		return false;
	write_cqe(cqe, cqc);
	release(cqe, true);
	return true;
}

/* The event of an arm that fires at once goes behind the CQ's CQEs that are still in flight. */
static void fire_now(struct rn_cqe *cqe, const struct rn_hw_cqc *cqc)
{
	struct cqe_slot *newest = NULL;

	for (uint32_t i = 0; i < cqe->params.in_flight; i++) {
		struct cqe_slot *slot = &cqe->slot[i];

		if (slot->is_used && slot->cqn == cqe->cqn && slot->buf != RN_BUFFER_NONE &&
		    (!newest || slot->order > newest->order))
			newest = slot;
	}
	if (newest)
		newest->fires = true;
	else
		rn_cqe_push_event(cqe, cqc->eqn, RN_EQE_COMPLETION, cqe->cqn);
}

static void arm(struct rn_cqe *cqe, struct rn_hw_cqc *cqc, const struct rn_cq_ring *ring)
{
	uint32_t behind = (cqc->pi - ring->ci) & CQ_INDEX_MASK;
	uint32_t target = ring->solicited ? cqc->pi_solicited : cqc->pi;
	uint32_t match = (target - ring->ci) & CQ_INDEX_MASK;

	/* A newer consumer index saves a read of the doorbell record. */
	if (behind <= ((cqc->pi - cqc->ci) & CQ_INDEX_MASK))
		cqc->ci = ring->ci & CQ_INDEX_MASK;
	cqc->arm_ci = ring->ci;
	cqc->arm_sn = ring->sn;
	if (match && match <= behind && behind <= UINT32_C(1) << cqc->log_cqes) {
		cqc->armed = 0;
		fire_now(cqe, cqc);
	} else if (!ring->solicited) {
		cqc->armed = CQ_ARMED_ANY;
	} else if (!cqc->armed) {
		cqc->armed = CQ_ARMED_SOLICITED;
	}
}

static bool do_pending(struct rn_cqe *cqe)
{
	struct rn_hw_cqc *cqc = held_cqc(cqe);

	/* At most one event: one arm at most is from the CQ's page, and none counts after a failure. */
	if (!rn_fifo_can_push(cqe->ports.event))
		return false;
	if (cqe->pending.has_failed && cqc->state == CQ_LIVE)
		fail_cq(cqe, cqc);
	for (uint32_t i = 0; i < cqe->pending.arms; i++) {
		const struct rn_cq_ring *ring = &cqe->pending.arm[i];

		if (cqc->state != CQ_LIVE || cqc->log_cqes > 23 || ring->uar_page != cqc->uar_page)
			cqe->count.arms_ignored++;
		else
			arm(cqe, cqc, ring);
	}
	release(cqe, true);
	return true;
}

bool rn_cqe_do_job(struct rn_cqe *cqe)
{
	bool done = rn_fifo_can_push(cqe->ports.context_req) &&
		    (cqe->source == SOURCE_PENDING ? do_pending(cqe) : do_completion(cqe));

	if (!done && !cqe->stall)
		cqe->stall = RN_STALL_OUTPUT;
	return done;
}
