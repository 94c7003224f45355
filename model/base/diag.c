#include "base/diag.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct rn_diag {
	char **messages;
	unsigned count;
};

struct rn_diag *rn_diag_new(void)
{
	return rn_calloc(1, sizeof(struct rn_diag));
}

void rn_diag_free(struct rn_diag *diag)
{
	if (!diag)
		return;
	for (unsigned i = 0; i < diag->count; i++)
		free(diag->messages[i]);
	free(diag->messages);
	free(diag);
}

static char *place(const char *file, unsigned line, unsigned column)
{
	if (!file)
		return rn_strdup("");
	if (!line)
		return rn_asprintf("%s: ", file);
	if (!column)
		return rn_asprintf("%s:%u: ", file, line);
	return rn_asprintf("%s:%u:%u: ", file, line, column);
}

void rn_diag_add(struct rn_diag *diag, const char *file, unsigned line, unsigned column,
		 const char *format, ...)
{
	char *where = place(file, line, column);
	size_t prefix = strlen(where);
	va_list args;

	va_start(args, format);
	int length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (length < 0)
		length = 0;

	char *message = rn_calloc(prefix + (size_t)length + 1, 1);

	memcpy(message, where, prefix);
	va_start(args, format);
	vsnprintf(message + prefix, (size_t)length + 1, format, args);
	va_end(args);
	free(where);

	diag->messages = rn_reallocarray(diag->messages, diag->count + 1, sizeof(*diag->messages));
	diag->messages[diag->count++] = message;
}

unsigned rn_diag_count(const struct rn_diag *diag)
{
	return diag->count;
}

const char *rn_diag_message(const struct rn_diag *diag, unsigned idx)
{
	return idx < diag->count ? diag->messages[idx] : NULL;
}

void rn_diag_print(const struct rn_diag *diag, FILE *out)
{
	for (unsigned i = 0; i < diag->count; i++)
		fprintf(out, "%s\n", diag->messages[i]);
}
