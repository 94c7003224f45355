/*
 * Reads: admitted in order of arrival, behind earlier writes, as far as there are slots, at the
 * memory's bandwidth; served read_latency_ps later. The data is copied at that instant, the only
 * copy there is, and goes out as completions split at RCB and MPS, all of a read in a row.
 */
#include <string.h>

#include "base/assert.h"
#include "pcie/endpoint.h"
#include "pcie/root_port.h"
#include "pcie/tlp_trace.h"
#include "sim/buffer.h"

/*
 * Admit what there are slots for. A slot comes free when the last completion of its read has
 * left.
 */
static void admit(struct rn_root_complex *rc)
{
	uint32_t slots = rc->params.outstanding_reads;

	while (rc->admitted < rc->reads.tail && rc->admitted - rc->reads.head < slots) {
		struct rn_root_read *read = rn_ring_at(&rc->reads, rc->admitted);
		uint64_t slot_ps = rc->slot_free_ps[rc->admitted % slots];
		uint64_t at_ps = read->arrival_ps > slot_ps ? read->arrival_ps : slot_ps;
		uint64_t start_ps = rn_link_start_ps(&rc->read_server, at_ps);

		rn_link_send(&rc->read_server, at_ps, read->tlp.len);
		read->ready_ps = start_ps + rc->params.read_latency_ps;
		rc->admitted++;
		rn_endpoint_give_nonposted(rc->endpoint, start_ps + rc->pcie.credit_return_ps);
	}
}

/*
 * Memory bandwidth used, and why reads wait that could be served otherwise: for a slot, or for
 * the way down.
 */
static void account(struct rn_root_complex *rc, enum rn_stall stall)
{
	uint64_t busy_ps = rc->read_server.counters.busy_ps;

	if (stall == RN_STALL_NONE && rc->admitted != rc->reads.tail)
		stall = RN_STALL_TAG;
	rn_block_account(&rc->block, busy_ps - rc->accounted_ps, stall);
	rc->accounted_ps = busy_ps;
}

void rn_root_take_read(struct rn_root_complex *rc, const struct rn_tlp *tlp, uint64_t arrival_ps)
{
	struct rn_root_read *read = rn_ring_push(&rc->reads);
	uint64_t in_flight = rc->reads.tail - rc->reads.head;

	read->tlp = *tlp;
	read->arrival_ps = arrival_ps > rc->visible_ps ? arrival_ps : rc->visible_ps;
	if (in_flight > rc->counters.reads_max)
		rc->counters.reads_max = in_flight;
	admit(rc);
	if (in_flight == 1)
		rn_block_wake_at(&rc->block, rn_root_next_read_ps(rc));
	if (rc->admitted != rc->reads.tail)
		account(rc, RN_STALL_TAG);
}

uint64_t rn_root_next_read_ps(const struct rn_root_complex *rc)
{
	if (rc->admitted == rc->reads.head)
		return RN_TIME_NEVER;

	uint64_t ready_ps = ((struct rn_root_read *)rn_ring_front(&rc->reads))->ready_ps;

	/* One that is overdue waits for the way down and is woken by it. */
	return ready_ps > rn_sim_now_ps(rc->block.sim) ? ready_ps : RN_TIME_NEVER;
}

/* Copy the data at this instant: the completion without its time. */
static struct rn_tlp complete(struct rn_root_complex *rc, const struct rn_tlp *read)
{
	struct rn_tlp completion = *read;
	uint8_t *to = rn_buffer_data(rc->env.buffers, read->buf) + read->buf_off;

	completion.type = RN_TLP_CPL;
	rc->counters.reads++;
	if (rn_host_memory_read(rc->env.memory, read->addr, to, read->len)) {
		rc->counters.read_bytes += read->len;
		return completion;
	}
	rc->counters.read_aborts++;
	completion.status = RN_TLP_ABORT;
	completion.len = 0;
	return completion;
}

/* The same one TLP at a time, for the log. The sum of their times is that of the whole. */
static uint64_t send_logged(struct rn_root_complex *rc, uint64_t now_ps, const struct rn_tlp *tlp)
{
	uint32_t offset = 0;
	uint64_t end_ps;

	do {
		uint32_t bytes =
			rn_link_completion_bytes(&rc->pcie, tlp->addr + offset, tlp->len - offset);
		uint64_t first_bit_ps = rn_link_start_ps(&rc->down, now_ps);

		end_ps = rn_root_send(rc, now_ps, bytes + rc->pcie.completion_header_bytes);

		struct rn_tlp_trace where = {
			.env = &rc->env,
			.direction = RN_TLP_DOWN,
			.first_bit_ps = first_bit_ps,
			.arrival_ps = end_ps + rc->down.propagation_ps,
		};

		rn_tlp_trace_memory(&where, tlp, offset, bytes);
		offset += bytes;
	} while (offset < tlp->len);
	return end_ps;
}

static uint64_t send_completions(struct rn_root_complex *rc, uint64_t now_ps,
				 const struct rn_tlp *tlp)
{
	uint32_t tlps = rn_link_completion_tlps(&rc->pcie, tlp->addr, tlp->len);

	rc->down.counters.completion_tlps += tlps;
	rc->down.counters.completion_bytes += tlp->len;
	if (rc->env.log)
		return send_logged(rc, now_ps, tlp);
	return rn_root_send(rc, now_ps, tlp->len + tlps * rc->pcie.completion_header_bytes);
}

void rn_root_serve_reads(struct rn_root_complex *rc, uint64_t now_ps)
{
	uint32_t slots = rc->params.outstanding_reads;
	enum rn_stall stall = RN_STALL_NONE;

	while (rc->admitted != rc->reads.head) {
		const struct rn_root_read *read = rn_ring_front(&rc->reads);

		if (read->ready_ps > now_ps)
			break;
		if (rn_root_mmio_is_blocked(rc, now_ps) ||
		    !rn_fifo_can_push(rc->ports.completion)) {
			stall = RN_STALL_OUTPUT;
			break;
		}

		struct rn_tlp completion = complete(rc, &read->tlp);
		uint64_t end_ps = send_completions(rc, now_ps, &completion);

		rn_fifo_push_at(rc->ports.completion, &completion,
				end_ps + rc->down.propagation_ps);
		rc->slot_free_ps[rc->reads.head % slots] = end_ps;
		rn_ring_pop(&rc->reads);
		admit(rc);
	}
	account(rc, stall);
}
