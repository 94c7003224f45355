/*
 * The command line of scripted_run.
 */
#ifndef RN_TEST_SYSTEM_TIMING_RUN_OPTIONS_H
#define RN_TEST_SYSTEM_TIMING_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define RUN_PAGE_BYTES 4096u
#define RUN_MAX_SETS 64

struct options {
	const char *set[RUN_MAX_SETS + 1]; /* NULL-terminated */
	unsigned sets;
	uint8_t opcode;
	uint32_t bytes;
	uint64_t count, warm;
	uint32_t depth, signal_every;
	uint32_t qps, keys, pages;
	uint32_t rd_atomic, mtu_bytes;
	bool is_inline, blueflame;
	const char *order; /* "qp,key,page qp,key,page ...": one message at a time */
	uint64_t gap_ps, phase_ps;
	const char *report, *lookup_log, *tlp_log;
	bool timeline;
};

/** Defaults, and over them what the command line says; ends the process with a message when that is wrong. */
void options_parse(struct options *options, int argc, char **argv);

#endif
