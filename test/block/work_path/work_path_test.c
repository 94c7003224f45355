/*
 * Doorbell unit, scheduler, WQE fetcher, CQE writer and event queues in a row, with a transport that completes
 * each WQE at once: from the BAR write to the interrupt, and the same in every order of ticks.
 */
#include <check.h>
#include <string.h>

#include "base/bits.h"
#include "base/rng.h"
#include "block/common2/stub.h"
#include "hw/gen/rnic_hw.h"
#include "nic/cqe/cqe.h"
#include "nic/doorbell/doorbell.h"
#include "nic/eq/eq.h"
#include "nic/msg/control.h"
#include "nic/sched/sched.h"
#include "nic/wqe_fetch/wqe_fetch.h"
#include "run_suite.h"

#define QPS 4
#define SLOTS 16
#define LOG_WQEBBS 5
#define LOG_CQES 6
#define EQ_PA 0xf0000

/* The transport: takes a work, completes its WQE, ends the turn. A block, so that its order is permuted too. */
struct transport {
	struct rn_block block;
	struct rn_fifo *work, *turn, *sq_free, *completion;
};

static struct bench bench;
static struct stub_memory memory;
static struct stub_dma dma[4]; /* send WQEs, receive WQEs, CQEs, EQEs */
static struct stub_context qp_context, cq_context;
static struct rn_hw_qpc qpc[QPS];
static struct rn_hw_cqc cqc[1];
static struct rn_context_sram qpc_sram = {
	.lines = (uint8_t *)qpc, .bytes = sizeof(qpc[0]), .count = QPS};
static struct rn_context_sram cqc_sram = {
	.lines = (uint8_t *)cqc, .bytes = sizeof(cqc[0]), .count = 1};
static struct rn_wqe sq_slot[SLOTS], rq_slot[SLOTS];
static struct rn_wqe_slots sq_slots = {sq_slot, SLOTS}, rq_slots = {rq_slot, SLOTS};
static struct transport transport;
static struct rn_doorbell *doorbell;
static struct rn_sched *sched;
static struct rn_wqe_fetch *fetch;
static struct rn_cqe *cqe;
static struct rn_eq *eq;
static struct rn_fifo *mmio_write, *mmio_read, *rq_fetch, *eq_ctl;
static uint64_t trace; /* hash of (cycle, DMA request) */

static struct rn_fifo *fifo(const char *name, uint32_t depth, size_t entry_bytes)
{
	return bench_fifo(&bench, name, depth, (uint32_t)entry_bytes);
}

static void transport_tick(void *self, uint64_t cycle)
{
	struct transport *tx = self;
	struct rn_work work;

	(void)cycle;
	if (!rn_fifo_can_push(tx->completion) || !rn_fifo_can_push(tx->turn) ||
	    !rn_fifo_can_push(tx->sq_free) || !rn_fifo_pop(tx->work, &work))
		return;
	if (work.status == RN_WORK_BAD_QP) {
		/* It knows no better than the doorbell. */
		rn_fifo_push(tx->turn, &(struct rn_turn){.qpn = work.qpn,
							 .kind = RN_TURN_END,
							 .next = work.pi});
		return;
	}
	ck_assert_uint_eq(work.status, RN_WORK_OK);
	const struct rn_wqe *wqe = &sq_slot[work.slot];
	uint16_t next = wqe->wqe_idx + wqe->wqebbs;

	ck_assert(wqe->valid);
	rn_put_le32(qpc[work.qpn].requester + offsetof(struct rn_hw_qpc_requester, sq_next), next);
	rn_fifo_push(tx->completion,
		     &(struct rn_completion){.qpn = work.qpn, .wqe_idx = wqe->wqe_idx});
	rn_fifo_push(tx->sq_free, &(struct rn_slot_free){.slot = work.slot});
	rn_fifo_push(tx->turn,
		     &(struct rn_turn){.qpn = work.qpn, .kind = RN_TURN_END, .next = next});
}

static void make_stub_dma(unsigned idx, struct rn_fifo *req, struct rn_fifo *rsp)
{
	dma[idx] = (struct stub_dma){.bench = &bench, .memory = &memory, .req = req, .rsp = rsp};
}

static void make_objects(void)
{
	memset(&memory, 0, sizeof(memory));
	for (uint32_t qpn = 0; qpn < QPS; qpn++) {
		qpc[qpn] = (struct rn_hw_qpc){.state = RN_QPS_RTS,
					      .qpn = qpn,
					      .uar_page = qpn,
					      .sq_mkey = qpn + 1,
					      .log_sq_wqebbs = LOG_WQEBBS};
		memory.region[memory.regions++] = (struct stub_region){
			.key = qpn + 1, .base = 0x1000 * (qpn + 1), .bytes = 64u << LOG_WQEBBS};
	}
	cqc[0] = (struct rn_hw_cqc){
		.state = 1, .log_cqes = LOG_CQES, .eqn = 1, .mkey = 0x50, .dbr_pa = 0x800};
	memory.region[memory.regions++] =
		(struct stub_region){.key = 0x50, .base = 0x20000, .bytes = 64u << LOG_CQES};
}

