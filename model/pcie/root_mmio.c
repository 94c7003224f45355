/*
 * MMIO: host software's stores and loads on BAR0 become TLPs on the way down, in order of
 * posting. A write needs a place in the NIC's posted buffer (its fifo of MMIO writes); while it
 * waits for one, nothing behind it goes, completions neither, as PCIe demands. Approximated:
 * after a wait the credit takes credit_return_ps, a credit that came back before it was needed
 * takes no time.
 */
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "pcie/root_port.h"
#include "pcie/tlp_trace.h"

static struct rn_mmio_op *post(struct rn_root_complex *rc, uint64_t at_ps)
{
	uint64_t now_ps = rn_sim_now_ps(rc->block.sim);
	uint64_t due_ps = rn_max_u64(at_ps, now_ps) + rc->params.mmio_latency_ps;

	if (rc->mmio_count == rc->params.mmio_queue_entries) {
		rc->counters.mmio_full++;
		return NULL;
	}

	uint32_t idx = (rc->mmio_head + rc->mmio_count++) % rc->params.mmio_queue_entries;

	rc->mmio_due_ps = rn_max_u64(due_ps, rc->mmio_due_ps);
	rc->mmio[idx].due_ps = rc->mmio_due_ps;
	rn_block_wake_at(&rc->block, rc->mmio_due_ps);
	return &rc->mmio[idx];
}

bool rn_root_complex_mmio_write(struct rn_root_complex *rc, uint64_t at_ps, uint64_t offset,
				const void *data, uint32_t len)
{
	RN_ASSERT(len >= 1 && len <= sizeof(((struct rn_mmio_write *)0)->data));
	struct rn_mmio_op *op = post(rc, at_ps);

	if (!op)
		return false;
	op->is_read = false;
	op->write.offset = offset;
	op->write.len = len;
	memcpy(op->write.data, data, len);
	memset(op->write.data + len, 0, sizeof(op->write.data) - len);
	return true;
}

bool rn_root_complex_mmio_read(struct rn_root_complex *rc, uint64_t at_ps, uint64_t offset,
			       uint32_t len, void (*done)(void *arg, uint64_t value), void *arg)
{
	uint32_t slot = 0;

	while (slot < RN_MMIO_READS_MAX && rc->slots[slot].in_use)
		slot++;
	if (slot == RN_MMIO_READS_MAX)
		return false;

	struct rn_mmio_op *op = post(rc, at_ps);

	if (!op)
		return false;
	op->is_read = true;
	op->write.offset = offset;
	op->write.len = len;
	op->slot = slot;
	rc->slots[slot] = (struct rn_mmio_slot){
		.done = done, .arg = arg, .offset = offset, .len = len, .in_use = true};
	return true;
}

/* Whether the NIC has room. After a wait for it the credit is on its way for a while. */
static bool has_credit(struct rn_root_complex *rc, struct rn_fifo *fifo, uint64_t now_ps)
{
	if (!rn_fifo_can_push(fifo)) {
		rc->mmio_waits = true;
		return false;
	}
	if (rc->mmio_waits) {
		rc->mmio_waits = false;
		rc->mmio_credit_ps = now_ps + rc->pcie.credit_return_ps;
	}
	return rc->mmio_credit_ps <= now_ps;
}

static void log_op(const struct rn_root_complex *rc, const struct rn_mmio_op *op,
		   uint64_t first_bit_ps, uint64_t arrival_ps)
{
	struct rn_tlp_trace where = {
		.env = &rc->env,
		.direction = RN_TLP_DOWN,
		.first_bit_ps = first_bit_ps,
		.arrival_ps = arrival_ps,
	};

	if (op->is_read)
		rn_tlp_trace_mmio(&where, "MRd", op->write.offset, op->write.len, op->slot, NULL);
	else
		rn_tlp_trace_mmio(&where, "MWr", op->write.offset, op->write.len, RN_TLP_LOG_NO_TAG,
				  op->write.data);
}

