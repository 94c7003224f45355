/*
 * WQE fetcher. A grant (send) or request (receive) becomes a job: read the QP context, get the WQE from a
 * BlueFlame buffer, the cache or memory, decode it into a slot, pass it on. Jobs of different QPs
 * overlap; the context port serves one at a time and holds the line for the cycle of reading alone.
 *
 *   send:    CONTEXT -> (BlueFlame or cache hit) DECODE
 *                    -> READ -> DMA -> DECODE (-> READ again when the WQE is longer than the batch)
 *   receive: (cache hit) DECODE
 *            CONTEXT -> READ, DMA of the doorbell record if the known producer index is used up
 *                    -> READ, DMA of receive WQEs -> DECODE
 *
 * Exact: bytes come by DMA from the queue's own memory, a WQE rewritten before its fetch takes effect,
 * prefetch never passes the producer index. Approximated: the decoder is an interval and a latency.
 * Left out: shared receive queues, UD.
 */
#include "nic/wqe_fetch/wqe_fetch.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "nic/wqe_fetch/internal.h"
#include "sim/buffer.h"

#define RN_PARAM_OWNER rn_wqe_fetch_params
RN_PARAM_TABLE(rn_wqe_fetch_param_table, "wqe_fetch", RN_WQE_FETCH_PARAMS);

#define WQE_FETCH_ROW(field, unit, help)                                                           \
	RN_COUNTER_ROW(struct wqe_fetch_counters, field, unit, help)

static const struct rn_counter_desc counter_descs[] = {WQE_FETCH_COUNTERS(WQE_FETCH_ROW)};

void rn_wqe_queue_init(struct job_queue *queue, uint32_t capacity)
{
	*queue = (struct job_queue){.job = rn_calloc(capacity, sizeof(uint16_t)),
				    .capacity = capacity};
}

void rn_wqe_queue_push(struct job_queue *queue, uint16_t job)
{
	RN_ASSERT(queue->count < queue->capacity);
	queue->job[(queue->head + queue->count++) % queue->capacity] = job;
}

uint16_t rn_wqe_queue_first(const struct job_queue *queue)
{
	RN_ASSERT(queue->count);
	return queue->job[queue->head];
}

void rn_wqe_queue_drop(struct job_queue *queue)
{
	RN_ASSERT(queue->count);
	queue->head = (queue->head + 1) % queue->capacity;
	queue->count--;
}

uint32_t rn_wqe_fetch_take_slot(struct slot_list *list)
{
	RN_ASSERT(list->count);
	return list->idx[--list->count];
}

void rn_wqe_fetch_wake(struct rn_wqe_fetch *wf, uint64_t cycle, uint64_t due)
{
	rn_block_wake_in(&wf->block, due > cycle ? due - cycle : 1);
}

void rn_wqe_fetch_stamp(const struct rn_wqe_fetch *wf, uint32_t qpn, uint16_t idx, bool receive)
{
	rn_stamps_record(wf->env->stamps, &(struct rn_stamp){.at_ps = rn_sim_now_ps(wf->env->sim),
							     .host = wf->env->host,
							     .qpn = qpn,
							     .wqe_idx = idx,
							     .stage = RN_STAMP_FETCH,
							     .receive = receive});
}

/* Slots */

static void init_slots(struct slot_list *list, struct rn_wqe_slots *slots)
{
	list->slots = slots;
	list->idx = rn_calloc(slots->count, sizeof(uint32_t));
	for (uint32_t i = 0; i < slots->count; i++) {
		slots->slot[i].inline_buf = RN_BUFFER_NONE;
		list->idx[list->count++] = slots->count - 1 - i;
	}
}

static bool take_back(struct rn_wqe_fetch *wf, struct slot_list *list, struct rn_fifo *fifo)
{
	struct rn_slot_free back;
	bool busy = false;

	for (; rn_fifo_pop(fifo, &back); busy = true) {
		RN_ASSERT(back.slot < list->slots->count && list->count < list->slots->count);
		struct rn_wqe *wqe = &list->slots->slot[back.slot];

		rn_buffer_put(wf->env->buffers, wqe->inline_buf);
		wqe->inline_buf = RN_BUFFER_NONE;
		list->idx[list->count++] = back.slot;
	}
	return busy;
}

/* Context port */

static uint32_t qpn_of(const struct rn_wqe_fetch *wf, uint16_t number)
{
	if (number < wf->params.send_fetches)
		return wf->send.job[number].qpn;
	return wf->recv.job[number - wf->params.send_fetches].request.qpn;
}

void rn_wqe_fetch_want_context(struct rn_wqe_fetch *wf, uint16_t number)
{
	rn_wqe_queue_push(&wf->context, number);
}

