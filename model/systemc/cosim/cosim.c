/*
 * Which unit of which NIC is what in this run, and the Verilated kinds that there are.
 */
#include "systemc/cosim/cosim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "base/rng.h"
#include "hw/gen/rnic_hw.h"
#include "sim/buffer.h"
#include "systemc/cosim/cosim_internal.h"
#include "systemc/cosim/counters.h"
#include "systemc/cosim/frame.h"
#include "systemc/cosim/geometry.h"
#include "systemc/cosim/record.h"
#include "systemc/cosim/sleep.h"
#include "systemc/cosim/window.h"

#define WINDOW_CYCLES 4096
#define DEFAULT_FST "rnicsim-divergence.fst"

struct recording {
	struct rn_cosim_record what;
	struct rn_cosim_recorder *recorder;
};

struct rn_cosim {
	const struct rn_scenario *scenario;
	struct rn_cosim_options options;
	struct rn_unit_builder builder;
	struct rn_cosim_unit *unit; /* in order of building */
	struct recording *recording;
	bool has_failed;
};

static enum rn_unit_mode mode_of(const struct rn_cosim *cosim, const struct rn_unit_site *site)
{
	return cosim->scenario->host[site->env->host].unit[site->unit];
}

static struct rn_cosim_recorder *recorder_of(const struct rn_cosim *cosim,
					     const struct rn_unit_site *site)
{
	for (unsigned i = 0; i < cosim->options.records; i++)
		if (cosim->recording[i].what.host == site->env->host &&
		    cosim->recording[i].what.unit == site->unit)
			return cosim->recording[i].recorder;
	return NULL;
}

static void connect_pte_cache(struct rn_cosim_unit *unit, const struct rn_unit_site *site)
{
	const struct rn_pte_cache_ports *p = site->ports;
	const struct rn_pte_cache_params *params = site->params;
	struct rn_fifo *const fifos[] = {p->req[0],	p->req[1],  p->release, p->inval,
					 p->base,	p->dma_rsp, p->rsp[0],	p->rsp[1],
					 p->inval_done, p->dma_req};

	for (unsigned i = 0; i < RN_ARRAY_LEN(fifos); i++)
		unit->port[i].fifo = fifos[i];
	unit->line_bytes =
		(uint32_t)rn_max_u64(RN_MPT_BYTES, params->mtt_line_entries * RN_MTT_BYTES);
	unit->lookup_sets[0] = params->mpt_sets;
	unit->lookup_sets[1] = params->mtt_sets;
	unit->lookup_ways = params->mtt_ways;
}

static void connect_doorbell(struct rn_cosim_unit *unit, const struct rn_unit_site *site)
{
	const struct rn_doorbell_ports *p = site->ports;
	struct rn_fifo *const fifos[] = {p->status,	   p->mmio_write, p->mmio_read,
					 p->mmio_read_rsp, p->sq_ring,	  p->blueflame,
					 p->cq_ring,	   p->rq_ring,	  p->cmd_ring};

	for (unsigned i = 0; i < RN_ARRAY_LEN(fifos); i++)
		unit->port[i].fifo = fifos[i];
	unit->boundary->constant->pack(site->identity, unit->constant);
}

static uint8_t find_event(const struct rn_cosim_unit *unit, const char *name, const char *ending)
{
	const struct rn_msg_desc *events = unit->boundary->events;
	size_t length = strlen(name);

	for (uint8_t i = 0; i < events->fields; i++)
		if (strncmp(events->field[i].name, name, length) == 0 &&
		    strcmp(events->field[i].name + length, ending) == 0)
			return i;
	return RN_COSIM_NO_FIELD;
}

static void map_events(struct rn_cosim_unit *unit)
{
	unit->descs = rn_cosim_counters(unit->boundary->unit, &unit->counters);
	RN_ASSERT(unit->counters <= RN_COSIM_EVENTS);
	for (size_t i = 0; i < unit->counters; i++) {
		unit->event_of[i] = find_event(unit, unit->descs[i].name, "");
		RN_ASSERT(unit->event_of[i] != RN_COSIM_NO_FIELD);
	}
	for (unsigned i = 0; i < unit->boundary->ports; i++)
		unit->tried_of[i] = find_event(unit, unit->boundary->port[i].name, "_tried");
	unit->busy_field = find_event(unit, "busy_cycles", "");
}

