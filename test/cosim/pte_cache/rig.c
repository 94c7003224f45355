#include "cosim/pte_cache/rig.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "cosim/common/stimulus.h"
#include "nic/pte_cache/state.h"

static const struct {
	const char *name;
	const struct rn_msg_desc *desc;
} in_rows[IN_COUNT] =
	{
		[IN_REQ0] = {"req0", &rn_msg_pte_req},
		[IN_REQ1] = {"req1", &rn_msg_pte_req},
		[IN_RELEASE] = {"release", &rn_msg_pte_release},
		[IN_INVAL] = {"inval", &rn_msg_pte_inval},
		[IN_BASE] = {"base", &rn_msg_pte_base},
		[IN_DMA_RSP] = {"dma_rsp", &rn_msg_dma_rsp},
},
  out_rows[OUT_COUNT] = {
	  [OUT_RSP0] = {"rsp0", &rn_msg_pte_rsp},
	  [OUT_RSP1] = {"rsp1", &rn_msg_pte_rsp},
	  [OUT_DONE] = {"inval_done", &rn_msg_pte_inval_done},
	  [OUT_DMA_REQ] = {"dma_req", &rn_msg_dma_req},
};

static void make_model(struct rig *rig)
{
	struct rn_pte_cache_ports ports;

	for (unsigned i = 0; i < IN_COUNT; i++)
		cosim_in_init(&rig->in[i], in_rows[i].name, in_rows[i].desc,
			      bench_fifo(&rig->bench, in_rows[i].name, RIG_IN_DEPTH,
					 (uint32_t)in_rows[i].desc->bytes));
	for (unsigned i = 0; i < OUT_COUNT; i++)
		cosim_out_init(&rig->out[i], out_rows[i].name, out_rows[i].desc,
			       bench_fifo(&rig->bench, out_rows[i].name, COSIM_OUT_DEPTH,
					  (uint32_t)out_rows[i].desc->bytes));
	ports = (struct rn_pte_cache_ports){
		.req = {rig->in[IN_REQ0].fifo, rig->in[IN_REQ1].fifo},
		.release = rig->in[IN_RELEASE].fifo,
		.inval = rig->in[IN_INVAL].fifo,
		.base = rig->in[IN_BASE].fifo,
		.dma_rsp = rig->in[IN_DMA_RSP].fifo,
		.rsp = {rig->out[OUT_RSP0].fifo, rig->out[OUT_RSP1].fifo},
		.inval_done = rig->out[OUT_DONE].fifo,
		.dma_req = rig->out[OUT_DMA_REQ].fifo,
	};
	rig->model = rn_pte_cache_new(&rig->bench.env, &rig->params, &ports);
}

/* Both blocks: the C block from nothing, the Verilated ones through a reset. */
static void begin(struct rig *rig, uint64_t first_cycle)
{
	bench_init(&rig->bench, 0);
	make_model(rig);
	rn_pte_cache_set_log(rig->model, rig->lookups);
	cosim_dut_reset(rig->always, NULL);
	cosim_dut_reset(rig->gated, NULL);
	for (unsigned i = 0; i < OUT_COUNT; i++)
		rig->was_ready[i] = rig->was_ready_before[i] = true;
	bench_run(&rig->bench, first_cycle);
	rig->first_cycle = first_cycle;
	rig->cycle = first_cycle;
}

void rig_init(struct rig *rig, const struct rn_rtl_kind *kind, uint64_t first_cycle,
	      const char *plusarg, uint64_t seed)
{
	_Static_assert(sizeof(struct rn_pte_counters) == DUT_COUNTERS * sizeof(uint64_t),
		       "a counter an event");
	memset(rig, 0, sizeof(*rig));
	rig->kind = kind;
	cosim_kind_params(kind, &rn_pte_cache_param_table, &rig->params);
	rig->lookups = open_memstream(&rig->lookup_text, &rig->lookup_bytes);
	rig->always = cosim_dut_new(kind, plusarg, (uint32_t)(2 * seed));
	rig->gated = cosim_dut_new(kind, plusarg, (uint32_t)(2 * seed + 1));
	begin(rig, first_cycle);
}

static void drop_buffers(struct rig *rig)
{
	for (uint32_t i = 0; i < rig->model->misses_count; i++)
		if (rig->model->misses[i].busy)
			rn_buffer_put(rig->bench.buffers, rig->model->misses[i].buf);
}

static void free_model(struct rig *rig)
{
	drop_buffers(rig);
	rn_pte_cache_free(rig->model);
	bench_fini(&rig->bench);
}

