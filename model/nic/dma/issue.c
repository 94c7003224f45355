/*
 * Arbitration and splitting. Channels take turns, weighted; a turn is a burst of TLPs of the
 * channel's oldest request, within one 4 KiB page. A channel that lacks what it needs (tag,
 * buffer, room in a queue, place for its answer) does not hold up the others.
 */
#include "base/assert.h"
#include "base/bits.h"
#include "nic/dma/engine.h"
#include "sim/buffer.h"

static uint64_t after_cycles_ps(const struct rn_dma *dma, uint32_t cycles)
{
	return rn_block_edge_in_ps(&dma->block, cycles);
}

static void answer(struct rn_dma *dma, unsigned ch, uint16_t token, uint8_t status)
{
	struct rn_dma_rsp rsp = {.token = token, .status = status};

	rn_fifo_push_at(dma->ports.rsp[ch], &rsp,
			after_cycles_ps(dma, dma->params.response_latency_cycles));
}

/* Bytes up to the next 4 KiB boundary. */
static uint32_t to_boundary(uint64_t pa)
{
	return RN_PCIE_PAGE_BYTES - (uint32_t)(pa % RN_PCIE_PAGE_BYTES);
}

static void drop_first_run(struct rn_dma *dma, struct job *job)
{
	if (job->req.op == RN_DMA_WRITE && !(job->req.flags & RN_DMA_PHYSICAL))
		rn_dma_release(dma, job->runs[0].epoch);
	job->runs[0] = job->runs[1];
	job->run_count--;
}

static void advance(struct rn_dma *dma, struct job *job, uint32_t bytes)
{
	job->issued_bytes += bytes;
	job->runs[0].pa += bytes;
	job->runs[0].bytes -= bytes;
	if (!job->runs[0].bytes)
		drop_first_run(dma, job);
}

static struct rn_tlp tlp_of(const struct job *job, unsigned ch, uint32_t bytes)
{
	return (struct rn_tlp){
		.channel = (uint8_t)ch,
		.buf_off = (uint16_t)(job->req.buf_off + job->issued_bytes),
		.buf = job->req.buf,
		.len = bytes,
		.addr = job->runs[0].pa,
	};
}

/* Turns return the TLPs sent. 0: nothing could be done and @stall says why, or it cost nothing. */

static uint32_t issue_write(struct rn_dma *dma, unsigned ch, struct job *job, enum rn_stall *stall)
{
	uint32_t bytes = (uint32_t)rn_min_u64(job->runs[0].bytes, to_boundary(job->runs[0].pa));

	bytes = (uint32_t)rn_min_u64(bytes, (uint64_t)dma->params.burst_tlps * dma->mps_bytes);

	bool is_last = job->issued_bytes + bytes == job->req.len;

	if (!rn_fifo_can_push(dma->ports.posted) ||
	    (is_last && !rn_fifo_can_push(dma->ports.rsp[ch]))) {
		*stall = RN_STALL_OUTPUT;
		return 0;
	}

	struct rn_tlp tlp = tlp_of(job, ch, bytes);
	uint32_t tlps = (bytes + dma->mps_bytes - 1) / dma->mps_bytes;

	tlp.type = RN_TLP_MWR;
	if (bytes < job->runs[0].bytes)
		tlp.flags |= RN_TLP_MORE;
	if (is_last) {
		if (job->req.flags & RN_DMA_LAST)
			tlp.flags |= RN_TLP_LAST;
		tlp.trace_qpn = job->req.trace_qpn;
		tlp.trace_wqe = job->req.trace_wqe;
		tlp.trace = job->req.trace & RN_DMA_TRACE_VISIBLE;
		tlp.trace_receive = job->req.trace_receive;
	}
	rn_buffer_hold(dma->env.buffers, tlp.buf);
	rn_fifo_push_at(dma->ports.posted, &tlp,
			after_cycles_ps(dma, dma->params.issue_latency_cycles));
	dma->counters.write_tlps += tlps;
	dma->counters.write_bytes += bytes;
	advance(dma, job, bytes);
	if (is_last) {
		answer(dma, ch, job->req.token, RN_DMA_OK);
		rn_dma_pop_job(dma, ch);
	} else if (!job->run_count) {
		rn_dma_update_ready(dma, ch);
	}
	return tlps;
}

