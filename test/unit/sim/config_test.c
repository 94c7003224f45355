/* Configuration: every kind of mistake with its exact message, composition, --set, show and hash. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "run_suite.h"
#include "sim/config.h"

#define DMA_PARAMS(X)                                                                              \
	X(u32, tags, 64, 1, 1024, "tags", "read requests outstanding")                             \
	X(u64, retry_ps, 0, 0, 1e12, "ps", "before it tries again")                                \
	X(u64, seed, 1, 0, 0x1p64, "", "of every random choice")                                   \
	X(f64, link_gbps, 100, 0.5, 800, "Gbit/s", "line rate")                                    \
	X(bool, relaxed, 0, 0, 1, "", "relaxed ordering")
RN_PARAM_STRUCT(dma_params, DMA_PARAMS);
#define RN_PARAM_OWNER dma_params
RN_PARAM_TABLE(dma_table, "dma", DMA_PARAMS);

static const char *const fabric_names[] = {"back_to_back", "switch", NULL};

static struct rn_diag *diag;
static struct rn_config *config;
static struct dma_params dma[4];
static int fabric;
static char directory[] = "/tmp/rn-config-XXXXXX";

static void set_up(void)
{
	strcpy(directory, "/tmp/rn-config-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	ck_assert_int_eq(chdir(directory), 0);
	diag = rn_diag_new();
	config = rn_config_new(diag);
}

static void tear_down(void)
{
	rn_config_free(config);
	rn_diag_free(diag);
	ck_assert_int_eq(chdir("/"), 0);

	char *command = rn_asprintf("rm -r '%s'", directory);

	ck_assert_int_eq(system(command), 0);
	free(command);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

/* What a scenario of these tests may say. */
static bool bind(void)
{
	static const struct rn_config_choice choice = {
		.key = "fabric", .names = fabric_names, .def = 0, .help = "what joins them"};
	struct rn_config_node *root = rn_config_compose(config);
	struct rn_config_node *hosts = rn_config_list(config, root, "hosts", "the hosts");

	for (size_t i = 0; i < rn_config_length(hosts) && i < 4; i++) {
		struct rn_config_node *host = rn_config_at(config, hosts, i);
		struct rn_config_node *nic = rn_config_section(config, host, "nic", "its NIC");
		struct rn_config_node *section = rn_config_section(config, nic, "dma", NULL);

		rn_config_bind(config, section, &dma_table, &dma[i]);
	}
	fabric = rn_config_choose(config, root, &choice);
	rn_config_string(config, root, "name", "none", "of the scenario");
	return rn_config_finish(config);
}

static void expect(unsigned idx, const char *message)
{
	const char *got = rn_diag_message(diag, idx);

	ck_assert_msg(got && !strcmp(got, message), "expected: %s\n     got: %s", message,
		      got ? got : "nothing");
}

static void expect_only(const char *message)
{
	expect(0, message);
	ck_assert_uint_eq(rn_diag_count(diag), 1);
}

static void load(const char *text)
{
	rn_config_load_text(config, "a.yaml", text);
}

START_TEST(values_reach_the_parameters)
{
	load("hosts:\n"
	     "  - nic:\n"
	     "      dma: {tags: 0x1_0, retry_ps: 1_000_000, link_gbps: 2.5e1, relaxed: true}\n"
	     "  - nic: {dma: {seed: 18446744073709551615}}\n"
	     "fabric: switch\n");
	ck_assert(bind());
	ck_assert_uint_eq(dma[0].tags, 16);
	ck_assert_uint_eq(dma[0].retry_ps, 1000000);
	ck_assert_double_eq(dma[0].link_gbps, 25);
	ck_assert(dma[0].relaxed);
	ck_assert_uint_eq(dma[1].tags, 64);
	ck_assert_uint_eq(dma[1].seed, UINT64_MAX);
	ck_assert(!dma[1].relaxed);
	ck_assert_int_eq(fabric, 1);
	ck_assert_uint_eq(rn_diag_count(diag), 0);
}
END_TEST

