/*
 * What programs seldom do to the units that exist in RTL: fifos fill, resets come, reads of tables abort, base registers
 * move, pages are of 2 MiB and 1 GiB, regions of more than 4 GiB, translations are out by the hundred. Run in lockstep
 * (RN_UNIT_MODE) a difference ends the process with status 71.
 *
 * usage: rtl_scenarios SCENARIO [KEY=VALUE]...     with settings as of rnicsim --set
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "nic/msg/pte.h"
#include "pcie/host_memory.h"
#include "pcie/root_complex.h"
#include "sim/stats.h"
#include "system/scripted/world.h"

#define PAGE 4096u
#define GIB (UINT64_C(1) << 30)
#define LINKS 6
#define KEYS 200
#define FOREIGN_PAGE                                                                               \
	4000u /* a doorbell page that belongs to nobody: what is written there is refused behind the unit */
#define SETS 64

static struct world world;
static struct world_link links[LINKS];
static struct rn_rng rng;
static const char *sets[SETS];

static void need(bool is_true, const char *what)
{
	if (is_true)
		return;
	fprintf(stderr, "rtl_scenarios: %s\n", what);
	exit(1);
}

static uint32_t below(uint32_t bound)
{
	return (uint32_t)rn_rng_below(&rng, bound);
}

static void start(const struct rn_scripted_path *path, unsigned count)
{
	static uint64_t seed;

	/* What registers hold before the reset depends on it. */
	rn_rng_init(&rng, ++seed, "scenario");
	world_init(&world, 2, sets);
	world.scenario->seed = seed;
	world_start(&world, NULL);
	for (unsigned i = 0; i < count; i++)
		world_connect(&world, 64 * PAGE, path, &links[i]);
}

static void post(struct world_link *link, const struct rn_scripted_wr *wr)
{
	if (rn_scripted_post(link->qp[0], wr) == RN_POST_OK)
		rn_scripted_ring(link->qp[0]);
}

/* Whatever has become of it. */
static void drain(struct world_link *link)
{
	struct rn_scripted_wc wc[64];

	while (rn_scripted_poll(link->cq[0], wc, 64) == 64)
		;
}

static void settle(void)
{
	rn_scripted_run_for(links[0].host[0], 200 * WORLD_US);
	for (unsigned i = 0; i < LINKS; i++)
		if (links[i].cq[0])
			drain(&links[i]);
}

/* --- resets --- */

/* Each world begins with a reset of whatever the registers hold. */
static void resets(void)
{
	for (unsigned i = 0; i < 4; i++) {
		struct rn_scripted_wr wr;
		uint32_t key;

		start(&RN_SCRIPTED_PATH, 1);
		wr = world_wr(&links[0], RN_WQE_RDMA_WRITE, 3 * PAGE);
		need(world_transfer(&links[0], &wr) == RN_WC_SUCCESS, "a write failed");
		for (unsigned n = 0; n < 3; n++) {
			need(!rn_scripted_reg_mr(links[0].host[1], links[0].buffer[1].va, PAGE, 7,
						 &key),
			     "no key");
			wr.rkey = key;
			wr.bytes = 64;
			need(world_transfer(&links[0], &wr) == RN_WC_SUCCESS, "a write failed");
			need(!rn_scripted_dereg_mr(links[0].host[1], key), "a key stays");
		}
		world_fini(&world);
	}
}

/* --- the doorbell unit --- */

static void mmio(unsigned host, uint64_t offset, const void *data, uint32_t bytes)
{
	struct rn_root_complex *rc = rn_system_root_complex(world.system, host);

	while (!rn_root_complex_mmio_write(rc, rn_sim_now_ps(world.sim), offset, data, bytes))
		rn_scripted_run_for(links[0].host[0], WORLD_US / 10);
}

static void forget(void *arg, uint64_t value)
{
	(void)arg;
	(void)value;
}

static void read_register(unsigned host)
{
	static const uint32_t registers[] = {RN_REG_ID,		 RN_REG_CAP_QUEUES,
					     RN_REG_CAP_MEMORY,	 RN_REG_CMD_BASE_LO,
					     RN_REG_CMD_BASE_HI, RN_REG_STATUS};
	struct rn_root_complex *rc = rn_system_root_complex(world.system, host);

	rn_root_complex_mmio_read(rc, rn_sim_now_ps(world.sim), registers[below(6)], 4, forget,
				  NULL);
}

static uint64_t page_offset(uint32_t offset)
{
	return RN_UAR_BASE + (uint64_t)(FOREIGN_PAGE + below(3)) * RN_UAR_BYTES + offset;
}

static void write_doorbell(unsigned host, uint32_t offset)
{
	const uint32_t words[2] = {below(24) | below(2) << 24, (uint32_t)rn_rng_next(&rng)};

	mmio(host, page_offset(offset), words, 8);
}

