/*
 * TLPs are known before they are on the link, those of two links in no particular order. They
 * wait in a heap until time has passed them, so that the file is in order whatever the order of
 * the blocks.
 */
#include "pcie/tlp_log.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "sim/sim.h"

/* Two events of one picosecond that the wheel ran one after the other may still swap. */
#define SETTLED_PS 1000

/* A line takes no more, the longest numbers and names included. */
#define LINE_BYTES 256u
#define TEXT_BYTES (64u * 1024)

/* What the heap moves about; the record lies still. */
struct node {
	uint64_t first_bit_ps;
	uint64_t seq;	 /* order of adding: within one link and direction, order on it */
	uint32_t stream; /* link and direction */
	uint32_t record;
};

struct rn_tlp_log {
	struct rn_sim *sim;
	FILE *out;
	bool with_hash;
	uint64_t seq;
	struct node *heap;
	struct rn_tlp_record *record;
	uint32_t *spare; /* records that no node has */
	uint32_t count;
	uint32_t capacity;
	uint32_t text_bytes;
	char text[TEXT_BYTES];
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

static bool is_before(const struct node *a, const struct node *b)
{
	if (a->first_bit_ps != b->first_bit_ps)
		return a->first_bit_ps < b->first_bit_ps;
	if (a->stream != b->stream)
		return a->stream < b->stream;
	return a->seq < b->seq;
}

/* Lines are put together here: printf() costs more than all else that a TLP does. */
static char *put_text(char *at, const char *text)
{
	while (*text)
		*at++ = *text++;
	return at;
}

static char *put_decimal(char *at, uint64_t value)
{
	char digits[20];
	unsigned count = 0;

	do
		digits[count++] = (char)('0' + value % 10);
	while (value /= 10);
	while (count)
		*at++ = digits[--count];
	return at;
}

/* At least @width digits. */
static char *put_hex(char *at, uint64_t value, unsigned width)
{
	unsigned count = width;

	while (count < 16 && value >> 4 * count)
		count++;
	while (count)
		*at++ = "0123456789abcdef"[value >> 4 * --count & 15];
	return at;
}

static char *put_record(char *at, const struct rn_tlp_record *record)
{
	at = put_decimal(at, record->first_bit_ps);
	*at++ = ',';
	at = put_decimal(at, record->arrival_ps);
	*at++ = ',';
	at = put_decimal(at, record->host);
	at = put_text(at, record->direction == RN_TLP_UP ? ",up," : ",down,");
	at = put_text(at, record->type);
	at = put_text(at, ",0x");
	at = put_hex(at, record->addr, 1);
	*at++ = ',';
	at = put_decimal(at, record->len);
	*at++ = ',';
	if (record->tag != RN_TLP_LOG_NO_TAG)
		at = put_decimal(at, record->tag);
	*at++ = ',';
	at = put_text(at, record->channel);
	*at++ = ',';
	at = put_text(at, record->status);
	*at++ = ',';
	if (record->has_hash)
		at = put_hex(at, record->hash, 16);
	*at++ = '\n';
	return at;
}

static void send_text(struct rn_tlp_log *log)
{
	fwrite(log->text, 1, log->text_bytes, log->out);
	log->text_bytes = 0;
}

static void print(struct rn_tlp_log *log, const struct rn_tlp_record *record)
{
	char *start = log->text + log->text_bytes;
	size_t bytes = (size_t)(put_record(start, record) - start);

	RN_ASSERT(bytes <= LINE_BYTES);
	log->text_bytes += (uint32_t)bytes;
	if (log->text_bytes + LINE_BYTES > TEXT_BYTES)
		send_text(log);
}

static void pop(struct rn_tlp_log *log)
{
	struct node last = log->heap[--log->count];
	uint32_t idx = 0;

	log->spare[log->count] = log->heap[0].record;
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
	while (log->count && log->heap[0].first_bit_ps < before_ps) {
		print(log, &log->record[log->heap[0].record]);
		pop(log);
	}
}

static void grow(struct rn_tlp_log *log)
{
	uint32_t old = log->capacity;

	log->capacity = old ? 2 * old : 256;
	log->heap = rn_reallocarray(log->heap, log->capacity, sizeof(*log->heap));
	log->record = rn_reallocarray(log->record, log->capacity, sizeof(*log->record));
	log->spare = rn_reallocarray(log->spare, log->capacity, sizeof(*log->spare));
	for (uint32_t i = old; i < log->capacity; i++)
		log->spare[i] = i;
}

void rn_tlp_log_add(struct rn_tlp_log *log, const struct rn_tlp_record *record)
{
	uint64_t now_ps = rn_sim_now_ps(log->sim);

	write_until(log, now_ps > SETTLED_PS ? now_ps - SETTLED_PS : 0);
	if (log->count == log->capacity)
		grow(log);

	struct node node = {
		.first_bit_ps = record->first_bit_ps,
		.seq = log->seq++,
		.stream = record->host << 1 | record->direction,
		.record = log->spare[log->count],
	};
	uint32_t idx = log->count++;

	log->record[node.record] = *record;
	while (idx && is_before(&node, &log->heap[(idx - 1) / 2])) {
		log->heap[idx] = log->heap[(idx - 1) / 2];
		idx = (idx - 1) / 2;
	}
	log->heap[idx] = node;
}

void rn_tlp_log_free(struct rn_tlp_log *log)
{
	if (!log)
		return;
	write_until(log, UINT64_MAX);
	send_text(log);
	fflush(log->out);
	free(log->heap);
	free(log->record);
	free(log->spare);
	free(log);
}

bool rn_tlp_log_has_hash(const struct rn_tlp_log *log)
{
	return log->with_hash;
}

static uint64_t add_word(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

uint64_t rn_tlp_log_hash(const void *data, uint32_t len)
{
	const uint8_t *bytes = data;
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ len;
	uint8_t rest[8] = {0};

	for (; len >= 8; len -= 8, bytes += 8)
		hash = add_word(hash, rn_get_le64(bytes));
	memcpy(rest, bytes, len);
	return len ? add_word(hash, rn_get_le64(rest)) : hash;
}