static const struct {
	const char *value;
	const char *message;
} wrong_values[] = {
	{"tags: 0", "must be an integer from 1 to 1024 tags, not 0"},
	{"tags: 1025", "must be an integer from 1 to 1024 tags, not 1025"},
	{"tags: -1", "must be an integer from 1 to 1024 tags, not -1"},
	{"tags: 99999999999999999999", "must be an integer from 1 to 1024 tags, not "
				       "99999999999999999999"},
	{"tags: 1.5", "must be an integer from 1 to 1024 tags, not 1.5"},
	{"tags: 64k", "must be an integer from 1 to 1024 tags, not 64k"},
	{"tags: 1__0", "must be an integer from 1 to 1024 tags, not 1__0"},
	{"tags: 10_", "must be an integer from 1 to 1024 tags, not 10_"},
	{"tags: 0x", "must be an integer from 1 to 1024 tags, not 0x"},
	{"tags: \"64\"", "must be an integer from 1 to 1024 tags, not \"64\""},
	{"tags: [64]", "must be an integer from 1 to 1024 tags, not a list"},
	{"tags: {a: 1}", "must be an integer from 1 to 1024 tags, not a section"},
	{"tags: ~", "must be an integer from 1 to 1024 tags, not ~"},
	{"retry_ps: 1000000000001", "must be an integer from 0 to 1000000000000 ps, not "
				    "1000000000001"},
	{"seed: 18446744073709551616", "must be an integer from 0 to 18446744073709551615, not "
				       "18446744073709551616"},
	{"link_gbps: 0.4", "must be a number from 0.5 to 800 Gbit/s, not 0.4"},
	{"link_gbps: nan", "must be a number from 0.5 to 800 Gbit/s, not nan"},
	{"link_gbps: 1e999", "must be a number from 0.5 to 800 Gbit/s, not 1e999"},
	{"link_gbps: 100G", "must be a number from 0.5 to 800 Gbit/s, not 100G"},
	{"relaxed: yes", "must be true or false, not yes"},
	{"relaxed: 1", "must be true or false, not 1"},
};

START_TEST(a_wrong_value_is_named_with_what_is_legal)
{
	const char *value = wrong_values[_i].value;
	int key_length = (int)strcspn(value, ":");
	char *text = rn_asprintf("hosts:\n- nic:\n    dma:\n      %s\n", value);
	bool is_inner = strchr(value, '[') || strchr(value, '{');
	/* A value stands behind "key: "; a list or section is known by its first entry. */
	int column = 7 + key_length + 2 + is_inner;
	char *message = rn_asprintf("a.yaml:4:%d: hosts.0.nic.dma.%.*s: %s", column, key_length,
				    value, wrong_values[_i].message);

	load(text);
	ck_assert(!bind());
	expect_only(message);
	ck_assert_uint_eq(dma[0].tags, 64);
	free(message);
	free(text);
}
END_TEST

START_TEST(unknown_keys_are_mistakes_and_near_ones_are_suggested)
{
	load("hosts:\n"
	     "  - nic:\n"
	     "      dma: {tagz: 3, whatever: 1}\n"
	     "      dmaa: {tags: 3}\n"
	     "fabrik: switch\n"
	     "zzz: 1\n");
	ck_assert(!bind());
	expect(0, "a.yaml:3:13: hosts.0.nic.dma.tagz: unknown key; did you mean tags?");
	expect(1, "a.yaml:3:22: hosts.0.nic.dma.whatever: unknown key; legal here: tags, retry_ps, "
		  "seed, link_gbps, relaxed");
	expect(2, "a.yaml:4:7: hosts.0.nic.dmaa: unknown key; did you mean dma?");
	expect(3, "a.yaml:5:1: fabrik: unknown key; did you mean fabric?");
	expect(4, "a.yaml:6:1: zzz: unknown key; legal here: hosts, fabric, name");
	ck_assert_uint_eq(rn_diag_count(diag), 5);
}
END_TEST

