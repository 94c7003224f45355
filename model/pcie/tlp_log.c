/*
 * TLPs are known before they are on the link, those of two links in no particular order. They
 * wait in a heap until time has passed them, so that the file is in order whatever the order of
 * the blocks.
 */
#include "pcie/tlp_log.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/mem.h"
#include "sim/sim.h"

/* Two events of one picosecond that the wheel ran one after the other may still swap. */
#define SETTLED_PS 1000

struct entry {
	struct rn_tlp_record record;
	uint64_t seq; /* order of adding: within one link and direction, order on it */
};

struct rn_tlp_log {
	struct rn_sim *sim;
	FILE *out;
	bool with_hash;
	uint64_t seq;
	struct entry *heap;
	uint32_t count;
	uint32_t capacity;
};

struct rn_tlp_log *rn_tlp_log_new(struct rn_sim *sim, FILE *out, bool with_hash)
{
	struct rn_tlp_log *log = rn_calloc(1, sizeof(*log));

	log->sim = sim;
	log->out = out;
	log->with_hash = with_hash;
	fputs("first_bit_ps,arrival_ps,host,direction,type,address,length,tag,channel,status,hash\n",
	      out);
	return log;
}

static bool is_before(const struct entry *a, const struct entry *b)
{
	const struct rn_tlp_record *x = &a->record;
	const struct rn_tlp_record *y = &b->record;

	if (x->first_bit_ps != y->first_bit_ps)
		return x->first_bit_ps < y->first_bit_ps;
	if (x->host != y->host)
		return x->host < y->host;
	if (x->direction != y->direction)
		return x->direction < y->direction;
	return a->seq < b->seq;
}

static void print(const struct rn_tlp_log *log, const struct rn_tlp_record *record)
{
	fprintf(log->out, "%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%s,%s,0x%" PRIx64 ",%" PRIu32 ",",
		record->first_bit_ps, record->arrival_ps, record->host,
		record->direction == RN_TLP_UP ? "up" : "down", record->type, record->addr,
		record->len);
	if (record->tag != RN_TLP_LOG_NO_TAG)
		fprintf(log->out, "%" PRIu32, record->tag);
	fprintf(log->out, ",%s,%s,", record->channel, record->status);
	if (record->has_hash)
		fprintf(log->out, "%016" PRIx64, record->hash);
	fputc('\n', log->out);
}

static void pop(struct rn_tlp_log *log)
{
	struct entry last = log->heap[--log->count];
	uint32_t idx = 0;

	for (;;) {
		uint32_t child = 2 * idx + 1;

		if (child >= log->count)
			break;
		if (child + 1 < log->count && is_before(&log->heap[child + 1], &log->heap[child]))
			child++;
		if (!is_before(&log->heap[child], &last))
			break;
		log->heap[idx] = log->heap[child];
		idx = child;
	}
	log->heap[idx] = last;
}

/* Nothing that starts before @before_ps can still be added. */
static void write_until(struct rn_tlp_log *log, uint64_t before_ps)
{
	while (log->count && log->heap[0].record.first_bit_ps < before_ps) {
		print(log, &log->heap[0].record);
		pop(log);
	}
}

void rn_tlp_log_add(struct rn_tlp_log *log, const struct rn_tlp_record *record)
{
	uint64_t now_ps = rn_sim_now_ps(log->sim);

	write_until(log, now_ps > SETTLED_PS ? now_ps - SETTLED_PS : 0);
	if (log->count == log->capacity) {
		log->capacity = log->capacity ? 2 * log->capacity : 256;
		log->heap = rn_reallocarray(log->heap, log->capacity, sizeof(struct entry));
	}

	struct entry entry = {.record = *record, .seq = log->seq++};
	uint32_t idx = log->count++;

	while (idx && is_before(&entry, &log->heap[(idx - 1) / 2])) {
		log->heap[idx] = log->heap[(idx - 1) / 2];
		idx = (idx - 1) / 2;
	}
	log->heap[idx] = entry;
}

void rn_tlp_log_free(struct rn_tlp_log *log)
{
	if (!log)
		return;
	write_until(log, UINT64_MAX);
	fflush(log->out);
	free(log->heap);
	free(log);
}

bool rn_tlp_log_has_hash(const struct rn_tlp_log *log)
{
	return log->with_hash;
}

uint64_t rn_tlp_log_hash(const void *data, uint32_t len)
{
	const uint8_t *bytes = data;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (uint32_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}
