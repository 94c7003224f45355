#include "cosim/doorbell/rig.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"

#define NEVER_CYCLE UINT64_MAX

const char *const rig_out_name[OUT_COUNT] = {
	[OUT_RSP] = "mmio_read_rsp", [OUT_SQ] = "sq_ring", [OUT_BLUEFLAME] = "blueflame",
	[OUT_CQ] = "cq_ring",	     [OUT_RQ] = "rq_ring", [OUT_CMD] = "cmd_ring",
};

static const size_t out_bytes[OUT_COUNT] = {
	[OUT_RSP] = sizeof(struct rn_mmio_read_rsp),   [OUT_SQ] = sizeof(struct rn_sq_ring),
	[OUT_BLUEFLAME] = sizeof(struct rn_blueflame), [OUT_CQ] = sizeof(struct rn_cq_ring),
	[OUT_RQ] = sizeof(struct rn_rq_ring),	       [OUT_CMD] = sizeof(struct rn_cmd_ring),
};

#define COUNTER_NAME(name) #name,
static const char *const counter_name[] = {DUT_COUNTERS(COUNTER_NAME)};

/* Two entries each: full rate while the bench empties them, full while it does not want anything. */
#define OUT_DEPTH 2

static void build_model(struct rig *rig, uint64_t first_cycle)
{
	static const char *const in_name[] = {"write", "read", "status"};

	bench_init(&rig->bench, 0);
	for (unsigned i = 0; i < OUT_COUNT; i++)
		rig->out_fifo[i] =
			bench_fifo(&rig->bench, rig_out_name[i], OUT_DEPTH, (uint32_t)out_bytes[i]);
	rig->ports = (struct rn_doorbell_ports){
		.mmio_write = bench_fifo(&rig->bench, in_name[0], RIG_WRITE_FIFO,
					 sizeof(struct rn_mmio_write)),
		.mmio_read = bench_fifo(&rig->bench, in_name[1], 64, sizeof(struct rn_mmio_read)),
		.status = bench_fifo(&rig->bench, in_name[2], 64, sizeof(uint32_t)),
		.mmio_read_rsp = rig->out_fifo[OUT_RSP],
		.sq_ring = rig->out_fifo[OUT_SQ],
		.blueflame = rig->out_fifo[OUT_BLUEFLAME],
		.cq_ring = rig->out_fifo[OUT_CQ],
		.rq_ring = rig->out_fifo[OUT_RQ],
		.cmd_ring = rig->out_fifo[OUT_CMD],
	};
	rig->model = rn_doorbell_new(&rig->bench.env, &rig->params, &rig->identity, &rig->ports);
	bench_run(&rig->bench, first_cycle);
}

static void reset_both(struct rig *rig)
{
	dut_reset(rig->always, &rig->identity);
	dut_reset(rig->gated, &rig->identity);
}

void rig_init(struct rig *rig, const struct rn_rtl_kind *kind, uint64_t first_cycle,
	      const char *plusarg, uint64_t seed)
{
	*rig = (struct rig){
		.kind = kind,
		.identity =
			{
				.vendor = 0xff0015b3,
				.part = 0x01234567,
				.hw_version = 0x89abcdef,
				.cap_queues = 0x02468ace,
				.cap_memory = 0x13579bdf,
				.cap_wqe = 0xdeadbeef,
			},
	};
	cosim_kind_params(kind, &rn_doorbell_param_table, &rig->params);
	build_model(rig, first_cycle);
	rig->always = cosim_dut_new(kind, plusarg, (uint32_t)(2 * seed));
	rig->gated = cosim_dut_new(kind, plusarg, (uint32_t)(2 * seed + 1));
	reset_both(rig);
	for (unsigned i = 0; i < OUT_COUNT; i++)
		rig->ready[i] = true;
}

/* What lies in an output fifo; a WQE's buffer goes with it. */
static void drop_visible(struct rig *rig, unsigned out)
{
	const struct rn_blueflame *wqe;

	while ((wqe = rn_fifo_peek(rig->out_fifo[out]))) {
		if (out == OUT_BLUEFLAME)
			rn_buffer_put(rig->bench.buffers, wqe->buf);
		rn_fifo_drop(rig->out_fifo[out]);
	}
}

static const void *slot_entry(const struct rn_fifo *fifo, uint32_t slot)
{
	return fifo->slots + (size_t)slot * fifo->slot_bytes + sizeof(uint64_t);
}

