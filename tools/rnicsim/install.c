#include "install.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LEVELS_UP 4

/* Folder of the executable, without the trailing slash. */
static bool executable_dir(char dir[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", dir, PATH_MAX - 1);
	char *slash;

	if (n <= 0)
		return false;
	dir[n] = '\0';
	slash = strrchr(dir, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return true;
}

/* @name below the executable's folder or one of its parents, if @probe exists in it. */
static const char *search(char found[PATH_MAX], const char *const *names, const char *probe)
{
	char dir[PATH_MAX], test[PATH_MAX];
	char *slash;

	if (!executable_dir(dir))
		return NULL;
	for (unsigned level = 0; level <= LEVELS_UP; level++) {
		for (const char *const *name = names; *name; name++) {
			if ((size_t)snprintf(found, PATH_MAX, "%s/%s", dir, *name) >= PATH_MAX ||
			    (size_t)snprintf(test, PATH_MAX, "%s/%s", found, probe) >= PATH_MAX)
				continue;
			if (access(test, R_OK) == 0)
				return found;
		}
		slash = strrchr(dir, '/');
		if (!slash || slash == dir)
			return NULL;
		*slash = '\0';
	}
	return NULL;
}

const char *rn_install_config_dir(void)
{
	static const char *const names[] = {"configs", "share/rnicsim/configs", NULL};
	static char found[PATH_MAX];

	return search(found, names, "nic/generic-100g.yaml");
}

const char *rn_install_library_dir(void)
{
	static const char *const names[] = {"lib", "lib/rnicsim", NULL};
	static char found[PATH_MAX];

	return search(found, names, "libibverbs.so.1");
}
