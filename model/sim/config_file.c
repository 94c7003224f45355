/* The files of a configuration: where they are looked for, and their bytes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "sim/config_node.h"

#define MAX_FILE_BYTES (16 << 20)

/* "a/b/../c" to "a/c", in place; leading ".." stay. */
static void shorten(char *path)
{
	char *out = path;
	unsigned names = 0; /* that a ".." can take back */

	for (char *in = path; *in;) {
		size_t length = strcspn(in, "/");
		bool is_up = length == 2 && in[0] == '.' && in[1] == '.';
		bool has_slash = in[length] == '/';

		if (is_up && names) {
			out--;
			while (out > path && out[-1] != '/')
				out--;
			names--;
		} else if (!(length == 1 && in[0] == '.' && has_slash) && (length || in == path)) {
			names += !is_up && length;
			memmove(out, in, length + has_slash);
			out += length + has_slash;
		}
		in += length + has_slash;
	}
	*out = '\0';
}

static char *join(const char *dir, size_t dir_length, const char *name)
{
	char *path = *name == '/' || !dir_length
			     ? rn_strdup(name)
			     : rn_asprintf("%.*s%s%s", (int)dir_length, dir,
					   dir[dir_length - 1] == '/' ? "" : "/", name);

	shorten(path);
	return path;
}

static bool is_regular(const char *path)
{
	struct stat info;

	return !stat(path, &info) && S_ISREG(info.st_mode);
}

char *rn_config_find_file(const struct rn_config *config, const char *wanted, const char *beside,
			  char **tried)
{
	const char *slash = beside ? strrchr(beside, '/') : NULL;
	char *path = join(beside, slash ? (size_t)(slash - beside) + 1 : 0, wanted);

	*tried = rn_strdup(path);
	for (size_t i = 0; !is_regular(path); i++) {
		free(path);
		if (i == config->search_dirs_count || *wanted == '/')
			return NULL;
		path = join(config->search_dirs[i], strlen(config->search_dirs[i]), wanted);

		char *longer = rn_asprintf("%s, %s", *tried, path);

		free(*tried);
		*tried = longer;
	}
	return path;
}

char *rn_config_read_file(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "rb");

	if (!file)
		return NULL;

	char *text = rn_calloc(MAX_FILE_BYTES, 1);

	*bytes = fread(text, 1, MAX_FILE_BYTES, file);
	if (ferror(file) || *bytes == MAX_FILE_BYTES) {
		errno = *bytes == MAX_FILE_BYTES ? EFBIG : EIO;
		free(text);
		text = NULL;
	}
	fclose(file);
	return text;
}
