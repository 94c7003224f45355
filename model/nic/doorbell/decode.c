/*
 * What a posted write means: doorbells, CQ arms, kicks, BlueFlame pieces, registers.
 */
#include <string.h>

#include "base/bits.h"
#include "hw/gen/rnic_hw.h"
#include "nic/doorbell/internal.h"
#include "sim/buffer.h"

enum kept_answer { KEPT, KEPT_NOT_YET, KEPT_REFUSED };

/*
 * Keep a doorbell that cannot go out now. Behind others (@is_behind) the table is looked up first, and the write
 * waits for that.
 */
static enum kept_answer keep(struct rn_doorbell *db, struct rn_doorbell_pending *pending,
			     bool is_behind, const struct rn_doorbell_kept *kept)
{
	if (is_behind && db->lookup_cycles < RN_DOORBELL_LOOKUP_CYCLES) {
		db->lookup_cycles++;
		db->has_looked_up = true;
		rn_block_wake_next(&db->block);
		return KEPT_NOT_YET;
	}
	if (!rn_doorbell_pending_can_keep(pending, kept))
		return KEPT_REFUSED;
	rn_doorbell_pending_keep(pending, kept);
	db->count.kept++;
	return KEPT;
}

/* Output: true when the ring has been sent or kept, false when the fifo has to stall. */
static bool ring_sq(struct rn_doorbell *db, uint32_t uar_page, uint32_t qpn, uint16_t pi)
{
	struct rn_sq_ring ring = {.qpn = qpn, .uar_page = uar_page, .pi = pi};
	struct rn_doorbell_kept kept = {.qpn = qpn, .uar_page = uar_page, .pi = pi};
	enum kept_answer answer = KEPT_REFUSED;

	if (!db->sq_is_theirs && rn_fifo_can_push(db->ports.sq_ring)) {
		rn_fifo_push(db->ports.sq_ring, &ring);
	} else {
		if (db->sq_pending)
			answer = keep(db, db->sq_pending, db->sq_is_theirs, &kept);
		if (answer == KEPT_REFUSED)
			db->stall = RN_STALL_OUTPUT;
		if (answer != KEPT)
			return false;
	}
	db->count.sq_doorbells++;
	return true;
}

static bool kick_rq(struct rn_doorbell *db, uint32_t uar_page, uint32_t qpn)
{
	struct rn_rq_ring ring = {.qpn = qpn, .uar_page = uar_page};
	struct rn_doorbell_kept kept = {.qpn = qpn, .uar_page = uar_page};

	if (!db->rq_is_theirs && rn_fifo_can_push(db->ports.rq_ring)) {
		rn_fifo_push(db->ports.rq_ring, &ring);
	} else {
		enum kept_answer answer = keep(db, db->rq_pending, db->rq_is_theirs, &kept);

		if (answer == KEPT_NOT_YET)
			return false;
		if (answer == KEPT_REFUSED)
			db->count.rq_kicks_dropped++;
	}
	db->count.rq_kicks++;
	return true;
}

static bool arm_cq(struct rn_doorbell *db, uint32_t uar_page, const uint8_t *data)
{
	uint32_t cqn_cmd = rn_get_le32(data);
	struct rn_cq_ring ring = {.cqn = cqn_cmd & 0xffffff,
				  .uar_page = uar_page,
				  .ci = rn_get_le32(data + 4) & 0xffffff,
				  .solicited = cqn_cmd >> 24 & 1,
				  .sn = cqn_cmd >> 28 & 3};

	if (!rn_fifo_can_push(db->ports.cq_ring)) {
		db->stall = RN_STALL_OUTPUT;
		return false;
	}
	rn_fifo_push(db->ports.cq_ring, &ring);
	db->count.cq_arms++;
	return true;
}

static bool ignore(struct rn_doorbell *db)
{
	db->count.illegal_writes++;
	return true;
}

/* BlueFlame */

