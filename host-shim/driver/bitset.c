/*
 * Sets of numbers; see bitset.h.
 */
#include "driver/bitset.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"

void rn_bitset_init(struct rn_bitset *set, uint64_t bits)
{
	uint64_t words = bits;

	RN_ASSERT(bits && bits <= UINT64_C(1) << 32);
	*set = (struct rn_bitset){.bits = bits};
	do {
		words = rn_div_ceil(words, 64);
		set->level[set->levels++] = rn_calloc(words, sizeof(uint64_t));
	} while (words > 1);
}

void rn_bitset_fini(struct rn_bitset *set)
{
	for (uint32_t n = 0; n < set->levels; n++)
		free(set->level[n]);
	*set = (struct rn_bitset){0};
}

void rn_bitset_add(struct rn_bitset *set, uint64_t number)
{
	RN_ASSERT(number < set->bits && !rn_bitset_has(set, number));
	set->count++;
	for (uint32_t n = 0; n < set->levels; n++, number /= 64) {
		uint64_t *word = &set->level[n][number / 64];
		const bool was_empty = !*word;

		*word |= UINT64_C(1) << number % 64;
		if (!was_empty)
			return;
	}
}

/* Set the bits @first .. @last of one level. */
static void fill_level(uint64_t *level, uint64_t first, uint64_t last)
{
	for (uint64_t word = first / 64; word <= last / 64; word++) {
		uint64_t mask = ~UINT64_C(0);

		if (word == first / 64)
			mask <<= first % 64;
		if (word == last / 64)
			mask &= ~UINT64_C(0) >> (63 - last % 64);
		level[word] |= mask;
	}
}

void rn_bitset_fill(struct rn_bitset *set, uint64_t first, uint64_t end)
{
	uint64_t last = end - 1;

	RN_ASSERT(!set->count && first < end && end <= set->bits);
	set->count = end - first;
	for (uint32_t n = 0; n < set->levels; n++) {
		fill_level(set->level[n], first, last);
		first /= 64;
		last /= 64;
	}
}

void rn_bitset_remove(struct rn_bitset *set, uint64_t number)
{
	RN_ASSERT(number < set->bits && rn_bitset_has(set, number));
	set->count--;
	for (uint32_t n = 0; n < set->levels; n++, number /= 64) {
		uint64_t *word = &set->level[n][number / 64];

		*word &= ~(UINT64_C(1) << number % 64);
		if (*word)
			return;
	}
}

/* The smallest number under bit @number of level @n. */
static uint64_t descend(struct rn_bitset *set, uint32_t n, uint64_t number)
{
	while (n--) {
		number = number * 64 + (uint64_t)__builtin_ctzll(set->level[n][number]);
		set->words_read++;
	}
	return number;
}

uint64_t rn_bitset_next(struct rn_bitset *set, uint64_t from)
{
	uint64_t bits = set->bits;

	/* Upwards: in each level the rest of a word, and if nothing is there what follows that word. */
	for (uint32_t n = 0; n < set->levels && from < bits; n++) {
		const uint64_t rest = set->level[n][from / 64] >> from % 64;

		set->words_read++;
		if (rest)
			return descend(set, n, from + (uint64_t)__builtin_ctzll(rest));
		from = from / 64 + 1;
		bits = rn_div_ceil(bits, 64);
	}
	return set->bits;
}
