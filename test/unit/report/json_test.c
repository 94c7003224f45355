/* The JSON report: its keys, and values that follow from what the registry holds. */
#include <check.h>
#include <dirent.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report_file.h"
#include "base/bits.h"
#include "base/mem.h"
#include "report_file.h"
#include "unit/report/fixture.h"
#include "run_suite.h"

#define ACTIVE_PS UINT64_C(1000000000)

static char folder[] = "/tmp/rnicsim-report-XXXXXX";
static char *path;

static void set_up(void)
{
	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	path = rn_asprintf("%s/report.json", folder);
}

static void tear_down(void)
{
	unlink(path);
	rmdir(folder);
	free(path);
}

static bool write_to(const char *where, const struct rn_outcome *outcome)
{
	struct rn_report_file *file = rn_report_file_new(where);

	return file && rn_report_write_json(file, outcome);
}

static json_t *report_of(struct fixture *fixture)
{
	json_error_t error;
	json_t *report;

	fixture->options.report_path = path;
	ck_assert(write_to(path, &fixture->outcome));
	report = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	ck_assert_msg(report != NULL, "line %d: %s", error.line, error.text);
	return report;
}

/* "result", "hosts", "0", "nic" ...; ends with NULL. */
static const json_t *at(const json_t *from, ...)
{
	const char *key;
	va_list keys;

	va_start(keys, from);
	while ((key = va_arg(keys, const char *))) {
		from = json_is_array(from) ? json_array_get(from, (size_t)atoi(key))
					   : json_object_get(from, key);
		ck_assert_msg(from != NULL, "no %s", key);
	}
	va_end(keys);
	return from;
}

#define INTEGER(...) json_integer_value(at(__VA_ARGS__, NULL))
#define REAL(...) json_real_value(at(__VA_ARGS__, NULL))
#define TEXT(...) json_string_value(at(__VA_ARGS__, NULL))

static void check_keys(const json_t *object, const char *const *keys, unsigned count)
{
	ck_assert(json_is_object(object));
	for (unsigned i = 0; i < count; i++)
		ck_assert_msg(json_object_get(object, keys[i]) != NULL, "no %s", keys[i]);
	ck_assert_uint_eq(json_object_size(object), count);
}

START_TEST(the_keys_are_these_and_no_others)
{
	static const char *const top[] = {"result", "run"};
	static const char *const result[] = {"measured", "limiter", "hosts", "fabric", "faults"};
	static const char *const host[] = {"name", "nic"};
	static const char *const nic[] = {"name",     "activity", "limiter", "resources",
					  "counters", "caches",	  "blocks",  "fifos"};
	static const char *const run[] = {"version",	   "free_run",	  "pid",
					  "wall_s",	   "simulated_s", "slow_down",
					  "largest_lag_s", "cpu_s",	  "peak_memory_bytes",
					  "wakes",	   "wakes_per_s", "packets_per_s",
					  "permute_seed",  "files",	  "units",
					  "ticks"};
	struct fixture *fixture = fixture_new(2);
	json_t *report = report_of(fixture);

	check_keys(report, top, RN_ARRAY_LEN(top));
	check_keys(at(report, "result", NULL), result, RN_ARRAY_LEN(result));
	check_keys(at(report, "result", "hosts", "1", NULL), host, RN_ARRAY_LEN(host));
	check_keys(at(report, "result", "hosts", "1", "nic", NULL), nic, RN_ARRAY_LEN(nic));
	check_keys(at(report, "run", NULL), run, RN_ARRAY_LEN(run));
	json_decref(report);
	fixture_free(fixture);
}
END_TEST

