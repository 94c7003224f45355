/*
 * The NIC's end of the link. Three queues (posted, non-posted, completions) share the way up, the
 * oldest first, with PCIe's ordering rules: nothing passes a posted write that was there before
 * it; posted writes and completions pass reads that wait for credits. A TLP's turn is settled
 * commit_ps before its first bit, so that several short TLPs cost one wake. Exact: every TLP's
 * time and credits.
 */
#include "pcie/endpoint.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "nic/msg/doorbell.h"
#include "pcie/credit.h"
#include "pcie/root_port.h"
#include "pcie/tlp_trace.h"

enum queue { POSTED, NONPOSTED, COMPLETION, NONE };

struct rn_endpoint {
	struct rn_block block;
	struct rn_root_complex *rc;
	struct rn_pcie_ports ports;
	struct rn_pcie_params params;
	struct rn_link up;
	struct rn_credit posted;
	struct rn_credit nonposted;
	char *name;
	uint64_t blocked_ps; /* since when credits alone hold a TLP back; RN_TIME_NEVER: not */
};

/*
 * When the oldest entry of @fifo became visible; RN_TIME_NEVER: there is none. May be in the
 * future.
 */
static inline uint64_t head_ps(const struct rn_fifo *fifo)
{
	return fifo->head == fifo->tail ? RN_TIME_NEVER : rn_fifo_ready_ps(fifo, fifo->head_slot);
}

static uint32_t payload_bytes(const struct rn_tlp *tlp)
{
	return tlp->type == RN_TLP_MSI ? 4 : tlp->len;
}

static uint32_t first_tlp_bytes(const struct rn_endpoint *endpoint, const struct rn_tlp *tlp)
{
	uint32_t len = payload_bytes(tlp);

	return len < endpoint->params.mps_bytes ? len : endpoint->params.mps_bytes;
}

static bool posted_has_credit(struct rn_endpoint *endpoint, uint64_t now_ps)
{
	const struct rn_tlp *tlp = rn_fifo_peek(endpoint->ports.posted);
	uint32_t units = rn_credit_units(first_tlp_bytes(endpoint, tlp));

	return rn_credit_ready_ps(&endpoint->posted, units) <= now_ps;
}

/*
 * The queue whose turn it is. Credits given back count from the moment they are back and not
 * before, so that it does not matter which of link and root complex runs first in the picosecond
 * in which they are given.
 */
static enum queue choose(struct rn_endpoint *endpoint, uint64_t now_ps)
{
	const struct rn_pcie_ports *ports = &endpoint->ports;
	uint64_t posted_ps = head_ps(ports->posted);
	uint64_t read_ps = head_ps(ports->nonposted);
	uint64_t answer_ps = head_ps(ports->mmio_read_rsp);
	bool has_read = read_ps <= now_ps && read_ps < posted_ps;
	bool has_answer = answer_ps <= now_ps && answer_ps < posted_ps;

	if (has_read && rn_credit_ready_ps(&endpoint->nonposted, 0) > now_ps)
		has_read = false;
	if (has_read && (!has_answer || read_ps <= answer_ps))
		return NONPOSTED;
	if (has_answer)
		return COMPLETION;
	if (posted_ps <= now_ps && posted_has_credit(endpoint, now_ps))
		return POSTED;
	return NONE;
}

/* Serialise one TLP of @bytes with @overhead: when it arrives. */
static uint64_t send(struct rn_endpoint *endpoint, uint64_t at_ps, uint32_t bytes,
		     uint32_t overhead)
{
	return rn_link_send(&endpoint->up, at_ps, bytes + overhead) + endpoint->up.propagation_ps;
}

static struct rn_tlp_trace trace(const struct rn_endpoint *endpoint, uint64_t first_bit_ps,
				 uint64_t arrival_ps)
{
	return (struct rn_tlp_trace){
		.env = &endpoint->rc->env,
		.direction = RN_TLP_UP,
		.first_bit_ps = first_bit_ps,
		.arrival_ps = arrival_ps,
	};
}

