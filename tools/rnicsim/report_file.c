#include "report_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "simulator.h"

#define BUFFER_BYTES (1u << 20)

static bool complain(const char *path, int error)
{
	fprintf(stderr, "rnicsim: %s: cannot write the report: %s\n", path, strerror(error));
	return false;
}

/* As fopen() would have made it: mkstemp() lets nobody else read. */
static void open_to_others(int fd)
{
	mode_t mask = umask(0);

	umask(mask);
	if (fchmod(fd, 0666 & ~mask) != 0)
		return; /* the owner can read it anyway */
}

bool rn_report_file_open(struct rn_report_file *file, const char *path)
{
	struct stat st;
	int fd;

	*file = (struct rn_report_file){.path = path};
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		file->stream = fopen(path, "we");
		return file->stream || complain(path, errno);
	}
	file->temporary = rn_asprintf("%s.XXXXXX", path);
	fd = mkstemp(file->temporary);
	if (fd >= 0) {
		open_to_others(fd);
		file->stream = fdopen(fd, "w");
	}
	if (file->stream) {
		setvbuf(file->stream, NULL, _IOFBF, BUFFER_BYTES);
		return true;
	}
	complain(path, errno);
	if (fd >= 0) {
		close(fd);
		unlink(file->temporary);
	}
	free(file->temporary);
	return false;
}

bool rn_report_file_close(struct rn_report_file *file)
{
	bool failed = ferror(file->stream);
	int error = EIO;

	errno = 0;
	if (fclose(file->stream) != 0) {
		failed = true;
		error = errno;
	}
	if (!failed && file->temporary && rename(file->temporary, file->path) != 0) {
		failed = true;
		error = errno;
	}
	if (failed && file->temporary)
		unlink(file->temporary);
	free(file->temporary);
	return !failed || complain(file->path, error);
}

bool rn_report_is_writable(const char *path)
{
	struct rn_report_file file;

	if (!rn_report_file_open(&file, path))
		return false;
	fclose(file.stream);
	if (file.temporary)
		unlink(file.temporary);
	free(file.temporary);
	return true;
}