START_TEST(all_mistakes_are_reported)
{
	load("hosts:\n"
	     "  - nic: {dma: {tags: 0, relaxed: maybe}}\n"
	     "  - nic: 5\n"
	     "  - 6\n"
	     "fabric: ring\n"
	     "name: [a]\n");
	ck_assert(!bind());
	expect(0,
	       "a.yaml:2:23: hosts.0.nic.dma.tags: must be an integer from 1 to 1024 tags, not 0");
	expect(1, "a.yaml:2:35: hosts.0.nic.dma.relaxed: must be true or false, not maybe");
	expect(2, "a.yaml:3:10: hosts.1.nic: must be a section with keys, not a value");
	expect(3, "a.yaml:4:5: hosts.2: must be a section with keys, not a value");
	expect(4, "a.yaml:5:9: fabric: must be back_to_back or switch, not ring");
	expect(5, "a.yaml:6:8: name: must be a string, not a list");
	ck_assert_uint_eq(rn_diag_count(diag), 6);
}
END_TEST

START_TEST(a_list_must_be_a_list)
{
	load("hosts: {nic: 1}\n");
	ck_assert(!bind());
	expect_only("a.yaml:1:9: hosts: must be a list, not a section");
}
END_TEST

START_TEST(a_duplicate_key_is_a_mistake)
{
	load("name: a\nfabric: switch\nname: b\n");
	expect_only("a.yaml:3:1: name: duplicate key; it stands in line 1 too");
}
END_TEST

START_TEST(a_required_key_must_be_given)
{
	load("fabric: switch\n");

	struct rn_config_node *root = rn_config_compose(config);

	ck_assert_str_eq(rn_config_string(config, root, "needed", NULL, "it"), "");
	expect_only("a.yaml:1:1: needed: is required and missing");
}
END_TEST

static const struct {
	const char *text;
	const char *message;
} not_trees[] = {
	{"", "a.yaml: empty"},
	{"# nothing\n", "a.yaml: empty"},
	{"a: 1\n---\nb: 1\n", "a.yaml: more than one YAML document"},
	{"- 1\n", "a.yaml:1:3: must be a mapping of keys"},
	{"5\n", "a.yaml:1:1: must be a mapping of keys"},
	{"a: &x 1\n", "a.yaml:1:1: a: anchors, aliases and tags are not legal"},
	{"a: !!int 1\n", "a.yaml:1:1: a: anchors, aliases and tags are not legal"},
	{"a: 1\nb: *x\n", "a.yaml:2:1: b: anchors, aliases and tags are not legal"},
	{"a: 1\n[x]: 2\n", "a.yaml:1:1: a key must be a plain word"},
	{"base: 5\n", "a.yaml:1:7: base: must be the name of a file that ends in .yaml"},
	{"%YAML 1.2\n---\na: 1\n", "a.yaml:1:1: YAML directives are not legal"},
	{"a: 1\nb: x\xff\n", "a.yaml:2:5: neither a character in UTF-8 nor legal here"},
	{"a: \xc3\xa9\x01\n", "a.yaml:1:5: neither a character in UTF-8 nor legal here"},
	{"a: \"x\\0y\"\n", "a.yaml:1:4: a: a NUL character is not legal"},
};

START_TEST(what_is_no_tree_of_keys_is_refused)
{
	load(not_trees[_i].text);
	expect_only(not_trees[_i].message);
}
END_TEST

START_TEST(broken_yaml_is_pointed_at)
{
	load("a: 1\nb: [1, 2\nc: 3\n");
	ck_assert_uint_eq(rn_diag_count(diag), 1);
	expect_only("a.yaml:4:1: not YAML: flow sequence without a closing bracket");
}
END_TEST

