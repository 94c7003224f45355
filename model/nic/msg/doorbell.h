/*
 * What the doorbell unit decodes from BAR writes, and the BAR port itself.
 */
#ifndef RN_NIC_MSG_DOORBELL_H
#define RN_NIC_MSG_DOORBELL_H

#include <stdint.h>

/* One posted write to BAR0, from the PCIe endpoint to the doorbell unit. */
struct rn_mmio_write {
	uint64_t offset;
	uint32_t len; /* 4 .. 64 */
	uint32_t reserved;
	uint8_t data[64];
};

/* A register read, and its answer (becomes a CplD). */
struct rn_mmio_read {
	uint64_t offset;
	uint32_t len; /* 4 or 8 */
	uint32_t tag;
};

struct rn_mmio_read_rsp {
	uint32_t tag;
	uint32_t reserved;
	uint64_t value; /* all ones for an address without a register */
};

/* doorbell -> sched */
struct rn_sq_ring {
	uint32_t qpn;
	uint32_t uar_page; /* page it was written to; checked against the QP's */
	uint16_t pi;	   /* WQEBB producer index */
	uint16_t reserved;
};

/* doorbell -> wqe_fetch: a whole WQE that came by BlueFlame; dropped when there is no slot (it lies in memory too) */
struct rn_blueflame {
	uint32_t qpn;
	uint32_t uar_page;
	uint16_t wqe_idx;
	uint16_t bytes; /* multiple of 64, at most RN_UAR_BLUEFLAME_BYTES */
	uint32_t buf;	/* rn_buffers index, ownership passes */
};

/* doorbell -> cqe */
struct rn_cq_ring {
	uint32_t cqn;
	uint32_t uar_page;
	uint32_t ci;
	uint8_t solicited;
	uint8_t sn;
	uint16_t reserved;
};

/* doorbell -> transport rx: look at the receive queue of a QP in error */
struct rn_rq_ring {
	uint32_t qpn;
	uint32_t uar_page;
};

/* doorbell -> cmd: register writes that concern it */
struct rn_cmd_ring {
	uint64_t queue_pa; /* value of the base registers at this write */
	uint32_t pi;
	uint32_t reserved;
};

#endif
