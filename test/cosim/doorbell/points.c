#include "cosim/doorbell/points.h"

#include <string.h>

#include "base/bits.h"
#include "cosim/doorbell/random.h"
#include "sim/buffer.h"

#define POINT_NAME(name) #name,
const char *const point_names[POINT_COUNT] = {POINTS(POINT_NAME)};

#define PAGES_END (RN_UAR_BASE + (uint64_t)RN_UAR_COUNT * RN_UAR_BYTES)
#define BLUEFLAME_END (RN_UAR_BLUEFLAME + RN_UAR_BLUEFLAME_COUNT * RN_UAR_BLUEFLAME_BYTES)

static uint32_t in_page(const struct rn_mmio_write *write)
{
	return (uint32_t)((write->offset - RN_UAR_BASE) % RN_UAR_BYTES);
}

static bool is_in_pages(const struct rn_mmio_write *write)
{
	return write->offset >= RN_UAR_BASE && write->offset < PAGES_END;
}

static bool is_doorbell(const struct rn_mmio_write *write, uint32_t offset)
{
	return is_in_pages(write) && write->len == 8 && in_page(write) == offset;
}

static bool is_piece(const struct rn_mmio_write *write)
{
	return is_in_pages(write) && write->len == 64 && in_page(write) >= RN_UAR_BLUEFLAME &&
	       in_page(write) < BLUEFLAME_END && in_page(write) % 64 == 0;
}

static uint32_t piece_number(const struct rn_mmio_write *write)
{
	return in_page(write) % RN_UAR_BLUEFLAME_BYTES / 64;
}

static uint32_t number_of(const struct rn_mmio_write *write)
{
	return rn_get_le32(write->data) & 0xffffff;
}

static uint32_t page_of(const struct rn_mmio_write *write)
{
	return (uint32_t)((write->offset - RN_UAR_BASE) / RN_UAR_BYTES);
}

/* Segments that the first piece's ctrl segment names. */
static uint32_t segments_of(const struct rn_mmio_write *write)
{
	return rn_get_le32(write->data + 4) & 0xff;
}

static const struct collection *collection_of(const struct rn_doorbell *db,
					      const struct rn_mmio_write *write)
{
	uint32_t buffer = (in_page(write) - RN_UAR_BLUEFLAME) / RN_UAR_BLUEFLAME_BYTES;

	for (uint32_t i = 0; i < db->params.blueflame_buffers; i++) {
		const struct collection *c = &db->collect[i];

		if (c->buf != RN_BUFFER_NONE && c->uar_page == page_of(write) &&
		    c->register_idx == buffer)
			return c;
	}
	return NULL;
}

static uint32_t count_collecting(const struct rn_doorbell *db)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < db->params.blueflame_buffers; i++)
		count += db->collect[i].buf != RN_BUFFER_NONE;
	return count;
}

/* Whether a doorbell of the write's number is kept, and from another page. */
static void look_up(const struct rn_doorbell_pending *pending, const struct rn_mmio_write *write,
		    bool *has, bool *is_other)
{
	struct rn_doorbell_kept kept = {.qpn = number_of(write), .uar_page = page_of(write)};
	bool same = rn_doorbell_pending_can_keep(pending, &kept);

	kept.uar_page ^= 1;
	*has = !same || !rn_doorbell_pending_can_keep(pending, &kept);
	*is_other = !same;
}

void points_before(const struct rig *rig, struct point_before *before)
{
	const struct rn_doorbell *db = rig->model;
	const struct held_write *held = &db->held[db->decoded % db->params.fifo_entries];
	struct rn_doorbell_kept first;

	*before = (struct point_before){
		.decoded = db->decoded,
		.taken = db->taken,
		.has_command = db->has_cmd_pending,
		.has_read = db->has_read,
		.collecting = count_collecting(db),
		.lookup_cycles = db->lookup_cycles,
		.read_behind = db->has_read && db->read_behind > db->decoded
				       ? db->read_behind - db->decoded
				       : 0,
	};
	if (db->decoded != db->taken && held->ready_cycle <= rig->bench.cycle + 1)
		before->write = &held->write;
	before->sq_waiting = db->sq_pending && rn_doorbell_pending_first(db->sq_pending, &first);
	if (before->sq_waiting)
		before->sq_first = first.qpn;
	before->rq_waiting = rn_doorbell_pending_first(db->rq_pending, &first);
	if (before->rq_waiting)
		before->rq_first = first.qpn;
	if (!before->write)
		return;
	if (is_piece(before->write))
		before->collection = collection_of(db, before->write);
	if (db->sq_pending && is_doorbell(before->write, RN_UAR_SQ_DOORBELL))
		look_up(db->sq_pending, before->write, &before->sq_had, &before->sq_other);
	if (is_doorbell(before->write, RN_UAR_RQ_KICK))
		look_up(db->rq_pending, before->write, &before->rq_had, &before->rq_other);
}

