#include "sim/stamp.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/mem.h"

struct rn_stamps {
	bool is_enabled;
	size_t limit;
	size_t count;
	size_t capacity;
	uint64_t lost;
	struct rn_stamp *stamps;
};

static const char *const stage_names[RN_STAMP_STAGE_COUNT] = {
#define RN_STAMP_NAME(id, name, help) name,
	RN_STAMP_STAGES(RN_STAMP_NAME)
#undef RN_STAMP_NAME
};

static const char *const stage_helps[RN_STAMP_STAGE_COUNT] = {
#define RN_STAMP_HELP(id, name, help) help,
	RN_STAMP_STAGES(RN_STAMP_HELP)
#undef RN_STAMP_HELP
};

struct rn_stamps *rn_stamps_new(bool enabled, size_t limit)
{
	struct rn_stamps *stamps = rn_calloc(1, sizeof(*stamps));

	stamps->is_enabled = enabled;
	stamps->limit = limit;
	return stamps;
}

void rn_stamps_free(struct rn_stamps *stamps)
{
	if (!stamps)
		return;
	free(stamps->stamps);
	free(stamps);
}

bool rn_stamps_is_enabled(const struct rn_stamps *stamps)
{
	return stamps->is_enabled;
}

void rn_stamps_record_slow(struct rn_stamps *stamps, const struct rn_stamp *stamp)
{
	RN_ASSERT(stamp->stage < RN_STAMP_STAGE_COUNT);
	if (stamps->count == stamps->limit) {
		stamps->lost++;
		return;
	}
	if (stamps->count == stamps->capacity) {
		stamps->capacity = stamps->capacity ? 2 * stamps->capacity : 1024;
		stamps->stamps =
			rn_reallocarray(stamps->stamps, stamps->capacity, sizeof(struct rn_stamp));
	}
	stamps->stamps[stamps->count++] = *stamp;
}

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_wqe(const struct rn_stamp *a, const struct rn_stamp *b)
{
	int order = ORDER(a->host, b->host);

	if (!order)
		order = ORDER(a->qpn, b->qpn);
	if (!order)
		order = ORDER(a->receive, b->receive);
	return order ? order : ORDER(a->wqe_idx, b->wqe_idx);
}

static int compare(const void *left, const void *right)
{
	const struct rn_stamp *a = left;
	const struct rn_stamp *b = right;
	int order = compare_wqe(a, b);

	if (!order)
		order = ORDER(a->at_ps, b->at_ps);
	return order ? order : ORDER(a->stage, b->stage);
}

static void number_repeats(struct rn_stamp *stamps, size_t count)
{
	uint16_t seen[RN_STAMP_STAGE_COUNT] = {0};

	for (size_t i = 0; i < count; i++) {
		if (i && compare_wqe(&stamps[i - 1], &stamps[i]))
			for (unsigned stage = 0; stage < RN_STAMP_STAGE_COUNT; stage++)
				seen[stage] = 0;
		stamps[i].count = ++seen[stamps[i].stage];
	}
}

const struct rn_stamp *rn_stamps_sorted(struct rn_stamps *stamps, size_t *count, uint64_t *lost)
{
	if (stamps->count)
		qsort(stamps->stamps, stamps->count, sizeof(struct rn_stamp), compare);
	number_repeats(stamps->stamps, stamps->count);
	*count = stamps->count;
	if (lost)
		*lost = stamps->lost;
	return stamps->stamps;
}

const char *rn_stamp_stage_name(enum rn_stamp_stage stage)
{
	RN_ASSERT(stage < RN_STAMP_STAGE_COUNT);
	return stage_names[stage];
}

const char *rn_stamp_stage_help(enum rn_stamp_stage stage)
{
	RN_ASSERT(stage < RN_STAMP_STAGE_COUNT);
	return stage_helps[stage];
}
