/*
 * Recorded stimulus of a block: what "rnicsim run --record-unit" writes at a block's ports, and what a bench writes
 * itself, as text, one event a line, in order of cycles:
 *
 *   unit <name>                 param <name> <value>       (of the C block)
 *   in <cycle> <port> <hex>     the message became the head of this input in <cycle>: the packed struct as one number
 *   data <cycle> <port> <hex>   bytes beside it, byte 0 first; directly behind its "in"
 *   ready <cycle> <port> <0|1>  of an output from this cycle on; 1 before the first
 *   end <cycle>                 # comment
 */
#ifndef RN_TEST_COSIM_COMMON_STIMULUS_H
#define RN_TEST_COSIM_COMMON_STIMULUS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cosim/common/ports.h"

enum cosim_event_kind {
	COSIM_EVENT_IN,
	COSIM_EVENT_READY,
	COSIM_EVENT_PARAM,
	COSIM_EVENT_END,
	COSIM_EVENT_ERROR, /* the line is not as it should be */
};

struct cosim_event {
	enum cosim_event_kind kind;
	uint64_t cycle;
	uint64_t value;	 /* of a parameter; ready */
	char name[64];	 /* port, parameter, unit */
	char hex[512];	 /* message */
	char data[8320]; /* of an IN: hex, or empty */
};

struct cosim_stimulus {
	FILE *file;
	char line[8448];
	bool has_line; /* read ahead */
	unsigned line_number;
};

bool cosim_stimulus_open(struct cosim_stimulus *stimulus, const char *path);
void cosim_stimulus_close(struct cosim_stimulus *stimulus);

/** The next event; END also at the end of the file, with cycle 0. */
void cosim_stimulus_next(struct cosim_stimulus *stimulus, struct cosim_event *event);

/** Words of a message of @bits from its digits; false when they are not hexadecimal or too many. */
bool cosim_parse_words(const char *hex, uint32_t bits, uint32_t *words);

/** Bytes from digits, byte 0 first; returns how many, at most @max. */
uint32_t cosim_parse_bytes(const char *hex, uint8_t *bytes, uint32_t max);

void cosim_write_in(FILE *file, uint64_t cycle, const struct cosim_in *in, const uint8_t *data,
		    uint32_t data_bytes);

#endif
