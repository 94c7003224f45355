#include "cosim/common/stimulus.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool cosim_stimulus_open(struct cosim_stimulus *stimulus, const char *path)
{
	*stimulus = (struct cosim_stimulus){.file = fopen(path, "r")};
	return stimulus->file != NULL;
}

void cosim_stimulus_close(struct cosim_stimulus *stimulus)
{
	if (stimulus->file)
		fclose(stimulus->file);
}

static bool read_line(struct cosim_stimulus *stimulus)
{
	while (!stimulus->has_line) {
		if (!fgets(stimulus->line, sizeof(stimulus->line), stimulus->file))
			return false;
		stimulus->line_number++;
		stimulus->has_line = stimulus->line[0] != '#' && stimulus->line[0] != '\n';
	}
	return true;
}

static enum cosim_event_kind parse_line(struct cosim_stimulus *stimulus, struct cosim_event *event)
{
	const char *line = stimulus->line;

	stimulus->has_line = false;
	if (sscanf(line, "in %" SCNu64 " %63s %511s", &event->cycle, event->name, event->hex) == 3)
		return COSIM_EVENT_IN;
	if (sscanf(line, "ready %" SCNu64 " %63s %" SCNu64, &event->cycle, event->name,
		   &event->value) == 3)
		return COSIM_EVENT_READY;
	if (sscanf(line, "param %63s %" SCNu64, event->name, &event->value) == 2 ||
	    sscanf(line, "unit %63s", event->name) == 1)
		return COSIM_EVENT_PARAM;
	if (sscanf(line, "end %" SCNu64, &event->cycle) == 1)
		return COSIM_EVENT_END;
	return COSIM_EVENT_ERROR;
}

void cosim_stimulus_next(struct cosim_stimulus *stimulus, struct cosim_event *event)
{
	event->data[0] = 0;
	event->cycle = 0;
	if (!read_line(stimulus)) {
		event->kind = COSIM_EVENT_END;
		return;
	}
	event->kind = parse_line(stimulus, event);
	if (event->kind == COSIM_EVENT_IN && read_line(stimulus) &&
	    !strncmp(stimulus->line, "data ", 5)) {
		sscanf(stimulus->line, "data %*u %*s %8319s", event->data);
		stimulus->has_line = false;
	}
}

static int digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

bool cosim_parse_words(const char *hex, uint32_t bits, uint32_t *words)
{
	size_t count = strlen(hex);

	if (count != (bits + 3) / 4)
		return false;
	memset(words, 0, (bits + 31) / 32 * sizeof(*words));
	for (size_t i = 0; i < count; i++) {
		int value = digit(hex[count - 1 - i]);

		if (value < 0)
			return false;
		words[i / 8] |= (uint32_t)value << i % 8 * 4;
	}
	return true;
}

uint32_t cosim_parse_bytes(const char *hex, uint8_t *bytes, uint32_t max)
{
	uint32_t count = 0;

	while (count < max && digit(hex[0]) >= 0 && digit(hex[1]) >= 0) {
		bytes[count++] = (uint8_t)(digit(hex[0]) << 4 | digit(hex[1]));
		hex += 2;
	}
	return count;
}

void cosim_write_in(FILE *file, uint64_t cycle, const struct cosim_in *in, const uint8_t *data,
		    uint32_t data_bytes)
{
	fprintf(file, "in %" PRIu64 " %s ", cycle, in->name);
	for (uint32_t i = (in->desc->bits + 3) / 4; i-- > 0;)
		fprintf(file, "%x", in->words[i / 8] >> i % 8 * 4 & 15);
	fputc('\n', file);
	if (!data_bytes)
		return;
	fprintf(file, "data %" PRIu64 " %s ", cycle, in->name);
	for (uint32_t i = 0; i < data_bytes; i++)
		fprintf(file, "%02x", data[i]);
	fputc('\n', file);
}