static uint32_t issue_msi(struct rn_dma *dma, unsigned ch, struct job *job, enum rn_stall *stall)
{
	if (!rn_fifo_can_push(dma->ports.posted) || !rn_fifo_can_push(dma->ports.rsp[ch])) {
		*stall = RN_STALL_OUTPUT;
		return 0;
	}

	struct rn_tlp tlp = {
		.type = RN_TLP_MSI,
		.channel = (uint8_t)ch,
		.buf = RN_BUFFER_NONE,
		.len = 4,
		.addr = job->req.addr,
	};

	rn_fifo_push_at(dma->ports.posted, &tlp,
			after_cycles_ps(dma, dma->params.issue_latency_cycles));
	answer(dma, ch, job->req.token, RN_DMA_OK);
	rn_dma_pop_job(dma, ch);
	return 1;
}

/*
 * An entry for the read whose first TLP is about to go. False when the channel has as many as it
 * may have.
 */
static bool begin_read(struct rn_dma *dma, unsigned ch, struct job *job)
{
	struct channel *channel = &dma->channels[ch];

	if (channel->read_tail - channel->read_head == dma->params.channel_reads)
		return false;
	job->read = (uint16_t)(channel->read_tail++ % READS_MAX);

	struct read *read = rn_dma_read(channel, job->read);

	*read = (struct read){.token = job->req.token, .status = RN_DMA_OK};
	return true;
}

/* The translation in use goes back when the read is through. */
static void note_epoch(const struct job *job, struct read *read)
{
	if (job->req.flags & RN_DMA_PHYSICAL)
		return;
	RN_ASSERT(read->epoch_count < RUNS_MAX);
	read->epochs[read->epoch_count++] = job->runs[0].epoch;
}

static bool can_read(struct rn_dma *dma, uint32_t bytes, enum rn_stall *stall)
{
	if (!dma->free_count)
		*stall = RN_STALL_TAG;
	else if (dma->free_bytes < bytes)
		*stall = RN_STALL_BUFFER;
	else if (!rn_fifo_can_push(dma->ports.nonposted))
		*stall = RN_STALL_OUTPUT;
	else
		return true;
	return false;
}

static void send_read(struct rn_dma *dma, unsigned ch, struct job *job, struct read *read,
		      uint32_t bytes)
{
	struct rn_tlp tlp = tlp_of(job, ch, bytes);

	tlp.type = RN_TLP_MRD;
	tlp.tag = rn_dma_take_tag(dma, ch, job->read, bytes);
	rn_fifo_push_at(dma->ports.nonposted, &tlp,
			after_cycles_ps(dma, dma->params.issue_latency_cycles));
	read->tlps++;
	dma->counters.read_tlps++;
	dma->counters.read_bytes += bytes;
	if (job->runs[0].bytes == bytes)
		note_epoch(job, read);
	advance(dma, job, bytes);
}

static uint32_t issue_read(struct rn_dma *dma, unsigned ch, struct job *job, enum rn_stall *stall)
{
	uint32_t tlps = 0;

	while (tlps < dma->params.burst_tlps && job->run_count) {
		uint32_t bytes =
			(uint32_t)rn_min_u64(job->runs[0].bytes, to_boundary(job->runs[0].pa));

		bytes = (uint32_t)rn_min_u64(bytes, dma->mrrs_bytes);
		if (!can_read(dma, bytes, stall))
			break;
		if (!job->issued_bytes && !begin_read(dma, ch, job)) {
			*stall = RN_STALL_TAG;
			break;
		}
		send_read(dma, ch, job, rn_dma_read(&dma->channels[ch], job->read), bytes);
		tlps++;
	}
	if (job->issued_bytes == job->req.len) {
		rn_dma_read(&dma->channels[ch], job->read)->is_issued = true;
		rn_dma_pop_job(dma, ch);
	} else if (!job->run_count) {
		rn_dma_update_ready(dma, ch);
	}
	return tlps;
}

