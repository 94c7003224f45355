/*
 * A program that has loaded another libibverbs beside the simulator's, by a path of its own: it is told, since it would only
 * see that there is no device.
 */
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/address.h"

#define VERBS "libibverbs.so"

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The folder of this library, by the address of a function in it. */
static int find_own(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	const uintptr_t here = (uintptr_t)find_own;

	(void)bytes;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		const uintptr_t start = info->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD || here < start || here >= start + part->p_memsz)
			continue;
		*(const char **)arg = info->dlpi_name;
		return 1;
	}
	return 0;
}

static bool is_in_same_folder(const char *a, const char *b)
{
	return base_of(a) - a == base_of(b) - b && !strncmp(a, b, (size_t)(base_of(a) - a));
}

static int find_foreign(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	const char **own = arg;

	(void)bytes;
	if (strncmp(base_of(info->dlpi_name), VERBS, strlen(VERBS)) ||
	    is_in_same_folder(info->dlpi_name, *own))
		return 0;
	*own = info->dlpi_name;
	return 1;
}

static void look(void)
{
	static bool has_told;
	const int saved_errno = errno;
	const char *path = NULL;
	char text[PATH_MAX + 256];
	int length;

	if (has_told || !rn_address_is_active() || !dl_iterate_phdr(find_own, &path) ||
	    !dl_iterate_phdr(find_foreign, &path))
		return;
	has_told = true;
	length = snprintf(
		text, sizeof(text),
		"rnicsim: %s: this program has loaded %s, too, which knows no simulated NIC; "
		"let it find libibverbs.so.1 by its name\n",
		program_invocation_short_name, path);
	if (write(STDERR_FILENO, text, (size_t)length) < 0)
		errno = saved_errno;
	errno = saved_errno;
}

/* What it was linked with; what it has loaded in its life. */
__attribute__((constructor)) static void look_at_start(void)
{
	look();
}

__attribute__((destructor)) static void look_at_end(void)
{
	look();
}