/* Of what its registers hold before the reset: of the scenario, and another for each unit. */
static uint32_t seed_of(const struct rn_cosim_unit *unit)
{
	struct rn_rng rng;

	rn_rng_init(&rng, unit->cosim->scenario->seed, unit->name);
	return (uint32_t)rn_rng_next(&rng);
}

static void make_rtl(struct rn_cosim_unit *unit, const struct rn_unit_site *site)
{
	const struct rn_cosim_options *options = &unit->cosim->options;

	unit->kind = rn_cosim_geometry_find(site->unit, site->table, site->params);
	RN_ASSERT(unit->kind); /* rn_cosim_check() */
	unit->rtl_options = (struct rn_rtl_options){
		.name = unit->name,
		.plusargs = options->plusargs,
		.plusargs_count = (int)options->plusargs_count,
		.seed = seed_of(unit),
	};
	unit->rtl = unit->kind->make(&unit->rtl_options, &unit->pins);
	for (unsigned i = 0; i < unit->boundary->ports; i++)
		unit->port[i].pins = &unit->pins.port[i];
	rn_cosim_reset(unit->kind, unit->rtl, &unit->pins, unit);
	unit->window = rn_cosim_window_new(unit, WINDOW_CYCLES);
}

static struct rn_cosim_unit *make_unit(struct rn_cosim *cosim, const struct rn_unit_site *site)
{
	struct rn_cosim_unit *unit = rn_calloc(1, sizeof(*unit));
	struct rn_cosim_unit **end = &cosim->unit;

	unit->cosim = cosim;
	unit->mode = mode_of(cosim, site);
	unit->boundary = rn_rtl_boundary_of(site->unit);
	unit->env = *site->env;
	unit->name = rn_asprintf("%s.%s", site->env->name, rn_unit_name(site->unit));
	unit->differing = RN_RTL_PORTS;
	for (unsigned i = 0; i < unit->boundary->ports; i++)
		unit->port[i].is = &unit->boundary->port[i];
	for (unsigned i = 0; i < RN_COSIM_TOKENS; i++)
		unit->buffer_of[i] = RN_BUFFER_NONE;
	if (site->unit == RN_UNIT_DOORBELL)
		connect_doorbell(unit, site);
	else
		connect_pte_cache(unit, site);
	map_events(unit);
	if (unit->mode != RN_UNIT_MODEL)
		make_rtl(unit, site);
	unit->recorder = recorder_of(cosim, site);
	if (unit->recorder)
		rn_cosim_recorder_begin(unit->recorder, unit, site);
	while (*end)
		end = &(*end)->next;
	*end = unit;
	return unit;
}

static bool replace(void *arg, const struct rn_unit_site *site)
{
	struct rn_cosim *cosim = arg;

	if (mode_of(cosim, site) != RN_UNIT_RTL)
		return false;
	rn_cosim_start_rtl(make_unit(cosim, site));
	return true;
}

static void watch(void *arg, const struct rn_unit_site *site, struct rn_block *block)
{
	struct rn_cosim *cosim = arg;

	if (mode_of(cosim, site) == RN_UNIT_LOCKSTEP || recorder_of(cosim, site))
		rn_cosim_start_watch(make_unit(cosim, site), block);
}

static void set_log(void *arg, FILE *log)
{
	struct rn_cosim *cosim = arg;

	for (struct rn_cosim_unit *unit = cosim->unit; unit; unit = unit->next)
		unit->lookup_log = log;
}

static bool open_recordings(struct rn_cosim *cosim, char **error)
{
	cosim->recording = rn_calloc(cosim->options.records + 1, sizeof(*cosim->recording));
	for (unsigned i = 0; i < cosim->options.records; i++) {
		struct recording *recording = &cosim->recording[i];

		recording->what = cosim->options.record[i];
		recording->recorder = rn_cosim_recorder_new(recording->what.path, error);
		if (!recording->recorder)
			return false;
	}
	return true;
}