void rig_fini(struct rig *rig)
{
	free_model(rig);
	fclose(rig->lookups);
	free(rig->lookup_text);
	cosim_dut_free(rig->always);
	cosim_dut_free(rig->gated);
}

void rig_restart(struct rig *rig, uint64_t first_cycle)
{
	rig->earlier_cycles = rig_cycles(rig);
	free_model(rig);
	memset(rig->counts, 0, sizeof(rig->counts));
	rig->busy_cycles = 0;
	rig->gated_due = 0;
	rig->gated_slept = false;
	rig->gated_stall = 0;
	memset(rig->gated_valid, 0, sizeof(rig->gated_valid));
	begin(rig, first_cycle);
}

uint64_t rig_cycles(const struct rig *rig)
{
	return rig->earlier_cycles + rig->cycle - rig->first_cycle;
}

void rig_skip(struct rig *rig, uint64_t cycles)
{
	bench_run(&rig->bench, cycles);
	rig->first_cycle += cycles;
	rig->cycle += cycles;
}

bool rig_can_push(struct rig *rig, enum dut_in port)
{
	return cosim_in_has_space(&rig->in[port]);
}

void rig_push(struct rig *rig, enum dut_in port, const void *message)
{
	rn_fifo_push(rig->in[port].fifo, message);
}

void rig_answer(struct rig *rig, uint16_t token, uint8_t status, const uint8_t *data)
{
	RN_ASSERT(token < RIG_BUFFERS);
	memcpy(rig->data[token], data, RIG_DATA_BYTES);
	memcpy(rn_buffer_data(rig->bench.buffers, rig->buffers[token]), data, RIG_DATA_BYTES);
	rn_fifo_push(rig->in[IN_DMA_RSP].fifo,
		     &(struct rn_dma_rsp){.token = token, .status = status});
}

void rig_ready(struct rig *rig, enum dut_out port, bool ready)
{
	cosim_out_gate(&rig->out[port], ready);
}

static void log_transaction(struct rig *rig, const char *port, const struct rn_msg_desc *desc,
			    const uint32_t *words)
{
	struct rig_transaction *at = &rig->log[rig->logged++ % RIG_LOG];

	*at = (struct rig_transaction){.cycle = rig->cycle, .port = port, .desc = desc};
	memcpy(at->words, words, desc->words * sizeof(*words));
}

static void fail(struct rig *rig, const char *where, const char *what, uint64_t model, uint64_t rtl)
{
	if (rig->has_failed)
		return;
	rig->has_failed = true;
	snprintf(rig->difference, sizeof(rig->difference),
		 "cycle %" PRIu64 ": %s: %s: model %" PRIu64 ", RTL %" PRIu64, rig->cycle, where,
		 what, model, rtl);
}

static void look(struct rig *rig)
{
	struct dut_inputs *inputs = &rig->inputs;

	inputs->cycle = rig->cycle;
	for (unsigned i = 0; i < IN_COUNT; i++) {
		cosim_in_look(&rig->in[i]);
		inputs->valid[i] = rig->in[i].valid;
		inputs->words[i] = rig->in[i].words;
	}
	for (unsigned i = 0; i < OUT_COUNT; i++) {
		cosim_out_look(&rig->out[i]);
		inputs->ready[i] = rig->out[i].ready;
	}
	inputs->data = NULL;
	if (rig->in[IN_DMA_RSP].is_new)
		inputs->data =
			rig->data[rn_msg_get(rig->in[IN_DMA_RSP].words, rn_msg_dma_rsp.field[0].lsb,
					     rn_msg_dma_rsp.field[0].bits)];
}

static void record(struct rig *rig)
{
	for (unsigned i = 0; i < IN_COUNT; i++)
		if (rig->in[i].is_new)
			cosim_write_in(rig->record, rig->cycle, &rig->in[i],
				       i == IN_DMA_RSP ? rig->inputs.data : NULL,
				       i == IN_DMA_RSP ? RIG_DATA_BYTES : 0);
	for (unsigned i = 0; i < OUT_COUNT; i++) {
		if (rig->out[i].ready != rig->was_ready[i])
			fprintf(rig->record, "ready %" PRIu64 " %s %d\n", rig->cycle,
				rig->out[i].name, rig->out[i].ready);
	}
}