static void build_front(struct rn_fifo *bind, struct rn_fifo *blueflame, struct rn_fifo *sq_ring,
			struct rn_fifo *cq_ring)
{
	struct rn_doorbell_params params;
	struct rn_sched_params sched_params;
	struct rn_wqe_fetch_params fetch_params;
	struct rn_fifo *turn = fifo("turn", 8, sizeof(struct rn_turn));
	struct rn_fifo *grant = fifo("grant", 8, sizeof(struct rn_grant));
	struct rn_fifo *work = fifo("work", 8, sizeof(struct rn_work));
	struct rn_fifo *sq_free = fifo("free", 8, sizeof(struct rn_slot_free));
	struct rn_fifo *sq_req = fifo("sqreq", 4, sizeof(struct rn_dma_req));
	struct rn_fifo *sq_rsp = fifo("sqrsp", 64, sizeof(struct rn_dma_rsp));
	struct rn_fifo *rq_req = fifo("rqreq", 4, sizeof(struct rn_dma_req));
	struct rn_fifo *rq_rsp = fifo("rqrsp", 64, sizeof(struct rn_dma_rsp));
	struct rn_fifo *context_req = fifo("creq", 4, sizeof(struct rn_context_req));
	struct rn_fifo *context_rsp = fifo("crsp", 4, sizeof(struct rn_context_rsp));

	rn_params_set_defaults(&rn_doorbell_param_table, &params);
	rn_params_set_defaults(&rn_sched_param_table, &sched_params);
	rn_params_set_defaults(&rn_wqe_fetch_param_table, &fetch_params);
	mmio_write = fifo("write", 64, sizeof(struct rn_mmio_write));
	mmio_read = fifo("read", 4, sizeof(struct rn_mmio_read));
	rq_fetch = fifo("rqf", 4, sizeof(struct rn_rq_fetch));
	doorbell = rn_doorbell_new(
		&bench.env, &params, &(struct rn_doorbell_identity){0},
		&(struct rn_doorbell_ports){
			.mmio_write = mmio_write,
			.mmio_read = mmio_read,
			.mmio_read_rsp = fifo("rrsp", 4, sizeof(struct rn_mmio_read_rsp)),
			.sq_ring = sq_ring,
			.blueflame = blueflame,
			.cq_ring = cq_ring,
			.rq_ring = fifo("rqr", 4, sizeof(struct rn_rq_ring)),
			.cmd_ring = fifo("cmdr", 4, sizeof(struct rn_cmd_ring))});
	sched = rn_sched_new(
		&bench.env, &sched_params,
		&(struct rn_sched_ports){
			.sq_ring = sq_ring, .turn = turn, .bind = bind, .grant = grant});
	fetch = rn_wqe_fetch_new(
		&bench.env, &fetch_params,
		&(struct rn_wqe_fetch_ports){
			.grant = grant,
			.blueflame = blueflame,
			.sq_free = sq_free,
			.sq_forget = fifo("forget", 4, sizeof(struct rn_wqe_forget)),
			.rq_fetch = rq_fetch,
			.rq_free = fifo("rqfree", 4, sizeof(struct rn_slot_free)),
			.context_rsp = context_rsp,
			.sq_dma_rsp = sq_rsp,
			.rq_dma_rsp = rq_rsp,
			.bind = bind,
			.work = work,
			.rq_fetch_rsp = fifo("rqfr", 4, sizeof(struct rn_rq_fetch_rsp)),
			.context_req = context_req,
			.sq_dma_req = sq_req,
			.rq_dma_req = rq_req,
			.qpc = &qpc_sram,
			.sq_slots = &sq_slots,
			.rq_slots = &rq_slots});
	make_stub_dma(0, sq_req, sq_rsp);
	make_stub_dma(1, rq_req, rq_rsp);
	qp_context = (struct stub_context){
		.bench = &bench, .req = context_req, .rsp = context_rsp, .lines = QPS};
	transport.work = work;
	transport.turn = turn;
	transport.sq_free = sq_free;
}

