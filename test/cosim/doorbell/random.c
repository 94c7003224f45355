#include "cosim/doorbell/random.h"

#include <string.h>

#include "base/bits.h"

static uint32_t below(struct random_stimulus *s, uint64_t bound)
{
	return (uint32_t)rn_rng_below(&s->rng, bound);
}

static bool chance(struct random_stimulus *s, uint32_t percent)
{
	return below(s, 100) < percent;
}

static void draw_bytes(struct random_stimulus *s, uint8_t *data, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i += 8) {
		uint64_t word = rn_rng_next(&s->rng);

		memcpy(data + i, &word, 8);
	}
}

void random_init(struct random_stimulus *s, uint64_t seed)
{
	*s = (struct random_stimulus){.until_cycle = 0};
	rn_rng_init(&s->rng, seed, "doorbell stimulus");
	for (uint32_t i = 0; i < RANDOM_WRITERS; i++)
		s->writer[i] = (struct writer){.page = i / 2, .buffer = i % 2};
}

uint64_t random_restart(struct random_stimulus *s, uint64_t *cycle_offset)
{
	/* Short ones for many offsets, long ones for counters that go far. */
	uint64_t run = chance(s, 4) ? 300000 : chance(s, 10) ? 40000 : 1000 + below(s, 2000);

	s->until_cycle = 0;
	/* Any, or one that carries into a higher bit soon. */
	*cycle_offset = rn_rng_next(&s->rng) >> (1 + below(s, chance(s, 50) ? 4 : 63));
	if (chance(s, 30))
		*cycle_offset = (UINT64_C(1) << below(s, 63)) - below(s, run);
	if (*cycle_offset > UINT64_MAX / 2)
		*cycle_offset = 0;
	return run;
}

void random_identity(struct random_stimulus *s, struct rn_doorbell_identity *identity)
{
	uint64_t word[3];

	_Static_assert(sizeof(word) == sizeof(*identity), "all registers are drawn");
	draw_bytes(s, (uint8_t *)word, sizeof(word));
	memcpy(identity, word, sizeof(word));
}

/* Another character: what is written, how much of it, and how busy the ports behind are. */
static void change_character(struct random_stimulus *s, const struct rig *rig, uint64_t cycle)
{
	static const uint32_t rates[] = {2, 10, 30, 60, 100};
	static const uint32_t readiness[] = {0, 5, 20, 50, 80, 100};
	bool is_calm = chance(s, 30);

	s->until_cycle = cycle + 50 + below(s, 500);
	/* Seldom long enough to fill the fifo, however deep. */
	if (chance(s, 5))
		s->until_cycle +=
			2 * (uint64_t)rig->params.fifo_entries * rig->params.interval_cycles;
	for (unsigned i = 0; i < WRITE_KINDS; i++)
		s->weight[i] = chance(s, 50) ? below(s, 20) : 0;
	s->weight[below(s, WRITE_KINDS)] += 10;
	s->write_percent = rates[below(s, RN_ARRAY_LEN(rates))];
	s->read_percent = chance(s, 50) ? rates[below(s, RN_ARRAY_LEN(rates))] : 0;
	for (unsigned i = 0; i < OUT_COUNT; i++)
		s->ready_percent[i] = is_calm ? 100 : readiness[below(s, RN_ARRAY_LEN(readiness))];
	s->level = chance(s, 85) ? RANDOM_LEVEL : RANDOM_HIGH_LEVEL;
	s->qps = 1 + below(s, chance(s, 80) ? 12 : 300);
	s->pages = 1 + below(s, 4);
	s->writers = 1 + below(s, RANDOM_WRITERS);
	s->disorder_percent = chance(s, 50) ? 0 : below(s, 30);
	s->has_foreign_pages = chance(s, 30);
}

static uint32_t draw_page(struct random_stimulus *s)
{
	if (chance(s, 95))
		return below(s, s->pages);
	return chance(s, 50) ? below(s, RN_UAR_COUNT) : RN_UAR_COUNT - 1;
}