static void run_model(struct rig *rig)
{
	bench_run(&rig->bench, 1);
	for (unsigned i = 0; i < IN_COUNT; i++) {
		cosim_in_after(&rig->in[i]);
		if (rig->in[i].popped)
			log_transaction(rig, rig->in[i].name, rig->in[i].desc, rig->in[i].words);
	}
	for (unsigned i = 0; i < OUT_COUNT; i++) {
		cosim_out_after(&rig->out[i]);
		if (rig->out[i].pushed)
			log_transaction(rig, rig->out[i].name, rig->out[i].desc, rig->out[i].words);
	}
	if (rig->out[OUT_DMA_REQ].pushed) {
		struct rn_dma_req *req = (struct rn_dma_req *)(void *)rig->out[OUT_DMA_REQ].message;

		rig->buffers[req->token] = req->buf;
		/* The index of a buffer is the simulator's. */
		req->buf = 0;
		rn_msg_dma_req.pack(req, rig->out[OUT_DMA_REQ].words);
	}
}

static void compare_ports(struct rig *rig, const struct dut_outputs *rtl, const char *which)
{
	for (unsigned i = 0; i < IN_COUNT; i++)
		if (rig->in[i].popped != (rig->in[i].valid && rtl->ready[i]))
			fail(rig, which, rig->in[i].name, rig->in[i].popped, rtl->ready[i]);
	for (unsigned i = 0; i < OUT_COUNT; i++) {
		const struct cosim_out *out = &rig->out[i];

		if (out->pushed != (out->ready && rtl->valid[i]))
			fail(rig, which, out->name, out->pushed, rtl->valid[i]);
		else if (out->pushed && memcmp(out->words, rtl->words[i], out->desc->words * 4))
			fail(rig, which, out->name, 1, 1);
	}
}

static void compare_account(struct rig *rig, const struct dut_outputs *rtl)
{
	const uint64_t *model = (const uint64_t *)(const void *)&rig->model->counters;

	rig->busy_cycles += rtl->busy_cycles;
	if (rig->model->block.busy_cycles != rig->busy_cycles)
		fail(rig, "busy cycles", "sum", rig->model->block.busy_cycles, rig->busy_cycles);
	for (unsigned i = 0; i < DUT_COUNTERS; i++) {
		rig->counts[i] += rtl->counts[i];
		if (model[i] != rig->counts[i])
			fail(rig, "counter", rn_msg_pte_cache_events.field[1 + i].name, model[i],
			     rig->counts[i]);
	}
	if (rig->model->block.stall != rtl->stall)
		fail(rig, "stall", "reason", rig->model->block.stall, rtl->stall);
}

static char *put_line(const struct rig *rig, char *at, unsigned unit, uint64_t number,
		      const char *result, const uint64_t *victim)
{
	const struct rn_pte_unit *of = &rig->model->units[unit];

	at += sprintf(at, "%" PRIu64 " %s %" PRIu64 " %s %" PRIu32 " ", rig->cycle * BENCH_CYCLE_PS,
		      of->name, number, result, rn_pte_tags_set(&of->tags, number));
	return at + (victim ? sprintf(at, "%" PRIu64 " 0\n", *victim) : sprintf(at, "- 0\n"));
}

/* The lines that the RTL's lookups make are those of the model's log. */
static void compare_lookups(struct rig *rig, const struct dut_outputs *rtl)
{
	static const char *const results[] = {"hit", "miss", "merge"};
	char text[4096], *at = text;

	*text = 0;
	for (unsigned way = 0; way < DUT_WAYS; way++)
		if (rtl->mtt_drop_ways >> way & 1)
			at = put_line(rig, at, RN_PTE_UNIT_MTT, rtl->mtt_drops[way], "drop", NULL);
	if (rtl->has_mpt_drop)
		at = put_line(rig, at, RN_PTE_UNIT_MPT, rtl->mpt_drop, "drop", NULL);
	for (unsigned i = 0; i < 6; i++) {
		bool is_evicted = rtl->has_victim && i % 3 == 1;

		if (rtl->counts[i])
			at = put_line(rig, at, i / 3, i < 3 ? rtl->mpt_number : rtl->mtt_number,
				      results[i % 3], is_evicted ? &rtl->victim : NULL);
	}
	fflush(rig->lookups);
	if (rig->lookup_bytes != (size_t)(at - text) ||
	    memcmp(rig->lookup_text, text, rig->lookup_bytes))
		fail(rig, "lookups", rig->lookup_bytes ? rig->lookup_text : "none", 0, 0);
	rewind(rig->lookups);
}

/* Whether the gated one has to run in this cycle. */
static bool has_work(struct rig *rig)
{
	bool has = rig->cycle >= rig->gated_due;

	for (unsigned i = 0; i < IN_COUNT; i++)
		has |= rig->in[i].is_new;
	for (unsigned i = 0; i < OUT_COUNT; i++)
		has |= rig->out[i].ready != rig->was_ready[i];
	return has;
}