static void free_model(struct rig *rig)
{
	const struct rn_fifo *fifo = rig->out_fifo[OUT_BLUEFLAME];

	for (uint32_t i = 0; i < rn_fifo_occupancy(fifo); i++) {
		const struct rn_blueflame *wqe =
			slot_entry(fifo, (fifo->head_slot + i) % fifo->depth);

		rn_buffer_put(rig->bench.buffers, wqe->buf);
	}
	rn_doorbell_free(rig->model);
	bench_fini(&rig->bench);
}

void rig_fini(struct rig *rig)
{
	free_model(rig);
	cosim_dut_free(rig->always);
	cosim_dut_free(rig->gated);
}

void rig_restart(struct rig *rig, const struct rn_doorbell_identity *identity)
{
	rig->identity = *identity;
	free_model(rig);
	build_model(rig, 0);
	reset_both(rig);
	rig->gated_due = 0;
	rig->gated_took_write = false;
	rig->gated_took_read = false;
	memset(&rig->gated_in, 0, sizeof(rig->gated_in));
}

void rig_write(struct rig *rig, const struct rn_mmio_write *write)
{
	rn_fifo_push(rig->ports.mmio_write, write);
}

void rig_read(struct rig *rig, const struct rn_mmio_read *read)
{
	rn_fifo_push(rig->ports.mmio_read, read);
}

void rig_status(struct rig *rig, uint32_t status)
{
	rn_fifo_push(rig->ports.status, &status);
}

__attribute__((format(printf, 2, 3))) static void differ(struct rig *rig, const char *format, ...)
{
	va_list args;

	if (rig->has_failed)
		return;
	rig->has_failed = true;
	va_start(args, format);
	vsnprintf(rig->difference, sizeof(rig->difference), format, args);
	va_end(args);
}

/* A port that is to be not ready is filled up with entries that nobody looks at. */
static void set_ready(struct rig *rig, unsigned out)
{
	static const uint8_t filler[64];
	struct rn_fifo *fifo = rig->out_fifo[out];

	if (rig->ready[out])
		drop_visible(rig, out);
	while (!rig->ready[out] && rn_fifo_occupancy(fifo) < OUT_DEPTH) {
		if (out == OUT_BLUEFLAME)
			rn_fifo_push(fifo, &(struct rn_blueflame){.buf = RN_BUFFER_NONE});
		else
			rn_fifo_push(fifo, filler);
	}
}

/* The head of an input fifo in the coming cycle, NULL if none is visible then. */
static const void *coming_head(const struct rig *rig, const struct rn_fifo *fifo)
{
	uint64_t edge_ps = (rig->bench.cycle + 1) * BENCH_CYCLE_PS;

	if (!rn_fifo_occupancy(fifo) || rn_fifo_ready_ps(fifo, fifo->head_slot) > edge_ps)
		return NULL;
	return slot_entry(fifo, fifo->head_slot);
}

/* What all three get in the coming cycle. */
static void get_inputs(struct rig *rig)
{
	struct dut_inputs *in = &rig->in;
	const struct rn_mmio_write *write = coming_head(rig, rig->ports.mmio_write);
	const struct rn_mmio_read *read = coming_head(rig, rig->ports.mmio_read);
	const uint32_t *status = coming_head(rig, rig->ports.status);

	in->cycle = rig->bench.cycle + 1 + rig->cycle_offset;
	in->write_valid = write;
	in->read_valid = read;
	in->status_valid = status;
	if (write)
		in->write = *write;
	if (read)
		in->read = *read;
	if (status)
		in->status = *status;
	/* All of them were pushed before now. */
	in->write_level = (uint16_t)rn_fifo_occupancy(rig->ports.mmio_write);
	for (unsigned i = 0; i < OUT_COUNT; i++) {
		in->ready[i] = rn_fifo_occupancy(rig->out_fifo[i]) < OUT_DEPTH;
		RN_ASSERT(in->ready[i] == rig->ready[i]);
	}
}

#define KEEP_COUNT(name) rig->counts_before[i++] = rig->model->count.name;
#define COMPARE_COUNT(name)                                                                        \
	compare_count(rig, i, rig->model->count.name - rig->counts_before[i]);                     \
	i++;

/* Cycles to the C block's next deadline that is not passed. */
static uint32_t deadline_cycles(const struct rn_doorbell *db, uint64_t cycle)
{
	uint32_t entries = db->params.fifo_entries;
	uint64_t due = NEVER_CYCLE;

	if (db->decoded != db->taken && db->held[db->decoded % entries].ready_cycle > cycle)
		due = db->held[db->decoded % entries].ready_cycle;
	if (db->has_read && db->read_ready_cycle > cycle)
		due = rn_min_u64(due, db->read_ready_cycle);
	if (db->params.interval_cycles > 1 && db->taken - db->decoded < entries &&
	    db->next_take_cycle > cycle)
		due = rn_min_u64(due, db->next_take_cycle);
	return due == NEVER_CYCLE ? UINT32_MAX : (uint32_t)(due - cycle);
}

