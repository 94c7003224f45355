/*
 * A run of the two-NIC system under the scripted host, by command line: what the Python proofs of timing call many
 * times. Prints one JSON object: the objects' numbers, when statistics were cleared, and either every message's times
 * (one at a time) or completions against time (streams).
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report_file.h"
#include "run_options.h"
#include "simulator.h"
#include "system/scripted/world.h"

#define PAGE_BYTES RUN_PAGE_BYTES
#define MAX_LINKS 256
#define MAX_KEYS 4096
#define LIMIT_PS (100 * RN_SCRIPTED_SECOND_PS)

struct run {
	const struct options *options;
	struct world world;
	struct world_link link[MAX_LINKS];
	struct rn_scripted_flow flow[MAX_LINKS];
	struct rn_scripted_buffer area[2]; /* of the keys: keys * pages pages a side */
	uint32_t key[2][MAX_KEYS];
	uint64_t cleared_ps;
	uint64_t target; /* messages of every flow */
	json_t *out;
};

static void fail(const char *what)
{
	fprintf(stderr, "scripted_run: %s\n", what);
	exit(1);
}

static json_t *integer(uint64_t value)
{
	return json_integer((json_int_t)value);
}

/* --- objects --- */

static void connect_links(struct run *run)
{
	const struct options *options = run->options;
	struct rn_scripted_path path = RN_SCRIPTED_PATH;
	const uint64_t bytes = (uint64_t)options->bytes * options->depth;
	json_t *list = json_array();

	path.mtu_bytes = options->mtu_bytes;
	path.rd_atomic = options->rd_atomic;
	for (unsigned n = 0; n < options->qps; n++) {
		struct world_link *link = &run->link[n];

		world_connect(&run->world, options->order ? PAGE_BYTES : bytes, &path, link);
		json_array_append_new(
			list, json_pack("{s:[II], s:[II], s:[II]}", "qpn",
					(json_int_t)rn_scripted_qpn(link->qp[0]),
					(json_int_t)rn_scripted_qpn(link->qp[1]), "cqn",
					(json_int_t)rn_scripted_cqn(link->cq[0]),
					(json_int_t)rn_scripted_cqn(link->cq[1]), "key",
					(json_int_t)link->key[0], (json_int_t)link->key[1]));
	}
	json_object_set_new(run->out, "links", list);
}

/* MRs of @pages pages each, side by side in one buffer a host. */
static void register_keys(struct run *run)
{
	const struct options *options = run->options;
	const uint64_t bytes = (uint64_t)options->pages * PAGE_BYTES;
	const uint32_t access =
		RN_ACCESS_LOCAL_WRITE | RN_ACCESS_REMOTE_WRITE | RN_ACCESS_REMOTE_READ;
	json_t *list = json_array();

	for (unsigned side = 0; side < 2; side++)
		if (!rn_scripted_alloc(run->world.host[side], options->keys * bytes,
				       &run->area[side]))
			fail("no memory for the keys");
	for (unsigned k = 0; k < options->keys; k++) {
		json_t *mtt = json_array(), *key = json_array();

		for (unsigned side = 0; side < 2; side++) {
			struct rn_scripted *host = run->world.host[side];

			if (rn_scripted_reg_mr(host, run->area[side].va + k * bytes, bytes, access,
					       &run->key[side][k]))
				fail("a key was refused");
			json_array_append_new(key, integer(run->key[side][k]));
			json_array_append_new(
				mtt, integer(rn_scripted_mpt(host, run->key[side][k])->mtt_index));
		}
		json_array_append_new(list, json_pack("{s:o, s:o}", "key", key, "mtt", mtt));
	}
	json_object_set_new(run->out, "keys", list);
}

/* --- one message at a time --- */

static json_t *stamps_of(struct run *run, const struct rn_scripted_qp *qp, uint32_t wqe_idx)
{
	json_t *stamps = json_object();

	for (enum rn_stamp_stage stage = 0; stage < RN_STAMP_STAGE_COUNT; stage++) {
		const uint64_t at_ps = world_stamp(&run->world, 0, qp, wqe_idx, stage, 0);

		if (at_ps != RN_TIME_NEVER)
			json_object_set_new(stamps, rn_stamp_stage_name(stage), integer(at_ps));
	}
	return stamps;
}

