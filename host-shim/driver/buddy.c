/*
 * Binary buddy allocator; see buddy.h.
 */
#include "driver/buddy.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"

static uint64_t words_of(const struct rn_buddy *buddy, uint32_t order)
{
	return rn_div_ceil(UINT64_C(1) << (buddy->log_entries - order), 64);
}

static bool is_free(const struct rn_buddy_order *order, uint32_t block)
{
	return order->free_bits[block / 64] >> block % 64 & 1;
}

static void set_free(struct rn_buddy_order *order, uint32_t block)
{
	order->free_bits[block / 64] |= UINT64_C(1) << block % 64;
	order->free_blocks++;
}

static void set_used(struct rn_buddy_order *order, uint32_t block)
{
	order->free_bits[block / 64] &= ~(UINT64_C(1) << block % 64);
	order->free_blocks--;
}

void rn_buddy_init(struct rn_buddy *buddy, uint32_t log_entries)
{
	RN_ASSERT(log_entries < RN_BUDDY_ORDERS);
	*buddy = (struct rn_buddy){.log_entries = log_entries};
	for (uint32_t order = 0; order <= log_entries; order++)
		buddy->order[order].free_bits = rn_calloc(words_of(buddy, order), sizeof(uint64_t));
	set_free(&buddy->order[log_entries], 0);
}

void rn_buddy_fini(struct rn_buddy *buddy)
{
	for (uint32_t order = 0; order < RN_BUDDY_ORDERS; order++)
		free(buddy->order[order].free_bits);
	*buddy = (struct rn_buddy){0};
}

/* Some free block of @order, which has one. */
static uint32_t find_block(const struct rn_buddy *buddy, uint32_t order_idx)
{
	const struct rn_buddy_order *order = &buddy->order[order_idx];
	const uint64_t words = words_of(buddy, order_idx);
	uint64_t word = order->hint;

	while (!order->free_bits[word])
		word = word + 1 < words ? word + 1 : 0;
	return (uint32_t)(word * 64 + (uint64_t)__builtin_ctzll(order->free_bits[word]));
}

static void put_block(struct rn_buddy *buddy, uint32_t block, uint32_t order)
{
	while (order < buddy->log_entries && is_free(&buddy->order[order], block ^ 1)) {
		set_used(&buddy->order[order], block ^ 1);
		block >>= 1;
		order++;
	}
	RN_ASSERT(!is_free(&buddy->order[order], block));
	set_free(&buddy->order[order], block);
}

static void put_range(struct rn_buddy *buddy, uint64_t first, uint64_t end)
{
	while (first < end) {
		uint32_t order = first ? (uint32_t)__builtin_ctzll(first) : buddy->log_entries;

		while (order > buddy->log_entries || first + (UINT64_C(1) << order) > end)
			order--;
		put_block(buddy, (uint32_t)(first >> order), order);
		first += UINT64_C(1) << order;
	}
}

bool rn_buddy_get(struct rn_buddy *buddy, uint32_t count, uint32_t *first)
{
	const uint32_t want = rn_log2_ceil(count);
	uint32_t order = want;

	while (order <= buddy->log_entries && !buddy->order[order].free_blocks)
		order++;
	if (order > buddy->log_entries)
		return false;

	uint32_t block = find_block(buddy, order);

	set_used(&buddy->order[order], block);
	buddy->order[order].hint = block / 64;
	while (order > want) {
		block <<= 1;
		order--;
		set_free(&buddy->order[order], block + 1);
		buddy->order[order].hint = block / 64;
	}

	const uint64_t start = (uint64_t)block << want;

	put_range(buddy, start + count, start + (UINT64_C(1) << want));
	buddy->used += count;
	*first = (uint32_t)start;
	return true;
}

void rn_buddy_put(struct rn_buddy *buddy, uint32_t first, uint32_t count)
{
	put_range(buddy, first, (uint64_t)first + count);
	buddy->used -= count;
}