static bool take_line(struct rn_wqe_fetch *wf, uint64_t cycle)
{
	const struct rn_context_rsp *rsp = rn_fifo_peek(wf->ports.context_rsp);

	if (!rsp)
		return false;
	RN_ASSERT(wf->is_acquiring);
	uint16_t number = rn_wqe_queue_first(&wf->context);
	bool has_line = rsp->status == RN_CONTEXT_OK;
	bool is_send = number < wf->params.send_fetches;

	/* The line is held until all that depends on it can go on. */
	if (!rn_fifo_can_push(wf->ports.context_req) ||
	    (is_send && !rn_wqe_send_can_take_context(wf, number)))
		return false;

	const void *qpc = has_line ? rn_context_line(wf->ports.qpc, rsp->line) : NULL;
	uint32_t qpn = qpn_of(wf, number);

	if (is_send)
		rn_wqe_send_take_context(wf, number, qpc, cycle);
	else
		rn_wqe_recv_take_context(wf, number, qpc, cycle);
	if (has_line)
		rn_fifo_push(wf->ports.context_req,
			     &(struct rn_context_req){.op = RN_CONTEXT_RELEASE,
						      .type = RN_CONTEXT_QP,
						      .token = number,
						      .number = qpn});
	rn_fifo_drop(wf->ports.context_rsp);
	rn_wqe_queue_drop(&wf->context);
	wf->is_acquiring = false;
	return true;
}

static bool ask_for_line(struct rn_wqe_fetch *wf)
{
	if (wf->is_acquiring || !wf->context.count)
		return false;
	if (!rn_fifo_can_push(wf->ports.context_req)) {
		wf->stall = RN_STALL_OUTPUT;
		return false;
	}
	uint16_t number = rn_wqe_queue_first(&wf->context);

	rn_fifo_push(wf->ports.context_req, &(struct rn_context_req){.op = RN_CONTEXT_ACQUIRE,
								     .type = RN_CONTEXT_QP,
								     .token = number,
								     .number = qpn_of(wf, number)});
	wf->is_acquiring = true;
	return true;
}

static void tick(void *self, uint64_t cycle)
{
	struct rn_wqe_fetch *wf = self;
	bool busy = false;

	wf->stall = RN_STALL_NONE;
	busy |= take_back(wf, &wf->send.free, wf->ports.sq_free);
	busy |= take_back(wf, &wf->recv.free, wf->ports.rq_free);
	busy |= rn_wqe_send_take_forgets(wf);
	busy |= take_line(wf, cycle);
	busy |= rn_wqe_send_tick(wf, cycle);
	busy |= rn_wqe_recv_tick(wf, cycle);
	busy |= ask_for_line(wf);
	rn_block_account(&wf->block, busy, wf->stall);
}

static void connect(struct rn_wqe_fetch *wf)
{
	struct rn_wqe_fetch_ports *p = &wf->ports;
	struct rn_fifo *in[] = {p->grant,	p->blueflame,  p->sq_free,
				p->sq_forget,	p->rq_fetch,   p->rq_free,
				p->context_rsp, p->sq_dma_rsp, p->rq_dma_rsp};
	struct rn_fifo *out[] = {p->work, p->rq_fetch_rsp, p->context_req, p->sq_dma_req,
				 p->rq_dma_req};

	for (unsigned i = 0; i < RN_ARRAY_LEN(in); i++)
		rn_fifo_set_consumer(in[i], &wf->block);
	for (unsigned i = 0; i < RN_ARRAY_LEN(out); i++)
		rn_fifo_set_producer(out[i], &wf->block);
	if (p->bind)
		rn_fifo_set_producer(p->bind, &wf->block);
}

struct rn_wqe_fetch *rn_wqe_fetch_new(const struct rn_nic_env *env,
				      const struct rn_wqe_fetch_params *params,
				      const struct rn_wqe_fetch_ports *ports)
{
	struct rn_wqe_fetch *wf = rn_calloc(1, sizeof(*wf));

	wf->env = env;
	wf->params = *params;
	wf->ports = *ports;
	wf->name = rn_asprintf("%s.wqe_fetch", env->name);
	init_slots(&wf->send.free, ports->sq_slots);
	init_slots(&wf->recv.free, ports->rq_slots);
	rn_wqe_queue_init(&wf->context, params->send_fetches + params->recv_fetches);
	rn_wqe_send_init(wf);
	rn_wqe_recv_init(wf);
	rn_block_init(&wf->block, env->sim, env->core, wf->name, tick, wf);
	connect(wf);
	rn_stats_add_block(env->stats, &wf->block);
	rn_stats_add_counters(env->stats, wf->name, counter_descs, RN_ARRAY_LEN(counter_descs),
			      &wf->count);
	return wf;
}

static void fini_slots(struct rn_wqe_fetch *wf, struct slot_list *list)
{
	for (uint32_t i = 0; i < list->slots->count; i++)
		rn_buffer_put(wf->env->buffers, list->slots->slot[i].inline_buf);
	free(list->idx);
}

void rn_wqe_fetch_free(struct rn_wqe_fetch *wf)
{
	if (!wf)
		return;
	rn_wqe_send_fini(wf);
	rn_wqe_recv_fini(wf);
	fini_slots(wf, &wf->send.free);
	fini_slots(wf, &wf->recv.free);
	free(wf->context.job);
	free(wf->name);
	free(wf);
}
