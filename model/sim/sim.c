/*
 * The timing wheel. Wakes less than WHEEL_SLOTS slots ahead hang in the wheel, a list per slot in
 * order of (due, order), found through a two-level bitmap; a long list whose order would cost too
 * much on insertion is sorted when its slot comes first. Later wakes lie in a binary heap and are
 * run from there. Time never passes a pending wake, so a slot holds one turn's wakes only.
 */
#include "sim/sim.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/mem.h"

#define SLOT_PS_LOG2 12 /* a busy NIC has about one wake in that time */
#define WHEEL_WORDS 16
#define WHEEL_SLOTS (WHEEL_WORDS * 64) /* 4.2 us: PCIe and wire latencies fit, timers do not */
#define NOT_IN_HEAP UINT32_MAX
#define MAX_STEPS 8 /* to look for a wake's place in a list that nobody reads yet */

struct rn_sim {
	struct rn_sim_time time; /* first: see rn_sim_now_ps() */
	uint64_t wakes;
	bool stopped;
	uint64_t heap_due_ps; /* of the first in the heap */
	uint64_t permute_seed;
	uint32_t next_id;
	uint32_t nonzero_words;
	unsigned sorted_slot; /* the slot whose list is in order for sure */
	uint64_t bitmap[WHEEL_WORDS];
	uint64_t unsorted[WHEEL_WORDS];
	struct rn_wake *slots[WHEEL_SLOTS]; /* first of a circular list */
	struct rn_wake **heap;
	uint32_t heap_count;
	uint32_t heap_capacity;
};

_Static_assert(offsetof(struct rn_sim, time) == 0, "rn_sim_now_ps() reads the time there");

struct rn_sim *rn_sim_new(uint64_t permute_seed)
{
	struct rn_sim *sim = rn_calloc(1, sizeof(*sim));

	sim->permute_seed = permute_seed;
	sim->heap_due_ps = RN_TIME_NEVER;
	return sim;
}

void rn_sim_free(struct rn_sim *sim)
{
	if (!sim)
		return;
	free(sim->heap);
	free(sim);
}

uint64_t rn_sim_wakes(const struct rn_sim *sim)
{
	return sim->wakes;
}