static uint32_t draw_qpn(struct random_stimulus *s, const struct rig *rig)
{
	uint32_t max_qps = rig->params.max_qps;

	if (chance(s, 94))
		return below(s, rn_min_u64(s->qps, 2 * max_qps));
	if (chance(s, 60)) /* around the table's end */
		return (max_qps - 2 + below(s, 4)) & 0xffffff;
	return below(s, 1u << 24);
}

static uint64_t uar(uint32_t page, uint32_t offset)
{
	return RN_UAR_BASE + (uint64_t)page * RN_UAR_BYTES + offset;
}

/* A doorbell of 8 bytes: number and index. */
static void make_doorbell(struct random_stimulus *s, const struct rig *rig, uint32_t offset,
			  struct rn_mmio_write *write)
{
	uint32_t qpn = draw_qpn(s, rig);
	uint32_t page = s->has_foreign_pages ? draw_page(s) : qpn % 4;

	write->offset = uar(page, offset);
	write->len = 8;
	memcpy(write->data, &qpn, 3);
}

static void make_piece(struct random_stimulus *s, const struct rig *rig,
		       struct rn_mmio_write *write)
{
	struct writer *w = &s->writer[below(s, s->writers)];
	uint32_t piece = w->piece;
	struct rn_hw_wqe_ctrl ctrl;

	if (chance(s, s->disorder_percent))
		piece = below(s, 4);
	write->offset = uar(chance(s, 98) ? w->page : draw_page(s),
			    RN_UAR_BLUEFLAME + w->buffer * RN_UAR_BLUEFLAME_BYTES + piece * 64);
	write->len = 64;
	if (!piece) {
		uint32_t segments = chance(s, 90)   ? 1 + below(s, 16)
				    : chance(s, 30) ? 0
						    : below(s, 256);

		memcpy(&ctrl, write->data, sizeof(ctrl));
		ctrl.qpn_ds = draw_qpn(s, rig) << 8 | segments;
		memcpy(write->data, &ctrl, sizeof(ctrl));
		w->pieces = (uint32_t)rn_div_ceil(segments, 4);
	}
	w->piece = piece + 1 < w->pieces && piece < 3 ? piece + 1 : 0;
}

static void make_command(struct random_stimulus *s, struct rn_mmio_write *write)
{
	(void)s;
	write->offset = RN_REG_CMD_DOORBELL;
	write->len = 4;
}

static void make_base(struct random_stimulus *s, struct rn_mmio_write *write)
{
	uint32_t which = below(s, 3);

	write->offset = which == 1 ? RN_REG_CMD_BASE_HI : RN_REG_CMD_BASE_LO;
	write->len = which == 2 ? 8 : 4;
}

/* Any place and size: registers, the gap, pages, the end of the BAR, what lies behind. */
static void make_any(struct random_stimulus *s, struct rn_mmio_write *write)
{
	static const uint64_t ends[] = {
		0,
		0x30,
		0x1000,
		RN_UAR_BASE,
		RN_UAR_BASE + (uint64_t)RN_UAR_COUNT * RN_UAR_BYTES,
		RN_BAR_BYTES,
		UINT64_C(1) << 32,
		0,
	};
	static const uint32_t sizes[] = {4, 8, 16, 64};

	switch (below(s, 4)) {
	case 0:
		write->offset = 4 * below(s, 0x40 / 4);
		break;
	case 1:
		write->offset = uar(draw_page(s), 4 * below(s, RN_UAR_BYTES / 4));
		break;
	case 2:
		write->offset = rn_rng_below(&s->rng, RN_BAR_BYTES);
		break;
	default:
		write->offset = ends[below(s, RN_ARRAY_LEN(ends))] + below(s, 64) - 32;
		break;
	}
	write->len = chance(s, 70) ? sizes[below(s, RN_ARRAY_LEN(sizes))] : 1 + below(s, 64);
}