static void count_error(struct rn_dma *dma, const struct job *job)
{
	if (job->status == RN_DMA_PROTECTION)
		dma->counters.protection_errors++;
	else
		dma->counters.aborts++;
}

/* TLPs of the first run may be outstanding: all goes back when the read is through. */
static void fail_read(struct rn_dma *dma, unsigned ch, struct job *job)
{
	struct read *read = rn_dma_read(&dma->channels[ch], job->read);

	for (; job->run_count; job->run_count--) {
		note_epoch(job, read);
		job->runs[0] = job->runs[1];
	}
	read->status = job->status;
	read->is_issued = true;
	dma->answering |= UINT32_C(1) << ch;
}

static void fail_write(struct rn_dma *dma, unsigned ch, const struct job *job)
{
	for (unsigned i = 0; i < job->run_count; i++)
		rn_dma_release(dma, job->runs[i].epoch);
	answer(dma, ch, job->req.token, job->status);
}

/* The job stops where it is: what it still holds goes back, and it is answered in its turn. */
static void fail(struct rn_dma *dma, unsigned ch, struct job *job, enum rn_stall *stall)
{
	bool is_read = job->req.op == RN_DMA_READ;

	if (is_read ? !job->issued_bytes && !begin_read(dma, ch, job)
		    : !rn_fifo_can_push(dma->ports.rsp[ch])) {
		*stall = RN_STALL_OUTPUT;
		return;
	}
	count_error(dma, job);
	if (is_read)
		fail_read(dma, ch, job);
	else
		fail_write(dma, ch, job);
	rn_dma_pop_job(dma, ch);
	rn_block_wake_next(&dma->block);
}

static uint32_t issue_one(struct rn_dma *dma, unsigned ch, enum rn_stall *stall)
{
	struct job *job = rn_dma_head(&dma->channels[ch]);

	if (job->status != RN_DMA_OK) {
		fail(dma, ch, job, stall);
		return 0;
	}
	if (job->req.op == RN_DMA_READ)
		return issue_read(dma, ch, job, stall);
	if (job->req.op == RN_DMA_WRITE)
		return issue_write(dma, ch, job, stall);
	return issue_msi(dma, ch, job, stall);
}

/* @ch has had a turn: who is first next time. */
static void pass_turn(struct rn_dma *dma, unsigned ch)
{
	if (dma->issue_turn != ch || !dma->issue_left) {
		dma->issue_turn = ch;
		dma->issue_left = dma->channels[ch].weight;
	}
	if (!--dma->issue_left)
		dma->issue_turn = (ch + 1) % RN_DMA_CH_COUNT;
}

/* Offer the turn round the ring to those that are ready; at most one takes it. */
static uint32_t offer_turn(struct rn_dma *dma, enum rn_stall *stall)
{
	uint32_t ready = dma->ready;

	while (ready) {
		uint32_t later = ready >> dma->issue_turn << dma->issue_turn;
		unsigned ch = (unsigned)__builtin_ctz(later ? later : ready);
		uint32_t tlps = issue_one(dma, ch, stall);

		if (tlps) {
			pass_turn(dma, ch);
			return tlps;
		}
		ready &= ~(UINT32_C(1) << ch);
	}
	return 0;
}

uint32_t rn_dma_issue(struct rn_dma *dma, uint64_t cycle, enum rn_stall *stall)
{
	*stall = RN_STALL_NONE;
	if (cycle < dma->issue_cycle) {
		if (dma->ready)
			rn_block_wake_in(&dma->block, dma->issue_cycle - cycle);
		return 0;
	}

	uint32_t cycles = offer_turn(dma, stall) * dma->params.issue_interval_cycles;

	if (!cycles)
		return 0;
	*stall = RN_STALL_NONE;
	dma->issue_cycle = cycle + cycles;
	if (dma->ready)
		rn_block_wake_in(&dma->block, cycles);
	return cycles;
}
