#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/mem.h"

#define BUFFER_BYTES (1u << 20)

struct rn_output {
	FILE *stream; /* NULL: closed */
	char *path;
	const char *what;
	int fd;
	int error; /* the first */
};

static ssize_t write_bytes(void *cookie, const char *from, size_t bytes)
{
	struct rn_output *output = cookie;
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = write(output->fd, from + done, bytes - done);

		if (n < 0 && errno == EINTR && !output->error)
			continue;
		if (n < 0) {
			output->error = output->error ? output->error : errno;
			break;
		}
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static int close_bytes(void *cookie)
{
	struct rn_output *output = cookie;
	const int result = close(output->fd);

	if (result != 0 && !output->error)
		output->error = errno;
	output->fd = -1;
	output->stream = NULL;
	return result;
}

static struct rn_output *fail(const char *path, const char *what, int error, char **message)
{
	*message = rn_asprintf("%s: cannot write %s: %s", path, what, strerror(error));
	return NULL;
}

struct rn_output *rn_output_open(const char *path, const char *what, char **message)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
	struct rn_output *output;

	if (fd < 0)
		return fail(path, what, errno, message);
	output = rn_calloc(1, sizeof(*output));
	output->fd = fd;
	output->path = rn_strdup(path);
	output->what = what;
	output->stream = fopencookie(
		output, "w", (cookie_io_functions_t){.write = write_bytes, .close = close_bytes});
	if (output->stream) {
		setvbuf(output->stream, NULL, _IOFBF, BUFFER_BYTES);
		return output;
	}
	close(fd);
	free(output->path);
	free(output);
	return fail(path, what, ENOMEM, message);
}

FILE *rn_output_stream(const struct rn_output *output)
{
	return output->stream;
}

int rn_output_close(struct rn_output *output, char **message)
{
	int error;

	if (!output)
		return 0;
	if (output->stream)
		fclose(output->stream);
	error = output->error;
	if (error && message && !*message)
		fail(output->path, output->what, error, message);
	free(output->path);
	free(output);
	return error;
}
