/* The configurations that are shipped: correct, complete, and equal to the built-in defaults. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/config.h"
#include "system/scenario.h"

#define CONFIGS RN_SOURCE_DIR "/configs"

static const char *const scenarios[] = {
	"scenarios/two-hosts.yaml",
	"scenarios/four-hosts-switch.yaml",
};

static struct rn_diag *diag;
static struct rn_config *config;
static struct rn_scenario *scenario;

static void load(const char *path)
{
	diag = rn_diag_new();
	config = rn_config_new(diag);
	rn_config_add_search_dir(config, CONFIGS);
	ck_assert(rn_config_load_file(config, path));
	scenario = rn_scenario_read(config, rn_config_compose(config));
	if (!rn_config_finish(config))
		rn_diag_print(diag, stderr);
	ck_assert_uint_eq(rn_diag_count(diag), 0);
}

static void unload(void)
{
	rn_scenario_free(scenario);
	rn_config_free(config);
	rn_diag_free(diag);
}

static char *shown(void)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	rn_config_print(config, out);
	fclose(out);
	return text;
}

START_TEST(what_is_shown_of_a_scenario_loads_again)
{
	load(scenarios[_i]);

	char *text = shown();
	uint64_t hash = rn_config_hash(config);

	unload();
	diag = rn_diag_new();
	config = rn_config_new(diag);
	ck_assert(rn_config_load_text(config, "shown.yaml", text));
	scenario = rn_scenario_read(config, rn_config_compose(config));
	ck_assert(rn_config_finish(config));
	ck_assert_uint_eq(rn_config_hash(config), hash);
	unload();
	free(text);
}
END_TEST

static int line_length(const char *line)
{
	return (int)strcspn(line, "\n");
}

START_TEST(profiles_give_every_parameter)
{
	load(scenarios[_i]);

	char *text = shown();

	for (char *line = text; *line; line += line_length(line) + 1) {
		int length = line_length(line);
		char *found = strstr(line, "[default]");

		ck_assert_msg(!found || found > line + length, "missing in the profiles: %.*s",
			      length, line);
	}
	free(text);
	unload();
}
END_TEST

START_TEST(the_default_scenario_is_the_built_in_one)
{
	struct rn_scenario *built_in = rn_scenario_default(2);

	load("scenarios/two-hosts.yaml");
	ck_assert_uint_eq(scenario->hosts, 2);
	ck_assert_uint_eq(scenario->seed, built_in->seed);
	ck_assert_mem_eq(&scenario->fabric, &built_in->fabric, sizeof(built_in->fabric));
	for (unsigned i = 0; i < 2; i++)
		for (const struct rn_nic_section *s = rn_nic_sections; s->table; s++)
			for (size_t row = 0; row < s->table->count; row++) {
				const struct rn_param_desc *desc = &s->table->rows[row];
				double file = rn_param_value(desc, (char *)&scenario->host[i].nic +
									   s->offset);
				double code = rn_param_value(desc, (char *)&built_in->host[i].nic +
									   s->offset);

				ck_assert_msg(file == code,
					      "%s.%s is %g in the profile, %g built in",
					      s->table->section, desc->key, file, code);
			}
	for (unsigned i = 0; i < 2; i++)
		ck_assert_mem_eq(&scenario->host[i], &built_in->host[i], sizeof(built_in->host[i]));
	unload();
	rn_scenario_free(built_in);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("configs");
	TCase *tcase = tcase_create("shipped");
	int count = (int)(sizeof(scenarios) / sizeof(scenarios[0]));

	suite_add_tcase(suite, tcase);
	tcase_add_loop_test(tcase, what_is_shown_of_a_scenario_loads_again, 0, count);
	tcase_add_loop_test(tcase, profiles_give_every_parameter, 0, count);
	tcase_add_test(tcase, the_default_scenario_is_the_built_in_one);

	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