START_TEST(the_run_has_its_own_numbers)
{
	struct fixture *fixture = fixture_new(2);
	json_t *report;

	fixture_set_active(fixture, 0, ACTIVE_PS);
	fixture->options.record.pcap_path = "some.pcap";
	fixture->options.record.permute_seed = 5;
	report = report_of(fixture);
	ck_assert_str_eq(TEXT(report, "run", "version"), "1.2.3");
	ck_assert_double_eq_tol(REAL(report, "run", "simulated_s"), 0.011, 1e-12);
	ck_assert_double_eq_tol(REAL(report, "run", "slow_down"), 2 / 0.011, 1e-5);
	ck_assert_double_eq_tol(REAL(report, "run", "wakes_per_s"), 2500, 1e-9);
	ck_assert_double_eq_tol(REAL(report, "run", "packets_per_s"), 5, 1e-9);
	ck_assert_double_eq_tol(REAL(report, "run", "largest_lag_s"), 0.25, 1e-9);
	ck_assert_int_eq(INTEGER(report, "run", "wakes"), 5000);
	ck_assert_int_eq(INTEGER(report, "run", "pid"), getpid());
	ck_assert_int_eq(INTEGER(report, "run", "permute_seed"), 5);
	ck_assert(json_is_true(at(report, "run", "free_run", NULL)));
	ck_assert_str_eq(TEXT(report, "run", "files", "capture", "path"), "some.pcap");
	ck_assert_int_eq(INTEGER(report, "run", "files", "capture", "frames"), 77);
	ck_assert_str_eq(TEXT(report, "run", "files", "report", "path"), path);
	ck_assert(json_is_null(at(report, "run", "files", "tlp_log", NULL)));
	json_decref(report);
	fixture_free(fixture);
}
END_TEST

START_TEST(the_measured_window_and_its_traffic)
{
	struct fixture *fixture = fixture_new(2);
	json_t *report;

	fixture_set_active(fixture, 1, ACTIVE_PS);
	report = report_of(fixture);
	ck_assert_int_eq(INTEGER(report, "result", "measured", "from_ps"), 1000000000);
	ck_assert_int_eq(INTEGER(report, "result", "measured", "to_ps"), 11000000000);
	ck_assert_int_eq(INTEGER(report, "result", "measured", "simulated_ps"), 10000000000);
	ck_assert_int_eq(INTEGER(report, "result", "measured", "first_frame_ps"), 3000000000);
	ck_assert_int_eq(INTEGER(report, "result", "measured", "last_frame_ps"), 5000000000);
	ck_assert_int_eq(INTEGER(report, "result", "measured", "active_ps"), 1000000000);
	ck_assert_int_eq(INTEGER(report, "result", "hosts", "0", "nic", "activity", "active_ps"),
			 0);
	json_decref(report);
	fixture_free(fixture);
}
END_TEST

START_TEST(counters_are_flat_where_their_name_is_unique)
{
	struct fixture *fixture = fixture_new(2);
	json_t *report;
	const json_t *counters;

	fixture_set_active(fixture, 0, ACTIVE_PS);
	fixture_set(fixture, "host0.nic0.transport", "out_of_sequence", 3);
	fixture_set(fixture, "host0.nic0.transport", "turns_parked", 4);
	fixture_set(fixture, "host0.nic0.sched", "turns_parked", 5);
	fixture_set(fixture, "host1.nic0.transport", "out_of_sequence", 6);
	fixture_set(fixture, "host0.root_complex", "reads", UINT64_MAX - 1);
	report = report_of(fixture);
	counters = at(report, "result", "hosts", "0", "nic", "counters", NULL);
	ck_assert_int_eq(INTEGER(counters, "out_of_sequence"), 3);
	ck_assert_ptr_null(json_object_get(counters, "turns_parked"));
	ck_assert_ptr_null(json_object_get(counters, "reads"));
	ck_assert_int_eq(INTEGER(counters, "tx_packets"), 10);
	ck_assert_int_eq(INTEGER(counters, "tx_bytes"), 10000);
	ck_assert_int_eq(INTEGER(counters, "port_xmit_data"), 2500);
	ck_assert_int_eq(INTEGER(counters, "port_rcv_packets"), 4);
	ck_assert_int_eq(INTEGER(counters, "rx_bytes"), 4 * 62);
	ck_assert_int_eq(INTEGER(report, "result", "hosts", "0", "nic", "blocks", "sched",
				 "counters", "turns_parked"),
			 5);
	ck_assert_int_eq(INTEGER(report, "result", "hosts", "0", "root_complex", "counters",
				 "reads"),
			 INT64_MAX);
	ck_assert_int_eq(
		INTEGER(report, "result", "hosts", "1", "nic", "counters", "out_of_sequence"), 6);
	json_decref(report);
	fixture_free(fixture);
}
END_TEST

