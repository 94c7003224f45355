/*
 * What the tests of the WQE fetcher share: the block with stand-ins for DMA and context cache, queue pairs
 * with rings in memory, and the ends that scheduler and transport have.
 */
#ifndef RN_TEST_BLOCK_WQE_FETCH_BENCH_WQE_H
#define RN_TEST_BLOCK_WQE_FETCH_BENCH_WQE_H

#include "block/common2/stub.h"
#include "hw/gen/rnic_hw.h"
#include "nic/msg/doorbell.h"
#include "nic/wqe_fetch/wqe_fetch.h"

#define QPS 8
#define PAGE 4
#define PD 3
#define LOG_WQEBBS 6
#define LOG_RQ 4
#define LOG_RQ_SEGMENTS 2
#define SLOTS 8

struct bench_wqe {
	struct bench bench;
	struct rn_wqe_fetch_params params;
	struct rn_wqe_fetch_ports ports;
	struct rn_wqe_fetch *fetch;
	struct stub_memory memory;
	struct stub_dma sq_dma, rq_dma;
	struct stub_context context;
	struct rn_hw_qpc qpc[QPS];
	struct rn_context_sram sram;
	struct rn_wqe sq_slot[SLOTS], rq_slot[SLOTS];
	struct rn_wqe_slots sq_slots, rq_slots;
};

extern struct bench_wqe wb;

/** Parameters at their defaults; then the test changes them; then build(). */
void set_up(void);
void build(void);
void tear_down(void);

void run(unsigned cycles);
uint64_t count(const char *name);

/** Bytes of a queue's ring in memory. */
uint8_t *sq_wqe(uint32_t qpn, uint16_t idx);
uint8_t *rq_wqe(uint32_t qpn, uint16_t idx);
void set_sq_next(uint32_t qpn, uint16_t idx);
void set_rq_pi(uint32_t qpn, uint16_t pi);

/** Write a WRITE WQE of @sges segments of 100 bytes each, raddr = its index. */
void post_write(uint32_t qpn, uint16_t idx, unsigned sges);
/** A receive WQE of one segment at address 1000 + idx. */
void post_recv(uint32_t qpn, uint16_t idx);

void grant(uint32_t qpn, uint16_t pi);
/** The next work, after at most 100 cycles; fails when there is none. */
struct rn_work want_work(uint32_t qpn, enum rn_work_status status);
/** A good work: its WQE, whose slot is given back. */
struct rn_wqe want_wqe(uint32_t qpn, uint16_t idx);

void request_recv(uint32_t qpn, uint16_t idx);
struct rn_rq_fetch_rsp want_recv(enum rn_work_status status);

#endif
