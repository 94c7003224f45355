/*
 * rtl: the Verilated block is the unit. Its frame is the rn_block at the fifos' ends, registers the C block's counters
 * under the C block's name, and moves messages; there is no C block.
 */
#include <inttypes.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "sim/buffer.h"
#include "systemc/cosim/cosim.h"
#include "systemc/cosim/counters.h"
#include "systemc/cosim/frame.h"
#include "systemc/cosim/record.h"
#include "systemc/cosim/sleep.h"

/* What of an output the RTL cannot know: a place to put the data. */
union entry {
	struct rn_dma_req dma_req;
	struct rn_blueflame blueflame;
	uint8_t bytes[128];
};

static void give_buffer(struct rn_cosim_unit *unit, const struct rn_cosim_port *port,
			union entry *entry)
{
	struct rn_buffers *buffers = unit->env.buffers;

	if (port->is->role == RN_RTL_DMA_REQ) {
		RN_ASSERT(entry->dma_req.token < RN_COSIM_TOKENS);
		entry->dma_req.buf = rn_buffer_get(buffers);
		unit->buffer_of[entry->dma_req.token] = entry->dma_req.buf;
	} else if (port->is->role == RN_RTL_BLUEFLAME) {
		entry->blueflame.buf = rn_buffer_get(buffers);
		memcpy(rn_buffer_data(buffers, entry->blueflame.buf), port->rtl_out.side,
		       port->rtl_out.side_bytes);
	}
}

static void push(struct rn_cosim_unit *unit, struct rn_cosim_port *port)
{
	union entry entry;

	RN_ASSERT(port->is->msg->bytes <= sizeof(entry));
	port->is->msg->unpack(port->rtl_out.words, &entry);
	give_buffer(unit, port, &entry);
	rn_fifo_push(port->fifo, &entry);
}

/* The answer has been taken: the buffer that the data came in is free. */
static void take_buffer(struct rn_cosim_unit *unit, const struct rn_cosim_port *port)
{
	struct rn_dma_rsp rsp;

	if (port->is->role != RN_RTL_DMA_RSP)
		return;
	rn_msg_unpack_dma_rsp(port->in.words, &rsp);
	rn_buffer_put(unit->env.buffers, unit->buffer_of[rsp.token]);
	unit->buffer_of[rsp.token] = RN_BUFFER_NONE;
}

static void move_input(struct rn_cosim_unit *unit, struct rn_cosim_port *port, uint64_t cycle)
{
	if (!port->valid || !port->rtl_ready)
		return;
	rn_cosim_note(unit, cycle, (uint8_t)(port - unit->port), &port->in);
	take_buffer(unit, port);
	rn_fifo_drop(port->fifo);
	port->taken = 1;
}

static void move_output(struct rn_cosim_unit *unit, struct rn_cosim_port *port, uint64_t cycle)
{
	uint8_t idx = (uint8_t)(port - unit->port);
	uint8_t tried = unit->tried_of[idx];

	if (port->rtl_valid && port->has_space) {
		rn_cosim_note(unit, cycle, idx, &port->rtl_out);
		push(unit, port);
		port->pushed = 1;
		port->model_out = port->rtl_out;
	} else if (port->rtl_valid || (tried != RN_COSIM_NO_FIELD && rn_cosim_event(unit, tried))) {
		rn_fifo_can_push(port->fifo); /* a fifo remembers who waits */
	}
}

static void count(struct rn_cosim_unit *unit)
{
	for (size_t i = 0; i < unit->counters; i++)
		unit->count[i] += rn_cosim_event(unit, unit->event_of[i]);
}

/* A line as rn_pte_cache_set_log() describes it. */
static void log_line(struct rn_cosim_unit *unit, bool is_mtt, uint64_t number, const char *result,
		     const uint64_t *victim)
{
	uint64_t sets = unit->lookup_sets[is_mtt];

	fprintf(unit->lookup_log, "%" PRIu64 " %s %" PRIu64 " %s %" PRIu64,
		rn_sim_now_ps(unit->env.sim), is_mtt ? "mtt" : "mpt", number, result,
		number & (sets - 1));
	if (victim)
		fprintf(unit->lookup_log, " %" PRIu64 " %" PRIu32 "\n", *victim, unit->env.host);
	else
		fprintf(unit->lookup_log, " - %" PRIu32 "\n", unit->env.host);
}

static uint64_t named_event(const struct rn_cosim_unit *unit, const char *name)
{
	for (size_t i = 0; i < unit->counters; i++)
		if (strcmp(unit->descs[i].name, name) == 0)
			return rn_cosim_event(unit, unit->event_of[i]);
	RN_ASSERT(!"a counter of this name");
	return 0;
}