static void build_back(struct rn_fifo *cq_ring)
{
	struct rn_cqe_params params;
	struct rn_eq_params eq_params;
	struct rn_fifo *event = fifo("event", 4, sizeof(struct rn_event));
	struct rn_fifo *cqe_req = fifo("cqreq", 4, sizeof(struct rn_dma_req));
	struct rn_fifo *cqe_rsp = fifo("cqrsp", 64, sizeof(struct rn_dma_rsp));
	struct rn_fifo *eq_req = fifo("eqreq", 4, sizeof(struct rn_dma_req));
	struct rn_fifo *eq_rsp = fifo("eqrsp", 64, sizeof(struct rn_dma_rsp));
	struct rn_fifo *context_req = fifo("ccreq", 4, sizeof(struct rn_context_req));
	struct rn_fifo *context_rsp = fifo("ccrsp", 4, sizeof(struct rn_context_rsp));

	rn_params_set_defaults(&rn_cqe_param_table, &params);
	rn_params_set_defaults(&rn_eq_param_table, &eq_params);
	transport.completion = fifo("compl", 4, sizeof(struct rn_completion));
	eq_ctl = fifo("eqctl", 2, sizeof(struct rn_eq_ctl));
	cqe = rn_cqe_new(&bench.env, &params,
			 &(struct rn_cqe_ports){
				 .tx_completion = transport.completion,
				 .rx_completion = fifo("rxc", 4, sizeof(struct rn_completion)),
				 .cq_ring = cq_ring,
				 .ctl = fifo("cqctl", 2, sizeof(struct rn_cq_ctl)),
				 .context_rsp = context_rsp,
				 .dma_rsp = cqe_rsp,
				 .event = event,
				 .ctl_done = fifo("cqdone", 2, sizeof(struct rn_ctl_done)),
				 .context_req = context_req,
				 .dma_req = cqe_req,
				 .cqc = &cqc_sram});
	eq = rn_eq_new(&bench.env, &eq_params,
		       &(struct rn_eq_ports){.cqe_event = event,
					     .tx_event = fifo("txe", 2, sizeof(struct rn_event)),
					     .rx_event = fifo("rxe", 2, sizeof(struct rn_event)),
					     .cmd_event = fifo("cmde", 2, sizeof(struct rn_event)),
					     .ctl = eq_ctl,
					     .dma_rsp = eq_rsp,
					     .ctl_done =
						     fifo("eqdone", 2, sizeof(struct rn_ctl_done)),
					     .dma_req = eq_req});
	make_stub_dma(2, cqe_req, cqe_rsp);
	make_stub_dma(3, eq_req, eq_rsp);
	cq_context = (struct stub_context){
		.bench = &bench, .req = context_req, .rsp = context_rsp, .lines = 1};
}

static void note(uint64_t value)
{
	trace = (trace ^ value) * UINT64_C(0x100000001b3);
}

static void run(unsigned cycles)
{
	for (unsigned i = 0; i < cycles; i++) {
		bench_run(&bench, 1);
		for (unsigned d = 0; d < RN_ARRAY_LEN(dma); d++) {
			stub_dma_serve(&dma[d]);
			for (uint32_t j = 0; j < dma[d].count; j++) {
				note(bench.cycle);
				note(dma[d].log[j].addr << 8 | dma[d].log[j].op);
			}
			ck_assert_uint_eq(dma[d].answered, dma[d].count);
			dma[d].answered = dma[d].count = 0;
		}
		stub_context_serve(&qp_context);
		stub_context_serve(&cq_context);
	}
}

static void build(uint64_t permute_seed)
{
	bench_init(&bench, permute_seed);
	trace = UINT64_C(0xcbf29ce484222325);
	make_objects();

	struct rn_fifo *cq_ring = fifo("cqring", 8, sizeof(struct rn_cq_ring));

	build_front(fifo("bind", 4, sizeof(struct rn_bind)),
		    fifo("bf", 4, sizeof(struct rn_blueflame)),
		    fifo("sqring", 8, sizeof(struct rn_sq_ring)), cq_ring);
	build_back(cq_ring);
	rn_block_init(&transport.block, bench.sim, &bench.clock, "nic.transport", transport_tick,
		      &transport);
	rn_fifo_set_consumer(transport.work, &transport.block);
	rn_fifo_set_producer(transport.turn, &transport.block);
	rn_fifo_set_producer(transport.sq_free, &transport.block);
	rn_fifo_set_producer(transport.completion, &transport.block);
	rn_fifo_push(eq_ctl,
		     &(struct rn_eq_ctl){
			     .create = 1, .eqn = 1, .log_eqes = 6, .vector = 1, .base_pa = EQ_PA});
	run(10);
}

static void take_down(void)
{
	rn_eq_free(eq);
	rn_cqe_free(cqe);
	rn_wqe_fetch_free(fetch);
	rn_sched_free(sched);
	rn_doorbell_free(doorbell);
	bench_fini(&bench);
}

