/*
 * Binary buddy allocator; see buddy.h.
 */
#include "driver/buddy.h"

#include "base/assert.h"
#include "base/bits.h"

void rn_buddy_init(struct rn_buddy *buddy, uint32_t log_entries)
{
	RN_ASSERT(log_entries < RN_BUDDY_ORDERS);
	*buddy = (struct rn_buddy){.log_entries = log_entries};
	for (uint32_t order = 0; order <= log_entries; order++)
		rn_bitset_init(&buddy->order[order].blocks, UINT64_C(1) << (log_entries - order));
	rn_bitset_add(&buddy->order[log_entries].blocks, 0);
}

void rn_buddy_fini(struct rn_buddy *buddy)
{
	for (uint32_t order = 0; order < RN_BUDDY_ORDERS; order++)
		rn_bitset_fini(&buddy->order[order].blocks);
	*buddy = (struct rn_buddy){0};
}

/* Some free block of @order, which has one. */
static uint32_t find_block(struct rn_buddy *buddy, uint32_t order_idx)
{
	struct rn_buddy_order *order = &buddy->order[order_idx];
	uint64_t block = rn_bitset_next(&order->blocks, order->hint);

	if (block == order->blocks.bits)
		block = rn_bitset_next(&order->blocks, 0);
	RN_ASSERT(block < order->blocks.bits);
	return (uint32_t)block;
}

static void put_block(struct rn_buddy *buddy, uint32_t block, uint32_t order)
{
	while (order < buddy->log_entries &&
	       rn_bitset_has(&buddy->order[order].blocks, block ^ 1)) {
		rn_bitset_remove(&buddy->order[order].blocks, block ^ 1);
		block >>= 1;
		order++;
	}
	rn_bitset_add(&buddy->order[order].blocks, block);
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

	while (order <= buddy->log_entries && !buddy->order[order].blocks.count)
		order++;
	if (order > buddy->log_entries)
		return false;

	uint32_t block = find_block(buddy, order);

	rn_bitset_remove(&buddy->order[order].blocks, block);
	buddy->order[order].hint = block / 64 * 64;
	while (order > want) {
		block <<= 1;
		order--;
		rn_bitset_add(&buddy->order[order].blocks, block + 1);
		buddy->order[order].hint = block / 64 * 64;
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
