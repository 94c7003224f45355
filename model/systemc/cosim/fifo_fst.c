#include "systemc/cosim/fifo_fst.h"

#include <gtkwave/fstapi.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "base/output.h"
#include "systemc/cosim/fifo_fields.h"
#include "systemc/cosim/fst_check.h"

#define ENTRY_BYTES 128 /* of an entry at most */
#define MAX_FIELDS 16
#define OCCUPANCY_BITS 17
#define TIMESCALE_PS (-12)

/* A signal and what was written of it last. */
struct signal {
	fstHandle handle;
	uint32_t offset, bytes; /* in the entry */
	uint8_t was[ENTRY_BYTES];
	bool is_known;
};

struct traced {
	const struct rn_fifo *fifo;
	struct rn_fifo_fst *fst;
	struct rn_fifo_watch watch;
	fstHandle valid, occupancy;
	struct signal field[MAX_FIELDS];
	unsigned fields;
	/* As registers show it. Visible entries: a ring. */
	uint8_t (*entry)[ENTRY_BYTES];
	uint32_t slots, head, visible, held;
	uint32_t held_was;
	bool valid_was, is_changed;
};

enum change_kind { ENTERS, APPEARS, LEAVES };

/* Something that the wave shows at @at_ps. */
struct change {
	uint64_t at_ps;
	uint64_t order;
	struct traced *traced;
	enum change_kind kind;
	uint8_t entry[ENTRY_BYTES];
};

struct rn_fifo_fst {
	struct rn_sim *sim;
	struct rn_whole_file *file;
	struct fstContext *writer;
	struct traced *traced;
	size_t count;
	struct change *heap;
	size_t changes, capacity;
	uint64_t orders;
	uint64_t time_ps; /* of what was written last */
	struct traced **changed;
	size_t changed_count;
};

static bool is_before(const struct change *a, const struct change *b)
{
	return a->at_ps != b->at_ps ? a->at_ps < b->at_ps : a->order < b->order;
}

static void swap(struct change *a, struct change *b)
{
	struct change c = *a;

	*a = *b;
	*b = c;
}

