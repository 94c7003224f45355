/*
 * Completion queues of a scripted process: ring and doorbell record in pinned memory, events, polling.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "scripted/internal.h"

#define PAGE 4096u

static uint64_t whole_pages(uint64_t bytes)
{
	return rn_div_ceil(bytes, PAGE) * PAGE;
}

/* --- completion queues --- */

static bool make_channel(struct rn_scripted_cq *cq)
{
	struct rn_uapi_req request = {0};
	struct rn_uapi_rsp rsp;

	if (rn_scripted_call(cq->host, RN_UAPI_CREATE_CHANNEL, &request, sizeof(request), &rsp,
			     sizeof(rsp)))
		return false;
	cq->channel = rsp.handle;
	cq->event_fd = cq->host->fd;
	cq->host->fd = -1;
	return true;
}

static bool create_cq(struct rn_scripted_cq *cq, uint32_t cqes, uint32_t vector)
{
	const uint64_t ring_bytes = whole_pages((uint64_t)cqes * RN_CQE_BYTES);
	struct rn_uapi_create_cq request = {
		.cqes = cqes,
		.channel = cq->channel,
		.cookie = (uintptr_t)cq,
		.vector = vector,
	};
	struct rn_uapi_rsp rsp;

	if (!rn_scripted_alloc(cq->host, ring_bytes + PAGE, &cq->memory))
		return false;
	request.ring_va = cq->memory.va;
	request.dbr_va = cq->memory.va + ring_bytes;
	rn_cq_init(&cq->queue, cq->memory.data, (void *)(cq->memory.data + ring_bytes), cqes);
	if (rn_scripted_call(cq->host, RN_UAPI_CREATE_CQ, &request, sizeof(request), &rsp,
			     sizeof(rsp)))
		return false;
	cq->queue.cqn = rsp.handle;
	return true;
}

static void poll_and_go_on(void *arg);

static struct rn_scripted_cq *new_cq(struct rn_scripted *host, uint32_t cqes, bool with_events,
				     uint32_t vector)
{
	struct rn_scripted_cq *cq = rn_calloc(1, sizeof(*cq));

	cq->host = host;
	cq->event_fd = -1;
	rn_wake_init(host->env.sim, &cq->wake, poll_and_go_on, cq);
	rn_list_init(&cq->link);
	rn_list_add(&host->cqs, &cq->link);
	if ((with_events && !make_channel(cq)) ||
	    !create_cq(cq, 1u << rn_log2_ceil(cqes), vector)) {
		rn_scripted_cq_drop(cq);
		return NULL;
	}
	return cq;
}

struct rn_scripted_cq *rn_scripted_cq_new(struct rn_scripted *host, uint32_t cqes)
{
	return new_cq(host, cqes, false, 0);
}

struct rn_scripted_cq *rn_scripted_cq_new_with_events(struct rn_scripted *host, uint32_t cqes,
						      uint32_t vector)
{
	return new_cq(host, cqes, true, vector);
}

void rn_scripted_cq_drop(struct rn_scripted_cq *cq)
{
	rn_wake_cancel(cq->host->env.sim, &cq->wake);
	if (cq->event_fd >= 0)
		close(cq->event_fd);
	rn_list_remove(&cq->link);
	free(cq);
}

int rn_scripted_cq_free(struct rn_scripted_cq *cq)
{
	struct rn_uapi_req request = {.handle = cq->queue.cqn};
	struct rn_scripted *host = cq->host;
	int error = rn_scripted_call(host, RN_UAPI_DESTROY_CQ, &request, sizeof(request), NULL, 0);

	if (error)
		return error;
	request.handle = cq->channel;
	if (cq->channel)
		error = rn_scripted_call(host, RN_UAPI_DESTROY_CHANNEL, &request, sizeof(request),
					 NULL, 0);
	if (!error)
		error = rn_scripted_release(host, &cq->memory);
	rn_scripted_cq_drop(cq);
	return error;
}

uint32_t rn_scripted_cqn(const struct rn_scripted_cq *cq)
{
	return cq->queue.cqn;
}