START_TEST(a_missing_file_is_a_mistake)
{
	rn_config_add_search_dir(config, "/nowhere");
	ck_assert(!rn_config_load_file(config, "no.yaml"));
	expect(0, "no such file: no.yaml, /nowhere/no.yaml");
	mkdir("sub", 0700);
	write_file("sub/a.yaml", "hosts:\n  - nic: ../nic/no.yaml\n");
	ck_assert(!rn_config_load_file(config, "sub/a.yaml"));
	expect(1, "sub/a.yaml:2:10: hosts.0.nic: no such file: nic/no.yaml, /nic/no.yaml");
	ck_assert_uint_eq(rn_diag_count(diag), 2);
}
END_TEST

START_TEST(keys_lie_over_those_of_the_base)
{
	mkdir("nic", 0700);
	mkdir("scenarios", 0700);
	write_file("nic/slow.yaml", "dma: {tags: 4, retry_ps: 7}\n");
	write_file("nic/slower.yaml", "base: slow.yaml\ndma: {tags: 2}\n");
	write_file("scenarios/two.yaml", "hosts:\n"
					 "  - nic: ../nic/slow.yaml\n"
					 "  - nic:\n"
					 "      base: ../nic/slower.yaml\n"
					 "      dma: {link_gbps: 10}\n"
					 "fabric: switch\n");
	write_file("own.yaml", "base: scenarios/two.yaml\nname: own\n");
	ck_assert(rn_config_load_file(config, "own.yaml"));
	ck_assert(bind());
	ck_assert_uint_eq(dma[0].tags, 4);
	ck_assert_uint_eq(dma[0].retry_ps, 7);
	ck_assert_uint_eq(dma[1].tags, 2);
	ck_assert_uint_eq(dma[1].retry_ps, 7);
	ck_assert_double_eq(dma[1].link_gbps, 10);
	ck_assert_int_eq(fabric, 1);
}
END_TEST

START_TEST(a_file_in_the_place_of_a_section_replaces_the_bases)
{
	write_file("slow.yaml", "dma: {tags: 4, retry_ps: 7}\n");
	write_file("fast.yaml", "dma: {tags: 5}\n");
	write_file("a.yaml", "nic: slow.yaml\n");
	write_file("b.yaml", "base: a.yaml\nnic: fast.yaml\n");
	write_file("c.yaml", "base: a.yaml\nnic: {dma: {tags: 6}}\n");
	for (unsigned i = 0; i < 2; i++) {
		struct rn_config_node *root;

		ck_assert(rn_config_load_file(config, i ? "c.yaml" : "b.yaml"));
		root = rn_config_section(config, rn_config_compose(config), "nic", NULL);
		rn_config_bind(config, rn_config_section(config, root, "dma", NULL), &dma_table,
			       dma);
		ck_assert_uint_eq(dma[0].tags, i ? 6 : 5);
		ck_assert_uint_eq(dma[0].retry_ps, i ? 7 : 0);
	}
}
END_TEST

START_TEST(mistakes_in_a_base_are_reported_there)
{
	mkdir("nic", 0700);
	write_file("nic/bad.yaml", "dma:\n  tags: 0\n  tugs: 1\n");
	load("hosts: [{nic: nic/bad.yaml}]\n");
	ck_assert(!bind());
	expect(0, "nic/bad.yaml:2:9: hosts.0.nic.dma.tags: must be an integer from 1 to 1024 tags, "
		  "not 0");
	expect(1, "nic/bad.yaml:3:3: hosts.0.nic.dma.tugs: unknown key; did you mean tags?");
	ck_assert_uint_eq(rn_diag_count(diag), 2);
}
END_TEST

START_TEST(a_cycle_of_bases_is_a_mistake)
{
	write_file("a.yaml", "base: b.yaml\n");
	write_file("b.yaml", "base: ./a.yaml\n");
	ck_assert(!rn_config_load_file(config, "a.yaml"));
	expect_only("b.yaml:1:7: base: a.yaml names itself, directly or by others");
}
END_TEST

