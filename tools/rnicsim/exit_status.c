#include "exit_status.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"

static const struct {
	int value;
	const char *when;
} rows[] = {
#define ROW(name, value, when) {value, when},
	RN_EXIT_STATUSES(ROW)
#undef ROW
};

char *rn_exit_status_help(int key, const char *text, void *input)
{
	char *all = NULL;
	size_t bytes = 0;
	FILE *out;

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)(uintptr_t)text;
	out = open_memstream(&all, &bytes);
	if (!out)
		return (char *)(uintptr_t)text;
	fprintf(out, "%s%sExit status:\n", text ? text : "", text ? "\n\n" : "");
	for (size_t i = 0; i < RN_ARRAY_LEN(rows); i++)
		fprintf(out, "  %d  %s\n", rows[i].value, rows[i].when);
	fprintf(out,
		"  %d + N  signal N ended the run (141: nobody reads standard output any more)\n"
		"  any other  that of the first program that failed",
		RN_EXIT_SIGNAL);
	fclose(out);
	return all;
}
