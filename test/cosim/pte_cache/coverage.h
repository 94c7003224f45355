/* Functional coverage of the PTE cache: which situations and crossings a run has had. */
#ifndef RN_TEST_COSIM_PTE_CACHE_COVERAGE_H
#define RN_TEST_COSIM_PTE_CACHE_COVERAGE_H

#include "cosim/common/cover.h"
#include "cosim/pte_cache/rig.h"

#define COVERAGE_POINTS(X)                                                                         \
	/* Answers: status x client. */                                                            \
	X(rsp_ok_dma)                                                                              \
	X(rsp_ok_rx)                                                                               \
	X(rsp_bad_key_dma)                                                                         \
	X(rsp_bad_key_rx)                                                                          \
	X(rsp_bad_pd_dma)                                                                          \
	X(rsp_bad_pd_rx)                                                                           \
	X(rsp_bad_access_dma)                                                                      \
	X(rsp_bad_access_rx)                                                                       \
	X(rsp_bad_bounds_dma)                                                                      \
	X(rsp_bad_bounds_rx)                                                                       \
	X(rsp_abort_dma)                                                                           \
	X(rsp_abort_rx)                                                                            \
	/* Translations: MPT x MTT. */                                                             \
	X(translation_hit_none)                                                                    \
	X(translation_hit_mpt)                                                                     \
	X(translation_hit_mtt)                                                                     \
	X(translation_hit_both)                                                                    \
	X(translation_epoch_0)                                                                     \
	X(translation_epoch_1)                                                                     \
	X(translation_to_page_end)                                                                 \
	X(translation_within_page)                                                                 \
	X(check_ok)                                                                                \
	X(check_refused)                                                                           \
	X(entry_not_present)                                                                       \
	/* Lookups, in the order of the counters. */                                               \
	X(mpt_hit)                                                                                 \
	X(mpt_miss)                                                                                \
	X(mpt_merge)                                                                               \
	X(mtt_hit)                                                                                 \
	X(mtt_miss)                                                                                \
	X(mtt_merge)                                                                               \
	X(mpt_evicts)                                                                              \
	X(mtt_evicts)                                                                              \
	X(mpt_stalls_without_register)                                                             \
	X(mpt_stalls_without_way)                                                                  \
	X(mtt_stalls_without_register)                                                             \
	X(mtt_stalls_without_way)                                                                  \
	X(mpt_retries)                                                                             \
	X(mtt_retries)                                                                             \
	X(mtt_retry_before_mpt_retry)                                                              \
	X(mpt_registers_all_busy)                                                                  \
	X(mtt_registers_all_busy)                                                                  \
	X(slots_all_used)                                                                          \
	/* Arrivals. */                                                                            \
	X(fill_mpt)                                                                                \
	X(fill_mtt)                                                                                \
	X(fill_free_entry)                                                                         \
	X(fill_mpt_aborted)                                                                        \
	X(fill_mtt_aborted)                                                                        \
	X(fill_stale_mpt)                                                                          \
	X(fill_stale_mtt)                                                                          \
	X(fill_stale_aborted)                                                                      \
	X(fill_waits_for_replay)                                                                   \
	X(replay_of_several)                                                                       \
	X(replay_refused_several)                                                                  \
	X(answers_out_of_order)                                                                    \
	X(read_of_short_table)                                                                     \
	/* Invalidations. */                                                                       \
	X(inval_idle)                                                                              \
	X(inval_during_mpt_read)                                                                   \
	X(inval_during_mtt_read)                                                                   \
	X(inval_during_replay)                                                                     \
	X(inval_with_stalled)                                                                      \
	X(inval_restarts)                                                                          \
	X(inval_waits_for_one)                                                                     \
	X(inval_wraps)                                                                             \
	X(inval_drops_mpt_line)                                                                    \
	X(walk_none)                                                                               \
	X(walk_by_line)                                                                            \
	X(walk_by_set)                                                                             \
	X(walk_drops_line)                                                                         \
	X(walk_drops_two)                                                                          \
	X(done_waits_for_release)                                                                  \
	X(done_with_last_release)                                                                  \
	X(release_with_hand_out)                                                                   \
	/* Base registers. */                                                                      \
	X(base_first)                                                                              \
	X(base_again)                                                                              \
	X(base_during_read)                                                                        \
	X(base_during_walk)                                                                        \
	X(base_during_replay)                                                                      \
	X(base_with_stalled)                                                                       \
	X(request_before_base)                                                                     \
	/* Ports. */                                                                               \
	X(blocked_rsp_dma)                                                                         \
	X(blocked_rsp_rx)                                                                          \
	X(blocked_inval_done)                                                                      \
	X(blocked_dma_req)                                                                         \
	X(waits_req_dma)                                                                           \
	X(waits_req_rx)                                                                            \
	X(both_requests_dma_first)                                                                 \
	X(both_requests_rx_first)                                                                  \
	X(both_answers)                                                                            \
	X(stall_none)                                                                              \
	X(stall_output)                                                                            \
	X(stall_tag)                                                                               \
	X(stall_miss)                                                                              \
	X(stall_lock)                                                                              \
	X(clock_stopped)                                                                           \
	/* Requests at the edges of a region. */                                                   \
	X(asked_before)                                                                            \
	X(asked_last_byte)                                                                         \
	X(asked_one_beyond)                                                                        \
	X(asked_behind)                                                                            \
	X(asked_longest)                                                                           \
	X(asked_too_long)                                                                          \
	X(asked_whole)

#define COVERAGE_ENUM(name) name,
enum point { COVERAGE_POINTS(COVERAGE_ENUM) COVERAGE_COUNT };

struct coverage {
	struct cosim_cover cover;
	/* Before the cycle. */
	bool has_base, walks, replays, replays_refused;
	uint32_t busy[2], stalled[2], tries[2];
	uint32_t replay_length;
	uint32_t outstanding;
	uint64_t gated_cycles;
	uint8_t restartable; /* requests past the key check */
};

void coverage_init(struct coverage *coverage);
void coverage_fini(struct coverage *coverage);

static inline void coverage_hit(struct coverage *coverage, enum point point, bool is_hit)
{
	cosim_cover_hit(&coverage->cover, point, is_hit);
}

/** Around rig_cycle(). */
void coverage_before(struct coverage *coverage, const struct rig *rig);
void coverage_after(struct coverage *coverage, const struct rig *rig);

#endif