static void write_ring(unsigned host, uint32_t offset, uint32_t qps)
{
	uint32_t qpn = below(qps);
	const uint32_t words[2] = {qpn, (uint32_t)rn_rng_next(&rng)};

	mmio(host, RN_UAR_BASE + (uint64_t)(FOREIGN_PAGE + qpn) * RN_UAR_BYTES + offset, words, 8);
}

static void write_pieces(unsigned host)
{
	uint8_t piece[64];
	struct rn_hw_wqe_ctrl ctrl = {.wqe_idx = (uint16_t)below(65536)};
	uint32_t buffer = below(RN_UAR_BLUEFLAME_COUNT), count = 1 + below(4);
	uint64_t at = page_offset(RN_UAR_BLUEFLAME + buffer * RN_UAR_BLUEFLAME_BYTES);

	for (uint32_t i = 0; i < count; i++) {
		rn_scripted_fill(piece, sizeof(piece), rn_rng_next(&rng));
		ctrl.qpn_ds = below(24) << 8 | (4 * count - below(4));
		if (!i)
			memcpy(piece, &ctrl, sizeof(ctrl));
		/* Seldom another one than the next, or not at all. */
		if (below(8))
			mmio(host, at + (below(12) ? i : below(4)) * 64, piece, 64);
	}
}

static void write_anything(unsigned host)
{
	switch (below(8)) {
	case 0:
	case 1:
		write_doorbell(host, RN_UAR_SQ_DOORBELL);
		break;
	case 2:
		write_doorbell(host, RN_UAR_CQ_ARM);
		break;
	case 3:
	case 4:
		write_doorbell(host, RN_UAR_RQ_KICK);
		break;
	case 5:
		write_doorbell(host, 8 * below(16));
		break;
	default:
		write_pieces(host);
		break;
	}
}

/* The command unit's ring as it was last, again: nothing new in it. */
struct last_ring {
	struct rn_cmd_ring ring;
	bool has_ring;
};

static void note_ring(void *arg, const struct rn_fifo *fifo, const void *entry, uint64_t visible_ps)
{
	struct last_ring *last = arg;

	(void)fifo;
	(void)visible_ps;
	memcpy(&last->ring, entry, sizeof(last->ring));
	last->has_ring = true;
}

static void note_nothing(void *arg, const struct rn_fifo *fifo)
{
	(void)arg;
	(void)fifo;
}

static struct rn_fifo *fifo_of(const char *name)
{
	const struct rn_stats *stats = rn_system_stats(world.system);
	struct rn_fifo *fifo;

	for (size_t i = 0; (fifo = rn_stats_fifo_at(stats, i)); i++)
		if (!strcmp(fifo->name, name))
			return fifo;
	need(false, name);
	return NULL;
}

static void repeat_commands(const struct last_ring *last)
{
	uint32_t count = 1 + below(12), pi = (uint32_t)last->ring.pi;

	for (uint32_t i = 0; last->has_ring && i < count; i++)
		mmio(0, RN_REG_CMD_DOORBELL, &pi, 4);
}

/* Bursts on pages of nobody between the doorbells of real work, reads of registers among them. */
static void storm(void)
{
	struct last_ring last = {.has_ring = false};
	const struct rn_fifo_watch watch = {
		.arg = &last, .pushed = note_ring, .popped = note_nothing};
	struct rn_scripted_wr wr;
	uint32_t key;

	start(&RN_SCRIPTED_PATH, 2);
	rn_fifo_set_watch(fifo_of("host0.nic0.cmd_ring"), &watch);
	for (unsigned round = 0; round < 60; round++) {
		uint32_t count = 1 + below(120);

		wr = world_wr(&links[round % 2], RN_WQE_RDMA_WRITE, 1 + below(300));
		post(&links[round % 2], &wr);
		for (uint32_t i = 0; i < count; i++) {
			write_anything(round & 1);
			if (!below(10))
				read_register(round & 1);
		}
		/* Of few queue pairs, each on its page, then of more on any: kept ones are replaced, and others refused. */
		for (uint32_t i = 0; i < 400; i++)
			write_ring(0, round & 1 ? RN_UAR_RQ_KICK : RN_UAR_SQ_DOORBELL,
				   3 + round % 9);
		/* Doorbells of one kind alone: its port is the bottleneck then. */
		for (uint32_t i = 0; i < 100; i++)
			write_doorbell(0, (const uint32_t[]){RN_UAR_SQ_DOORBELL, RN_UAR_CQ_ARM,
							     RN_UAR_RQ_KICK}[round % 3]);
		repeat_commands(&last);
		if (round % 6 == 0)
			need(!rn_scripted_reg_mr(links[0].host[0], links[0].buffer[0].va, PAGE, 7,
						 &key),
			     "no key");
		rn_scripted_arm(links[0].cq[0], false);
		rn_scripted_run_for(links[0].host[0], (1 + below(3)) * WORLD_US);
		drain(&links[round % 2]);
	}
	settle();
	printf("kept %llu\n", (unsigned long long)world_nic_counter(&world, 0, "kept"));
	exit(0); /* refused doorbells leave nothing to be checked */
}

