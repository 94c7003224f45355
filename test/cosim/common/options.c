#include "cosim/common/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t cosim_env_seed(uint64_t fallback)
{
	const char *text = getenv("RN_SEED");

	return text && *text ? strtoull(text, NULL, 0) : fallback;
}

uint64_t cosim_env_cycles(uint64_t short_cycles, uint64_t long_cycles)
{
	const char *text = getenv("RN_LONG");

	return text && *text && strcmp(text, "0") ? long_cycles : short_cycles;
}

static bool parse_number(const char *name, const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 0);
	if (!errno && isdigit((unsigned char)*text) && !*end)
		return true;
	fprintf(stderr, "--%s: '%s' is not a number\n", name, text);
	return false;
}

/* The place of the text option @name, or NULL. */
static const char **text_option(struct cosim_options *options, const char *name)
{
	const struct {
		const char *name;
		const char **value;
	} rows[] = {
		{"geometry", &options->geometry}, {"plusarg", &options->plusarg},
		{"replay", &options->replay},	  {"record", &options->record},
		{"cover", &options->cover},	  {"rtl-cover", &options->rtl_cover},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(name, rows[i].name))
			return rows[i].value;
	return NULL;
}

static bool parse_one(struct cosim_options *options, const char *name, const char *value)
{
	const char **text = text_option(options, name);

	if (text) {
		*text = value;
		return true;
	}
	if (!strcmp(name, "seed"))
		return parse_number(name, value, &options->seed);
	if (!strcmp(name, "compare")) {
		options->ports_alone = !strcmp(value, "ports");
		if (options->ports_alone || !strcmp(value, "all"))
			return true;
		fprintf(stderr, "--compare: '%s' is neither all nor ports\n", value);
		return false;
	}
	if (!strcmp(name, "cycles"))
		return parse_number(name, value, &options->cycles);
	fprintf(stderr, "--%s: no such option\n", name);
	return false;
}

bool cosim_options_parse(struct cosim_options *options, int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2) {
		if (strncmp(argv[i], "--", 2) || i + 1 == argc) {
			fprintf(stderr,
				"usage: %s [--geometry NAME] [--seed N] [--cycles N] [--plusarg +fault=N]\n"
				"       [--compare all|ports]\n"
				"       [--replay FILE] [--record FILE] [--cover FILE] [--rtl-cover FILE]\n",
				argv[0]);
			return false;
		}
		if (!parse_one(options, argv[i] + 2, argv[i + 1]))
			return false;
	}
	return true;
}
