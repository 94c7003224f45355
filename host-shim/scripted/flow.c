/*
 * Streams of messages; see flow.h.
 */
#include "scripted/flow.h"

#include "base/bits.h"
#include "scripted/internal.h"

#define DEFAULT_INTERVAL_PS 100000
#define SLICE_WAKES 256

static bool takes_receives(const struct rn_scripted_flow *flow)
{
	const uint8_t opcode = flow->spec.opcode;

	return opcode == RN_WQE_SEND || opcode == RN_WQE_SEND_IMM ||
	       opcode == RN_WQE_RDMA_WRITE_IMM;
}

static uint64_t offset_of(const struct rn_scripted_flow *flow, uint64_t message)
{
	return message % flow->spec.depth * flow->spec.stride;
}

static void post_receives(struct rn_scripted_flow *flow)
{
	const struct rn_scripted_flow_spec *spec = &flow->spec;

	while (flow->recv_posted < spec->count &&
	       flow->recv_posted - flow->received < spec->depth &&
	       rn_scripted_post_recv(spec->to, flow->recv_posted,
				     spec->remote_va + offset_of(flow, flow->recv_posted),
				     spec->bytes, spec->rkey) == RN_POST_OK)
		flow->recv_posted++;
}

static bool post_one(struct rn_scripted_flow *flow)
{
	const struct rn_scripted_flow_spec *spec = &flow->spec;
	const uint64_t n = flow->posted;
	const bool signaled = (n + 1) % spec->signal_every == 0 || n + 1 == spec->count;
	const struct rn_scripted_wr wr = {
		.opcode = spec->opcode,
		.flags = signaled ? RN_WQE_SIGNALED : 0,
		.wr_id = n,
		.va = spec->va + offset_of(flow, n),
		.bytes = spec->bytes,
		.lkey = spec->lkey,
		.data = spec->inline_data ? spec->data : NULL,
		.raddr = spec->remote_va + offset_of(flow, n),
		.rkey = spec->rkey,
		.imm_be = (uint32_t)n,
	};

	if (rn_scripted_post(spec->from, &wr) != RN_POST_OK)
		return false;
	flow->posted++;
	return true;
}

static void post_more(struct rn_scripted_flow *flow)
{
	const struct rn_scripted_flow_spec *spec = &flow->spec;
	const uint64_t before = flow->posted;

	while (flow->posted < spec->count && flow->posted - flow->done < spec->depth &&
	       post_one(flow))
		;
	if (flow->posted == before)
		return;
	if (spec->blueflame && flow->posted - before == 1)
		rn_scripted_ring_blueflame(spec->from);
	else
		rn_scripted_ring(spec->from);
}

static void completed(void *arg, const struct rn_scripted_wc *wc)
{
	struct rn_scripted_flow *flow = arg;

	flow->end_ps = rn_max_u64(flow->end_ps, wc->made_ps);
	if (wc->status != RN_WC_SUCCESS) {
		if (!flow->errors++)
			flow->first_error = wc->status;
		return;
	}
	if (wc->qp == flow->spec.from && !wc->is_recv) {
		flow->done = wc->wr_id + 1;
		post_more(flow);
	} else if (wc->qp == flow->spec.to && wc->is_recv) {
		flow->received++;
		post_receives(flow);
	}
}

void rn_scripted_flow_start(struct rn_scripted_flow *flow, const struct rn_scripted_flow_spec *spec)
{
	const uint64_t interval_ps = spec->interval_ps ? spec->interval_ps : DEFAULT_INTERVAL_PS;

	*flow = (struct rn_scripted_flow){.spec = *spec};
	if (!spec->signal_every)
		flow->spec.signal_every = 1;
	if (flow->spec.signal_every > spec->depth)
		flow->spec.signal_every = spec->depth;
	flow->start_ps = rn_scripted_now_ps(spec->from->host);
	rn_scripted_poll_every(spec->from_cq, interval_ps, completed, flow);
	if (takes_receives(flow)) {
		rn_scripted_poll_every(spec->to_cq, interval_ps, completed, flow);
		post_receives(flow);
	}
	post_more(flow);
}

bool rn_scripted_flow_is_done(const struct rn_scripted_flow *flow)
{
	return flow->errors || (flow->done == flow->spec.count &&
				(!takes_receives(flow) || flow->received == flow->spec.count));
}

/* Polling goes on at its interval, so there always is a next wake; a slice may run on a little. */
bool rn_scripted_flow_run(struct rn_scripted_flow *flow, uint64_t ps)
{
	struct rn_scripted *host = flow->spec.from->host;
	const uint64_t deadline_ps = rn_scripted_now_ps(host) + ps;

	while (!rn_scripted_flow_is_done(flow) && rn_scripted_now_ps(host) < deadline_ps) {
		if (host->env.step)
			(void)rn_scripted_step(host, deadline_ps);
		else
			rn_sim_run(host->env.sim, deadline_ps, SLICE_WAKES);
	}
	return rn_scripted_flow_is_done(flow) && !flow->errors;
}

double rn_scripted_flow_bps(const struct rn_scripted_flow *flow)
{
	const double seconds = (double)(flow->end_ps - flow->start_ps) / 1e12;

	return seconds > 0 ? (double)flow->done * flow->spec.bytes * 8 / seconds : 0;
}

void rn_scripted_flow_stop(struct rn_scripted_flow *flow)
{
	rn_scripted_poll_every(flow->spec.from_cq, 0, NULL, NULL);
	if (flow->spec.to_cq)
		rn_scripted_poll_every(flow->spec.to_cq, 0, NULL, NULL);
}
