/*
 * Doorbell unit. A posted write is taken from the PCIe endpoint into a finite fifo and decoded
 * when its latency has passed. Exact: what each write means, order of the writes, and that the
 * fifo drains without waiting for any read of host memory: an SQ ring waits for the scheduler alone
 * (or is kept per QP), a CQ arm for the CQE writer's on-chip table, a kick that finds rx busy is kept
 * per QP, a command ring in a register, BlueFlame data that finds no place is dropped (the WQE lies in
 * memory). A register read is answered behind all writes that came before it.
 * Left out: write combining (software writes BlueFlame in pieces of 64 bytes, in order).
 */
#include "nic/doorbell/doorbell.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/mem.h"
#include "hw/gen/rnic_hw.h"
#include "nic/doorbell/internal.h"
#include "sim/buffer.h"

#define RN_PARAM_OWNER rn_doorbell_params
RN_PARAM_TABLE(rn_doorbell_param_table, "doorbell", RN_DOORBELL_PARAMS);

#define DOORBELL_ROW(field, unit, help) RN_COUNTER_ROW(struct doorbell_counters, field, unit, help)

static const struct rn_counter_desc doorbell_counter_descs[] = {DOORBELL_COUNTERS(DOORBELL_ROW)};

/* The tick's parts; each says whether it did something. */

static bool decode_oldest(struct rn_doorbell *db, uint64_t cycle)
{
	if (db->decoded == db->taken)
		return false;
	struct held_write *held = &db->held[db->decoded % db->params.fifo_entries];

	if (held->ready_cycle > cycle || !rn_doorbell_decode(db, &held->write))
		return false;
	db->decoded++;
	db->lookup_cycles = 0;
	return true;
}

/* @was_full: a place freed in this cycle is used in the next. */
static bool take_in(struct rn_doorbell *db, uint64_t cycle, bool was_full)
{
	if (was_full || cycle < db->next_take_cycle)
		return false;
	struct held_write *held = &db->held[db->taken % db->params.fifo_entries];

	if (!rn_fifo_pop(db->ports.mmio_write, &held->write))
		return false;
	held->ready_cycle = cycle + db->params.decode_latency_cycles;
	db->taken++;
	db->next_take_cycle = cycle + db->params.interval_cycles;
	return true;
}

static bool send_kept(struct rn_doorbell *db, struct rn_doorbell_pending *pending,
		      struct rn_fifo *fifo)
{
	struct rn_doorbell_kept kept;

	if (!pending || !rn_doorbell_pending_first(pending, &kept) || !rn_fifo_can_push(fifo))
		return false;
	if (pending == db->sq_pending)
		rn_fifo_push(fifo, &(struct rn_sq_ring){.qpn = kept.qpn,
							.uar_page = kept.uar_page,
							.pi = kept.pi});
	else
		rn_fifo_push(fifo,
			     &(struct rn_rq_ring){.qpn = kept.qpn, .uar_page = kept.uar_page});
	rn_doorbell_pending_drop(pending);
	/* The next kept one, or a write that waited for this one. */
	rn_block_wake_next(&db->block);
	return true;
}

static bool send_command(struct rn_doorbell *db)
{
	if (!db->has_cmd_pending || !rn_fifo_can_push(db->ports.cmd_ring))
		return false;
	rn_fifo_push(db->ports.cmd_ring, &db->cmd_pending);
	db->has_cmd_pending = false;
	return true;
}

static uint32_t register_value(const struct rn_doorbell *db, uint64_t offset)
{
	switch (offset) {
	case RN_REG_ID:
		return RN_HW_ID;
	case RN_REG_VERSION:
		return RN_HW_INTERFACE_VERSION;
	case RN_REG_VENDOR:
		return db->identity.vendor & 0xffffff;
	case RN_REG_PART:
		return db->identity.part;
	case RN_REG_HW_VERSION:
		return db->identity.hw_version;
	case RN_REG_CAP_QUEUES:
		return db->identity.cap_queues;
	case RN_REG_CAP_MEMORY:
		return db->identity.cap_memory;
	case RN_REG_CAP_WQE:
		return db->identity.cap_wqe;
	case RN_REG_CMD_BASE_LO:
		return (uint32_t)db->cmd_queue_pa;
	case RN_REG_CMD_BASE_HI:
		return (uint32_t)(db->cmd_queue_pa >> 32);
	case RN_REG_STATUS:
		return db->status;
	default:
		return UINT32_MAX;
	}
}

static uint64_t read_value(const struct rn_doorbell *db, const struct rn_mmio_read *read)
{
	uint64_t low = register_value(db, read->offset);

	if (read->len == 4)
		return low;
	if (read->len == 8 && read->offset % 8 == 0)
		return low | (uint64_t)register_value(db, read->offset + 4) << 32;
	return UINT64_MAX;
}