/* One TLP of a write: when the memory system has taken it. */
static uint64_t send_write_tlp(struct rn_endpoint *endpoint, uint64_t now_ps,
			       const struct rn_tlp *tlp, uint32_t offset, uint32_t bytes)
{
	uint32_t units = rn_credit_units(bytes);
	uint64_t credit_ps = rn_credit_ready_ps(&endpoint->posted, units);
	uint64_t first_bit_ps = rn_link_start_ps(&endpoint->up, now_ps);

	RN_ASSERT(credit_ps != RN_TIME_NEVER);
	if (credit_ps > first_bit_ps) {
		endpoint->up.counters.credit_stall_ps += credit_ps - first_bit_ps;
		first_bit_ps = credit_ps;
	}

	uint64_t arrival_ps = send(endpoint, first_bit_ps, bytes, endpoint->params.header_bytes);
	uint64_t drained_ps = rn_root_drain(endpoint->rc, arrival_ps, bytes);

	rn_credit_take(&endpoint->posted, units);
	rn_credit_give(&endpoint->posted, drained_ps + endpoint->params.credit_return_ps);
	if (endpoint->rc->env.log) {
		struct rn_tlp_trace where = trace(endpoint, first_bit_ps, arrival_ps);

		rn_tlp_trace_memory(&where, tlp, offset, bytes);
	}
	return drained_ps;
}

static void send_posted(struct rn_endpoint *endpoint, uint64_t now_ps)
{
	const struct rn_tlp *tlp = rn_fifo_peek(endpoint->ports.posted);
	uint32_t len = payload_bytes(tlp);
	uint32_t offset = 0;
	uint64_t drained_ps = 0;

	while (offset < len) {
		uint32_t bytes = len - offset;

		if (bytes > endpoint->params.mps_bytes)
			bytes = endpoint->params.mps_bytes;
		drained_ps = send_write_tlp(endpoint, now_ps, tlp, offset, bytes);
		offset += bytes;
		endpoint->up.counters.posted_tlps++;
	}
	endpoint->up.counters.posted_bytes += len;
	rn_root_take_write(endpoint->rc, tlp, drained_ps);
	rn_fifo_drop(endpoint->ports.posted);
}

static void send_nonposted(struct rn_endpoint *endpoint, uint64_t now_ps)
{
	const struct rn_tlp *tlp = rn_fifo_peek(endpoint->ports.nonposted);
	uint64_t first_bit_ps = rn_link_start_ps(&endpoint->up, now_ps);
	uint64_t arrival_ps = send(endpoint, now_ps, 0, endpoint->params.header_bytes);

	rn_credit_take(&endpoint->nonposted, 0);
	endpoint->up.counters.nonposted_tlps++;
	endpoint->up.counters.nonposted_bytes += tlp->len;
	if (endpoint->rc->env.log) {
		struct rn_tlp_trace where = trace(endpoint, first_bit_ps, arrival_ps);

		rn_tlp_trace_memory(&where, tlp, 0, tlp->len);
	}
	rn_root_take_read(endpoint->rc, tlp, arrival_ps);
	rn_fifo_drop(endpoint->ports.nonposted);
}

static void send_completion(struct rn_endpoint *endpoint, uint64_t now_ps)
{
	const struct rn_mmio_read_rsp *rsp = rn_fifo_peek(endpoint->ports.mmio_read_rsp);
	uint32_t len = rsp->tag < RN_MMIO_READS_MAX ? endpoint->rc->slots[rsp->tag].len : 8;
	uint64_t first_bit_ps = rn_link_start_ps(&endpoint->up, now_ps);
	uint64_t arrival_ps = send(endpoint, now_ps, len, endpoint->params.completion_header_bytes);

	endpoint->up.counters.completion_tlps++;
	endpoint->up.counters.completion_bytes += len;
	if (endpoint->rc->env.log) {
		struct rn_tlp_trace where = trace(endpoint, first_bit_ps, arrival_ps);
		uint64_t offset =
			rsp->tag < RN_MMIO_READS_MAX ? endpoint->rc->slots[rsp->tag].offset : 0;

		rn_tlp_trace_mmio(&where, "CplD", offset, len, rsp->tag, &rsp->value);
	}
	rn_root_take_answer(endpoint->rc, rsp, arrival_ps);
	rn_fifo_drop(endpoint->ports.mmio_read_rsp);
}

/*
 * Wake for the first time at which something could go; credits of reads that are not known come
 * with a wake.
 */
static enum rn_stall arm(struct rn_endpoint *endpoint, uint64_t now_ps)
{
	const struct rn_pcie_ports *ports = &endpoint->ports;
	uint64_t commit_ps = endpoint->params.commit_ps;
	uint64_t read_ps = head_ps(ports->nonposted);
	uint64_t posted_ps = head_ps(ports->posted);
	uint64_t answer_ps = head_ps(ports->mmio_read_rsp);
	uint64_t next_ps = answer_ps < posted_ps ? answer_ps : RN_TIME_NEVER;
	enum rn_stall stall = RN_STALL_NONE;