/* --- the PTE cache --- */

static void push_base(unsigned host, uint64_t mtt_shift, uint8_t log_mpts, uint8_t log_mtts)
{
	char name[32];
	struct rn_driver_icm icm;
	struct rn_pte_base base;
	struct rn_fifo *fifo;

	snprintf(name, sizeof(name), "host%u.nic0.pte_base", host);
	rn_driver_get_icm(world.driver[host], &icm);
	base = (struct rn_pte_base){.mpt_pa = icm.mpt_pa,
				    .mtt_pa = icm.mtt_pa - mtt_shift * RN_MTT_BYTES,
				    .log_mpts = log_mpts,
				    .log_mtts = log_mtts};
	fifo = fifo_of(name);
	if (rn_fifo_can_push(fifo))
		rn_fifo_push(fifo, &base);
}

/* All keys' translations stand @shift entries further on, as seen from a base that lies as much before. */
static void shift_tables(unsigned host, uint64_t shift)
{
	struct rn_driver_icm icm;

	rn_driver_get_icm(world.driver[host], &icm);
	for (uint64_t i = 0; i < 4096; i++) {
		struct rn_hw_mpt *mpt =
			rn_host_memory_at(rn_driver_memory(world.driver[host]),
					  icm.mpt_pa + i * RN_MPT_BYTES, RN_MPT_BYTES);

		if (mpt && mpt->state)
			mpt->mtt_index += shift;
	}
	push_base(host, shift, 24, 40);
}

static uint32_t new_key(const struct world_link *link, uint64_t offset, uint64_t bytes)
{
	uint32_t key;

	need(!rn_scripted_reg_mr(link->host[1], link->buffer[1].va + offset, bytes, 7, &key),
	     "no key");
	return key;
}

/* A key over @bytes in pages of 2^@log_page, all of which are the frame that page 0 of the buffer lies in. */
static uint32_t large_key(const struct world_link *link, uint8_t log_page, uint64_t va,
			  uint64_t bytes)
{
	uint32_t key = new_key(link, 0, 16 * PAGE);
	struct rn_hw_mpt *mpt = rn_scripted_mpt(link->host[1], key);
	uint64_t pages = (bytes + (UINT64_C(1) << log_page) - 1) >> log_page, pa;

	need(rn_driver_find_pa(rn_scripted_client(link->host[1]), link->buffer[1].va, &pa),
	     "no frame");
	mpt->log_page_bytes = log_page;
	mpt->start_va = va;
	mpt->length = bytes;
	need(pages <= 16, "too many pages");
	for (uint64_t i = 0; i < pages; i++)
		*rn_scripted_mtt(link->host[1], key, i) =
			(pa >> log_page << log_page) | RN_MTT_PRESENT;
	return key;
}

/* Where page 0 of the buffer lies in a page of 2^@log_page. */
static uint64_t place(const struct world_link *link, uint8_t log_page)
{
	uint64_t pa = 0;

	need(rn_driver_find_pa(rn_scripted_client(link->host[1]), link->buffer[1].va, &pa),
	     "no frame");
	return pa & ((UINT64_C(1) << log_page) - 1);
}

static void transfer(struct world_link *link, uint8_t opcode, uint32_t key, uint64_t va,
		     uint32_t bytes)
{
	struct rn_scripted_wr wr = world_wr(link, opcode, bytes);

	wr.rkey = key;
	wr.raddr = va;
	post(link, &wr);
}

static void large_pages(void)
{
	static const uint8_t logs[] = {21, 30, 16, 29};
	const uint64_t va = 64 * GIB;

	for (unsigned i = 0; i < 4; i++) {
		struct world_link *link = &links[i];
		uint64_t page = UINT64_C(1) << logs[i];
		uint32_t key = large_key(link, logs[i], va, 4 * page + 65536);

		for (unsigned n = 0; n < 4; n++)
			transfer(link, n & 1 ? RN_WQE_RDMA_READ : RN_WQE_RDMA_WRITE, key,
				 va + n * page + place(link, logs[i]), 64 + 600 * n);
		rn_scripted_run_for(link->host[0], 20 * WORLD_US);
		/* From a page's first byte; what lies there does not matter. */
		transfer(link, RN_WQE_RDMA_READ, key, va + page, 64);
		rn_scripted_run_for(link->host[0], 20 * WORLD_US);
		drain(link);
	}
}

