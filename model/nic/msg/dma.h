/*
 * Ports of the DMA engine: one request and one response fifo a channel. A request
 * moves at most RN_BUFFER_BYTES between one buffer and host memory and may cross page
 * boundaries; the engine translates (unless physical), splits by MPS, MRRS, RCB and
 * 4 KiB, and answers once.
 */
#ifndef RN_NIC_MSG_DMA_H
#define RN_NIC_MSG_DMA_H

#include <stdint.h>

/* Channels, in the order of arbitration's ring. One client each. */
enum rn_dma_channel {
	RN_DMA_CH_PTE,	     /* MPT and MTT fills (pte_cache) */
	RN_DMA_CH_CONTEXT,   /* QPC, CQC, SRQC fills and write-backs (context_cache) */
	RN_DMA_CH_WQE_SQ,    /* send WQEs (wqe_fetch) */
	RN_DMA_CH_WQE_RQ,    /* receive WQEs and QP doorbell records (wqe_fetch) */
	RN_DMA_CH_TX,	     /* payload of requests (transport requester) */
	RN_DMA_CH_RESP,	     /* payload of READ responses (transport responder) */
	RN_DMA_CH_RX,	     /* payload into memory: SEND, WRITE at the responder (transport rx) */
	RN_DMA_CH_READ_DATA, /* payload of READ responses into memory (transport requester) */
	RN_DMA_CH_CQE,	     /* CQEs and CQ doorbell records (cqe) */
	RN_DMA_CH_EQ,	     /* EQEs, MSI-X (eq) */
	RN_DMA_CH_CMD,	     /* command queue and mailboxes (cmd) */
	RN_DMA_CH_COUNT
};

enum rn_dma_op {
	RN_DMA_READ, /* host memory -> buffer; answered when all completions have arrived */
	RN_DMA_WRITE, /* buffer -> host memory; answered when the last TLP has entered the posted queue in order:
			 a write or MSI-X requested after the answer is ordered behind it on PCIe */
	RN_DMA_MSI, /* MSI-X message: addr = vector; len 4; behind all earlier answered writes */
};

enum rn_dma_flag {
	RN_DMA_PHYSICAL = 1, /* addr is a physical address: no translation */
	RN_DMA_LAST = 2,     /* the write's last byte completes a message for software */
};

enum rn_dma_status {
	RN_DMA_OK,
	RN_DMA_PROTECTION, /* key, PD, access or bounds refused by the PTE cache */
	RN_DMA_ABORT,	   /* the completer aborted: memory has vanished */
};

struct rn_dma_req {
	uint8_t op;	/* enum rn_dma_op */
	uint8_t flags;	/* enum rn_dma_flag */
	uint8_t access; /* RN_ACCESS_* demanded of the key; 0: local read */
	uint8_t reserved;
	uint16_t token;	  /* client's own, returned */
	uint16_t buf_off; /* first byte in the buffer */
	uint32_t buf; /* rn_buffers index; a write's reference is dropped by the client after the answer */
	uint32_t len; /* 1 .. RN_BUFFER_BYTES - buf_off */
	uint32_t key; /* lkey or rkey; ignored when physical */
	uint32_t pd;
	uint64_t addr; /* virtual or physical */
	/* Not hardware: the stamps to record under this WQE; 0 none. */
	uint32_t trace_qpn;
	uint16_t trace_wqe;
	uint8_t trace;	       /* enum rn_dma_trace */
	uint8_t trace_receive; /* 1: receive queue */
};

enum rn_dma_trace {
	RN_DMA_TRACE_TRANSLATION = 1, /* RN_STAMP_TRANSLATION when the first page is translated */
	RN_DMA_TRACE_VISIBLE =
		2, /* RN_STAMP_CQE_VISIBLE when the write is visible in host memory */
};

struct rn_dma_rsp {
	uint16_t token;
	uint8_t status; /* enum rn_dma_status */
	uint8_t reserved;
};

#endif