/* A cycle that is being looked at. */
struct sample {
	const struct rig *rig;
	const struct rn_doorbell *db;
	const struct point_before *before;
	struct cosim_cover *cover;
	const struct rn_mmio_write *write;
	bool done; /* the write has been carried out */
	bool kept; /* a doorbell was kept */
};

#define HIT(point, condition) cosim_cover_hit(s->cover, POINT_##point, (condition))

#define ROW_OF_PLACE(place) (POINT_##place##_4)

static enum point place_of(const struct rn_mmio_write *write)
{
	if (write->offset < RN_UAR_BASE) {
		if (write->offset == RN_REG_CMD_BASE_LO || write->offset == RN_REG_CMD_BASE_HI ||
		    write->offset == RN_REG_CMD_DOORBELL)
			return ROW_OF_PLACE(write_register);
		return write->offset <= RN_REG_STATUS ? ROW_OF_PLACE(write_read_only_register)
						      : ROW_OF_PLACE(write_gap);
	}
	if (write->offset >= PAGES_END)
		return ROW_OF_PLACE(write_behind_pages);
	if (in_page(write) >= RN_UAR_BLUEFLAME && in_page(write) < BLUEFLAME_END)
		return in_page(write) % 64 ? ROW_OF_PLACE(write_blueflame_unaligned)
					   : ROW_OF_PLACE(write_blueflame_aligned);
	if (in_page(write) == RN_UAR_SQ_DOORBELL || in_page(write) == RN_UAR_CQ_ARM ||
	    in_page(write) == RN_UAR_RQ_KICK)
		return ROW_OF_PLACE(write_page_doorbell);
	return ROW_OF_PLACE(write_page_other);
}

static void sample_place(const struct sample *s)
{
	uint32_t len = s->write->len;
	unsigned size = len == 4 ? 0 : len == 8 ? 1 : len == 64 ? 2 : 3;

	cosim_cover_hit(s->cover, place_of(s->write) + size, s->done);
}

static bool is_counted(const struct sample *s, unsigned counter)
{
	return s->rig->out.count[counter] != 0;
}

#define COUNTER_ENUM(name) COUNT_##name,
enum { DUT_COUNTERS(COUNTER_ENUM) };

static void sample_ring(const struct sample *s)
{
	const struct point_before *b = s->before;
	bool leaves = b->sq_waiting && s->rig->in.ready[OUT_SQ];
	bool is_big = number_of(s->write) >= s->db->params.max_qps;

	HIT(ring_sent, s->done && !s->kept);
	HIT(ring_from_last_page, s->done && page_of(s->write) == RN_UAR_COUNT - 1);
	HIT(ring_waits_for_port, !s->done && !b->sq_waiting);
	HIT(ring_kept_alone, s->kept && !b->sq_waiting);
	HIT(ring_kept_behind_others, s->kept && b->sq_waiting && !b->sq_had);
	HIT(ring_merged, s->kept && b->sq_had && !(leaves && b->sq_first == number_of(s->write)));
	HIT(ring_kept_while_its_older_one_leaves,
	    s->kept && leaves && b->sq_first == number_of(s->write));
	HIT(ring_kept_while_others_leave, s->kept && leaves && b->sq_first != number_of(s->write));
	HIT(ring_of_other_page_waits, s->db->stall == RN_STALL_OUTPUT && b->sq_other && !is_big);
	HIT(ring_without_place_waits, s->db->stall == RN_STALL_OUTPUT && is_big);
}

static void sample_kick(const struct sample *s)
{
	const struct point_before *b = s->before;
	bool leaves = b->rq_waiting && s->rig->in.ready[OUT_RQ];
	bool is_big = number_of(s->write) >= s->db->params.max_qps;
	bool is_dropped = is_counted(s, COUNT_rq_kicks_dropped);

	HIT(kick_sent, s->done && !s->kept && !is_dropped);
	HIT(kick_kept_alone, s->kept && !b->rq_waiting);
	HIT(kick_kept_behind_others, s->kept && b->rq_waiting && !b->rq_had);
	HIT(kick_merged, s->kept && b->rq_had && !(leaves && b->rq_first == number_of(s->write)));
	HIT(kick_kept_while_its_older_one_leaves,
	    s->kept && leaves && b->rq_first == number_of(s->write));
	HIT(kick_kept_while_others_leave, s->kept && leaves && b->rq_first != number_of(s->write));
	HIT(kick_of_other_page_dropped, is_dropped && b->rq_other && !is_big);
	HIT(kick_without_place_dropped, is_dropped && is_big);
	/* It was behind others when the lookup began, and now it is not. */
	HIT(kick_lookup_ends_as_port_is_freed,
	    s->done && !b->rq_waiting && !s->kept && b->lookup_cycles);
}