	/* What lies behind an older posted write has to wait for that one's wake. */
	if (read_ps < posted_ps) {
		uint64_t credit_ps = rn_credit_ready_ps(&endpoint->nonposted, 0);

		if (credit_ps > now_ps && read_ps <= now_ps)
			stall = RN_STALL_CREDIT;
		/* A read that is still to come may wait for credits from then on: that counts. */
		next_ps = rn_min_u64(next_ps, read_ps > now_ps ? read_ps : credit_ps);
	}
	if (posted_ps <= now_ps && !posted_has_credit(endpoint, now_ps)) {
		next_ps = rn_min_u64(next_ps, endpoint->posted.free_ps);
		stall = RN_STALL_CREDIT;
	} else {
		next_ps = rn_min_u64(next_ps, posted_ps);
	}
	if (next_ps == RN_TIME_NEVER)
		return stall;
	if (endpoint->up.free_ps > commit_ps)
		next_ps = rn_max_u64(next_ps, endpoint->up.free_ps - commit_ps);
	rn_block_wake_at(&endpoint->block, next_ps > now_ps ? next_ps : now_ps + 1);
	return stall;
}

static void tick(void *self, uint64_t cycle)
{
	struct rn_endpoint *endpoint = self;
	uint64_t now_ps = cycle;
	uint64_t busy_ps = endpoint->up.counters.busy_ps;

	if (endpoint->blocked_ps != RN_TIME_NEVER) {
		uint64_t since_ps = rn_max_u64(endpoint->blocked_ps, endpoint->up.free_ps);

		if (now_ps > since_ps)
			endpoint->up.counters.credit_stall_ps += now_ps - since_ps;
		endpoint->blocked_ps = RN_TIME_NEVER;
	}
	while (endpoint->up.free_ps <= now_ps + endpoint->params.commit_ps) {
		enum queue queue = choose(endpoint, now_ps);

		if (queue == POSTED)
			send_posted(endpoint, now_ps);
		else if (queue == NONPOSTED)
			send_nonposted(endpoint, now_ps);
		else if (queue == COMPLETION)
			send_completion(endpoint, now_ps);
		else
			break;
	}

	/* A fifo asks for a wake after each entry taken; most of those are gone by now. */
	rn_wake_cancel(endpoint->block.sim, &endpoint->block.wake);

	enum rn_stall stall = arm(endpoint, now_ps);

	if (stall == RN_STALL_CREDIT)
		endpoint->blocked_ps = now_ps;
	rn_block_account(&endpoint->block, endpoint->up.counters.busy_ps - busy_ps, stall);
}

void rn_endpoint_give_nonposted(struct rn_endpoint *endpoint, uint64_t at_ps)
{
	rn_credit_give(&endpoint->nonposted, at_ps);
	if (endpoint->ports.nonposted->head != endpoint->ports.nonposted->tail)
		rn_block_wake_at(&endpoint->block, at_ps);
}

struct rn_endpoint *rn_endpoint_new(struct rn_root_complex *rc)
{
	struct rn_endpoint *endpoint = rn_calloc(1, sizeof(*endpoint));
	const struct rn_pcie_params *params = rc->env.pcie;

	endpoint->rc = rc;
	endpoint->ports = *rc->env.ports;
	endpoint->params = *params;
	endpoint->blocked_ps = RN_TIME_NEVER;
	endpoint->name = rn_asprintf("%s.pcie_up", rc->env.nic_name);
	rn_link_init(&endpoint->up, params);
	rn_credit_init(&endpoint->posted, params->posted_header_credits,
		       (uint32_t)rn_max_u64(params->posted_data_credits,
					    rn_credit_units(params->mps_bytes)));
	rn_credit_init(&endpoint->nonposted, params->nonposted_header_credits, 0);
	rn_block_init(&endpoint->block, rc->env.sim, &rn_pcie_clock, endpoint->name, tick,
		      endpoint);
	rn_fifo_set_consumer(endpoint->ports.posted, &endpoint->block);
	rn_fifo_set_consumer(endpoint->ports.nonposted, &endpoint->block);
	rn_fifo_set_consumer(endpoint->ports.mmio_read_rsp, &endpoint->block);
	rn_link_register(&endpoint->up, rc->env.stats, endpoint->name);
	rn_stats_add_block(rc->env.stats, &endpoint->block);
	return endpoint;
}

void rn_endpoint_free(struct rn_endpoint *endpoint)
{
	if (!endpoint)
		return;
	free(endpoint->name);
	free(endpoint);
}
