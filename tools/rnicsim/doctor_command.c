/*
 * rnicsim doctor: what a run needs of the machine, tried.
 */
#include <argp.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "doctor.h"
#include "exit_status.h"
#include "machine/machine.h"

enum option_key { OPT_JSON = 0x200, OPT_BRIEF };

static const struct argp_option option_rows[] = {
	{"brief", OPT_BRIEF, NULL, 0, "one line about what is lacking; nothing when all is there",
	 0},
	{"json", OPT_JSON, NULL, 0, "all findings as JSON", 0},
	{0},
};

struct doctor {
	bool json, brief;
};

static const char *const need_names[] = {
	[RN_MACHINE_NEEDED] = "needed",
	[RN_MACHINE_REPEATS] = "repeatability",
	[RN_MACHINE_WANTED] = "wanted",
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct doctor *doctor = state->input;

	switch (key) {
	case OPT_JSON:
		doctor->json = true;
		return 0;
	case OPT_BRIEF:
		doctor->brief = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "doctor takes no argument: %s", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print_row(const struct rn_machine_row *row, const struct rn_machine_finding *finding)
{
	const char *mark = finding->works		    ? "ok"
			   : row->need == RN_MACHINE_NEEDED ? "MISSING"
							    : "no";

	printf("  %-8s%s%s%s\n", mark, row->name, *finding->detail ? ": " : "", finding->detail);
	if (!finding->works)
		printf("          without it: %s\n", row->lost);
}

static json_t *row_json(const struct rn_machine_row *row, const struct rn_machine_finding *finding)
{
	return json_pack("{s:s, s:s, s:s, s:b, s:s, s:s}", "key", row->key, "name", row->name,
			 "need", need_names[row->need], "works", finding->works, "detail",
			 finding->detail, "lost", row->lost);
}

/* All of them; whether the main job can be done. */
static bool examine(bool json)
{
	json_t *list = json ? json_array() : NULL;
	bool can_run = true;

	for (unsigned i = 0; i < RN_MACHINE_FACILITIES; i++) {
		const struct rn_machine_row *row = rn_machine_row((enum rn_machine_facility)i);
		struct rn_machine_finding finding;

		rn_machine_probe((enum rn_machine_facility)i, &finding);
		can_run = can_run && (finding.works || row->need != RN_MACHINE_NEEDED);
		if (json)
			json_array_append_new(list, row_json(row, &finding));
		else
			print_row(row, &finding);
	}
	if (!json)
		return can_run;
	list = json_pack("{s:b, s:o}", "can_run", can_run, "facilities", list);
	json_dumpf(list, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(list);
	return can_run;
}

static void say(FILE *out, const char *lacking)
{
	fprintf(out, "rnicsim: this machine lacks %s; `rnicsim doctor` tells what is lost\n",
		lacking);
}

static int be_brief(void)
{
	char *needed = rn_machine_lacking(rn_machine_rows_of(RN_MACHINE_NEEDED));
	char *lacking = rn_machine_lacking((1u << RN_MACHINE_FACILITIES) - 1);

	if (needed)
		printf("rnicsim: nothing can run: this machine lacks %s\n", needed);
	else if (lacking)
		say(stdout, lacking);
	free(lacking);
	if (!needed)
		return 0;
	free(needed);
	return RN_EXIT_MISSING;
}

bool rn_doctor_look(struct rn_options *options)
{
	const unsigned in_time = rn_machine_rows_of(RN_MACHINE_REPEATS);
	unsigned used = 1u << RN_MACHINE_PROCESS_MEMORY;
	char *lacking = rn_machine_lacking(rn_machine_rows_of(RN_MACHINE_NEEDED));

	if (lacking) {
		fprintf(stderr, "rnicsim: nothing can run: this machine lacks %s\n", lacking);
		free(lacking);
		return false;
	}
	if (!options->free_run) {
		used |= in_time | 1u << RN_MACHINE_COUNTER_TRAP;
		options->lacking = rn_machine_lacking(in_time);
	}
	lacking = options->quiet ? NULL : rn_machine_lacking(used);
	if (lacking)
		say(stderr, lacking);
	free(lacking);
	return true;
}

int rn_doctor_command(int argc, char **argv)
{
	static const struct argp argp = {
		.options = option_rows,
		.parser = parse,
		.doc = "Try what a run needs of this machine, by using it, and say what does not work and what is lost by that.",
		.help_filter = rn_exit_status_help,
	};
	struct doctor doctor = {0};

	argp_parse(&argp, argc, argv, 0, NULL, &doctor);
	if (doctor.brief)
		return be_brief();
	return examine(doctor.json) ? 0 : RN_EXIT_MISSING;
}