static void remember(struct rig *rig)
{
	unsigned i = 0;

	DUT_COUNTERS(KEEP_COUNT)
	rig->head_before[0] = rig->ports.mmio_write->head;
	rig->head_before[1] = rig->ports.mmio_read->head;
	rig->head_before[2] = rig->ports.status->head;
	for (i = 0; i < OUT_COUNT; i++) {
		rig->tail_before[i] = rig->out_fifo[i]->tail;
		rig->waits_before[i] = rig->out_fifo[i]->producer_waits;
	}
	rig->busy_before = rig->model->block.busy_cycles;
	rig->wake_before = deadline_cycles(rig->model, rig->bench.cycle + 1);
	rig->ticks_before = rig->model->block.ticks;
}

static void compare_count(struct rig *rig, unsigned i, uint64_t model)
{
	if (model != rig->out.count[i])
		differ(rig, "counter %s: model +%llu, RTL +%u", counter_name[i],
		       (unsigned long long)model, rig->out.count[i]);
}

static void compare_input(struct rig *rig, const char *name, uint64_t taken, bool rtl_takes)
{
	if (taken != rtl_takes)
		differ(rig, "port %s: model took %llu, RTL %d", name, (unsigned long long)taken,
		       rtl_takes);
}

static const void *out_message(const struct dut_outputs *out, unsigned i)
{
	switch (i) {
	case OUT_RSP:
		return &out->rsp;
	case OUT_SQ:
		return &out->sq;
	case OUT_BLUEFLAME:
		return &out->blueflame;
	case OUT_CQ:
		return &out->cq;
	case OUT_RQ:
		return &out->rq;
	default:
		return &out->cmd;
	}
}

static void print_bytes(char *to, size_t room, const void *from, size_t bytes)
{
	const uint8_t *byte = from;

	for (size_t i = 0; i < bytes && 2 * i + 3 < room; i++)
		snprintf(to + 2 * i, room - 2 * i, "%02x", byte[i]);
}

/* The RTL's bytes behind the WQE are 0. */
static void compare_data(struct rig *rig, const struct rn_blueflame *wqe)
{
	const uint8_t *data = rig->out.blueflame_data;

	if (memcmp(rn_buffer_data(rig->bench.buffers, wqe->buf), data, wqe->bytes) != 0)
		differ(rig, "port blueflame: other data");
	for (unsigned i = wqe->bytes; i < sizeof(rig->out.blueflame_data); i++)
		if (data[i])
			differ(rig, "port blueflame: something behind the data");
}

static void compare_message(struct rig *rig, unsigned i)
{
	const struct rn_fifo *fifo = rig->out_fifo[i];
	const void *sent = slot_entry(fifo, (fifo->tail_slot + fifo->depth - 1) % fifo->depth);
	const struct rn_blueflame *wqe = sent;
	struct rn_blueflame without;
	char model[80] = "", rtl[80] = "";

	if (i == OUT_BLUEFLAME) {
		compare_data(rig, wqe);
		without = *wqe;
		without.buf = 0;
		sent = &without;
	}
	if (memcmp(sent, out_message(&rig->out, i), out_bytes[i]) == 0)
		return;
	print_bytes(model, sizeof(model), sent, out_bytes[i]);
	print_bytes(rtl, sizeof(rtl), out_message(&rig->out, i), out_bytes[i]);
	differ(rig, "port %s: model sent %s, RTL %s", rig_out_name[i], model, rtl);
}

static void compare_output(struct rig *rig, unsigned i)
{
	const struct rn_fifo *fifo = rig->out_fifo[i];
	uint64_t sent = fifo->tail - rig->tail_before[i];
	bool rtl_sends = rig->out.valid[i] && rig->in.ready[i];
	bool rtl_waits = rig->out.valid[i] && !rig->in.ready[i];

	if (sent != rtl_sends)
		differ(rig, "port %s: model sent %llu, RTL %d", rig_out_name[i],
		       (unsigned long long)sent, rtl_sends);
	else if (sent)
		compare_message(rig, i);
	if (rtl_waits && !fifo->producer_waits)
		differ(rig, "port %s: the RTL offers something, the model does not",
		       rig_out_name[i]);
	if (!rtl_waits && fifo->producer_waits && !rig->waits_before[i])
		differ(rig, "port %s: the model offers something, the RTL does not",
		       rig_out_name[i]);
}

