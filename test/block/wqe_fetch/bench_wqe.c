#include "block/wqe_fetch/bench_wqe.h"

#include <check.h>
#include <string.h>

#include "base/bits.h"

struct bench_wqe wb;

static uint32_t sq_base(uint32_t qpn)
{
	return 0x10000 + qpn * 0x2000;
}

static uint32_t rq_base(uint32_t qpn)
{
	return 0x80000 + qpn * 0x2000;
}

static uint32_t dbr_pa(uint32_t qpn)
{
	return 0x1000 + qpn * 64;
}

static void make_ports(void)
{
	struct bench *bench = &wb.bench;

	wb.ports = (struct rn_wqe_fetch_ports){
		.grant = bench_fifo(bench, "grant", 16, sizeof(struct rn_grant)),
		.blueflame = bench_fifo(bench, "bf", 16, sizeof(struct rn_blueflame)),
		.sq_free = bench_fifo(bench, "sqfree", 16, sizeof(struct rn_slot_free)),
		.sq_forget = bench_fifo(bench, "forget", 4, sizeof(struct rn_wqe_forget)),
		.rq_fetch = bench_fifo(bench, "rq", 16, sizeof(struct rn_rq_fetch)),
		.rq_free = bench_fifo(bench, "rqfree", 16, sizeof(struct rn_slot_free)),
		.context_rsp = bench_fifo(bench, "crsp", 4, sizeof(struct rn_context_rsp)),
		.sq_dma_rsp = bench_fifo(bench, "sqrsp", 16, sizeof(struct rn_dma_rsp)),
		.rq_dma_rsp = bench_fifo(bench, "rqrsp", 16, sizeof(struct rn_dma_rsp)),
		.bind = bench_fifo(bench, "bind", 2, sizeof(struct rn_bind)),
		.work = bench_fifo(bench, "work", 16, sizeof(struct rn_work)),
		.rq_fetch_rsp = bench_fifo(bench, "rqfr", 16, sizeof(struct rn_rq_fetch_rsp)),
		.context_req = bench_fifo(bench, "creq", 2, sizeof(struct rn_context_req)),
		.sq_dma_req = bench_fifo(bench, "sqreq", 4, sizeof(struct rn_dma_req)),
		.rq_dma_req = bench_fifo(bench, "rqreq", 4, sizeof(struct rn_dma_req)),
		.qpc = &wb.sram,
		.sq_slots = &wb.sq_slots,
		.rq_slots = &wb.rq_slots,
	};
}

static void make_qp(uint32_t qpn)
{
	wb.qpc[qpn] = (struct rn_hw_qpc){.state = RN_QPS_RTS,
					 .service = RN_QPT_RC,
					 .qpn = qpn,
					 .pd = PD,
					 .uar_page = PAGE,
					 .sq_mkey = 0x100 + qpn,
					 .rq_mkey = 0x200 + qpn,
					 .log_sq_wqebbs = LOG_WQEBBS,
					 .log_rq_wqes = LOG_RQ,
					 .log_rq_segments = LOG_RQ_SEGMENTS,
					 .rq_max_sge = 3,
					 .dbr_pa = dbr_pa(qpn)};
}

static void add_region(uint32_t key, uint32_t base, uint32_t bytes)
{
	wb.memory.region[wb.memory.regions++] =
		(struct stub_region){.key = key, .pd = PD, .base = base, .bytes = bytes};
}

void set_up(void)
{
	wb = (struct bench_wqe){
		.sram = {.lines = (uint8_t *)wb.qpc, .bytes = sizeof(wb.qpc[0]), .count = QPS},
		.sq_slots = {wb.sq_slot, SLOTS},
		.rq_slots = {wb.rq_slot, SLOTS}};
	rn_params_set_defaults(&rn_wqe_fetch_param_table, &wb.params);
	for (uint32_t qpn = 0; qpn < QPS; qpn++)
		make_qp(qpn);
	for (uint32_t qpn = 1; qpn <= 4; qpn++) {
		add_region(0x100 + qpn, sq_base(qpn), 64u << LOG_WQEBBS);
		add_region(0x200 + qpn, rq_base(qpn), 16u << (LOG_RQ + LOG_RQ_SEGMENTS));
	}
	bench_init(&wb.bench, 0);
}

void build(void)
{
	make_ports();
	wb.fetch = rn_wqe_fetch_new(&wb.bench.env, &wb.params, &wb.ports);
	wb.sq_dma = (struct stub_dma){.bench = &wb.bench,
				      .memory = &wb.memory,
				      .req = wb.ports.sq_dma_req,
				      .rsp = wb.ports.sq_dma_rsp};
	wb.rq_dma = (struct stub_dma){.bench = &wb.bench,
				      .memory = &wb.memory,
				      .req = wb.ports.rq_dma_req,
				      .rsp = wb.ports.rq_dma_rsp};
	wb.context = (struct stub_context){.bench = &wb.bench,
					   .req = wb.ports.context_req,
					   .rsp = wb.ports.context_rsp,
					   .lines = QPS};
	run(1);
}

