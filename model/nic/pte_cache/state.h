/*
 * State of the PTE cache, shared by the files that make up the block: pte_cache.c (ports and cycle),
 * lookup.c (the lookup pipeline), fill.c (miss registers), inval.c (invalidation). All state is in
 * arrays sized by parameters; a request lives in a slot from its acceptance to its answer and is on
 * exactly one list.
 */
#ifndef RN_NIC_PTE_CACHE_STATE_H
#define RN_NIC_PTE_CACHE_STATE_H

#include <stdbool.h>

#include "hw/gen/rnic_hw.h"
#include "nic/pte_cache/pte_cache.h"
#include "nic/pte_cache/tags.h"
#include "sim/block.h"
#include "sim/stats.h"

#define RN_PTE_NO_SLOT UINT16_MAX

#define RN_PTE_CACHE_COUNTERS(X)                                                                   \
	X(mpt_hits, "lookups", "protection entries found")                                         \
	X(mpt_misses, "lookups", "protection entries read from host memory")                       \
	X(mpt_merges, "lookups", "protection entries that were being read already")                \
	X(mtt_hits, "lookups", "translations found")                                               \
	X(mtt_misses, "lookups", "translation lines read from host memory")                        \
	X(mtt_merges, "lookups", "translation lines that were being read already")                 \
	X(translations, "requests", "addresses translated")                                        \
	X(checks, "requests", "ranges checked without translation")                                \
	X(bad_key, "requests", "refused: no such key")                                             \
	X(bad_pd, "requests", "refused: protection domain")                                        \
	X(bad_access, "requests", "refused: access rights")                                        \
	X(bad_bounds, "requests", "refused: outside of the region")                                \
	X(aborts, "requests", "refused: entry not readable or not present")                        \
	X(invalidations, "requests", "keys invalidated")                                           \
	X(invalidated_lines, "lines", "lines dropped by invalidations")                            \
	X(stale_fills, "lines", "reads overtaken by an invalidation and thrown away")

struct rn_pte_counters {
	RN_PTE_CACHE_COUNTERS(RN_COUNTER_FIELD)
};

enum rn_pte_stage { RN_PTE_STAGE_MPT, RN_PTE_STAGE_MTT, RN_PTE_STAGE_DONE };

struct rn_pte_slot {
	struct rn_pte_req req;
	struct rn_pte_rsp rsp;
	uint64_t ready_cycle; /* of the answer */
	uint64_t entry;	      /* MTT entry wanted, from the MPT stage */
	uint8_t client;
	uint8_t stage;	 /* enum rn_pte_stage: the lookup that comes next */
	uint8_t counted; /* that lookup has been counted: it waits for a line that is its own */
	uint8_t log_page_bytes;
	uint16_t next; /* on its list */
};

/* A list of slots, in order of arrival. */
struct rn_pte_list {
	uint16_t head;
	uint16_t tail;
};

struct rn_pte_miss {
	uint64_t number; /* MPT index or MTT line */
	uint64_t ready_cycle;
	uint32_t line;
	uint32_t buf;
	uint8_t busy;
	uint8_t stale; /* overtaken by an invalidation: nothing is installed */
	struct rn_pte_list waiters;
};

/* MPT or MTT: tags, its miss registers' place in misses[], and who waits for one. */
struct rn_pte_unit {
	struct rn_pte_tags tags;
	uint32_t first_miss;
	uint32_t misses_count;
	uint32_t misses_busy;
	struct rn_pte_list stalled; /* requests that found no miss register or no way here */
	uint32_t stalled_count;
	uint32_t stalled_tries; /* how many of them may try again: all of them after each fill */
	uint64_t *hits;		/* its counters */
	uint64_t *misses;
	uint64_t *merges;
	const char *name;
};

enum rn_pte_unit_id { RN_PTE_UNIT_MPT, RN_PTE_UNIT_MTT, RN_PTE_UNITS };

/* The invalidation in hand, and its walk through the MTT cache: a line of the region a cycle, or a set. */
struct rn_pte_walk {
	uint64_t first; /* MTT lines of the region */
	uint64_t last;
	uint64_t next; /* line or set of the next step */
	uint64_t steps;
	uint32_t token;
	uint8_t is_active;
	uint8_t by_set;
	uint8_t epoch; /* of the translations that it waits for */
};

