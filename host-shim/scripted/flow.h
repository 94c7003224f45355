/*
 * A stream of equal messages on a connection of scripted QPs: keeps a number of them outstanding until
 * all are through, as the loops of the perftest programs do. For bandwidth runs, benchmarks, loss cases.
 */
#ifndef RN_SCRIPTED_FLOW_H
#define RN_SCRIPTED_FLOW_H

#include "scripted/scripted.h"

struct rn_scripted_flow_spec {
	struct rn_scripted_qp *from,
		*to; /* connected; their CQs belong to the flow while it runs */
	struct rn_scripted_cq *from_cq, *to_cq;
	uint8_t opcode;	       /* SEND(_IMM), RDMA_WRITE(_IMM), RDMA_READ */
	uint32_t bytes;	       /* of a message */
	uint32_t depth;	       /* messages outstanding */
	uint64_t count;	       /* messages */
	uint32_t signal_every; /* 0: 1; at most depth */
	uint64_t va;	       /* local buffer of from: message n uses va + (n % depth) * stride */
	uint32_t lkey;
	uint64_t remote_va; /* the same at the peer: target, source, or receive buffers */
	uint32_t rkey;
	uint32_t stride;      /* 0: every message uses the same bytes */
	uint64_t interval_ps; /* of polling; 0: 100 ns */
	bool blueflame;
	bool inline_data; /* from @data instead of @va */
	const void *data;
};

struct rn_scripted_flow {
	struct rn_scripted_flow_spec spec;
	uint64_t posted, done;		/* at the sender */
	uint64_t recv_posted, received; /* at the receiver */
	uint64_t errors;		/* completions with a status other than success */
	uint8_t first_error;		/* its status */
	uint64_t start_ps, end_ps;	/* first post; the CQE of the last completion */
};

/** Post the first @depth messages now and go on by itself. Every depth-th and the last message is signaled at least. */
void rn_scripted_flow_start(struct rn_scripted_flow *flow,
			    const struct rn_scripted_flow_spec *spec);

/** All through (also at the receiver), or an error has stopped it. */
bool rn_scripted_flow_is_done(const struct rn_scripted_flow *flow);

/** Run until done, @ps of simulated time at most. True when all messages went through without an error. */
bool rn_scripted_flow_run(struct rn_scripted_flow *flow, uint64_t ps);

/** Payload rate from first post to last completion, in bits per second. */
double rn_scripted_flow_bps(const struct rn_scripted_flow *flow);

/** Stop polling; the flow's memory may go. */
void rn_scripted_flow_stop(struct rn_scripted_flow *flow);

#endif