/* A bijection of 64-bit numbers (splitmix64's finalizer), so no two wakes get the same order. */
static uint64_t permuted(uint64_t id, uint64_t seed)
{
	uint64_t z = id + seed * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void rn_wake_init(struct rn_sim *sim, struct rn_wake *wake, void (*fn)(void *arg), void *arg)
{
	*wake = (struct rn_wake){
		.fn = fn,
		.arg = arg,
		.due_ps = RN_TIME_NEVER,
		.heap_idx = NOT_IN_HEAP,
		.id = sim->next_id++,
	};
	wake->order = sim->permute_seed ? permuted(wake->id, sim->permute_seed) : wake->id;
}

static inline bool is_before(const struct rn_wake *a, const struct rn_wake *b)
{
	return a->due_ps < b->due_ps || (a->due_ps == b->due_ps && a->order < b->order);
}

static inline unsigned slot_of(uint64_t due_ps)
{
	return (unsigned)(due_ps >> SLOT_PS_LOG2) % WHEEL_SLOTS;
}

static void insert_in_list(struct rn_sim *sim, struct rn_wake *wake, unsigned slot)
{
	struct rn_wake *first = sim->slots[slot];
	struct rn_wake *after = first->prev;
	unsigned steps = slot == sim->sorted_slot ? UINT32_MAX : MAX_STEPS;

	/* From the end, where a block that runs in order wants to be. */
	while (is_before(wake, after)) {
		after = after->prev;
		if (after == first->prev) {
			sim->slots[slot] = wake;
			break;
		}
		if (!--steps) {
			sim->unsorted[slot / 64] |= UINT64_C(1) << (slot % 64);
			break;
		}
	}
	wake->prev = after;
	wake->next = after->next;
	after->next->prev = wake;
	after->next = wake;
}

static void wheel_insert(struct rn_sim *sim, struct rn_wake *wake)
{
	unsigned slot = slot_of(wake->due_ps);

	if (sim->slots[slot]) {
		insert_in_list(sim, wake, slot);
		return;
	}
	wake->next = wake;
	wake->prev = wake;
	sim->slots[slot] = wake;
	sim->bitmap[slot / 64] |= UINT64_C(1) << (slot % 64);
	sim->nonzero_words |= UINT32_C(1) << (slot / 64);
}

/* Merge two NULL-terminated chains; ties cannot happen. */
static struct rn_wake *merged(struct rn_wake *a, struct rn_wake *b)
{
	struct rn_wake *first;
	struct rn_wake **end = &first;

	while (a && b) {
		struct rn_wake **from = is_before(a, b) ? &a : &b;

		*end = *from;
		end = &(*from)->next;
		*from = *end;
	}
	*end = a ? a : b;
	return first;
}

/* Bottom-up merge sort: chains[i] holds 2^i wakes or none. */
static struct rn_wake *sorted(struct rn_wake *rest)
{
	struct rn_wake *chains[32] = {NULL};
	struct rn_wake *all = NULL;

	while (rest) {
		struct rn_wake *chain = rest;
		unsigned i = 0;

		rest = rest->next;
		chain->next = NULL;
		for (; chains[i]; chains[i++] = NULL)
			chain = merged(chains[i], chain);
		chains[i] = chain;
	}
	for (unsigned i = 0; i < 32; i++)
		all = merged(chains[i], all);
	return all;
}

static void sort_slot(struct rn_sim *sim, unsigned slot)
{
	struct rn_wake *first = sim->slots[slot];
	struct rn_wake *last;

	sim->sorted_slot = slot;
	if (!(sim->unsorted[slot / 64] & UINT64_C(1) << (slot % 64)))
		return;
	sim->unsorted[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
	first->prev->next = NULL;
	first = sorted(first);
	for (last = first; last->next; last = last->next)
		last->next->prev = last;
	last->next = first;
	first->prev = last;
	sim->slots[slot] = first;
}

static inline void wheel_remove(struct rn_sim *sim, struct rn_wake *wake)
{
	unsigned slot = slot_of(wake->due_ps);

	if (wake->next != wake) {
		wake->next->prev = wake->prev;
		wake->prev->next = wake->next;
		if (sim->slots[slot] == wake)
			sim->slots[slot] = wake->next;
		return;
	}
	sim->slots[slot] = NULL;
	sim->bitmap[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
	if (!sim->bitmap[slot / 64])
		sim->nonzero_words &= ~(UINT32_C(1) << (slot / 64));
}

/* The earliest slot in use behind the empty one of the present time; the wheel is not empty. */
static unsigned next_slot(const struct rn_sim *sim, unsigned start)
{
	unsigned word = start / 64;
	uint64_t bits = sim->bitmap[word] & (UINT64_MAX << (start % 64));

	if (!bits) {
		/* Words after this one, else round to the first; this word's low bits come last. */
		uint32_t words = sim->nonzero_words & ~(UINT32_MAX >> (31 - word));

		word = (unsigned)__builtin_ctz(words ? words : sim->nonzero_words);
		bits = sim->bitmap[word];
	}
	return word * 64 + (unsigned)__builtin_ctzll(bits);
}

/* First of the earliest slot in use, going round from the slot of the present time. */
static inline struct rn_wake *wheel_first(struct rn_sim *sim)
{
	unsigned slot = slot_of(sim->time.now_ps);

	if (!sim->slots[slot]) {
		if (!sim->nonzero_words)
			return NULL;
		slot = next_slot(sim, slot);
	}
	if (slot != sim->sorted_slot)
		sort_slot(sim, slot);
	return sim->slots[slot];
}

static void heap_set(struct rn_sim *sim, uint32_t idx, struct rn_wake *wake)
{
	sim->heap[idx] = wake;
	wake->heap_idx = idx;
	if (!idx)
		sim->heap_due_ps = wake->due_ps;
}

static void heap_up(struct rn_sim *sim, uint32_t idx, struct rn_wake *wake)
{
	while (idx) {
		uint32_t parent = (idx - 1) / 2;

		if (!is_before(wake, sim->heap[parent]))
			break;
		heap_set(sim, idx, sim->heap[parent]);
		idx = parent;
	}
	heap_set(sim, idx, wake);
}

static void heap_down(struct rn_sim *sim, uint32_t idx, struct rn_wake *wake)
{
	for (;;) {
		uint32_t child = 2 * idx + 1;

		if (child >= sim->heap_count)
			break;
		if (child + 1 < sim->heap_count &&
		    is_before(sim->heap[child + 1], sim->heap[child]))
			child++;
		if (!is_before(sim->heap[child], wake))
			break;
		heap_set(sim, idx, sim->heap[child]);
		idx = child;
	}
	heap_set(sim, idx, wake);
}

static void heap_insert(struct rn_sim *sim, struct rn_wake *wake)
{
	if (sim->heap_count == sim->heap_capacity) {
		sim->heap_capacity = sim->heap_capacity ? 2 * sim->heap_capacity : 64;
		sim->heap =
			rn_reallocarray(sim->heap, sim->heap_capacity, sizeof(struct rn_wake *));
	}
	heap_up(sim, sim->heap_count++, wake);
}

static void heap_remove(struct rn_sim *sim, struct rn_wake *wake)
{
	uint32_t idx = wake->heap_idx;
	struct rn_wake *last = sim->heap[--sim->heap_count];

	RN_ASSERT(sim->heap[idx] == wake || last == wake);
	wake->heap_idx = NOT_IN_HEAP;
	if (!sim->heap_count)
		sim->heap_due_ps = RN_TIME_NEVER;
	if (last == wake)
		return;
	if (is_before(last, wake))
		heap_up(sim, idx, last);
	else
		heap_down(sim, idx, last);
}

static inline void remove_pending(struct rn_sim *sim, struct rn_wake *wake)
{
	if (wake->heap_idx == NOT_IN_HEAP)
		wheel_remove(sim, wake);
	else
		heap_remove(sim, wake);
	wake->due_ps = RN_TIME_NEVER;
}

void rn_wake_at(struct rn_sim *sim, struct rn_wake *wake, uint64_t at_ps)
{
	if (at_ps < sim->time.now_ps)
		at_ps = sim->time.now_ps;
	if (wake->due_ps <= at_ps)
		return;
	if (rn_wake_is_pending(wake))
		remove_pending(sim, wake);
	wake->due_ps = at_ps;
	if ((at_ps >> SLOT_PS_LOG2) - (sim->time.now_ps >> SLOT_PS_LOG2) < WHEEL_SLOTS)
		wheel_insert(sim, wake);
	else
		heap_insert(sim, wake);
}

void rn_wake_cancel(struct rn_sim *sim, struct rn_wake *wake)
{
	if (rn_wake_is_pending(wake))
		remove_pending(sim, wake);
}

static inline struct rn_wake *first_wake(struct rn_sim *sim)
{
	struct rn_wake *wake = wheel_first(sim);

	if (sim->heap_due_ps > (wake ? wake->due_ps : RN_TIME_NEVER - 1))
		return wake;
	return !wake || is_before(sim->heap[0], wake) ? sim->heap[0] : wake;
}

uint64_t rn_sim_next_ps(struct rn_sim *sim)
{
	const struct rn_wake *wake = first_wake(sim);

	return wake ? wake->due_ps : RN_TIME_NEVER;
}

void rn_sim_stop(struct rn_sim *sim)
{
	sim->stopped = true;
}

bool rn_sim_is_stopped(const struct rn_sim *sim)
{
	return sim->stopped;
}

uint64_t rn_sim_run(struct rn_sim *sim, uint64_t until_ps, uint64_t max_wakes)
{
	struct rn_wake *wake = first_wake(sim);
	uint64_t run = 0;

	sim->stopped = false;
	for (; wake && wake->due_ps <= until_ps && run < max_wakes && !sim->stopped; run++) {
		sim->time.now_ps = wake->due_ps;
		remove_pending(sim, wake);
		sim->wakes++;
		wake->fn(wake->arg);
		wake = first_wake(sim);
	}
	rn_assert_context(NULL, 0);
	if (!sim->stopped && until_ps != RN_TIME_NEVER && until_ps > sim->time.now_ps &&
	    (!wake || wake->due_ps > until_ps))
		sim->time.now_ps = until_ps;
	return run;
}