struct rn_pte_cache {
	struct rn_block block;
	struct rn_nic_env env;
	struct rn_pte_cache_params params;
	struct rn_pte_cache_ports ports;
	struct rn_pte_base base;
	bool has_base;
	struct rn_pte_unit units[RN_PTE_UNITS];
	struct rn_hw_mpt *mpt; /* per MPT line */
	uint64_t *mtt;	       /* per MTT line, mtt_line_entries each */
	struct rn_pte_slot *slots;
	struct rn_pte_list unused;
	struct rn_pte_list replay; /* filled: look up again, before new requests */
	uint8_t replay_status;	   /* enum rn_pte_status: not OK refuses all of them */
	struct rn_pte_list results[RN_PTE_CLIENT_COUNT];
	struct rn_pte_miss *misses; /* MPT's, then MTT's; DMA token = index */
	uint32_t misses_count;
	uint16_t *dma_queue; /* ring: misses to be requested */
	uint32_t dma_head;
	uint32_t dma_waiting;
	uint32_t outstanding[2]; /* translations handed out and not released, by epoch */
	uint8_t epoch;
	struct rn_pte_walk walk;
	uint64_t tags_free_cycle; /* an invalidation has the tags until then */
	uint64_t replay_cycle;	  /* first cycle of the next replay */
	uint64_t next_lookup_cycle;
	uint32_t next_client;  /* first in the arbiter's next round */
	uint32_t taken_client; /* whose request was taken in this cycle; RN_PTE_CLIENT_COUNT: none */
	bool is_blocked;       /* in this cycle an answer met a full fifo */
	uint64_t wake_cycle;   /* earliest cycle wanted; collected during a tick */
	FILE *log;
	char *name;
	struct rn_pte_counters counters;
};

static inline void rn_pte_want(struct rn_pte_cache *cache, uint64_t cycle)
{
	if (cycle < cache->wake_cycle)
		cache->wake_cycle = cycle;
}

static inline bool rn_pte_list_is_empty(const struct rn_pte_list *list)
{
	return list->head == RN_PTE_NO_SLOT;
}

/** Append @slot to @list; take the first slot (list not empty); move all of @from behind @to. */
void rn_pte_list_append(struct rn_pte_cache *cache, struct rn_pte_list *list, uint16_t slot);
uint16_t rn_pte_list_take(struct rn_pte_cache *cache, struct rn_pte_list *list);
void rn_pte_list_move(struct rn_pte_cache *cache, struct rn_pte_list *from, struct rn_pte_list *to);

/** Log a lookup; @victim RN_PTE_NO_NUMBER: none. */
void rn_pte_log(struct rn_pte_cache *cache, enum rn_pte_unit_id unit, uint64_t number,
		const char *result, uint64_t victim);

/** Look @slot up from the stage it is at: it ends among the results, the waiters of a miss or the stalled. */
void rn_pte_look_up(struct rn_pte_cache *cache, uint16_t slot, uint64_t cycle);

/** Answer @slot, whose line could not be had, with @status (not RN_PTE_OK) instead of another lookup. */
void rn_pte_refuse(struct rn_pte_cache *cache, uint16_t slot, uint8_t status, uint64_t cycle);

/** Answer @slot with @status (enum rn_pte_status) in @ready_cycle. */
void rn_pte_finish(struct rn_pte_cache *cache, uint16_t slot, uint8_t status, uint64_t ready_cycle);

/** Allocate a miss register and a line for @number; false when there is none. The read goes out from @ready_cycle on. */
bool rn_pte_miss_start(struct rn_pte_cache *cache, enum rn_pte_unit_id unit, uint64_t number,
		       uint16_t slot, uint64_t ready_cycle);

/** One answer of the DMA engine: install the line, set its waiters to replay. */
void rn_pte_miss_receive(struct rn_pte_cache *cache, uint64_t cycle);

/** One request to the DMA engine. */
void rn_pte_miss_send(struct rn_pte_cache *cache, uint64_t cycle);

/** Throw away what is being read for @line (EMPTY from now on); its waiters look up afresh. */
void rn_pte_miss_make_stale(struct rn_pte_cache *cache, enum rn_pte_unit_id unit, uint32_t line);

/** One step of the walk; take an invalidation; answer the one in hand when its translations have drained. */
void rn_pte_inval_walk(struct rn_pte_cache *cache);
void rn_pte_inval_take(struct rn_pte_cache *cache, uint64_t cycle);
void rn_pte_inval_finish(struct rn_pte_cache *cache, uint64_t cycle);

/** Drop everything: the tables have moved. */
void rn_pte_inval_all(struct rn_pte_cache *cache);

#endif