static void sample_first_piece(const struct sample *s)
{
	uint32_t segments = segments_of(s->write);
	bool is_legal = segments >= 1 && segments <= 16;
	bool evicts = is_legal && segments > 4 && !s->before->collection &&
		      s->before->collecting == s->db->params.blueflame_buffers;

	HIT(first_piece_without_length, segments == 0);
	HIT(first_piece_too_long, segments > 16);
	HIT(first_piece_gives_up_older, is_legal && s->before->collection);
	HIT(first_piece_takes_unused,
	    s->done && is_legal && segments > 4 && !s->before->collection && !evicts);
	HIT(first_piece_evicts_oldest, s->done && evicts);
	HIT(first_piece_waits_to_evict, !s->done && evicts);
	HIT(evicted_ring_kept, s->kept && evicts);
	HIT(wqe_data_dropped_and_older_given_up, s->rig->out.count[COUNT_blueflame_dropped] == 2);
	HIT(wqe_waits_with_its_ring, !s->done && is_legal && segments <= 4);
}

static void sample_later_piece(const struct sample *s)
{
	const struct collection *c = s->before->collection;
	bool is_ignored = is_counted(s, COUNT_illegal_writes);

	HIT(later_piece_in_order, s->done && !is_ignored);
	HIT(later_piece_out_of_order, is_ignored && c);
	HIT(later_piece_without_first, is_ignored && !c);
	HIT(wqe_waits_with_its_ring, !s->done);
}

static void sample_piece(const struct sample *s)
{
	const struct dut_outputs *out = &s->rig->out;
	bool is_sent = out->valid[OUT_BLUEFLAME] && s->rig->in.ready[OUT_BLUEFLAME];

	if (piece_number(s->write) == 0)
		sample_first_piece(s);
	else
		sample_later_piece(s);
	HIT(wqe_of_1_piece, is_sent && out->blueflame.bytes == 64);
	HIT(wqe_of_2_pieces, is_sent && out->blueflame.bytes == 128);
	HIT(wqe_of_3_pieces, is_sent && out->blueflame.bytes == 192);
	HIT(wqe_of_4_pieces, is_sent && out->blueflame.bytes == 256);
	HIT(wqe_in_buffer_0, is_sent && in_page(s->write) < RN_UAR_BLUEFLAME + 256);
	HIT(wqe_in_buffer_1, is_sent && in_page(s->write) >= RN_UAR_BLUEFLAME + 256);
	HIT(wqe_data_dropped, out->valid[OUT_BLUEFLAME] && !is_sent);
	HIT(blueflame_ring_kept, s->kept && out->valid[OUT_BLUEFLAME]);
}

static void sample_write(const struct sample *s)
{
	uint64_t offset = s->write->offset;
	uint32_t len = s->write->len;

	sample_place(s);
	if (is_doorbell(s->write, RN_UAR_SQ_DOORBELL))
		sample_ring(s);
	else if (is_doorbell(s->write, RN_UAR_RQ_KICK))
		sample_kick(s);
	else if (is_piece(s->write))
		sample_piece(s);
	HIT(arm_sent, s->done && is_doorbell(s->write, RN_UAR_CQ_ARM));
	HIT(arm_waits, !s->done && is_doorbell(s->write, RN_UAR_CQ_ARM));
	HIT(arm_solicited,
	    s->done && is_doorbell(s->write, RN_UAR_CQ_ARM) && (s->write->data[3] & 1));
	HIT(base_low, offset == RN_REG_CMD_BASE_LO && len == 4);
	HIT(base_high, offset == RN_REG_CMD_BASE_HI && len == 4);
	HIT(base_whole, offset == RN_REG_CMD_BASE_LO && len == 8);
	HIT(base_written_while_command_waits,
	    s->before->has_command && !s->rig->in.ready[OUT_CMD] && len == 4 &&
		    (offset == RN_REG_CMD_BASE_LO || offset == RN_REG_CMD_BASE_HI));
}

static void sample_command(const struct sample *s)
{
	bool is_new = is_counted(s, COUNT_commands);
	bool is_ready = s->rig->in.ready[OUT_CMD];

	HIT(command_sent_at_once, is_new && !s->before->has_command && is_ready);
	HIT(command_waits, is_new && !s->before->has_command && !is_ready);
	HIT(command_merged, is_new && s->before->has_command && !is_ready);
	HIT(command_merged_as_it_leaves, is_new && s->before->has_command && is_ready);
	HIT(status_taken, s->rig->in.status_valid);
}