static void compare_account(struct rig *rig);

static void compare(struct rig *rig)
{
	const struct dut_outputs *out = &rig->out;
	unsigned i = 0;

	compare_input(rig, "mmio_write", rig->ports.mmio_write->head - rig->head_before[0],
		      rig->in.write_valid && out->write_ready);
	compare_input(rig, "mmio_read", rig->ports.mmio_read->head - rig->head_before[1],
		      rig->in.read_valid && out->read_ready);
	compare_input(rig, "status", rig->ports.status->head - rig->head_before[2],
		      rig->in.status_valid && out->status_ready);
	for (i = 0; i < OUT_COUNT; i++)
		compare_output(rig, i);
	if (cosim_dut_has_failed(rig->always) || cosim_dut_has_failed(rig->gated))
		differ(rig, "an assertion of the RTL failed");
	if (!rig->compares_ports_alone)
		compare_account(rig);
}

/* Counters, stalls, and when the RTL wants to be clocked again. */
static void compare_account(struct rig *rig)
{
	const struct rn_block *block = &rig->model->block;
	const struct dut_outputs *out = &rig->out;
	unsigned i = 0;

	DUT_COUNTERS(COMPARE_COUNT)
	if (block->busy_cycles - rig->busy_before != out->is_busy)
		differ(rig, "busy: model %llu, RTL %d",
		       (unsigned long long)(block->busy_cycles - rig->busy_before), out->is_busy);
	if (block->stall != out->stall)
		differ(rig, "stall: model %s, RTL %s", rn_stall_name(block->stall),
		       out->stall < RN_STALL_COUNT ? rn_stall_name(out->stall) : "?");
	if (out->wake_cycles != rig->wake_before)
		differ(rig, "wake: deadline in %u cycles, the RTL says %u", rig->wake_before,
		       out->wake_cycles);
}

/* Gating */

static bool has_gated_input(const struct rig *rig)
{
	const struct dut_inputs *now = &rig->in, *then = &rig->gated_in;

	return (now->write_valid && (!then->write_valid || rig->gated_took_write)) ||
	       (now->read_valid && (!then->read_valid || rig->gated_took_read)) ||
	       now->status_valid || memcmp(now->ready, then->ready, sizeof(now->ready)) != 0;
}

/* What matters of outputs to those behind: handshakes, messages, stall. */
static bool are_same_outputs(const struct dut_outputs *a, const struct dut_outputs *b)
{
	if (memcmp(a->valid, b->valid, sizeof(a->valid)) != 0 || a->stall != b->stall)
		return false;
	for (unsigned i = 0; i < OUT_COUNT; i++)
		if (memcmp(out_message(a, i), out_message(b, i), out_bytes[i]) != 0)
			return false;
	return true;
}

static void run_gated(struct rig *rig)
{
	struct dut_outputs *out = &rig->gated_out;
	bool is_due = rig->in.cycle >= rig->gated_due;

	if (is_due || has_gated_input(rig)) {
		dut_settle(rig->gated, &rig->in, out);
		cosim_dut_clock(rig->gated);
		rig->gated_cycles++;
		rig->gated_in = rig->in;
		rig->gated_took_write = rig->in.write_valid && out->write_ready;
		rig->gated_took_read = rig->in.read_valid && out->read_ready;
		if (!out->is_idle)
			rig->gated_due = rig->in.cycle + 1;
		else if (out->wake_cycles == UINT32_MAX)
			rig->gated_due = NEVER_CYCLE;
		else
			rig->gated_due = rig->in.cycle + out->wake_cycles;
		if (memcmp(out, &rig->out, sizeof(*out)) != 0)
			differ(rig, "the gated RTL differs from the one that is always clocked");
	} else if (!are_same_outputs(out, &rig->out) || !rig->out.is_idle) {
		differ(rig, "the RTL does something in a cycle in which it was to be idle");
	}
}

bool rig_cycle(struct rig *rig)
{
	if (rig->has_failed)
		return false;
	for (unsigned i = 0; i < OUT_COUNT; i++)
		set_ready(rig, i);
	get_inputs(rig);
	remember(rig);
	bench_run(&rig->bench, 1);
	rig->has_ticked = rig->model->block.ticks != rig->ticks_before;
	memset(&rig->out, 0, sizeof(rig->out));
	dut_settle(rig->always, &rig->in, &rig->out);
	compare(rig);
	cosim_dut_clock(rig->always);
	run_gated(rig);
	rig->cycles++;
	return !rig->has_failed;
}