static uint64_t clear(struct run *run)
{
	rn_stats_clear(rn_system_stats(run->world.system));
	run->cleared_ps = rn_sim_now_ps(run->world.sim);
	return run->cleared_ps;
}

/* Post at the next whole microsecond and @phase_ps, so that a run does not depend on what came before it. */
static uint64_t wait_for_phase(struct run *run)
{
	const uint64_t now_ps = rn_sim_now_ps(run->world.sim);
	const uint64_t at_ps = (now_ps / WORLD_US + 1) * WORLD_US + run->options->phase_ps;

	rn_scripted_run_for(run->world.host[0], at_ps - now_ps);
	return at_ps;
}

static void send_one(struct run *run, unsigned qp, unsigned key, unsigned page, json_t *list)
{
	const struct options *options = run->options;
	struct world_link *link = &run->link[qp];
	const uint64_t offset = ((uint64_t)key * options->pages + page) * PAGE_BYTES;
	const struct rn_scripted_wr wr = {
		.opcode = options->opcode,
		.flags = RN_WQE_SIGNALED,
		.va = run->area[0].va + offset,
		.bytes = options->bytes,
		.lkey = run->key[0][key],
		.data = options->is_inline ? run->area[0].data + offset : NULL,
		.raddr = run->area[1].va + offset,
		.rkey = run->key[1][key],
	};
	const uint32_t wqe_idx = rn_scripted_sq(link->qp[0])->pi & 0xffff;
	const uint64_t post_ps = wait_for_phase(run);
	struct rn_scripted_wc wc = {0};

	if (rn_scripted_post(link->qp[0], &wr) != RN_POST_OK)
		fail("a message could not be posted");
	if (options->blueflame)
		rn_scripted_ring_blueflame(link->qp[0]);
	else
		rn_scripted_ring(link->qp[0]);
	if (!rn_scripted_wait(link->cq[0], &wc, 1, LIMIT_PS) || wc.status != RN_WC_SUCCESS)
		fail("a message failed");
	rn_scripted_run_for(run->world.host[0], options->gap_ps);
	json_array_append_new(list,
			      json_pack("{s:o, s:o, s:o}", "post_ps", integer(post_ps), "made_ps",
					integer(wc.made_ps), "stamps",
					options->timeline ? stamps_of(run, link->qp[0], wqe_idx)
							  : json_null()));
}

static void run_order(struct run *run)
{
	const struct options *options = run->options;
	json_t *list = json_array();
	const char *at = options->order;
	unsigned qp, key, page;
	uint64_t sent = 0;
	int used;

	for (; sscanf(at, " %u,%u,%u%n", &qp, &key, &page, &used) == 3; at += used, sent++) {
		if (qp >= options->qps || key >= options->keys || page >= options->pages)
			fail("the order names what is not there");
		if (sent == options->warm)
			clear(run);
		send_one(run, qp, key, page, list);
	}
	json_object_set_new(run->out, "messages", list);
}

/* --- streams --- */

static bool have_all_done(void *arg)
{
	struct run *run = arg;

	for (unsigned n = 0; n < run->options->qps; n++)
		if (run->flow[n].done < run->target && !run->flow[n].errors)
			return false;
	return true;
}

/* [messages done, when the last of them was] of every flow, once all have done @target. */
static json_t *run_to(struct run *run, uint64_t target)
{
	json_t *list = json_array();

	run->target = target;
	if (!rn_scripted_run_until(run->world.host[0], have_all_done, run,
				   rn_sim_now_ps(run->world.sim) + LIMIT_PS))
		fail("a stream stands still");
	/* Logs tell what came before by the time: let everything of this picosecond happen. */
	rn_sim_run(run->world.sim, rn_sim_now_ps(run->world.sim), UINT64_MAX);
	for (unsigned n = 0; n < run->options->qps; n++) {
		if (run->flow[n].errors)
			fail("a message of a stream failed");
		json_array_append_new(list, json_pack("[oo]", integer(run->flow[n].done),
						      integer(run->flow[n].end_ps)));
	}
	return list;
}