static struct collection *find_collection(struct rn_doorbell *db, uint32_t uar_page,
					  uint8_t register_idx)
{
	for (uint32_t i = 0; i < db->params.blueflame_buffers; i++) {
		struct collection *c = &db->collect[i];

		if (c->buf != RN_BUFFER_NONE && c->uar_page == uar_page &&
		    c->register_idx == register_idx)
			return c;
	}
	return NULL;
}

static void end_collection(struct rn_doorbell *db, struct collection *c)
{
	rn_buffer_put(db->env->buffers, c->buf);
	c->buf = RN_BUFFER_NONE;
}

/* A free entry; else the oldest gives way and only its ring goes on. NULL: that ring has to wait. */
static struct collection *claim_collection(struct rn_doorbell *db)
{
	struct collection *oldest = &db->collect[0];

	for (uint32_t i = 0; i < db->params.blueflame_buffers; i++) {
		struct collection *c = &db->collect[i];

		if (c->buf == RN_BUFFER_NONE)
			return c;
		if (c->since < oldest->since)
			oldest = c;
	}
	if (!ring_sq(db, oldest->uar_page, oldest->qpn, oldest->wqe_idx + oldest->wqebbs))
		return NULL;
	db->count.blueflame_dropped++;
	end_collection(db, oldest);
	return oldest;
}

/* The whole WQE is there: its ring to the scheduler, its data to the WQE fetcher. */
static bool send_blueflame(struct rn_doorbell *db, const struct collection *c)
{
	struct rn_blueflame message = {.qpn = c->qpn,
				       .uar_page = c->uar_page,
				       .wqe_idx = c->wqe_idx,
				       .bytes = (uint16_t)(c->wqebbs * RN_WQEBB_BYTES),
				       .buf = c->buf};

	if (!ring_sq(db, c->uar_page, c->qpn, c->wqe_idx + c->wqebbs))
		return false;
	if (!rn_fifo_can_push(db->ports.blueflame)) {
		db->count.blueflame_dropped++;
		return true;
	}
	rn_buffer_hold(db->env->buffers, c->buf);
	rn_fifo_push(db->ports.blueflame, &message);
	db->count.blueflame_wqes++;
	return true;
}

static void store_piece(struct rn_doorbell *db, const struct collection *c, const uint8_t *data)
{
	memcpy(rn_buffer_data(db->env->buffers, c->buf) + c->have * RN_WQEBB_BYTES, data,
	       RN_WQEBB_BYTES);
}

static bool first_piece(struct rn_doorbell *db, uint32_t uar_page, uint8_t register_idx,
			const uint8_t *data)
{
	struct rn_hw_wqe_ctrl ctrl;
	struct collection *old = find_collection(db, uar_page, register_idx);

	memcpy(&ctrl, data, sizeof(ctrl));
	unsigned bytes = (ctrl.qpn_ds & 0xff) * RN_WQE_SEGMENT_BYTES;

	if (!bytes || bytes > RN_UAR_BLUEFLAME_BYTES)
		return ignore(db);
	/* The buffer is begun anew: its writer gave the WQE before up. */
	if (old) {
		db->count.blueflame_dropped++;
		end_collection(db, old);
	}

	struct collection c = {.since = db->collections++,
			       .uar_page = uar_page,
			       .qpn = ctrl.qpn_ds >> 8,
			       .wqe_idx = ctrl.wqe_idx,
			       .register_idx = register_idx,
			       .wqebbs = (uint8_t)rn_div_ceil(bytes, RN_WQEBB_BYTES)};
	struct collection *entry = c.wqebbs > 1 ? claim_collection(db) : NULL;
	bool done = true;

	if (c.wqebbs > 1 && !entry)
		return false;
	c.buf = rn_buffer_get(db->env->buffers);
	store_piece(db, &c, data);
	c.have = 1;
	if (entry) {
		*entry = c;
	} else {
		done = send_blueflame(db, &c);
		end_collection(db, &c);
	}
	return done;
}