static void make_kind(struct random_stimulus *s, const struct rig *rig, enum write_kind kind,
		      struct rn_mmio_write *write)
{
	switch (kind) {
	case WRITE_SQ:
		make_doorbell(s, rig, RN_UAR_SQ_DOORBELL, write);
		break;
	case WRITE_ARM:
		make_doorbell(s, rig, RN_UAR_CQ_ARM, write);
		break;
	case WRITE_KICK:
		make_doorbell(s, rig, RN_UAR_RQ_KICK, write);
		break;
	case WRITE_BLUEFLAME:
		make_piece(s, rig, write);
		break;
	case WRITE_COMMAND:
		make_command(s, write);
		break;
	case WRITE_BASE:
		make_base(s, write);
		break;
	default:
		make_any(s, write);
		break;
	}
}

/* A legal write with one mistake: another size, a shifted address, another base. */
static void make_mistake(struct random_stimulus *s, struct rn_mmio_write *write)
{
	switch (below(s, 6)) {
	case 0:
		write->len = 4 + 4 * below(s, 16);
		break;
	case 1:
		write->len = 1 + below(s, 64);
		break;
	case 2:
		write->offset += 1 + below(s, 8);
		break;
	case 4: /* no TLP is so long, but all bits of the size count */
		write->len |= 1u << (7 + below(s, 25));
		break;
	case 3:
		write->offset ^= UINT64_C(1) << below(s, 28);
		break;
	default:
		write->offset |= UINT64_C(1) << (24 + below(s, 40));
		break;
	}
}

static enum write_kind draw_kind(struct random_stimulus *s)
{
	uint32_t all = 0;

	for (unsigned i = 0; i < WRITE_KINDS; i++)
		all += s->weight[i];

	uint32_t drawn = below(s, all);
	unsigned kind = 0;

	while (drawn >= s->weight[kind])
		drawn -= s->weight[kind++];
	return (enum write_kind)kind;
}

static void drive_write(struct random_stimulus *s, struct rig *rig)
{
	struct rn_mmio_write write = {.len = 0};
	enum write_kind kind = draw_kind(s);

	draw_bytes(s, write.data, sizeof(write.data));
	if (kind == WRITE_NEAR) {
		make_kind(s, rig, (enum write_kind)below(s, WRITE_NEAR), &write);
		make_mistake(s, &write);
	} else {
		make_kind(s, rig, kind, &write);
	}
	rig_write(rig, &write);
}

static void drive_read(struct random_stimulus *s, struct rig *rig)
{
	static const uint32_t sizes[] = {1, 2, 3, 5, 12, 16, 64};
	struct rn_mmio_read read = {
		.offset = 4 * below(s, 0x40 / 4),
		.len = chance(s, 50) ? 4 : 8,
		.tag = (uint32_t)rn_rng_next(&s->rng),
	};

	if (chance(s, 10))
		read.offset = rn_rng_next(&s->rng) >> below(s, 64);
	if (chance(s, 20)) /* the same but for an address bit */
		read.offset |= UINT64_C(1) << (chance(s, 20) ? 63 : 6 + below(s, 58));
	if (chance(s, 5))
		read.offset += 1 + below(s, 3);
	if (chance(s, 5))
		read.len = sizes[below(s, RN_ARRAY_LEN(sizes))];
	if (chance(s, 5))
		read.len |= 1u << below(s, 32);
	rig_read(rig, &read);
}

void random_drive(struct random_stimulus *s, struct rig *rig)
{
	if (rig->bench.cycle >= s->until_cycle)
		change_character(s, rig, rig->bench.cycle);
	for (unsigned i = 0; i < OUT_COUNT; i++)
		rig->ready[i] = chance(s, s->ready_percent[i]);
	/* Two may come in a cycle: the port's fill level then jumps. */
	for (unsigned i = 0; i < 2; i++)
		if (chance(s, s->write_percent) &&
		    rn_fifo_occupancy(rig->ports.mmio_write) < s->level)
			drive_write(s, rig);
	if (chance(s, s->read_percent) && rn_fifo_occupancy(rig->ports.mmio_read) < 4)
		drive_read(s, rig);
	if (chance(s, 2) && rn_fifo_occupancy(rig->ports.status) < 4)
		rig_status(rig, (uint32_t)rn_rng_next(&s->rng));
}
