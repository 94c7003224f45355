#include "report_file.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/output.h"

#define WHAT "the report"

struct rn_report_file {
	struct rn_whole_file *whole;
};

static bool complain(char *message)
{
	fprintf(stderr, "rnicsim: %s\n", message);
	free(message);
	return false;
}

struct rn_report_file *rn_report_file_new(const char *path)
{
	char *message = NULL;
	struct rn_whole_file *whole = rn_whole_file_new(path, WHAT, &message);
	struct rn_report_file *file;

	if (!whole) {
		complain(message);
		return NULL;
	}
	file = rn_calloc(1, sizeof(*file));
	file->whole = whole;
	return file;
}

void rn_report_file_free(struct rn_report_file *file)
{
	if (!file)
		return;
	rn_whole_file_finish(file->whole, false, NULL);
	free(file);
}

bool rn_report_file_write(struct rn_report_file *file, void (*write)(FILE *stream, void *arg),
			  void *arg)
{
	char *message = NULL;
	struct rn_output *output = rn_output_open(rn_whole_file_path(file->whole), WHAT, &message);
	int error;

	if (output) {
		write(rn_output_stream(output), arg);
		/* The message is to name the path that was asked for. */
		error = rn_output_close(output, NULL);
		if (error)
			rn_whole_file_drop(file->whole, error, &message);
		else
			rn_whole_file_finish(file->whole, true, &message);
		file->whole = NULL;
	}
	rn_report_file_free(file);
	return !message || complain(message);
}
