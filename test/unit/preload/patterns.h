/*
 * Functions that read the counter, each another way to be rewritten. With the counter at rdx:rax = HIGH:LOW each
 * returns what its line in patterns.c says.
 */
#ifndef RN_TEST_PATTERNS_H
#define RN_TEST_PATTERNS_H

#include <stdint.h>

#define PATTERN_LOW 0x11223344u
#define PATTERN_HIGH 0x55667788u

struct pattern {
	const char *name;
	uint64_t (*run)(uint64_t argument);
	uint64_t argument, result;
	int is_jump; /* rewritten by a jump, not by ud2 */
	int count;   /* of sites in it */
};

extern const struct pattern patterns[];
extern const unsigned pattern_count;

#endif
