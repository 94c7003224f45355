/*
 * The NIC's PCIe side: TLPs between the DMA engine and the link, the fifos of the endpoint, and the
 * link's settings, which both ends know (device control and link status registers).
 */
#ifndef RN_NIC_MSG_PCIE_H
#define RN_NIC_MSG_PCIE_H

#include <stdint.h>

#include "sim/fifo.h"
#include "sim/param.h"

/* A posted write may not cross this boundary, nor may a read. */
#define RN_PCIE_PAGE_BYTES 4096

enum rn_tlp_type {
	RN_TLP_MWR, /* memory write, posted */
	RN_TLP_MSI, /* memory write to the MSI-X address: addr = vector, posted */
	RN_TLP_MRD, /* memory read, non-posted: one TLP of at most MRRS bytes */
	RN_TLP_CPL, /* completion, with data unless aborted */
	RN_TLP_TYPE_COUNT
};

enum rn_tlp_flag {
	RN_TLP_LAST = 1, /* the last byte completes a message for software (RN_DMA_LAST) */
	RN_TLP_MORE =
		2, /* more of the same write follows at once: its bytes need not be seen before */
};

enum rn_tlp_status {
	RN_TLP_OK,
	RN_TLP_ABORT, /* completer abort: no data */
};

/*
 * One entry stands for a burst of TLPs that follow each other on the link without a gap: a MWr of
 * @len bytes for ceil(len / MPS) of them, inside one 4 KiB page; a completion for CplDs of one
 * read, in order of address.
 */
struct rn_tlp {
	uint8_t type;	 /* enum rn_tlp_type */
	uint8_t flags;	 /* enum rn_tlp_flag */
	uint8_t channel; /* enum rn_dma_channel; for the log */
	uint8_t status;	 /* enum rn_tlp_status; completions */
	uint16_t tag;	 /* reads and completions */
	uint16_t buf_off;
	uint32_t buf; /* rn_buffers index. MWr: a reference passes. MRd: the completer stores there */
	uint32_t len;  /* bytes of data, carried or asked for; 0 in an aborted completion */
	uint64_t addr; /* physical; of a completion: of its first byte */
	/* Not hardware: whose stamp the write is (see rn_dma_req). */
	uint32_t trace_qpn;
	uint16_t trace_wqe;
	uint8_t trace;
	uint8_t trace_receive;
};

_Static_assert(sizeof(struct rn_tlp) == 32, "TLP entry size");

/* All fifos between a NIC and its end of the link. */
struct rn_pcie_ports {
	/* From the NIC. */
	struct rn_fifo *posted;	       /* struct rn_tlp: MWr, MSI */
	struct rn_fifo *nonposted;     /* struct rn_tlp: MRd */
	struct rn_fifo *mmio_read_rsp; /* struct rn_mmio_read_rsp */
	/* To the NIC. */
	struct rn_fifo
		*completion; /* struct rn_tlp; as deep as there are tags, or reads wait for it */
	struct rn_fifo *mmio_write; /* struct rn_mmio_write; its depth: the NIC's header credits */
	struct rn_fifo *mmio_read;  /* struct rn_mmio_read */
};

#define RN_PCIE_PARAMS(X)                                                                          \
	X(u32, gen, 3, 1, 5, "",                                                                   \
	  "PCIe generation: 2.5, 5 GT/s (8b/10b), 8, 16, 32 GT/s (128b/130b)")                     \
	X(u32, lanes, 16, 1, 32, "", "lanes")                                                      \
	X(u32, mps_bytes, 256, 64, 4096, "bytes", "maximum payload size of a write or completion") \
	X(u32, mrrs_bytes, 512, 64, 4096, "bytes", "maximum read request size")                    \
	X(u32, rcb_bytes, 64, 64, 128, "bytes", "read completion boundary: completions end there") \
	X(u32, header_bytes, 24, 12, 64, "bytes",                                                  \
	  "overhead of a MWr or MRd: framing, sequence number, 64-bit header, LCRC")               \
	X(u32, completion_header_bytes, 20, 12, 64, "bytes", "the same of a completion")           \
	X(u32, dllp_permille, 81, 0, 900, "permille",                                              \
	  "part of the link that ACK, flow-control and SKP traffic takes")                         \
	X(u64, propagation_ps, 110000, 1, 100000000, "ps",                                         \
	  "last bit sent to last bit usable at the other end: PHY, data link layer, wire")         \
	X(u64, commit_ps, 20000, 0, 1000000, "ps",                                                 \
	  "how long before its first bit a TLP's turn is settled (data link layer pipeline)")      \
	X(u32, posted_header_credits, 127, 1, 127, "TLPs", "of the root complex")                  \
	X(u32, posted_data_credits, 2047, 1, 2047, "16 bytes",                                     \
	  "of the root complex; raised to one MPS where smaller, as PCIe demands")                 \
	X(u32, nonposted_header_credits, 127, 1, 127, "TLPs", "of the root complex")               \
	X(u64, credit_return_ps, 150000, 1, 100000000, "ps",                                       \
	  "space freed at the receiver to credit usable at the sender")

RN_PARAM_STRUCT(rn_pcie_params, RN_PCIE_PARAMS);
extern const struct rn_param_table rn_pcie_param_table; /* pcie/link.c */

#endif
