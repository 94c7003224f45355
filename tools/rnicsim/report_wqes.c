#include "report_wqes.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/mem.h"
#include "report_units.h"

#define TOTAL RN_STAMP_STAGE_COUNT /* behind the stages */
#define COLUMNS (RN_STAMP_STAGE_COUNT + 1)

/* The times of one stage, or the total, of all WQEs. */
struct column {
	uint64_t *ps;
	size_t count;
	size_t room;
};

void rn_report_wqes_init(struct rn_report_wqes *wqes, struct rn_stamps *stamps, uint64_t from_ps)
{
	wqes->from_ps = from_ps;
	wqes->stamp = rn_stamps_sorted(stamps, &wqes->count, &wqes->lost);
}

static bool is_same_index(const struct rn_stamp *a, const struct rn_stamp *b)
{
	return a->host == b->host && a->qpn == b->qpn && a->receive == b->receive &&
	       a->wqe_idx == b->wqe_idx;
}

/* Stamps from @first on that belong to one WQE; sets is_complete. */
static size_t extent(const struct rn_report_wqes *wqes, size_t first, bool *is_complete)
{
	size_t end = first;

	*is_complete = false;
	while (end < wqes->count && is_same_index(&wqes->stamp[first], &wqes->stamp[end])) {
		bool is_ending = wqes->stamp[end].stage >= RN_STAMP_ACK;

		if (*is_complete && !is_ending)
			break;
		*is_complete |= is_ending;
		end++;
	}
	return end - first;
}

static void divide(struct rn_report_wqe *wqe)
{
	for (unsigned stage = 0; stage < RN_STAMP_STAGE_COUNT; stage++)
		wqe->took_ps[stage] = 0;
	for (size_t i = 1; i < wqe->count; i++)
		wqe->took_ps[wqe->stamp[i].stage] += wqe->stamp[i].at_ps - wqe->stamp[i - 1].at_ps;
	wqe->total_ps = wqe->stamp[wqe->count - 1].at_ps - wqe->stamp[0].at_ps;
}

bool rn_report_wqes_next(const struct rn_report_wqes *wqes, size_t *pos, struct rn_report_wqe *wqe)
{
	while (*pos < wqes->count) {
		wqe->stamp = &wqes->stamp[*pos];
		wqe->count = extent(wqes, *pos, &wqe->is_complete);
		*pos += wqe->count;
		if (wqe->stamp->at_ps < wqes->from_ps)
			continue;
		divide(wqe);
		return true;
	}
	return false;
}

/* Bit @stage: the WQE has been there. */
static uint32_t stages_seen(const struct rn_report_wqe *wqe)
{
	uint32_t seen = 0;

	for (size_t i = 0; i < wqe->count; i++)
		seen |= UINT32_C(1) << wqe->stamp[i].stage;
	return seen;
}

static void append(struct column *column, uint64_t ps)
{
	if (column->count == column->room) {
		column->room = column->room ? 2 * column->room : 256;
		column->ps = rn_reallocarray(column->ps, column->room, sizeof(*column->ps));
	}
	column->ps[column->count++] = ps;
}

static void collect(const struct rn_report_wqes *wqes, bool is_receive, struct column *column)
{
	struct rn_report_wqe wqe;

	for (size_t pos = 0; rn_report_wqes_next(wqes, &pos, &wqe);) {
		uint32_t seen = stages_seen(&wqe);

		if (!wqe.is_complete || wqe.stamp->receive != is_receive)
			continue;
		for (unsigned stage = 0; stage < RN_STAMP_STAGE_COUNT; stage++)
			if (seen & UINT32_C(1) << stage)
				append(&column[stage], wqe.took_ps[stage]);
		append(&column[TOTAL], wqe.total_ps);
	}
}

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left;
	uint64_t b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

/* The smallest value that @permille of the sorted values do not exceed. */
static json_t *percentile(const struct column *column, uint64_t permille)
{
	size_t rank = (column->count * permille + 999) / 1000;

	return rn_report_integer(column->ps[rank ? rank - 1 : 0]);
}