START_TEST(search_directories_come_after_the_files_own)
{
	mkdir("installed", 0700);
	write_file("installed/nic.yaml", "dma: {tags: 7}\n");
	write_file("installed/host.yaml", "nic: nic.yaml\n");
	write_file("host.yaml", "nic: {dma: {tags: 8}}\n");
	rn_config_add_search_dir(config, "installed");
	load("hosts: [{nic: nic.yaml}, host.yaml]\n");
	ck_assert(bind());
	ck_assert_uint_eq(dma[0].tags, 7);
	ck_assert_uint_eq(dma[1].tags, 8);
}
END_TEST

START_TEST(a_count_repeats_an_entry_and_set_reaches_each)
{
	load("hosts:\n  - {nic: {dma: {tags: 9}}, count: 2}\n  - {}\n");
	rn_config_set(config, "hosts.1.nic.dma.tags=10");
	rn_config_set(config, "hosts.*.nic.dma.retry_ps=11");
	rn_config_set(config, "hosts.1.count=2");
	ck_assert(bind());
	ck_assert_uint_eq(dma[0].tags, 9);
	ck_assert_uint_eq(dma[1].tags, 10);
	ck_assert_uint_eq(dma[2].tags, 64);
	ck_assert_uint_eq(dma[3].tags, 64);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(dma[i].retry_ps, 11);
}
END_TEST

START_TEST(a_count_in_a_set_list_repeats_too)
{
	rn_config_set(config, "hosts=[{nic: {dma: {tags: 9}}, count: 2}, {}]");
	rn_config_set(config, "hosts.1.nic.dma.tags=10");
	ck_assert(bind());
	ck_assert_uint_eq(dma[0].tags, 9);
	ck_assert_uint_eq(dma[1].tags, 10);
	ck_assert_uint_eq(dma[2].tags, 64);
}
END_TEST

START_TEST(a_count_is_checked)
{
	load("hosts:\n  - count: 0\n  - count: x\n  - count: 1025\n");
	ck_assert(!bind());
	expect(0, "a.yaml:2:12: hosts.0.count: must be an integer from 1 to 1024");
	expect(1, "a.yaml:3:12: hosts.1.count: must be an integer from 1 to 1024");
	expect(2, "a.yaml:4:12: hosts.2.count: must be an integer from 1 to 1024");
	ck_assert_uint_eq(rn_diag_count(diag), 3);
}
END_TEST

START_TEST(set_wins_over_files_and_the_last_one_over_the_others)
{
	write_file("fast.yaml", "dma: {tags: 5}\n");
	load("hosts: [{nic: {dma: {tags: 3}}}, {}]\n");
	rn_config_set(config, "hosts.0.nic.dma.tags=4");
	rn_config_set(config, "hosts.0.nic.dma.tags=5");
	rn_config_set(config, "hosts.1.nic=fast.yaml");
	rn_config_set(config, "fabric=switch");
	ck_assert(bind());
	ck_assert_uint_eq(dma[0].tags, 5);
	ck_assert_uint_eq(dma[1].tags, 5);
	ck_assert_int_eq(fabric, 1);
}
END_TEST

static const struct {
	const char *assignment;
	const char *message;
} wrong_sets[] = {
	{"hosts.0.nic.dma.tags=0",
	 "--set: hosts.0.nic.dma.tags: must be an integer from 1 to 1024 tags, not 0"},
	{"hosts.0.nic.dma.tugs=1", "--set: hosts.0.nic.dma.tugs: unknown key; did you mean tags?"},
	{"hots.0.nic=1", "--set: hots: unknown key; did you mean hosts?"},
	{"hosts.2.nic.dma.tags=1",
	 "--set: hosts.2.nic.dma.tags: hosts is a list; legal after it: 0 to 1, or *"},
	{"hosts.x.nic.dma.tags=1",
	 "--set: hosts.x.nic.dma.tags: hosts is a list; legal after it: 0 to 1, or *"},
	{"name.x=1", "--set: name.x: name is a value and has no keys"},
	{"fabric", "--set: fabric: must be KEY.PATH=VALUE"},
	{"=5", "--set: =5: must be KEY.PATH=VALUE"},
	{"a..b=5", "--set: a..b=5: must be KEY.PATH=VALUE"},
	{"hosts.0.nic=no.yaml", "--set: hosts.0.nic: no such file: no.yaml"},
	{"fabric=", "--set: fabric: empty"},
	{"fabric=ring", "--set: fabric: must be back_to_back or switch, not ring"},
};