static void start_flows(struct run *run)
{
	const struct options *options = run->options;
	const uint64_t count = options->warm + options->count + 2 * options->depth;
	static const uint8_t inline_data[1024];

	for (unsigned n = 0; n < options->qps; n++) {
		struct rn_scripted_flow_spec spec = world_flow(
			&run->link[n], options->opcode, options->bytes, options->depth, count);

		spec.signal_every = options->signal_every;
		spec.blueflame = options->blueflame;
		spec.inline_data = options->is_inline;
		spec.data = inline_data;
		rn_scripted_flow_start(&run->flow[n], &spec);
	}
}

static void write_report(struct run *run)
{
	const struct options *options = run->options;
	const struct rn_options said = {
		.report_path = options->report,
		.wqe_timeline = options->timeline,
	};

	const struct rn_outcome outcome = {
		.options = &said,
		.config = run->world.config,
		.system = run->world.system,
		.driver = run->world.driver,
		.measured_from_ps = run->cleared_ps,
		.end_ps = rn_sim_now_ps(run->world.sim),
	};
	struct rn_report_file *file;

	if (!options->report)
		return;
	file = rn_report_file_new(options->report);
	if (!file || !rn_report_write_json(file, &outcome))
		exit(1);
}

/* Measured while all flows are in full swing: from the warm-up's end to the last but some messages. */
static void run_streams(struct run *run)
{
	const struct options *options = run->options;

	start_flows(run);
	json_object_set_new(run->out, "from", run_to(run, options->warm));
	clear(run);
	json_object_set_new(run->out, "to", run_to(run, options->warm + options->count));
	write_report(run);
	run_to(run, options->warm + options->count + 2 * options->depth);
	for (unsigned n = 0; n < options->qps; n++)
		rn_scripted_flow_stop(&run->flow[n]);
}

/* Logs are whole when the system is gone; the world's folder goes with it. */
static void keep_log(struct run *run, const char *name, const char *path)
{
	size_t bytes = 0;
	char buffer[65536];
	FILE *from, *to;

	if (!path)
		return;
	from = fopen(world_path(&run->world, name), "r");
	to = fopen(path, "w");
	if (!from || !to)
		fail("a log could not be copied");
	while ((bytes = fread(buffer, 1, sizeof(buffer), from)))
		fwrite(buffer, 1, bytes, to);
	fclose(from);
	if (fclose(to))
		fail("a log could not be copied");
}

static void simulate(struct run *run)
{
	const struct options *options = run->options;

	run->out = json_object();
	world_init(&run->world, 2, options->set);
	world_start(&run->world, &(struct world_options){
					 .stamps = options->timeline,
					 .tlps = options->tlp_log,
					 .lookups = options->lookup_log,
				 });
	run->cleared_ps = rn_sim_now_ps(run->world.sim);
	connect_links(run);
	if (options->order) {
		register_keys(run);
		run_order(run);
		write_report(run);
	} else {
		run_streams(run);
	}
	json_object_set_new(run->out, "cleared_ps", integer(run->cleared_ps));
	json_object_set_new(run->out, "end_ps", integer(rn_sim_now_ps(run->world.sim)));
	world_end(&run->world);
	keep_log(run, "lookup.csv", options->lookup_log);
	keep_log(run, "tlp.csv", options->tlp_log);
	world_fini(&run->world);
	json_dumpf(run->out, stdout, JSON_COMPACT);
	json_decref(run->out);
}

int main(int argc, char **argv)
{
	static struct options options;
	static struct run run;

	options_parse(&options, argc, argv);
	if (options.qps > MAX_LINKS || options.keys > MAX_KEYS)
		fail("too many objects");
	run.options = &options;
	simulate(&run);
	return 0;
}