static void send_read(struct rn_root_complex *rc, const struct rn_mmio_op *op, uint64_t arrival_ps)
{
	struct rn_mmio_read read = {
		.offset = op->write.offset,
		.len = op->write.len,
		.tag = op->slot,
	};

	rc->counters.mmio_reads++;
	rc->down.counters.nonposted_tlps++;
	rc->down.counters.nonposted_bytes += read.len;
	rn_fifo_push_at(rc->ports.mmio_read, &read, arrival_ps);
}

static void send_write(struct rn_root_complex *rc, const struct rn_mmio_op *op, uint64_t arrival_ps)
{
	rc->counters.mmio_writes++;
	rc->down.counters.posted_tlps++;
	rc->down.counters.posted_bytes += op->write.len;
	rn_fifo_push_at(rc->ports.mmio_write, &op->write, arrival_ps);
}

static bool send_op(struct rn_root_complex *rc, const struct rn_mmio_op *op, uint64_t now_ps)
{
	struct rn_fifo *fifo = op->is_read ? rc->ports.mmio_read : rc->ports.mmio_write;

	if (!has_credit(rc, fifo, now_ps))
		return false;

	/* Due in a picosecond in which this block had ticked already: not a picosecond late. */
	uint64_t at_ps = rn_max_u64(op->due_ps, rc->mmio_credit_ps);
	uint64_t first_bit_ps = rn_link_start_ps(&rc->down, at_ps);
	uint32_t payload_bytes = op->is_read ? 0 : op->write.len;
	uint64_t end_ps = rn_root_send(rc, at_ps, payload_bytes + rc->pcie.header_bytes);
	uint64_t arrival_ps = end_ps + rc->down.propagation_ps;

	if (rc->env.log)
		log_op(rc, op, first_bit_ps, arrival_ps);
	if (op->is_read)
		send_read(rc, op, arrival_ps);
	else
		send_write(rc, op, arrival_ps);
	return true;
}

void rn_root_take_answer(struct rn_root_complex *rc, const struct rn_mmio_read_rsp *rsp,
			 uint64_t arrival_ps)
{
	struct rn_mmio_answer *answer = rn_ring_push(&rc->answers);

	answer->due_ps = arrival_ps;
	answer->slot = rsp->tag;
	answer->value = rsp->value;
	rn_block_wake_at(&rc->block, arrival_ps);
}

static void deliver_answers(struct rn_root_complex *rc, uint64_t now_ps)
{
	const struct rn_mmio_answer *front;

	while ((front = rn_ring_front(&rc->answers)) && front->due_ps <= now_ps) {
		struct rn_mmio_answer answer = *front;

		rn_ring_pop(&rc->answers);
		if (answer.slot >= RN_MMIO_READS_MAX || !rc->slots[answer.slot].in_use)
			continue;

		struct rn_mmio_slot slot = rc->slots[answer.slot];

		rc->slots[answer.slot].in_use = false;
		slot.done(slot.arg, slot.len == 4 ? (uint32_t)answer.value : answer.value);
	}
}

void rn_root_run_mmio(struct rn_root_complex *rc, uint64_t now_ps)
{
	while (rc->mmio_count && rc->mmio[rc->mmio_head].due_ps <= now_ps) {
		if (!send_op(rc, &rc->mmio[rc->mmio_head], now_ps))
			break;
		rc->mmio_head = (rc->mmio_head + 1) % rc->params.mmio_queue_entries;
		rc->mmio_count--;
	}
	deliver_answers(rc, now_ps);
}

uint64_t rn_root_next_mmio_ps(const struct rn_root_complex *rc)
{
	const struct rn_mmio_answer *answer = rn_ring_front(&rc->answers);
	uint64_t next_ps = answer ? answer->due_ps : RN_TIME_NEVER;

	if (!rc->mmio_count)
		return next_ps;

	uint64_t now_ps = rn_sim_now_ps(rc->block.sim);
	uint64_t due_ps = rc->mmio[rc->mmio_head].due_ps;

	if (due_ps <= now_ps)
		due_ps = rc->mmio_credit_ps > now_ps ? rc->mmio_credit_ps : RN_TIME_NEVER;
	return rn_min_u64(next_ps, due_ps);
}