static void log_lookup(struct rn_cosim_unit *unit, const struct rn_pte_cache_lookup *lookup,
		       bool is_mtt)
{
	const char *const hits = is_mtt ? "mtt_hits" : "mpt_hits";
	const char *const misses = is_mtt ? "mtt_misses" : "mpt_misses";
	const char *const merges = is_mtt ? "mtt_merges" : "mpt_merges";
	uint64_t number = is_mtt ? lookup->mtt_number : lookup->mpt_number;

	if (named_event(unit, hits))
		log_line(unit, is_mtt, number, "hit", NULL);
	if (named_event(unit, misses))
		log_line(unit, is_mtt, number, "miss", lookup->has_victim ? &lookup->victim : NULL);
	if (named_event(unit, merges))
		log_line(unit, is_mtt, number, "merge", NULL);
}

/* The walk of an invalidation drops up to one line of each way. */
static void log_drops(struct rn_cosim_unit *unit)
{
	for (uint32_t way = 0; way < unit->lookup_ways; way++) {
		uint32_t words[2];

		rn_rtl_get_words(&unit->pins.drop_valid, way, 1, words);
		if (!words[0])
			continue;
		rn_rtl_get_words(&unit->pins.drop_number, way * 64, 64, words);
		log_line(unit, true, rn_msg_get(words, 0, 64), "drop", NULL);
	}
}

static void log_lookups(struct rn_cosim_unit *unit)
{
	struct rn_pte_cache_lookup lookup;
	uint32_t words[RN_RTL_MSG_WORDS];

	if (!unit->lookup_log || !unit->pins.lookup.bits)
		return;
	rn_rtl_get_words(&unit->pins.lookup, 0, unit->pins.lookup.bits, words);
	rn_msg_unpack_pte_cache_lookup(words, &lookup);
	if (lookup.has_drop)
		log_line(unit, lookup.drop_is_mtt, lookup.drop_number, "drop", NULL);
	log_drops(unit);
	log_lookup(unit, &lookup, false);
	log_lookup(unit, &lookup, true);
}

/* A block has one wake: each tick asks again for what is still on its way to it. */
static void rearm(struct rn_cosim_unit *unit)
{
	for (unsigned i = 0; i < unit->boundary->ports; i++)
		if (unit->port[i].is->is_input)
			rn_fifo_peek(unit->port[i].fifo);
}

static void move(struct rn_cosim_unit *unit, uint64_t cycle)
{
	for (unsigned i = 0; i < unit->boundary->ports; i++) {
		struct rn_cosim_port *port = &unit->port[i];

		port->taken = port->pushed = 0;
		if (port->is->is_input)
			move_input(unit, port, cycle);
		else
			move_output(unit, port, cycle);
	}
}

/* The edge that ends the cycle, and whether the RTL may sleep behind it. */
static void end_cycle(struct rn_cosim_unit *unit, uint64_t cycle)
{
	const char *headline = rn_cosim_check_sleep(unit, false);

	rn_cosim_note_sleep(unit, cycle);
	rn_cosim_clock(unit);
	rearm(unit);
	if (unit->kind->has_failed(unit->rtl))
		headline = "an assertion of the RTL has failed";
	if (!headline)
		headline = rn_cosim_probe(unit);
	if (headline)
		rn_cosim_fail(unit, cycle, headline);
}

static void tick(void *self, uint64_t cycle)
{
	struct rn_cosim_unit *unit = self;

	if (rn_cosim_has_failed(unit->cosim))
		return;
	rn_cosim_sample(unit);
	rn_cosim_evaluate(unit, cycle);
	if (unit->kind->has_failed(unit->rtl)) {
		rn_cosim_fail(unit, cycle, "an assertion of the RTL has failed");
		return;
	}
	move(unit, cycle);
	count(unit);
	log_lookups(unit);
	rn_block_account(&unit->block, rn_cosim_event(unit, unit->busy_field),
			 (enum rn_stall)rn_rtl_get(&unit->pins.stall));
	rn_cosim_record(unit->recorder, unit, cycle);
	end_cycle(unit, cycle);
}

void rn_cosim_start_rtl(struct rn_cosim_unit *unit)
{
	rn_block_init(&unit->block, unit->env.sim, unit->env.core, unit->name, tick, unit);
	for (unsigned i = 0; i < unit->boundary->ports; i++)
		if (unit->boundary->port[i].is_input)
			rn_fifo_set_consumer(unit->port[i].fifo, &unit->block);
		else
			rn_fifo_set_producer(unit->port[i].fifo, &unit->block);
	unit->count = rn_calloc(unit->counters, sizeof(*unit->count));
	rn_stats_add_block(unit->env.stats, &unit->block);
	rn_stats_add_counters(unit->env.stats, unit->name, unit->descs, unit->counters,
			      unit->count);
}