void rn_scripted_arm(struct rn_scripted_cq *cq, bool solicited_only)
{
	const struct rn_hw_cq_arm arm = rn_cq_arm(&cq->queue, solicited_only);

	rn_scripted_mmio(cq->host, rn_scripted_now_ps(cq->host), RN_UAR_CQ_ARM, &arm, sizeof(arm));
}

int rn_scripted_event_fd(const struct rn_scripted_cq *cq)
{
	return cq->event_fd;
}

bool rn_scripted_take_event(struct rn_scripted_cq *cq)
{
	uint64_t cookie;

	rn_driver_poll(cq->host->env.driver); /* a full pipe may have held it up */
	if (recv(cq->event_fd, &cookie, sizeof(cookie), MSG_DONTWAIT) != sizeof(cookie))
		return false;
	cq->queue.arm_sn++;
	return true;
}

/* --- completions --- */

static void retire(struct rn_scripted_qp *qp, const struct rn_hw_cqe *cqe,
		   struct rn_scripted_wc *wc)
{
	const struct rn_sq_slot *slot;

	if (wc->is_recv) {
		(void)rn_rq_retire(&qp->rq, cqe->wqe_idx, &wc->wr_id);
		return;
	}
	slot = rn_sq_retire(&qp->sq, cqe->wqe_idx);
	if (!slot)
		return;
	wc->wr_id = slot->wr_id;
	wc->req_opcode = slot->opcode;
}

static void take(struct rn_scripted_cq *cq, const struct rn_hw_cqe *cqe, struct rn_scripted_wc *wc)
{
	*wc = (struct rn_scripted_wc){
		.qp = rn_scripted_find_qp(cq->host, cqe->qpn),
		.made_ps = cqe->timestamp_ps,
		.byte_len = cqe->byte_len,
		.imm_be = cqe->imm_be,
		.vendor_syndrome = cqe->vendor_syndrome,
		.status = cqe->status,
		.opcode = cqe->opcode,
		.req_opcode = cqe->req_opcode,
		.is_recv = rn_cqe_is_recv(cqe),
	};
	if (wc->qp)
		retire(wc->qp, cqe, wc);
}

uint32_t rn_scripted_poll(struct rn_scripted_cq *cq, struct rn_scripted_wc *wc, uint32_t count)
{
	const struct rn_hw_cqe *cqe;
	uint32_t done = 0;

	while (done < count && (cqe = rn_cq_peek(&cq->queue))) {
		take(cq, cqe, &wc[done++]);
		rn_cq_advance(&cq->queue);
	}
	if (done)
		rn_cq_publish(&cq->queue);
	return done;
}

static bool has_completion(void *arg)
{
	return rn_cq_peek(&((struct rn_scripted_cq *)arg)->queue) != NULL;
}

uint32_t rn_scripted_wait(struct rn_scripted_cq *cq, struct rn_scripted_wc *wc, uint32_t count,
			  uint64_t ps)
{
	const uint64_t deadline_ps = rn_scripted_now_ps(cq->host) + ps;
	uint32_t done = 0;

	while (done < count && rn_scripted_run_until(cq->host, has_completion, cq, deadline_ps))
		done += rn_scripted_poll(cq, wc + done, count - done);
	return done;
}

static void poll_and_go_on(void *arg)
{
	struct rn_scripted_cq *cq = arg;
	struct rn_scripted_wc wc;

	while (cq->interval_ps && rn_scripted_poll(cq, &wc, 1))
		cq->fn(cq->arg, &wc);
	if (cq->interval_ps)
		rn_wake_at(cq->host->env.sim, &cq->wake,
			   rn_scripted_now_ps(cq->host) + cq->interval_ps);
}

void rn_scripted_poll_every(struct rn_scripted_cq *cq, uint64_t interval_ps,
			    void (*fn)(void *arg, const struct rn_scripted_wc *wc), void *arg)
{
	cq->interval_ps = interval_ps;
	cq->fn = fn;
	cq->arg = arg;
	rn_wake_cancel(cq->host->env.sim, &cq->wake);
	if (interval_ps)
		rn_wake_at(cq->host->env.sim, &cq->wake,
			   rn_scripted_now_ps(cq->host) + interval_ps);
}