static bool later_piece(struct rn_doorbell *db, struct collection *c, unsigned piece,
			const uint8_t *data)
{
	if (!c || piece != c->have)
		return ignore(db);
	store_piece(db, c, data);
	if (c->have + 1 < c->wqebbs) {
		c->have++;
		return true;
	}
	if (!send_blueflame(db, c))
		return false;
	end_collection(db, c);
	return true;
}

static bool write_blueflame(struct rn_doorbell *db, uint32_t uar_page, uint32_t offset,
			    const struct rn_mmio_write *write)
{
	uint8_t register_idx = (uint8_t)(offset / RN_UAR_BLUEFLAME_BYTES);
	unsigned piece = offset % RN_UAR_BLUEFLAME_BYTES / RN_WQEBB_BYTES;

	if (write->len != RN_WQEBB_BYTES || offset % RN_WQEBB_BYTES)
		return ignore(db);
	if (!piece)
		return first_piece(db, uar_page, register_idx, write->data);
	return later_piece(db, find_collection(db, uar_page, register_idx), piece, write->data);
}

/* Decoding */

static bool write_uar(struct rn_doorbell *db, uint32_t uar_page, uint32_t offset,
		      const struct rn_mmio_write *write)
{
	uint32_t number = rn_get_le32(write->data) & 0xffffff;

	if (offset >= RN_UAR_BLUEFLAME &&
	    offset < RN_UAR_BLUEFLAME + RN_UAR_BLUEFLAME_COUNT * RN_UAR_BLUEFLAME_BYTES)
		return write_blueflame(db, uar_page, offset - RN_UAR_BLUEFLAME, write);
	if (write->len != 8)
		return ignore(db);
	switch (offset) {
	case RN_UAR_SQ_DOORBELL:
		return ring_sq(db, uar_page, number, rn_get_le16(write->data + 4));
	case RN_UAR_CQ_ARM:
		return arm_cq(db, uar_page, write->data);
	case RN_UAR_RQ_KICK:
		return kick_rq(db, uar_page, number);
	default:
		return ignore(db);
	}
}

static bool ring_command(struct rn_doorbell *db, uint32_t pi)
{
	db->cmd_pending = (struct rn_cmd_ring){.queue_pa = db->cmd_queue_pa, .pi = pi};
	db->has_cmd_pending = true;
	db->count.commands++;
	return true;
}

static bool write_register(struct rn_doorbell *db, const struct rn_mmio_write *write)
{
	uint32_t value = rn_get_le32(write->data);

	if (write->offset == RN_REG_CMD_BASE_LO && write->len == 8) {
		db->cmd_queue_pa = rn_get_le64(write->data);
		return true;
	}
	if (write->len != 4)
		return ignore(db);
	switch (write->offset) {
	case RN_REG_CMD_BASE_LO:
		db->cmd_queue_pa = (db->cmd_queue_pa & ~UINT64_C(0xffffffff)) | value;
		return true;
	case RN_REG_CMD_BASE_HI:
		db->cmd_queue_pa = (db->cmd_queue_pa & 0xffffffff) | (uint64_t)value << 32;
		return true;
	case RN_REG_CMD_DOORBELL:
		return ring_command(db, value);
	default:
		return ignore(db);
	}
}

bool rn_doorbell_decode(struct rn_doorbell *db, const struct rn_mmio_write *write)
{
	uint64_t offset = write->offset - RN_UAR_BASE;

	if (write->offset < RN_UAR_BASE)
		return write_register(db, write);
	if (offset >= (uint64_t)RN_UAR_COUNT * RN_UAR_BYTES)
		return ignore(db);
	return write_uar(db, (uint32_t)(offset / RN_UAR_BYTES), (uint32_t)(offset % RN_UAR_BYTES),
			 write);
}