START_TEST(blocks_have_utilisation_and_stalls)
{
	struct fixture *fixture = fixture_new(2);
	struct rn_block *block = fixture_block(fixture, "host0.nic0.dma");
	const json_t *dma;
	json_t *report;

	fixture_set_active(fixture, 0, ACTIVE_PS);
	block->ticks = 9;
	block->busy_cycles = ACTIVE_PS / 2000 / 4;
	block->stall_ps[RN_STALL_TAG] = 123;
	report = report_of(fixture);
	dma = at(report, "result", "hosts", "0", "nic", "blocks", "dma", NULL);
	ck_assert_int_eq(INTEGER(report, "run", "ticks", "host0.nic0.dma"), 9);
	ck_assert_ptr_null(json_object_get(dma, "ticks"));
	ck_assert_int_eq(INTEGER(dma, "busy_cycles"), 125000);
	ck_assert_double_eq_tol(REAL(dma, "utilisation"), 0.25, 1e-9);
	ck_assert_int_eq(INTEGER(dma, "stalls_ps", "tag"), 123);
	ck_assert_int_eq(INTEGER(dma, "stalls_ps", "output"), 0);
	ck_assert_ptr_null(json_object_get(at(dma, "stalls_ps", NULL), "none"));
	json_decref(report);
	fixture_free(fixture);
}
END_TEST

START_TEST(fifos_have_occupancy)
{
	struct fixture *fixture = fixture_new(2);
	struct rn_fifo *fifo = fixture_fifo(fixture, "host0.nic0.work", 16);
	const json_t *work;
	json_t *report;

	fixture_set_active(fixture, 0, ACTIVE_PS);
	fifo->pushes = 7;
	fifo->max_occupancy = 5;
	fifo->occupancy_ps = 3 * ACTIVE_PS;
	fifo->full_ps = 11;
	report = report_of(fixture);
	work = at(report, "result", "hosts", "0", "nic", "fifos", "work", NULL);
	ck_assert_int_eq(INTEGER(work, "depth"), 16);
	ck_assert_int_eq(INTEGER(work, "pushes"), 7);
	ck_assert_int_eq(INTEGER(work, "max_occupancy"), 5);
	ck_assert_double_eq_tol(REAL(work, "mean_occupancy"), 3, 1e-9);
	ck_assert_int_eq(INTEGER(work, "full_ps"), 11);
	json_decref(report);
	fixture_free(fixture);
}
END_TEST

START_TEST(caches_have_a_hit_rate)
{
	struct fixture *fixture = fixture_new(2);
	const json_t *caches;
	json_t *report;

	fixture_set(fixture, "host0.nic0.pte_cache", "mtt_hits", 90);
	fixture_set(fixture, "host0.nic0.pte_cache", "mtt_misses", 6);
	fixture_set(fixture, "host0.nic0.pte_cache", "mtt_merges", 4);
	fixture_set(fixture, "host0.nic0.wqe_fetch", "blueflame_hits", 4); /* no misses beside */
	report = report_of(fixture);
	caches = at(report, "result", "hosts", "0", "nic", "caches", NULL);
	ck_assert_uint_eq(json_object_size(caches), 1);
	ck_assert_int_eq(INTEGER(caches, "pte_cache", "mtt", "hits"), 90);
	ck_assert_int_eq(INTEGER(caches, "pte_cache", "mtt", "misses"), 6);
	ck_assert_int_eq(INTEGER(caches, "pte_cache", "mtt", "merges"), 4);
	ck_assert_double_eq_tol(REAL(caches, "pte_cache", "mtt", "hit_rate"), 0.9, 1e-9);
	json_decref(report);
	fixture_free(fixture);
}
END_TEST