static void heap_push(struct rn_fifo_fst *fst, const struct change *change)
{
	size_t i = fst->changes++;

	if (fst->changes > fst->capacity) {
		fst->capacity = fst->capacity ? 2 * fst->capacity : 256;
		fst->heap = rn_reallocarray(fst->heap, fst->capacity, sizeof(*fst->heap));
	}
	fst->heap[i] = *change;
	fst->heap[i].order = fst->orders++;
	for (; i && is_before(&fst->heap[i], &fst->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&fst->heap[i], &fst->heap[(i - 1) / 2]);
}

static void heap_pop(struct rn_fifo_fst *fst, struct change *change)
{
	size_t i = 0, child;

	*change = fst->heap[0];
	fst->heap[0] = fst->heap[--fst->changes];
	while ((child = 2 * i + 1) < fst->changes) {
		if (child + 1 < fst->changes && is_before(&fst->heap[child + 1], &fst->heap[child]))
			child++;
		if (!is_before(&fst->heap[child], &fst->heap[i]))
			break;
		swap(&fst->heap[child], &fst->heap[i]);
		i = child;
	}
}

/* Most significant bit first, as the format wants it. */
static void emit(struct rn_fifo_fst *fst, fstHandle handle, const uint8_t *bytes, uint32_t bits)
{
	char text[ENTRY_BYTES * 8 + 1];

	for (uint32_t i = 0; i < bits; i++)
		text[bits - 1 - i] = (char)('0' + (bytes[i / 8] >> i % 8 & 1));
	text[bits] = 0;
	fstWriterEmitValueChange(fst->writer, handle, text);
}

static void emit_number(struct rn_fifo_fst *fst, fstHandle handle, uint32_t value, uint32_t bits)
{
	uint8_t bytes[4];

	rn_put_le32(bytes, value);
	emit(fst, handle, bytes, bits);
}

static void write_fifo(struct rn_fifo_fst *fst, struct traced *traced)
{
	bool valid = traced->visible > 0;

	traced->is_changed = false;
	if (valid != traced->valid_was)
		emit_number(fst, traced->valid, valid, 1);
	if (traced->held != traced->held_was)
		emit_number(fst, traced->occupancy, traced->held, OCCUPANCY_BITS);
	traced->valid_was = valid;
	traced->held_was = traced->held;
	for (unsigned i = 0; valid && i < traced->fields; i++) {
		struct signal *signal = &traced->field[i];
		const uint8_t *now = traced->entry[traced->head] + signal->offset;

		if (signal->is_known && memcmp(signal->was, now, signal->bytes) == 0)
			continue;
		emit(fst, signal->handle, now, signal->bytes * 8);
		memcpy(signal->was, now, signal->bytes);
		signal->is_known = true;
	}
}

static void write_time(struct rn_fifo_fst *fst, uint64_t time_ps)
{
	if (fst->changed_count)
		fstWriterEmitTimeChange(fst->writer, time_ps);
	for (size_t i = 0; i < fst->changed_count; i++)
		write_fifo(fst, fst->changed[i]);
	fst->changed_count = 0;
}

static void apply(struct rn_fifo_fst *fst, const struct change *change)
{
	struct traced *traced = change->traced;

	switch (change->kind) {
	case ENTERS:
		traced->held++;
		break;
	case APPEARS:
		memcpy(traced->entry[(traced->head + traced->visible) % traced->slots],
		       change->entry, ENTRY_BYTES);
		traced->visible++;
		break;
	case LEAVES:
		traced->head = (traced->head + 1) % traced->slots;
		traced->visible--;
		traced->held--;
		break;
	}
	if (!traced->is_changed)
		fst->changed[fst->changed_count++] = traced;
	traced->is_changed = true;
}

/* Write what happened before @until_ps: nothing earlier can be added any more. */
static void advance(struct rn_fifo_fst *fst, uint64_t until_ps)
{
	struct change change;

	while (fst->changes && fst->heap[0].at_ps < until_ps) {
		heap_pop(fst, &change);
		if (change.at_ps != fst->time_ps)
			write_time(fst, fst->time_ps);
		fst->time_ps = change.at_ps;
		apply(fst, &change);
	}
}

static uint64_t next_edge_ps(const struct rn_clock *clock, uint64_t now_ps)
{
	return rn_clock_edge_ps(clock, rn_clock_cycle_at(clock, now_ps + 1));
}

static void pushed(void *arg, const struct rn_fifo *fifo, const void *entry, uint64_t visible_ps)
{
	struct traced *traced = arg;
	uint64_t now_ps = rn_sim_now_ps(fifo->sim);
	struct change change = {.traced = traced, .kind = ENTERS};
	uint64_t enters_ps = next_edge_ps(fifo->producer_clock, now_ps);

	advance(traced->fst, now_ps);
	change.at_ps = rn_min_u64(enters_ps, visible_ps);
	heap_push(traced->fst, &change);
	change.at_ps = visible_ps;
	change.kind = APPEARS;
	memcpy(change.entry, entry, fifo->entry_bytes);
	heap_push(traced->fst, &change);
}

static void popped(void *arg, const struct rn_fifo *fifo)
{
	struct traced *traced = arg;
	uint64_t now_ps = rn_sim_now_ps(fifo->sim);
	struct change change = {.traced = traced, .kind = LEAVES};

	advance(traced->fst, now_ps);
	change.at_ps = next_edge_ps(fifo->consumer_clock, now_ps);
	heap_push(traced->fst, &change);
}

static fstHandle make_signal(struct rn_fifo_fst *fst, const char *name, uint32_t bits)
{
	return fstWriterCreateVar(fst->writer, FST_VT_VCD_WIRE, FST_VD_IMPLICIT, bits, name, 0);
}

static void make_fields(struct rn_fifo_fst *fst, struct traced *traced)
{
	const struct rn_fifo_message *message = rn_fifo_message_find(traced->fifo->name);

	if (!message) {
		traced->field[0] = (struct signal){
			.handle = make_signal(fst, "data", traced->fifo->entry_bytes * 8),
			.bytes = traced->fifo->entry_bytes,
		};
		traced->fields = 1;
		return;
	}
	RN_ASSERT(message->fields <= MAX_FIELDS);
	traced->fields = message->fields;
	for (unsigned i = 0; i < message->fields; i++) {
		const struct rn_fifo_field *field = &message->field[i];

		traced->field[i] = (struct signal){
			.handle = make_signal(fst, field->name, field->bytes * 8),
			.offset = field->offset,
			.bytes = field->bytes,
		};
	}
}

static void make_scope(struct rn_fifo_fst *fst, struct traced *traced, const char *name)
{
	fstWriterSetScope(fst->writer, FST_ST_VCD_MODULE, name, NULL);
	traced->valid = make_signal(fst, "valid", 1);
	traced->occupancy = make_signal(fst, "occupancy", OCCUPANCY_BITS);
	make_fields(fst, traced);
	fstWriterSetUpscope(fst->writer);
}

/* "host0.nic0.dma_req3": scopes host0, nic0, dma_req3. */
static void make_scopes(struct rn_fifo_fst *fst, struct traced *traced)
{
	char *path = rn_strdup(traced->fifo->name);
	char *name = path, *dot;
	unsigned depth = 0;

	for (; (dot = strchr(name, '.')); name = dot + 1, depth++) {
		*dot = 0;
		fstWriterSetScope(fst->writer, FST_ST_VCD_MODULE, name, NULL);
	}
	make_scope(fst, traced, name);
	while (depth-- > 0)
		fstWriterSetUpscope(fst->writer);
	free(path);
}

static void trace(struct rn_fifo_fst *fst, struct traced *traced, struct rn_fifo *fifo)
{
	RN_ASSERT(fifo->entry_bytes <= ENTRY_BYTES);
	traced->fifo = fifo;
	traced->fst = fst;
	/* Those popped in this cycle are still shown while others appear. */
	traced->slots = 2 * fifo->depth + 1;
	traced->entry = rn_calloc(traced->slots, sizeof(*traced->entry));
	make_scopes(fst, traced);
	traced->watch = (struct rn_fifo_watch){.arg = traced, .pushed = pushed, .popped = popped};
	rn_fifo_set_watch(fifo, &traced->watch);
}

static void write_start(struct rn_fifo_fst *fst)
{
	fstWriterEmitTimeChange(fst->writer, 0);
	for (size_t i = 0; i < fst->count; i++) {
		emit_number(fst, fst->traced[i].valid, 0, 1);
		emit_number(fst, fst->traced[i].occupancy, 0, OCCUPANCY_BITS);
	}
}

struct rn_fifo_fst *rn_fifo_fst_new(struct rn_sim *sim, const struct rn_stats *stats,
				    const char *path, char **message)
{
	struct rn_whole_file *file = rn_whole_file_new(path, "a waveform", message);
	struct rn_fifo_fst *fst;

	if (!file)
		return NULL;
	fst = rn_calloc(1, sizeof(*fst));
	fst->sim = sim;
	fst->file = file;
	/* The library unlinks what stands at the path that it is given. */
	fst->writer = fstWriterCreate(rn_whole_file_path(file), 1);
	if (!fst->writer) {
		*message = rn_asprintf("%s: cannot write a waveform", path);
		rn_whole_file_finish(file, false, NULL);
		free(fst);
		return NULL;
	}
	fstWriterSetPackType(fst->writer, FST_WR_PT_LZ4);
	fstWriterSetTimescale(fst->writer, TIMESCALE_PS);
	while (rn_stats_fifo_at(stats, fst->count))
		fst->count++;
	fst->traced = rn_calloc(fst->count + 1, sizeof(*fst->traced));
	fst->changed = rn_calloc(fst->count + 1, sizeof(struct traced *));
	for (size_t i = 0; i < fst->count; i++)
		trace(fst, &fst->traced[i], rn_stats_fifo_at(stats, i));
	write_start(fst);
	return fst;
}

int rn_fifo_fst_free(struct rn_fifo_fst *fst, char **message)
{
	int error;

	if (!fst)
		return 0;
	advance(fst, UINT64_MAX);
	write_time(fst, fst->time_ps);
	fstWriterClose(fst->writer);
	error = rn_fst_finish(fst->file, message);
	for (size_t i = 0; i < fst->count; i++)
		free(fst->traced[i].entry);
	free(fst->traced);
	free(fst->changed);
	free(fst->heap);
	free(fst);
	return error;
}
