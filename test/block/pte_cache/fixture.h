/* A PTE cache with clients and tables in memory, for its tests. */
#ifndef RN_TEST_BLOCK_PTE_CACHE_FIXTURE_H
#define RN_TEST_BLOCK_PTE_CACHE_FIXTURE_H

#include "block/common/bench.h"
#include "block/common/fake_dma.h"
#include "hw/gen/rnic_hw.h"
#include "nic/pte_cache/pte_cache.h"

#define LOG_MPTS 10
#define LOG_MTTS 16
#define MPT_PA UINT64_C(0x1000)
#define MTT_PA (MPT_PA + ((uint64_t)RN_MPT_BYTES << LOG_MPTS))
#define MEMORY_BYTES (MTT_PA + ((uint64_t)RN_MTT_BYTES << LOG_MTTS))
#define PAGE UINT64_C(4096)

enum { DMA = RN_PTE_CLIENT_DMA, RX = RN_PTE_CLIENT_RX };

struct fixture {
	struct bench bench;
	struct rn_pte_cache_params params; /* change between prepare and build */
	struct fake_memory memory;
	struct fake_dma *dma;
	struct rn_pte_cache_ports ports;
	struct rn_pte_cache *cache;
};

void fixture_prepare(struct fixture *f, uint64_t permute_seed);
void fixture_build(struct fixture *f);
void fixture_free(struct fixture *f);

/** Entry @index of the MPT in memory, behind the cache's back. */
struct rn_hw_mpt *mpt_at(struct fixture *f, uint32_t index);
/** Entry of the MTT in memory. */
void set_mtt(struct fixture *f, uint64_t entry, uint64_t value);
/** A live region of @pages 4-KiB pages at @va with key @index << 8 | 0x5a, PD 7, all access; page n lies at page_pa(entry + n). */
uint32_t make_region(struct fixture *f, uint32_t index, uint64_t va, uint32_t pages,
		     uint64_t entry);
uint64_t page_pa(uint64_t entry);

/** Push a request for @length bytes at @va under @key, PD 7, local read. */
void ask(struct fixture *f, unsigned client, uint16_t id, uint32_t key, uint64_t va,
	 uint32_t length);
/** Wait for an answer, at most 10,000 cycles. */
struct rn_pte_rsp answer(struct fixture *f, unsigned client);
/** Ask, wait, and release when it is a translation. */
struct rn_pte_rsp translate(struct fixture *f, uint32_t key, uint64_t va, uint32_t length);
void give_back(struct fixture *f, uint8_t epoch);
void invalidate(struct fixture *f, uint32_t key, uint64_t entry, uint64_t count);
bool is_answered(struct fixture *f, unsigned client);
bool is_invalidated(struct fixture *f);

#endif