static bool has_rtl(const struct rn_scenario *scenario)
{
	for (unsigned host = 0; host < scenario->hosts; host++)
		for (unsigned unit = 0; unit < RN_UNITS; unit++)
			if (scenario->host[host].unit[unit] != RN_UNIT_MODEL)
				return true;
	return false;
}

/* What would be found out, or not, when it is too late. */
static bool check_options(const struct rn_cosim *cosim, char **error)
{
	const struct rn_cosim_options *options = &cosim->options;
	const char *path = options->fst_path, *slash = path ? strrchr(path, '/') : NULL;
	char *folder;

	if (options->plusargs_count && !has_rtl(cosim->scenario)) {
		*error =
			rn_strdup("--plusarg: no unit is RTL that could read it (--unit UNIT=rtl)");
		return false;
	}
	if (!slash)
		return true;
	folder = rn_asprintf("%.*s/", (int)(slash - path), path);
	if (access(folder, W_OK) != 0)
		*error = rn_asprintf("--divergence-fst: %s: %s", path, strerror(errno));
	free(folder);
	return !*error;
}

struct rn_cosim *rn_cosim_new(const struct rn_scenario *scenario,
			      const struct rn_cosim_options *options, char **error)
{
	struct rn_cosim *cosim = rn_calloc(1, sizeof(*cosim));

	cosim->scenario = scenario;
	cosim->options = *options;
	cosim->builder = (struct rn_unit_builder){
		.arg = cosim,
		.replace = replace,
		.watch = watch,
		.set_log = set_log,
	};
	if (check_options(cosim, error) && open_recordings(cosim, error))
		return cosim;
	rn_cosim_free(cosim, NULL);
	return NULL;
}

static void free_unit(struct rn_cosim_unit *unit)
{
	rn_cosim_window_free(unit->window);
	rn_cosim_probe_free(unit);
	if (unit->rtl)
		unit->kind->free(unit->rtl);
	free(unit->count);
	free(unit->name);
	free(unit);
}

int rn_cosim_free(struct rn_cosim *cosim, char **message)
{
	int error = 0;

	while (cosim->unit) {
		struct rn_cosim_unit *unit = cosim->unit;

		cosim->unit = unit->next;
		free_unit(unit);
	}
	for (unsigned i = 0; i < cosim->options.records; i++) {
		int failed = rn_cosim_recorder_free(cosim->recording[i].recorder, message);

		error = error ? error : failed;
	}
	free(cosim->recording);
	free(cosim);
	return error;
}

const struct rn_unit_builder *rn_cosim_builder(struct rn_cosim *cosim)
{
	return &cosim->builder;
}

bool rn_cosim_has_failed(const struct rn_cosim *cosim)
{
	return cosim->has_failed;
}

void rn_cosim_set_failed(struct rn_cosim *cosim)
{
	cosim->has_failed = true;
}

void rn_cosim_end(const struct rn_cosim *cosim)
{
	if (cosim->options.end_with)
		exit(cosim->options.end_with);
}

const char *rn_cosim_fst_path(const struct rn_cosim *cosim)
{
	return cosim->options.fst_path ? cosim->options.fst_path : DEFAULT_FST;
}

void rn_cosim_print_sleepers(const struct rn_cosim *cosim)
{
	for (struct rn_cosim_unit *unit = cosim->unit; unit; unit = unit->next)
		if (unit->mode == RN_UNIT_RTL)
			rn_cosim_print_sleeper(unit);
}

bool rn_cosim_unit_at(const struct rn_cosim *cosim, unsigned idx, struct rn_cosim_unit_info *info)
{
	const struct rn_cosim_unit *unit = cosim->unit;

	for (; unit; unit = unit->next)
		if (unit->mode != RN_UNIT_MODEL && !idx--)
			break;
	if (!unit)
		return false;
	*info = (struct rn_cosim_unit_info){
		.name = unit->name,
		.mode = unit->mode,
		.geometry = unit->kind->geometry,
		.top = unit->kind->top,
		.digest = unit->kind->digest,
		.is_own = unit->kind->is_own,
		.model_ticks = unit->model ? unit->model->ticks : 0,
		.evaluations = unit->evaluations,
	};
	return true;
}