static json_t *describe(struct column *column)
{
	double sum = 0;

	qsort(column->ps, column->count, sizeof(*column->ps), compare);
	for (size_t i = 0; i < column->count; i++)
		sum += (double)column->ps[i];
	return json_pack("{s:o, s:o, s:f, s:o, s:o, s:o, s:o, s:o}", "count",
			 rn_report_integer(column->count), "min_ps", percentile(column, 0),
			 "mean_ps", sum / (double)column->count, "max_ps", percentile(column, 1000),
			 "p50_ps", percentile(column, 500), "p90_ps", percentile(column, 900),
			 "p99_ps", percentile(column, 990), "p999_ps", percentile(column, 999));
}

static const char *column_name(unsigned idx)
{
	return idx == TOTAL ? "total" : rn_stamp_stage_name(idx);
}

json_t *rn_report_wqes_statistics(const struct rn_report_wqes *wqes)
{
	static const char *const queues[] = {"send", "receive"};
	json_t *statistics = json_object();

	for (unsigned queue = 0; queue < RN_ARRAY_LEN(queues); queue++) {
		struct column column[COLUMNS] = {0};
		json_t *stages = json_object();

		collect(wqes, queue == 1, column);
		for (unsigned i = 0; i < COLUMNS; i++) {
			if (column[i].count)
				json_object_set_new(stages, column_name(i), describe(&column[i]));
			free(column[i].ps);
		}
		json_object_set_new(statistics, queues[queue], stages);
	}
	return statistics;
}

/* {"stage": ps ...}: when the WQE first came to each stage, or what that took. */
static void write_stages(const struct rn_report_wqe *wqe, bool is_time, FILE *out)
{
	const char *gap = "";
	uint32_t seen = 0;

	for (size_t i = 0; i < wqe->count; i++) {
		const struct rn_stamp *stamp = &wqe->stamp[i];

		if (seen & UINT32_C(1) << stamp->stage)
			continue;
		seen |= UINT32_C(1) << stamp->stage;
		fprintf(out, "%s\"%s\": %" PRIu64, gap, rn_stamp_stage_name(stamp->stage),
			is_time ? stamp->at_ps : wqe->took_ps[stamp->stage]);
		gap = ", ";
	}
}

static void write_repeats(const struct rn_report_wqe *wqe, FILE *out)
{
	const char *gap = "";
	uint32_t seen = 0;

	for (size_t i = 0; i < wqe->count; i++) {
		const struct rn_stamp *stamp = &wqe->stamp[i];

		if (seen & UINT32_C(1) << stamp->stage) {
			fprintf(out, "%s[\"%s\", %" PRIu64 "]", gap,
				rn_stamp_stage_name(stamp->stage), stamp->at_ps);
			gap = ", ";
		}
		seen |= UINT32_C(1) << stamp->stage;
	}
}

static void write_wqe(const struct rn_report_wqe *wqe, FILE *out)
{
	const struct rn_stamp *first = wqe->stamp;

	fprintf(out,
		"{\"host\": %" PRIu32 ", \"qpn\": %" PRIu32
		", \"queue\": \"%s\", \"index\": %" PRIu32
		", \"complete\": %s, \"total_ps\": %" PRIu64 ", \"at_ps\": {",
		first->host, first->qpn, first->receive ? "receive" : "send", first->wqe_idx,
		wqe->is_complete ? "true" : "false", wqe->total_ps);
	write_stages(wqe, true, out);
	fputs("}, \"took_ps\": {", out);
	write_stages(wqe, false, out);
	fputs("}, \"repeats\": [", out);
	write_repeats(wqe, out);
	fputs("]}", out);
}

void rn_report_wqes_write(const struct rn_report_wqes *wqes, FILE *out)
{
	struct rn_report_wqe wqe;
	const char *gap = "\n";

	fputc('[', out);
	for (size_t pos = 0; rn_report_wqes_next(wqes, &pos, &wqe); gap = ",\n") {
		fputs(gap, out);
		write_wqe(&wqe, out);
	}
	fputs("\n]", out);
}
