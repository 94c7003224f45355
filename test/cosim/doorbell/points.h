/*
 * Functional coverage: what the random bench has to have met. Sampled on the C block before and after the
 * cycle.
 */
#ifndef RN_TEST_COSIM_DOORBELL_POINTS_H
#define RN_TEST_COSIM_DOORBELL_POINTS_H

#include "cosim/common/cover.h"
#include "cosim/doorbell/rig.h"

/* Sizes and places of writes: all pairs. */
#define POINT_SIZES(X, place)                                                                      \
	X(place##_4)                                                                               \
	X(place##_8)                                                                               \
	X(place##_64)                                                                              \
	X(place##_other_size)

#define POINT_PLACES(X)                                                                            \
	POINT_SIZES(X, write_register)                                                             \
	POINT_SIZES(X, write_read_only_register)                                                   \
	POINT_SIZES(X, write_gap)                                                                  \
	POINT_SIZES(X, write_page_doorbell)                                                        \
	POINT_SIZES(X, write_page_other)                                                           \
	POINT_SIZES(X, write_blueflame_aligned)                                                    \
	POINT_SIZES(X, write_blueflame_unaligned)                                                  \
	POINT_SIZES(X, write_behind_pages)

#define POINT_RINGS(X)                                                                             \
	X(ring_sent)                                                                               \
	X(ring_from_last_page)                                                                     \
	X(ring_waits_for_port)                                                                     \
	X(kick_sent)                                                                               \
	X(kick_kept_alone)                                                                         \
	X(kick_kept_behind_others)                                                                 \
	X(kick_merged)                                                                             \
	X(kick_kept_while_its_older_one_leaves)                                                    \
	X(kick_kept_while_others_leave)                                                            \
	X(kick_of_other_page_dropped)                                                              \
	X(kick_without_place_dropped)                                                              \
	X(kick_lookup_ends_as_port_is_freed)                                                       \
	X(arm_sent)                                                                                \
	X(arm_waits)                                                                               \
	X(arm_solicited)

/* Kept rings are met with recover alone. */
#define POINT_RECOVER(X)                                                                           \
	X(ring_kept_alone)                                                                         \
	X(ring_kept_behind_others)                                                                 \
	X(ring_merged)                                                                             \
	X(ring_kept_while_its_older_one_leaves)                                                    \
	X(ring_kept_while_others_leave)                                                            \
	X(ring_of_other_page_waits)                                                                \
	X(ring_without_place_waits)                                                                \
	X(ring_and_kick_kept_leave_together)                                                       \
	X(blueflame_ring_kept)                                                                     \
	X(evicted_ring_kept)

#define POINT_BLUEFLAME(X)                                                                         \
	X(wqe_of_1_piece)                                                                          \
	X(wqe_of_2_pieces)                                                                         \
	X(wqe_of_3_pieces)                                                                         \
	X(wqe_of_4_pieces)                                                                         \
	X(wqe_in_buffer_0)                                                                         \
	X(wqe_in_buffer_1)                                                                         \
	X(wqe_data_dropped)                                                                        \
	X(wqe_data_dropped_and_older_given_up)                                                     \
	X(wqe_waits_with_its_ring)                                                                 \
	X(first_piece_without_length)                                                              \
	X(first_piece_too_long)                                                                    \
	X(first_piece_gives_up_older)                                                              \
	X(first_piece_takes_unused)                                                                \
	X(first_piece_evicts_oldest)                                                               \
	X(first_piece_waits_to_evict)                                                              \
	X(later_piece_in_order)                                                                    \
	X(later_piece_out_of_order)                                                                \
	X(later_piece_without_first)                                                               \
	X(all_collecting)

#define POINT_COMMANDS(X)                                                                          \
	X(command_sent_at_once)                                                                    \
	X(command_waits)                                                                           \
	X(command_merged)                                                                          \
	X(command_merged_as_it_leaves)                                                             \
	X(base_written_while_command_waits)                                                        \
	X(base_low)                                                                                \
	X(base_high)                                                                               \
	X(base_whole)                                                                              \
	X(status_taken)

#define POINT_READS(X)                                                                             \
	X(read_alone)                                                                              \
	X(read_behind_held_writes)                                                                 \
	X(read_behind_visible_writes)                                                              \
	X(read_passed_by_later_writes)                                                             \
	X(read_waits_for_port)                                                                     \
	X(read_answered_with_the_write_before_it)                                                  \
	X(read_answered_as_status_changes)                                                         \
	X(read_of_4)                                                                               \
	X(read_of_8)                                                                               \
	X(read_of_8_unaligned)                                                                     \
	X(read_of_other_size)                                                                      \
	X(read_of_no_register)                                                                     \
	X(read_of_id)                                                                              \
	X(read_of_version)                                                                         \
	X(read_of_vendor)                                                                          \
	X(read_of_part)                                                                            \
	X(read_of_hw_version)                                                                      \
	X(read_of_cap_queues)                                                                      \
	X(read_of_cap_memory)                                                                      \
	X(read_of_cap_wqe)                                                                         \
	X(read_of_base_low)                                                                        \
	X(read_of_base_high)                                                                       \
	X(read_of_status)

#define POINT_FLOW(X)                                                                              \
	X(fifo_full)                                                                               \
	X(fifo_full_with_write_waiting)                                                            \
	X(fifo_emptied)                                                                            \
	X(taken_and_decoded_together)                                                              \
	X(port_full_of_writes)                                                                     \
	X(all_ports_blocked)                                                                       \
	X(rsp_blocked_others_go)                                                                   \
	X(sq_blocked_others_go)                                                                    \
	X(cq_blocked_others_go)                                                                    \
	X(rq_blocked_others_go)                                                                    \
	X(cmd_blocked_others_go)                                                                   \
	X(gated_clock_stood_still)

/* At an interval of one cycle alone, or of more. */
#define POINT_INTERVAL(X) X(interval_holds_write_back)

#define POINTS(X)                                                                                  \
	POINT_PLACES(X)                                                                            \
	POINT_RINGS(X)                                                                             \
	POINT_RECOVER(X)                                                                           \
	POINT_BLUEFLAME(X)                                                                         \
	POINT_COMMANDS(X)                                                                          \
	POINT_READS(X)                                                                             \
	POINT_FLOW(X)                                                                              \
	POINT_INTERVAL(X)

#define POINT_ENUM(name) POINT_##name,
enum point { POINTS(POINT_ENUM) POINT_COUNT };

/* What a sample compares with after the cycle. */
struct point_before {
	const struct rn_mmio_write *write; /* being decoded; NULL: none is ready */
	const struct collection *collection;
	uint64_t decoded;
	uint64_t taken;
	bool has_command;
	bool has_read;
	uint32_t collecting;
	bool sq_waiting, rq_waiting;
	uint32_t sq_first, rq_first; /* QPNs of the kept ones that leave next */
	bool sq_had, rq_had;	     /* the write's QP is kept */
	bool sq_other, rq_other;     /* from another page */
	uint32_t lookup_cycles;
	uint64_t read_behind; /* writes that the read waits for */
};

/** Look at the C block before the cycle, when the rig knows its inputs. */
void points_before(const struct rig *rig, struct point_before *before);

/** And after it: hit what was met. */
void points_after(const struct rig *rig, const struct point_before *before,
		  struct cosim_cover *cover);

/** Whether @point can be met at all by a block of these parameters. */
bool point_is_possible(enum point point, const struct rn_doorbell_params *params);

extern const char *const point_names[POINT_COUNT];

#endif