static void write_bar(uint32_t page, uint32_t offset, const void *data, uint32_t len)
{
	struct rn_mmio_write write = {.offset = RN_UAR_BASE + page * RN_UAR_BYTES + offset,
				      .len = len};

	memcpy(write.data, data, len);
	rn_fifo_push(mmio_write, &write);
}

static void post(uint32_t qpn, uint16_t idx, bool by_blueflame)
{
	struct rn_hw_wqe_ctrl ctrl = {.opcode = RN_WQE_SEND,
				      .flags = RN_WQE_SIGNALED,
				      .wqe_idx = idx,
				      .qpn_ds = qpn << 8 | 1};
	uint8_t wqe[64] = {0};

	memcpy(wqe, &ctrl, sizeof(ctrl));
	memcpy(memory.bytes + 0x1000 * (qpn + 1) + (idx & ((1 << LOG_WQEBBS) - 1)) * 64, wqe, 64);
	if (by_blueflame)
		write_bar(qpn, RN_UAR_BLUEFLAME, wqe, 64);
	else
		write_bar(qpn, RN_UAR_SQ_DOORBELL,
			  &(struct rn_hw_sq_doorbell){.qpn = qpn, .pi = idx + 1u}, 8);
}

static void arm(uint32_t ci)
{
	write_bar(0, RN_UAR_CQ_ARM, &(struct rn_hw_cq_arm){.ci = ci & 0xffffff}, 8);
}

static uint64_t counter(const char *unit, const char *name)
{
	return bench_counter(&bench, unit, name);
}

/* Random posts on all QPs, arms now and then; returns the trace. */
static uint64_t drive(uint64_t permute_seed)
{
	struct rn_rng rng;
	uint16_t pi[QPS] = {0};
	uint32_t posted = 0;

	build(permute_seed);
	rn_rng_init(&rng, 1, "drive");
	for (unsigned i = 0; i < 3000; i++) {
		uint32_t qpn = (uint32_t)rn_rng_below(&rng, QPS);

		if (posted - cqc[0].pi < 20 && rn_fifo_occupancy(mmio_write) < 60) {
			post(qpn, pi[qpn]++, rn_rng_below(&rng, 2));
			posted++;
		}
		rn_put_le32(memory.bytes + 0x800, cqc[0].pi);
		if (!rn_rng_below(&rng, 16))
			arm(cqc[0].pi);
		run(1 + (unsigned)rn_rng_below(&rng, 8));
	}
	run(2000);
	ck_assert_uint_eq(counter("cqe", "cqes"), posted);
	ck_assert_uint_eq(counter("cqe", "cq_overruns"), 0);
	ck_assert_uint_gt(counter("wqe_fetch", "blueflame_hits"), 100);
	ck_assert_uint_gt(counter("eq", "interrupts"), 50);
	ck_assert_uint_eq(counter("eq", "interrupts"), counter("cqe", "completion_events"));
	take_down();
	return trace;
}

START_TEST(a_doorbell_ends_in_a_cqe_and_an_interrupt)
{
	struct rn_hw_cqe entry;

	build(0);
	arm(0);
	post(2, 0, false);
	run(200);
	memcpy(&entry, memory.bytes + 0x20000, sizeof(entry));
	ck_assert_uint_eq(entry.qpn, 2);
	ck_assert_uint_eq(entry.owner, 1);
	ck_assert_uint_eq(counter("eq", "interrupts"), 1);
	take_down();
}
END_TEST

START_TEST(a_stranger_cannot_hide_or_spend_another_ones_doorbells)
{
	build(0);
	/* QP 2 belongs to page 2; page 3 rings it first, in between and last. */
	write_bar(3, RN_UAR_SQ_DOORBELL, &(struct rn_hw_sq_doorbell){.qpn = 2, .pi = 999}, 8);
	post(2, 0, false);
	write_bar(3, RN_UAR_SQ_DOORBELL, &(struct rn_hw_sq_doorbell){.qpn = 2, .pi = 0}, 8);
	run(300);
	ck_assert_uint_eq(counter("cqe", "cqes"), 1);
	ck_assert_uint_ge(counter("sched", "rings_bad_page"), 1);
	take_down();
}
END_TEST

START_TEST(the_order_of_ticks_changes_nothing)
{
	uint64_t first = drive(0);

	for (uint64_t seed = 1; seed <= 5; seed++)
		ck_assert(drive(seed) == first);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("work_path");

	tcase_add_test(tcase, a_doorbell_ends_in_a_cqe_and_an_interrupt);
	tcase_add_test(tcase, a_stranger_cannot_hide_or_spend_another_ones_doorbells);
	tcase_add_test(tcase, the_order_of_ticks_changes_nothing);
	return run_suite(tcase, "work_path");
}