static bool serve_read(struct rn_doorbell *db, uint64_t cycle)
{
	const struct rn_mmio_read *read = rn_fifo_peek(db->ports.mmio_read);

	if (!read)
		return false;
	if (!db->has_read) {
		db->has_read = true;
		/* All writes that were pushed before this read are visible with it. */
		db->read_behind = db->taken + rn_fifo_visible(db->ports.mmio_write);
		db->read_ready_cycle = cycle + db->params.read_latency_cycles;
	}
	if (db->decoded < db->read_behind || cycle < db->read_ready_cycle ||
	    !rn_fifo_can_push(db->ports.mmio_read_rsp))
		return false;
	rn_fifo_push(db->ports.mmio_read_rsp,
		     &(struct rn_mmio_read_rsp){.tag = read->tag, .value = read_value(db, read)});
	rn_fifo_drop(db->ports.mmio_read);
	db->has_read = false;
	db->count.reads++;
	return true;
}

/* Fifos wake the block for what they do; time that has to pass is its own matter. */
static void rearm(struct rn_doorbell *db, uint64_t cycle, bool has_decoded)
{
	uint64_t due = UINT64_MAX;

	if (db->decoded != db->taken) {
		uint64_t ready = db->held[db->decoded % db->params.fifo_entries].ready_cycle;

		/* The oldest was ready and is still there: it waits for a fifo or a kept doorbell. */
		if (ready > cycle || has_decoded)
			due = rn_max_u64(ready, cycle + 1);
	}
	if (db->taken - db->decoded < db->params.fifo_entries && rn_fifo_peek(db->ports.mmio_write))
		due = rn_min_u64(due, rn_max_u64(db->next_take_cycle, cycle + 1));
	if (db->has_read && db->read_ready_cycle > cycle)
		due = rn_min_u64(due, db->read_ready_cycle);
	if (due != UINT64_MAX)
		rn_block_wake_in(&db->block, due - cycle);
}

static void tick(void *self, uint64_t cycle)
{
	struct rn_doorbell *db = self;
	bool was_full = db->taken - db->decoded == db->params.fifo_entries;
	bool busy = false;
	bool has_decoded;

	db->stall = RN_STALL_NONE;
	db->has_looked_up = false;
	if (db->ports.status)
		busy |= rn_fifo_pop(db->ports.status, &db->status);
	db->sq_is_theirs = db->sq_pending && rn_doorbell_pending_any(db->sq_pending);
	db->rq_is_theirs = rn_doorbell_pending_any(db->rq_pending);
	busy |= send_kept(db, db->sq_pending, db->ports.sq_ring);
	busy |= send_kept(db, db->rq_pending, db->ports.rq_ring);
	has_decoded = decode_oldest(db, cycle);
	busy |= db->has_looked_up;
	busy |= send_command(db);
	busy |= take_in(db, cycle, was_full);
	busy |= serve_read(db, cycle);
	rearm(db, cycle, has_decoded);
	rn_block_account(&db->block, busy || has_decoded, db->stall);
}

static void connect(struct rn_doorbell *db)
{
	struct rn_doorbell_ports *p = &db->ports;

	if (p->status)
		rn_fifo_set_consumer(p->status, &db->block);
	rn_fifo_set_consumer(p->mmio_write, &db->block);
	rn_fifo_set_consumer(p->mmio_read, &db->block);
	rn_fifo_set_producer(p->mmio_read_rsp, &db->block);
	rn_fifo_set_producer(p->sq_ring, &db->block);
	rn_fifo_set_producer(p->blueflame, &db->block);
	rn_fifo_set_producer(p->cq_ring, &db->block);
	rn_fifo_set_producer(p->rq_ring, &db->block);
	rn_fifo_set_producer(p->cmd_ring, &db->block);
}

struct rn_doorbell *rn_doorbell_new(const struct rn_nic_env *env,
				    const struct rn_doorbell_params *params,
				    const struct rn_doorbell_identity *identity,
				    const struct rn_doorbell_ports *ports)
{
	struct rn_doorbell *db = rn_calloc(1, sizeof(*db));

	db->env = env;
	db->params = *params;
	db->identity = *identity;
	db->ports = *ports;
	db->name = rn_asprintf("%s.doorbell", env->name);
	db->held = rn_calloc(params->fifo_entries, sizeof(struct held_write));
	db->collect = rn_calloc(params->blueflame_buffers, sizeof(struct collection));
	for (uint32_t i = 0; i < params->blueflame_buffers; i++)
		db->collect[i].buf = RN_BUFFER_NONE;
	if (params->recover)
		db->sq_pending = rn_doorbell_pending_new(params->max_qps);
	db->rq_pending = rn_doorbell_pending_new(params->max_qps);
	rn_block_init(&db->block, env->sim, env->core, db->name, tick, db);
	connect(db);
	rn_stats_add_block(env->stats, &db->block);
	rn_stats_add_counters(env->stats, db->name, doorbell_counter_descs,
			      RN_ARRAY_LEN(doorbell_counter_descs), &db->count);
	return db;
}

void rn_doorbell_free(struct rn_doorbell *db)
{
	if (!db)
		return;
	for (uint32_t i = 0; i < db->params.blueflame_buffers; i++)
		rn_buffer_put(db->env->buffers, db->collect[i].buf);
	rn_doorbell_pending_free(db->sq_pending);
	rn_doorbell_pending_free(db->rq_pending);
	free(db->collect);
	free(db->held);
	free(db->name);
	free(db);
}