/* More keys than the cache has entries, and invalidations while their translations are in use. */
static void many_keys(struct world_link *link, unsigned rounds)
{
	static uint32_t key[KEYS];

	for (unsigned i = 0; i < KEYS; i++)
		key[i] = new_key(link, i % 48 * PAGE, (1 + i % 16) * PAGE);
	for (unsigned round = 0; round < rounds; round++) {
		unsigned k = below(KEYS);

		for (unsigned n = 0; n < 8; n++) {
			unsigned at = n < 4 ? k : below(KEYS);

			transfer(link, n & 1 ? RN_WQE_RDMA_READ : RN_WQE_RDMA_WRITE, key[at],
				 link->buffer[1].va + at % 48 * PAGE + below(at % 16 * PAGE + 1),
				 1 + below(PAGE));
		}
		rn_scripted_run_for(link->host[0], below(4) * WORLD_US / 2);
		if (round % 3 == 0) {
			/* None of them uses it any more. */
			rn_scripted_run_for(link->host[0], 100 * WORLD_US);
			drain(link);
			transfer(link, RN_WQE_RDMA_READ, link->key[1], link->buffer[1].va,
				 16 * PAGE);
			rn_scripted_run_for(link->host[0], WORLD_US);
			need(!rn_scripted_dereg_mr(link->host[1], key[k]), "a key stays");
			key[k] = new_key(link, k % 48 * PAGE, (1 + k % 16) * PAGE);
		}
		if (round % 8 == 7)
			push_base(1, 0, 24, (uint8_t)(40 - round % 2));
	}
	settle();
}

static void tables(void)
{
	start(&RN_SCRIPTED_PATH, LINKS);
	many_keys(&links[5], 48);
	large_pages();
	shift_tables(1, 4096);
	for (unsigned n = 0; n < 8; n++)
		transfer(&links[5], RN_WQE_RDMA_WRITE, links[5].key[1],
			 links[5].buffer[1].va + n * PAGE, 200);
	settle();
	exit(0); /* tables that the driver did not write leave nothing to be checked */
}

/* The entry, or a line of translations, cannot be read: several wait for it and all are told. */
static void aborts(void)
{
	struct rn_hw_mpt *mpt;
	uint32_t key;

	start(&RN_SCRIPTED_PATH, LINKS);
	push_base(1, 0, 24, 40);
	rn_scripted_run_for(links[0].host[0], WORLD_US);
	for (unsigned i = 0; i < 3; i++)
		transfer(&links[i], RN_WQE_RDMA_WRITE, 0xfffff000, links[i].buffer[1].va, 64);
	settle();
	key = new_key(&links[3], 0, 16 * PAGE);
	mpt = rn_scripted_mpt(links[3].host[1], key);
	mpt->mtt_index = UINT64_C(1) << 36;
	for (unsigned i = 3; i < LINKS; i++)
		for (unsigned n = 0; n < 2; n++)
			transfer(&links[i], n ? RN_WQE_RDMA_READ : RN_WQE_RDMA_WRITE, key,
				 links[3].buffer[1].va + n * 2048, 512);
	settle();
	/* Once more: nothing of the line has stayed. */
	transfer(&links[3], RN_WQE_RDMA_WRITE, key, links[3].buffer[1].va, 64);
	settle();
	exit(0);
}

/* Small packets over a memory that answers late: translations are out by the hundred when the key goes. */
static void hoard(void)
{
	struct rn_scripted_path path = RN_SCRIPTED_PATH;

	path.mtu_bytes = 256;
	path.rd_atomic = 16;
	start(&path, 4);
	for (unsigned round = 0; round < 3; round++) {
		uint32_t key = new_key(&links[0], 0, PAGE);

		/* Long enough for the command to find them. */
		for (unsigned i = 0; i < 4; i++)
			for (unsigned n = 0; n < 2; n++)
				transfer(&links[i], RN_WQE_RDMA_READ, links[i].key[1],
					 links[i].buffer[1].va, 64 * PAGE);
		rn_scripted_run_for(links[0].host[0], 60 * WORLD_US);
		need(!rn_scripted_dereg_mr(links[0].host[1], key), "a key stays");
		settle();
	}
	exit(0); /* what is still being read is of no interest */
}

static const struct {
	const char *name;
	void (*run)(void);
} scenarios[] = {{"resets", resets},
		 {"storm", storm},
		 {"tables", tables},
		 {"aborts", aborts},
		 {"hoard", hoard}};

int main(int argc, char **argv)
{
	for (int i = 2; i < argc && i < SETS; i++)
		sets[i - 2] = argv[i];
	for (size_t i = 0; argc > 1 && i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (strcmp(scenarios[i].name, argv[1]) != 0)
			continue;
		scenarios[i].run();
		return 0;
	}
	fprintf(stderr, "usage: rtl_scenarios resets|storm|tables|aborts|hoard [KEY=VALUE]...\n");
	return 2;
}