static void sample_answer(const struct sample *s)
{
	static const enum point point_of[] = {
		POINT_read_of_id,	  POINT_read_of_version,     POINT_read_of_vendor,
		POINT_read_of_part,	  POINT_read_of_hw_version,  POINT_read_of_cap_queues,
		POINT_read_of_cap_memory, POINT_read_of_cap_wqe,     POINT_read_of_base_low,
		POINT_read_of_base_high,  POINT_read_of_no_register, POINT_read_of_status,
	};
	const struct rn_mmio_read *read = &s->rig->in.read;
	uint64_t word = read->offset / 4;
	bool is_register = read->offset % 4 == 0 && word < RN_ARRAY_LEN(point_of);

	HIT(read_of_4, read->len == 4);
	HIT(read_of_8, read->len == 8 && read->offset % 8 == 0);
	HIT(read_of_8_unaligned, read->len == 8 && read->offset % 8 != 0);
	HIT(read_of_other_size, read->len != 4 && read->len != 8);
	if (read->len == 4)
		cosim_cover_hit(s->cover, is_register ? point_of[word] : POINT_read_of_no_register,
				true);
	HIT(read_answered_with_the_write_before_it, s->done && s->before->read_behind == 1);
	HIT(read_answered_as_status_changes, s->rig->in.status_valid);
	HIT(read_passed_by_later_writes, s->db->taken != s->db->decoded);
}

static void sample_read(const struct sample *s)
{
	const struct rig *rig = s->rig;
	bool begins = rig->in.read_valid && !s->before->has_read;
	uint64_t held = s->before->taken - s->before->decoded;

	HIT(read_alone, begins && !held && !rig->in.write_level);
	HIT(read_behind_held_writes, begins && held && !rig->in.write_level);
	HIT(read_behind_visible_writes, begins && rig->in.write_level > 1);
	HIT(read_waits_for_port, rig->out.valid[OUT_RSP] && !rig->in.ready[OUT_RSP]);
	if (is_counted(s, COUNT_reads))
		sample_answer(s);
}

static bool does_any(const struct rig *rig)
{
	for (unsigned i = 0; i < OUT_COUNT; i++)
		if (rig->out.valid[i] && rig->in.ready[i])
			return true;
	return false;
}

static void sample_flow(const struct sample *s)
{
	const struct rig *rig = s->rig;
	uint64_t entries = s->db->params.fifo_entries;
	uint64_t held = s->before->taken - s->before->decoded;
	bool takes = rig->in.write_valid && rig->out.write_ready;
	bool blocked[OUT_COUNT], goes = does_any(rig);
	unsigned ready = 0;

	for (unsigned i = 0; i < OUT_COUNT; i++) {
		blocked[i] = rig->out.valid[i] && !rig->in.ready[i];
		ready += rig->in.ready[i];
	}
	HIT(fifo_full, held == entries);
	HIT(fifo_full_with_write_waiting, held == entries && rig->in.write_valid);
	HIT(fifo_emptied, held && s->db->taken == s->db->decoded);
	HIT(taken_and_decoded_together, takes && s->done);
	HIT(port_full_of_writes, rig->in.write_level >= RANDOM_LEVEL);
	HIT(interval_holds_write_back,
	    rig->in.write_valid && !rig->out.write_ready && held != entries);
	HIT(all_ports_blocked, !ready && s->before->write && !s->done);
	HIT(rsp_blocked_others_go, blocked[OUT_RSP] && goes);
	HIT(sq_blocked_others_go, blocked[OUT_SQ] && goes);
	HIT(cq_blocked_others_go, blocked[OUT_CQ] && goes);
	HIT(rq_blocked_others_go, blocked[OUT_RQ] && goes);
	HIT(cmd_blocked_others_go, blocked[OUT_CMD] && goes);
	HIT(gated_clock_stood_still, rig->gated_in.cycle != rig->in.cycle);
	HIT(all_collecting, s->before->collecting == s->db->params.blueflame_buffers);
	HIT(ring_and_kick_kept_leave_together, s->before->sq_waiting && s->before->rq_waiting &&
						       rig->in.ready[OUT_SQ] &&
						       rig->in.ready[OUT_RQ]);
}

void points_after(const struct rig *rig, const struct point_before *before,
		  struct cosim_cover *cover)
{
	const struct sample sample = {
		.rig = rig,
		.db = rig->model,
		.before = before,
		.cover = cover,
		.write = before->write,
		.done = rig->model->decoded != before->decoded,
		.kept = rig->out.count[COUNT_kept] != 0,
	};

	if (before->write)
		sample_write(&sample);
	sample_command(&sample);
	sample_read(&sample);
	sample_flow(&sample);
}

#define POINT_CASE(name) case POINT_##name:

bool point_is_possible(enum point point, const struct rn_doorbell_params *params)
{
	switch (point) {
		POINT_RECOVER(POINT_CASE)
		return params->recover;
		POINT_INTERVAL(POINT_CASE)
		return params->interval_cycles > 1;
	default:
		return true;
	}
}