START_TEST(the_limiter_names_resource_place_and_host)
{
	struct fixture *fixture = fixture_new(2);
	json_t *report;

	fixture_set_active(fixture, 0, ACTIVE_PS);
	fixture_set_active(fixture, 1, ACTIVE_PS);
	fixture_set(fixture, "host1.nic0.pcie_up", "busy_ps", ACTIVE_PS / 100 * 95);
	report = report_of(fixture);
	ck_assert_str_eq(TEXT(report, "result", "limiter", "name"), "pcie_up");
	ck_assert_str_eq(TEXT(report, "result", "limiter", "host"), "host1");
	ck_assert_str_eq(TEXT(report, "result", "limiter", "kind"), "serial");
	ck_assert_double_eq_tol(REAL(report, "result", "limiter", "share"), 0.95, 1e-9);
	ck_assert_str_eq(TEXT(report, "result", "hosts", "0", "nic", "limiter", "name"), "latency");
	ck_assert_str_eq(TEXT(report, "result", "hosts", "1", "nic", "limiter", "name"), "pcie_up");
	ck_assert_str_eq(TEXT(report, "result", "hosts", "1", "nic", "resources", "0", "name"),
			 "ethernet_line");
	json_decref(report);
	fixture_free(fixture);
}
END_TEST

START_TEST(the_fabric_and_its_faults_are_there)
{
	struct fixture *fixture = fixture_new(2);
	struct rn_faults *faults = rn_fabric_faults(rn_system_fabric(fixture->outcome.system));
	json_t *report;

	rn_faults_add(faults, &(struct rn_fault){.action = RN_FAULT_DROP,
						 .class = RN_FAULT_REQUEST_LAST,
						 .host = 1,
						 .connection = RN_FAULT_ANY_VALUE,
						 .psn_offset = 4,
						 .transmission = 1});
	fixture_set(fixture, "fabric.port1", "fault_dropped", 1);
	report = report_of(fixture);
	ck_assert_int_eq(INTEGER(report, "result", "fabric", "port1", "counters", "fault_dropped"),
			 1);
	ck_assert_uint_eq(json_array_size(at(report, "result", "faults", NULL)), 1);
	ck_assert_str_eq(TEXT(report, "result", "faults", "0", "action"), "drop");
	ck_assert_str_eq(TEXT(report, "result", "faults", "0", "class"), "request_last");
	ck_assert_str_eq(TEXT(report, "result", "faults", "0", "connection"), "any");
	ck_assert_int_eq(INTEGER(report, "result", "faults", "0", "psn_offset"), 4);
	ck_assert_int_eq(INTEGER(report, "result", "faults", "0", "seen"), 0);
	ck_assert_int_eq(INTEGER(report, "result", "faults", "0", "done"), 0);
	json_decref(report);
	fixture_free(fixture);
}
END_TEST

#define TEST_PARAMS(X)                                                                             \
	X(u32, lanes, 16, 1, 32, "", "lanes")                                                      \
	X(u32, gen, 3, 1, 5, "", "generation")                                                     \
	X(bool, fast, 1, 0, 1, "", "whether")
RN_PARAM_STRUCT(test_params, TEST_PARAMS);
#define RN_PARAM_OWNER test_params
RN_PARAM_TABLE(test_table, "test", TEST_PARAMS);

