/*
 * Files that are put in their place when they are whole. A link stays one: its target is replaced.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/output.h"

#define COPY_BYTES (1u << 16)
#define LINKS_MAX 40

struct rn_whole_file {
	char *asked; /* path as it was given, for messages */
	char *path;  /* links followed */
	char *temporary;
	const char *what;
	int copy_to; /* -1: the temporary file is renamed */
};

static void release(struct rn_whole_file *file)
{
	if (file->copy_to >= 0)
		close(file->copy_to);
	free(file->asked);
	free(file->path);
	free(file->temporary);
	free(file);
}

static void say(const struct rn_whole_file *file, int error, char **message)
{
	if (message && !*message)
		*message = rn_asprintf("%s: cannot write %s: %s", file->asked, file->what,
				       strerror(error));
}

/* As open() would have made it: mkstemp() lets nobody else read. */
static void open_to_others(int fd)
{
	const mode_t mask = umask(0);

	umask(mask);
	if (fchmod(fd, 0666 & ~mask) != 0)
		return; /* the owner can read it anyway */
}

static bool make_beside(struct rn_whole_file *file, const char *path)
{
	int fd;

	free(file->temporary);
	file->temporary = rn_asprintf("%s.XXXXXX", path);
	fd = mkstemp(file->temporary);
	if (fd < 0)
		return false;
	open_to_others(fd);
	close(fd);
	return true;
}

static bool make_elsewhere(struct rn_whole_file *file)
{
	const char *folder = getenv("TMPDIR");
	char *path = rn_asprintf("%s/rnicsim-output", folder && *folder ? folder : "/tmp");
	bool made;

	file->copy_to = open(file->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	made = file->copy_to >= 0 && make_beside(file, path);
	free(path);
	return made;
}

/* 0 or an errno. */
static int make(struct rn_whole_file *file)
{
	const bool exists = access(file->path, F_OK) == 0;
	struct stat st;

	if (exists && stat(file->path, &st) != 0)
		return errno;
	if (exists && !S_ISREG(st.st_mode))
		return make_elsewhere(file) ? 0 : errno;
	if (exists && access(file->path, W_OK) != 0)
		return errno;
	if (make_beside(file, file->path))
		return 0;
	if (exists && (errno == EACCES || errno == EROFS || errno == EPERM))
		return make_elsewhere(file) ? 0 : errno;
	return errno;
}

/* Where links lead from @path, also when nothing is there yet. */
static char *follow(const char *path)
{
	char *at = rn_strdup(path);

	for (unsigned links = 0; links < LINKS_MAX; links++) {
		char *real = realpath(at, NULL), target[PATH_MAX];
		const char *slash = strrchr(at, '/');
		const ssize_t bytes = real ? 0 : readlink(at, target, sizeof(target) - 1);
		char *next;

		if (bytes <= 0 && !real)
			break;
		if (!real) {
			target[bytes] = '\0';
			next = *target == '/' || !slash
				       ? rn_strdup(target)
				       : rn_asprintf("%.*s/%s", (int)(slash - at), at, target);
		} else {
			next = rn_strdup(real);
			links = LINKS_MAX;
		}
		free(real);
		free(at);
		at = next;
	}
	return at;
}

struct rn_whole_file *rn_whole_file_new(const char *path, const char *what, char **message)
{
	struct rn_whole_file *file = rn_calloc(1, sizeof(*file));
	int error;

	file->asked = rn_strdup(path);
	file->path = follow(path);
	file->what = what;
	file->copy_to = -1;
	error = make(file);
	if (!error)
		return file;
	say(file, error, message);
	release(file);
	return NULL;
}

const char *rn_whole_file_path(const struct rn_whole_file *file)
{
	return file->temporary;
}

static int write_all(int fd, const char *from, size_t bytes)
{
	while (bytes) {
		const ssize_t n = write(fd, from, bytes);

		if (n < 0)
			return errno;
		from += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int copy(const struct rn_whole_file *file)
{
	const int from = open(file->temporary, O_RDONLY | O_CLOEXEC);
	char *buffer;
	int error = 0;
	ssize_t n;

	if (from < 0)
		return errno;
	buffer = rn_calloc(1, COPY_BYTES);
	/* Only a regular file has a length to cut. */
	if (ftruncate(file->copy_to, 0) != 0 && errno != EINVAL && errno != EPERM)
		error = errno;
	while (!error && (n = read(from, buffer, COPY_BYTES)) != 0)
		error = n < 0 ? errno : write_all(file->copy_to, buffer, (size_t)n);
	free(buffer);
	close(from);
	return error;
}

void rn_whole_file_drop(struct rn_whole_file *file, int error, char **message)
{
	say(file, error, message);
	rn_whole_file_finish(file, false, NULL);
}

int rn_whole_file_finish(struct rn_whole_file *file, bool keep, char **message)
{
	int error = 0;

	if (!file)
		return 0;
	if (keep && file->copy_to >= 0)
		error = copy(file);
	else if (keep && rename(file->temporary, file->path) != 0)
		error = errno;
	if (!keep || error || file->copy_to >= 0)
		unlink(file->temporary);
	if (error)
		say(file, error, message);
	release(file);
	return error;
}