START_TEST(a_wrong_set_is_reported)
{
	load("hosts: [{}, {}]\nname: x\n");
	rn_config_set(config, wrong_sets[_i].assignment);
	ck_assert(!bind());
	expect_only(wrong_sets[_i].message);
}
END_TEST

START_TEST(show_prints_values_defaults_units_and_origins)
{
	load("hosts:\n  - nic: {dma: {tags: 0x10}}\n");
	rn_config_set(config, "hosts.0.nic.dma.relaxed=true");
	ck_assert(bind());

	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	rn_config_print(config, out);
	fclose(out);
	ck_assert_str_eq(
		text,
		"hosts:  # the hosts\n"
		"  - nic:  # its NIC\n"
		"      dma:\n"
		"        tags: 16                        # [a.yaml:2] 1 to 1024 tags; read requests "
		"outstanding\n"
		"        retry_ps: 0                     # [default] 0 to 1000000000000 ps; before it "
		"tries again\n"
		"        seed: 1                         # [default] 0 to 18446744073709551615; of "
		"every random choice\n"
		"        link_gbps: 100                  # [default] 0.5 to 800 Gbit/s; line rate\n"
		"        relaxed: true                   # [--set] true or false; relaxed ordering\n"
		"fabric: back_to_back                    # [default] back_to_back or switch; what "
		"joins them\n"
		"name: \"none\"                            # [default] of the scenario\n");
	free(text);
}
END_TEST

START_TEST(what_show_prints_loads_again_as_the_same_configuration)
{
	load("hosts: [{nic: {dma: {tags: 0x10, link_gbps: 0.7, seed: 18446744073709551615}}, count: 2}]\n"
	     "name: \"a \\\"quoted\\\" \\\\ name: # of no.yaml\"\n");
	ck_assert(bind());

	char *canonical = rn_config_canonical(config);
	uint64_t hash = rn_config_hash(config);
	char *shown = NULL;
	size_t bytes;
	FILE *out = open_memstream(&shown, &bytes);

	rn_config_print(config, out);
	fclose(out);
	rn_config_free(config);
	config = rn_config_new(diag);
	load(shown);
	ck_assert(bind());

	char *again = rn_config_canonical(config);

	ck_assert_str_eq(again, canonical);
	ck_assert_uint_eq(rn_config_hash(config), hash);
	ck_assert_double_eq(dma[1].link_gbps, 0.7);
	free(again);
	free(shown);
	free(canonical);
}
END_TEST

START_TEST(the_hash_depends_on_values_alone)
{
	static const char *const same[] = {
		"fabric: switch\nhosts: [{}, {}]\n",
		"hosts:\n  - {count: 2, nic: {dma: {tags: 0x40}}}  # comment\nfabric: \"switch\"\n",
	};
	uint64_t hashes[3];

	for (unsigned i = 0; i < 3; i++) {
		load(same[i % 2]);
		if (i == 2)
			rn_config_set(config, "hosts.1.nic.dma.tags=65");
		ck_assert(bind());
		hashes[i] = rn_config_hash(config);
		rn_config_free(config);
		config = rn_config_new(diag);
	}
	ck_assert_uint_eq(hashes[0], hashes[1]);
	ck_assert_uint_ne(hashes[0], hashes[2]);
}
END_TEST