START_TEST(the_configuration_is_an_object_with_its_hash)
{
	struct rn_diag *diag = rn_diag_new();
	struct rn_config *config = rn_config_new(diag);
	struct fixture *fixture = fixture_new(2);
	struct rn_config_node *root, *inner;
	struct test_params params;
	char hash[20];
	json_t *report;

	ck_assert(rn_config_load_text(config, "a.yaml", "title: a b\nnic: {lanes: 4}\n"));
	root = rn_config_compose(config);
	rn_config_string(config, root, "title", "", "a title");
	inner = rn_config_section(config, root, "nic", "a section");
	rn_config_bind(config, inner, &test_table, &params);
	ck_assert(rn_config_finish(config));
	fixture->outcome.config = config;
	report = report_of(fixture);
	snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)rn_config_hash(config));
	ck_assert_str_eq(TEXT(report, "result", "configuration_hash"), hash);
	ck_assert_str_eq(TEXT(report, "result", "configuration", "title"), "a b");
	ck_assert_int_eq(INTEGER(report, "result", "configuration", "nic", "lanes"), 4);
	ck_assert_int_eq(INTEGER(report, "result", "configuration", "nic", "gen"), 3);
	ck_assert(json_is_true(at(report, "result", "configuration", "nic", "fast", NULL)));
	json_decref(report);
	fixture_free(fixture);
	rn_config_free(config);
	rn_diag_free(diag);
}
END_TEST

START_TEST(live_objects_of_the_driver_are_counted)
{
	static int any;
	struct rn_driver *drivers[2] = {(struct rn_driver *)&any, NULL};
	struct fixture *fixture = fixture_new(2);
	json_t *report;

	fixture->outcome.driver = drivers;
	report = report_of(fixture);
	ck_assert_int_eq(INTEGER(report, "result", "hosts", "0", "live", "qps"), 2);
	ck_assert_int_eq(INTEGER(report, "result", "hosts", "0", "live", "pinned_pages"), 3);
	ck_assert_ptr_null(json_object_get(at(report, "result", "hosts", "1", NULL), "live"));
	json_decref(report);
	fixture_free(fixture);
}
END_TEST

START_TEST(the_timeline_is_there_when_asked_for)
{
	struct fixture *fixture = fixture_new(2);
	json_t *report;

	fixture_stamp(fixture, &(struct rn_stamp){.at_ps = 2000000000, .stage = RN_STAMP_DOORBELL});
	fixture_stamp(fixture, &(struct rn_stamp){.at_ps = 2000000300, .stage = RN_STAMP_ACK});
	fixture_stamp(fixture,
		      &(struct rn_stamp){.at_ps = 999999999, .qpn = 1, .stage = RN_STAMP_ACK});
	fixture->options.wqe_timeline = true;
	report = report_of(fixture);
	ck_assert_int_eq(INTEGER(report, "result", "stamps", "recorded"), 3);
	ck_assert_int_eq(INTEGER(report, "result", "stamps", "lost"), 0);
	ck_assert_uint_eq(json_array_size(at(report, "result", "wqes", NULL)), 1);
	ck_assert_int_eq(INTEGER(report, "result", "wqes", "0", "total_ps"), 300);
	ck_assert_int_eq(INTEGER(report, "result", "wqe_stages", "send", "total", "p50_ps"), 300);
	json_decref(report);
	fixture_free(fixture);
}
END_TEST