static bool is_at_work(const struct dut_inputs *inputs, const struct dut_outputs *outputs)
{
	bool is = outputs->busy_cycles != 0;

	for (unsigned i = 0; i < IN_COUNT; i++)
		is |= inputs->valid[i] && outputs->ready[i];
	for (unsigned i = 0; i < OUT_COUNT; i++)
		is |= outputs->valid[i] && inputs->ready[i];
	return is;
}

/* Idle is idle, and who asks to be woken has something to do then, or something new to wait for. */
static void check_wake(struct rig *rig, bool was_woken, const struct dut_outputs *outputs)
{
	if (outputs->is_idle && (is_at_work(&rig->inputs, outputs) || outputs->wake_cycles < 2))
		fail(rig, "idle_o", "wake_o", 0, outputs->wake_cycles);
	if (!rig->compares_ports_alone && was_woken && outputs->is_idle &&
	    outputs->stall == rig->gated_stall &&
	    !memcmp(outputs->valid, rig->gated_valid, sizeof(rig->gated_valid)))
		fail(rig, "woken", "in vain", 0, outputs->wake_cycles);
}

static void settle_gated(struct rig *rig, struct dut_outputs *outputs)
{
	bool was_woken = true;

	for (unsigned i = 0; i < IN_COUNT; i++)
		was_woken &= !rig->in[i].is_new;
	for (unsigned i = 0; i < OUT_COUNT; i++)
		was_woken &= rig->out[i].ready == rig->was_ready_before[i];

	dut_settle(rig->gated, &rig->inputs, outputs);
	check_wake(rig, was_woken && rig->gated_slept, outputs);
	rig->gated_slept = outputs->is_idle;
	rig->gated_due = outputs->is_idle ? outputs->wake_cycles == UINT32_MAX
						    ? UINT64_MAX
						    : rig->cycle + outputs->wake_cycles
					  : rig->cycle + 1;
	rig->gated_stall = outputs->stall;
	memcpy(rig->gated_valid, outputs->valid, sizeof(rig->gated_valid));
	rig->gated_cycles++;
}

/* One that sleeps does nothing: neither did the C block. */
static void compare_sleep(struct rig *rig)
{
	struct dut_outputs nothing = {.stall = rig->gated_stall};

	compare_ports(rig, &nothing, "gated clock, asleep");
	if (!rig->compares_ports_alone && rig->model->block.stall != rig->gated_stall)
		fail(rig, "gated clock, asleep", "stall", rig->model->block.stall,
		     rig->gated_stall);
}

bool rig_cycle(struct rig *rig)
{
	struct dut_outputs gated = {0};

	if (rig->has_failed)
		return false;
	rig->cycle = rig->bench.cycle + 1;
	look(rig);

	bool is_awake = has_work(rig);

	if (rig->record)
		record(rig);
	for (unsigned i = 0; i < OUT_COUNT; i++) {
		rig->was_ready_before[i] = rig->was_ready[i];
		rig->was_ready[i] = rig->out[i].ready;
	}
	dut_settle(rig->always, &rig->inputs, &rig->outputs);
	if (is_awake)
		settle_gated(rig, &gated);
	run_model(rig);
	compare_ports(rig, &rig->outputs, "port");
	if (!rig->compares_ports_alone) {
		compare_account(rig, &rig->outputs);
		compare_lookups(rig, &rig->outputs);
	}
	if (is_awake)
		compare_ports(rig, &gated, "gated clock");
	else
		compare_sleep(rig);
	cosim_dut_clock(rig->always);
	if (is_awake)
		cosim_dut_clock(rig->gated);
	if (cosim_dut_has_failed(rig->always) || cosim_dut_has_failed(rig->gated))
		fail(rig, "assertion", "of the RTL", 0, 1);
	return !rig->has_failed;
}

void rig_explain(const struct rig *rig, FILE *file)
{
	uint64_t first = rig->logged > RIG_LOG ? rig->logged - RIG_LOG : 0;

	for (uint64_t i = first; i < rig->logged; i++) {
		const struct rig_transaction *at = &rig->log[i % RIG_LOG];

		fprintf(file, "%10" PRIu64 " %-10s ", at->cycle, at->port);
		cosim_print(file, at->desc, at->words);
	}
	fprintf(file, "%s\n", rig->difference);
	for (unsigned i = 0; i < OUT_COUNT; i++) {
		if (rig->out[i].pushed) {
			fprintf(file, "  model %-10s ", rig->out[i].name);
			cosim_print(file, rig->out[i].desc, rig->out[i].words);
		}
		if (rig->outputs.valid[i]) {
			fprintf(file, "  RTL   %-10s ", rig->out[i].name);
			cosim_print(file, rig->out[i].desc, rig->outputs.words[i]);
		}
	}
}