START_TEST(a_list_that_is_not_given_can_have_default_entries)
{
	load("a: [{}]\nb: []\n");

	struct rn_config_node *root = rn_config_compose(config);
	static const char *const keys[] = {"a", "b", "c"};

	for (unsigned i = 0; i < 3; i++) {
		struct rn_config_node *list = rn_config_list(config, root, keys[i], NULL);

		rn_config_fill(config, list, 2);
		for (size_t j = 0; j < rn_config_length(list); j++)
			rn_config_string(config, rn_config_at(config, list, j), "s", "x", NULL);
	}

	char *text = rn_config_canonical(config);

	ck_assert_str_eq(text, "a:\n  - s: \"x\"\nb: []\nc:\n  - s: \"x\"\n  - s: \"x\"\n");
	free(text);
	ck_assert(rn_config_finish(config));
}
END_TEST

START_TEST(a_caller_can_point_at_its_own_findings)
{
	load("hosts:\n  - nic:\n      dma: {tags: 5}\n");

	struct rn_config_node *root = rn_config_compose(config);
	struct rn_config_node *host =
		rn_config_at(config, rn_config_list(config, root, "hosts", NULL), 0);
	struct rn_config_node *nic = rn_config_section(config, host, "nic", NULL);
	struct rn_config_node *section = rn_config_section(config, nic, "dma", NULL);

	ck_assert(rn_config_has(section, "tags"));
	ck_assert(!rn_config_has(section, "retry_ps"));
	rn_config_error(config, section, "tags", "must be a power of two, not %u", 5);
	rn_config_error(config, section, "retry_ps", "must be given");
	expect(0, "a.yaml:3:19: hosts.0.nic.dma.tags: must be a power of two, not 5");
	expect(1, "a.yaml:3:13: hosts.0.nic.dma.retry_ps: must be given");
}
END_TEST

#define LENGTH(a) (int)(sizeof(a) / sizeof((a)[0]))

int main(void)
{
	TCase *tcase = tcase_create("config");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, values_reach_the_parameters);
	tcase_add_loop_test(tcase, a_wrong_value_is_named_with_what_is_legal, 0,
			    LENGTH(wrong_values));
	tcase_add_test(tcase, unknown_keys_are_mistakes_and_near_ones_are_suggested);
	tcase_add_test(tcase, all_mistakes_are_reported);
	tcase_add_test(tcase, a_list_must_be_a_list);
	tcase_add_test(tcase, a_duplicate_key_is_a_mistake);
	tcase_add_test(tcase, a_required_key_must_be_given);
	tcase_add_loop_test(tcase, what_is_no_tree_of_keys_is_refused, 0, LENGTH(not_trees));
	tcase_add_test(tcase, broken_yaml_is_pointed_at);
	tcase_add_test(tcase, a_missing_file_is_a_mistake);
	tcase_add_test(tcase, keys_lie_over_those_of_the_base);
	tcase_add_test(tcase, a_file_in_the_place_of_a_section_replaces_the_bases);
	tcase_add_test(tcase, mistakes_in_a_base_are_reported_there);
	tcase_add_test(tcase, a_cycle_of_bases_is_a_mistake);
	tcase_add_test(tcase, search_directories_come_after_the_files_own);
	tcase_add_test(tcase, a_count_repeats_an_entry_and_set_reaches_each);
	tcase_add_test(tcase, a_count_in_a_set_list_repeats_too);
	tcase_add_test(tcase, a_count_is_checked);
	tcase_add_test(tcase, set_wins_over_files_and_the_last_one_over_the_others);
	tcase_add_loop_test(tcase, a_wrong_set_is_reported, 0, LENGTH(wrong_sets));
	tcase_add_test(tcase, show_prints_values_defaults_units_and_origins);
	tcase_add_test(tcase, what_show_prints_loads_again_as_the_same_configuration);
	tcase_add_test(tcase, the_hash_depends_on_values_alone);
	tcase_add_test(tcase, a_list_that_is_not_given_can_have_default_entries);
	tcase_add_test(tcase, a_caller_can_point_at_its_own_findings);
	return run_suite(tcase, "config");
}
