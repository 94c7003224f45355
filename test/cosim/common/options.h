/*
 * Command line of a stand-alone bench. The seed comes from --seed, else from RN_SEED, else it is 1; it is printed, and the
 * same seed and cycles give the same run.
 */
#ifndef RN_TEST_COSIM_COMMON_OPTIONS_H
#define RN_TEST_COSIM_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct cosim_options {
	uint64_t seed;
	uint64_t cycles;
	const char *geometry;
	const char *plusarg; /* "+fault=N", "+mutant=N" or NULL */
	const char *replay;  /* stimulus file to run instead of random stimulus */
	const char *record;  /* write the stimulus of this run */
	const char *cover;   /* functional coverage, added up */
	bool ports_alone; /* compare what passes the ports alone, no counters, stalls, log lines and deadlines */
	const char *rtl_cover; /* line and toggle coverage of the RTL */
};

/** RN_SEED, or @fallback. */
uint64_t cosim_env_seed(uint64_t fallback);

/** @long_cycles with RN_LONG set, else @short_cycles. */
uint64_t cosim_env_cycles(uint64_t short_cycles, uint64_t long_cycles);

/** False (and a message on stderr) when the command line is wrong. */
bool cosim_options_parse(struct cosim_options *options, int argc, char **argv);

#endif
