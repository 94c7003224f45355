#include "environment.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bar/time_page.h"
#include "base/bits.h"
#include "base/mem.h"
#include "driver/uapi.h"
#include "install.h"
#include "machine/machine.h"
#include "run_dir.h"

#define PRELOAD_NAME "librnicsim-preload.so"
#define VERBS_NAME "libibverbs.so.1"

struct variable {
	const char *name;
	char *value;
};

/* @first in front of the list in variable @name. */
static struct variable prepended(const char *name, char *first)
{
	const char *old = getenv(name);
	struct variable variable = {.name = name, .value = first};

	if (!old || !*old)
		return variable;
	variable.value = rn_asprintf("%s:%s", first, old);
	free(first);
	return variable;
}

/*
 * The verbs library too, since a program may be built with a path to the distribution's (DT_RPATH). It comes last: libraries
 * that the user preloads may stand before its functions.
 */
static char *preloaded(const char *libraries)
{
	const char *old = getenv("LD_PRELOAD");

	return rn_asprintf("%s/" PRELOAD_NAME "%s%s:%s/" VERBS_NAME, libraries,
			   old && *old ? ":" : "", old ? old : "", libraries);
}

/* Nobody who lives in virtual time reads what a program writes here. */
static char *output(int out_fd, int err_fd)
{
	struct stat out = {0}, err = {0};

	fstat(out_fd, &out);
	fstat(err_fd, &err);
	return rn_asprintf("%llx:%llx %llx:%llx", (unsigned long long)out.st_dev,
			   (unsigned long long)out.st_ino, (unsigned long long)err.st_dev,
			   (unsigned long long)err.st_ino);
}

/* The loader takes spaces and colons as ends of a name: then the run folder has a link without any. */
static char *library_dir(const char *dir)
{
	const char *path = rn_install_library_dir();
	char *link;

	if (!path) {
		fprintf(stderr,
			"rnicsim: libibverbs.so.1 is not beside this executable (../lib)\n");
		return NULL;
	}
	if (rn_machine_is_loadable(path))
		return rn_strdup(path);
	link = rn_asprintf("%s/" RN_RUN_DIR_LIBRARIES, dir);
	if (access(link, R_OK) == 0)
		return link;
	fprintf(stderr,
		"rnicsim: %s: the loader cannot be given such a path, and %s is not there\n", path,
		link);
	free(link);
	return NULL;
}

static bool is_set_anew(const char *entry, const struct variable *variable, size_t count)
{
	const size_t length = strcspn(entry, "=");

	for (size_t i = 0; i < count; i++)
		if (strncmp(entry, variable[i].name, length) == 0 && !variable[i].name[length])
			return true;
	return false;
}

static char **merge(struct variable *variable, size_t count)
{
	char **result;
	size_t entries = 0, n = 0;

	while (environ[entries])
		entries++;
	result = rn_calloc(entries + count + 1, sizeof(*result));
	for (size_t i = 0; i < entries; i++)
		if (!is_set_anew(environ[i], variable, count))
			result[n++] = rn_strdup(environ[i]);
	for (size_t i = 0; i < count; i++) {
		result[n++] = rn_asprintf("%s=%s", variable[i].name, variable[i].value);
		free(variable[i].value);
	}
	return result;
}

char **rn_environment_new(const char *dir, unsigned host, int out, int err)
{
	char *libraries = library_dir(dir);

	if (!libraries)
		return NULL;
	struct variable variable[] = {
		{"LD_PRELOAD", preloaded(libraries)},
		/* AddressSanitizer would refuse to start behind a preloaded library, and in front of it is ours. */
		prepended("ASAN_OPTIONS", rn_strdup("verify_asan_link_order=0")),
		prepended("LD_LIBRARY_PATH", libraries),
		{RN_ENV_SOCKET, rn_asprintf("%s/" RN_RUN_DIR_SOCKET, dir)},
		{RN_ENV_HOST, rn_asprintf("%u", host)},
		{RN_ENV_OUTPUT, output(out, err)},
	};

	return merge(variable, RN_ARRAY_LEN(variable));
}

void rn_environment_free(char **environment)
{
	for (char **entry = environment; entry && *entry; entry++)
		free(*entry);
	free(environment);
}