void tear_down(void)
{
	struct rn_blueflame bf;

	ck_assert_uint_le(wb.context.most_held, 1);
	while (rn_fifo_pop(wb.ports.blueflame, &bf))
		rn_buffer_put(wb.bench.buffers, bf.buf);
	rn_wqe_fetch_free(wb.fetch);
	bench_fini(&wb.bench);
}

void run(unsigned cycles)
{
	for (unsigned i = 0; i < cycles; i++) {
		bench_run(&wb.bench, 1);
		stub_dma_serve(&wb.sq_dma);
		stub_dma_serve(&wb.rq_dma);
		stub_context_serve(&wb.context);
	}
}

uint64_t count(const char *name)
{
	return bench_counter(&wb.bench, "wqe_fetch", name);
}

uint8_t *sq_wqe(uint32_t qpn, uint16_t idx)
{
	return wb.memory.bytes + sq_base(qpn) + (idx & ((1u << LOG_WQEBBS) - 1)) * 64u;
}

uint8_t *rq_wqe(uint32_t qpn, uint16_t idx)
{
	return wb.memory.bytes + rq_base(qpn) +
	       (idx & ((1u << LOG_RQ) - 1)) * (16u << LOG_RQ_SEGMENTS);
}

void set_sq_next(uint32_t qpn, uint16_t idx)
{
	rn_put_le32(wb.qpc[qpn].requester + offsetof(struct rn_hw_qpc_requester, sq_next), idx);
}

void set_rq_pi(uint32_t qpn, uint16_t pi)
{
	/* The upper half is the program's free-running counter, of no interest. */
	rn_put_le32(wb.memory.bytes + dbr_pa(qpn), 0xabcd0000u | pi);
}

/* Copy @segments segments into the ring, round its end. */
static void put_segments(uint32_t qpn, uint16_t idx, const uint8_t *bytes, unsigned segments)
{
	for (unsigned i = 0; i < segments; i++)
		memcpy(sq_wqe(qpn, (uint16_t)(idx + i / 4)) + i % 4 * 16, bytes + i * 16, 16);
}

void post_write(uint32_t qpn, uint16_t idx, unsigned sges)
{
	uint8_t wqe[1024] = {0};
	struct rn_hw_wqe_ctrl ctrl = {.opcode = RN_WQE_RDMA_WRITE,
				      .flags = RN_WQE_SIGNALED,
				      .wqe_idx = idx,
				      .qpn_ds = qpn << 8 | (2 + sges)};
	struct rn_hw_wqe_raddr raddr = {.va = idx, .rkey = 0x77};

	memcpy(wqe, &ctrl, 16);
	memcpy(wqe + 16, &raddr, 16);
	for (unsigned i = 0; i < sges; i++)
		memcpy(wqe + 32 + i * 16,
		       &(struct rn_hw_wqe_data){.bytes = 100, .lkey = i + 1, .va = 4096 * i}, 16);
	put_segments(qpn, idx, wqe, 2 + sges);
}

void post_recv(uint32_t qpn, uint16_t idx)
{
	uint8_t *wqe = rq_wqe(qpn, idx);

	memcpy(wqe, &(struct rn_hw_wqe_data){.bytes = 64, .lkey = 5, .va = 1000 + idx}, 16);
	memcpy(wqe + 16, &(struct rn_hw_wqe_data){.lkey = RN_LKEY_INVALID, .bytes = 99}, 16);
}

void grant(uint32_t qpn, uint16_t pi)
{
	rn_fifo_push(wb.ports.grant, &(struct rn_grant){.qpn = qpn, .uar_page = PAGE, .pi = pi});
}

struct rn_work want_work(uint32_t qpn, enum rn_work_status status)
{
	struct rn_work work = {0};

	for (unsigned i = 0; i < 100 && !rn_fifo_peek(wb.ports.work); i++)
		run(1);
	ck_assert(rn_fifo_pop(wb.ports.work, &work));
	ck_assert_uint_eq(work.qpn, qpn);
	ck_assert_uint_eq(work.status, status);
	return work;
}

struct rn_wqe want_wqe(uint32_t qpn, uint16_t idx)
{
	struct rn_work work = want_work(qpn, RN_WORK_OK);
	struct rn_wqe wqe = wb.sq_slot[work.slot];

	ck_assert_uint_eq(wqe.wqe_idx, idx);
	rn_fifo_push(wb.ports.sq_free, &(struct rn_slot_free){.slot = work.slot});
	return wqe;
}

void request_recv(uint32_t qpn, uint16_t idx)
{
	rn_fifo_push(wb.ports.rq_fetch,
		     &(struct rn_rq_fetch){.qpn = qpn, .idx = idx, .token = 0x4242});
}

struct rn_rq_fetch_rsp want_recv(enum rn_work_status status)
{
	struct rn_rq_fetch_rsp rsp = {0};

	for (unsigned i = 0; i < 100 && !rn_fifo_peek(wb.ports.rq_fetch_rsp); i++)
		run(1);
	ck_assert(rn_fifo_pop(wb.ports.rq_fetch_rsp, &rsp));
	ck_assert_uint_eq(rsp.token, 0x4242);
	ck_assert_uint_eq(rsp.status, status);
	if (status == RN_WORK_OK && rsp.slot < SLOTS)
		rn_fifo_push(wb.ports.rq_free, &(struct rn_slot_free){.slot = rsp.slot});
	return rsp;
}