static unsigned files_in(const char *name)
{
	DIR *dir = opendir(name);
	unsigned count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

START_TEST(an_old_report_is_replaced_and_nothing_else_is_left)
{
	struct fixture *fixture = fixture_new(2);
	FILE *old = fopen(path, "w");

	fputs("old", old);
	fclose(old);
	json_decref(report_of(fixture));
	ck_assert_uint_eq(files_in(folder), 1);
	fixture_free(fixture);
}
END_TEST

/* Run with stderr in a file; what it got. The caller free()s it. */
static char *complaint_of(struct fixture *fixture, const char *report_path)
{
	int keep = dup(STDERR_FILENO);
	FILE *file = tmpfile();
	char *text = rn_calloc(1, 1000);

	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	fixture->options.report_path = report_path;
	ck_assert(!write_to(report_path, &fixture->outcome));
	fflush(stderr);
	dup2(keep, STDERR_FILENO);
	close(keep);
	rewind(file);
	ck_assert_uint_gt(fread(text, 1, 999, file), 0);
	fclose(file);
	return text;
}

START_TEST(a_report_that_cannot_be_written_names_path_and_reason)
{
	static const struct {
		const char *path, *reason;
	} cases[] = {
		{"/no/such/folder/report.json", "No such file or directory"},
		{"/", "Is a directory"},
		{"/dev/full", "No space left on device"},
	};
	struct fixture *fixture = fixture_new(2);

	for (unsigned i = 0; i < RN_ARRAY_LEN(cases); i++) {
		char *text = complaint_of(fixture, cases[i].path);

		ck_assert_ptr_nonnull(strstr(text, cases[i].path));
		ck_assert_ptr_nonnull(strstr(text, cases[i].reason));
		free(text);
	}
	fixture_free(fixture);
}
END_TEST

START_TEST(a_run_repeats_only_if_each_process_had_its_reads_caught)
{
	static const struct {
		uint32_t force, unseen;
		bool is_doubtful;
	} rows[] = {
		{0, 0, true},
		{RN_TSC_TRAP_WORKS, 0, true},
		{RN_TSC_TRAP_WORKS | RN_TSC_TRAP, 0, false},
		{RN_TSC_TRAP_WORKS | RN_TSC_TRAP | RN_TSC_REWRITE, RN_TSC_GENERATED, false},
		{RN_TSC_REWRITE, 0, false},
		{RN_TSC_REWRITE, RN_TSC_GENERATED, true},
		{RN_TSC_REWRITE, RN_TSC_UNDECODED, true},
		{RN_TSC_REWRITE, RN_TSC_REFUSED, true},
		{RN_TSC_REWRITE, RN_TSC_UNHOOKED, true},
		{RN_TSC_REWRITE, 1u << 31, true},
	};
	struct rn_tsc_roll roll = {0};
	struct rn_time_page page = {0};
	unsigned doubtful = 0;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		page.tsc.force = rows[i].force;
		page.tsc.unseen = rows[i].unseen;
		rn_tsc_roll_add(&roll, &page, 0, i);
		ck_assert_int_eq(rn_tsc_may_be_unseen(&roll.record[i]), rows[i].is_doubtful);
		doubtful += rows[i].is_doubtful;
	}
	ck_assert_uint_eq(rn_tsc_roll_unseen(&roll), doubtful);
	ck_assert_uint_eq(rn_tsc_roll_random(&roll), roll.count);
	ck_assert(!rn_virtual_is_repeatable(&(struct rn_virtual_counts){.unseen_reads = 1}));
	ck_assert(!rn_virtual_is_repeatable(&(struct rn_virtual_counts){.random_addresses = 1}));
	ck_assert(rn_virtual_is_repeatable(&(struct rn_virtual_counts){.grants = 1}));
	rn_tsc_roll_fini(&roll);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("json");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, the_keys_are_these_and_no_others);
	tcase_add_test(tcase, the_run_has_its_own_numbers);
	tcase_add_test(tcase, the_measured_window_and_its_traffic);
	tcase_add_test(tcase, counters_are_flat_where_their_name_is_unique);
	tcase_add_test(tcase, blocks_have_utilisation_and_stalls);
	tcase_add_test(tcase, fifos_have_occupancy);
	tcase_add_test(tcase, caches_have_a_hit_rate);
	tcase_add_test(tcase, the_limiter_names_resource_place_and_host);
	tcase_add_test(tcase, the_fabric_and_its_faults_are_there);
	tcase_add_test(tcase, the_configuration_is_an_object_with_its_hash);
	tcase_add_test(tcase, live_objects_of_the_driver_are_counted);
	tcase_add_test(tcase, the_timeline_is_there_when_asked_for);
	tcase_add_test(tcase, an_old_report_is_replaced_and_nothing_else_is_left);
	tcase_add_test(tcase, a_report_that_cannot_be_written_names_path_and_reason);
	tcase_add_test(tcase, a_run_repeats_only_if_each_process_had_its_reads_caught);
	return run_suite(tcase, "report json");
}
