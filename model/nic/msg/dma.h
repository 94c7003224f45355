/*
 * Ports of the DMA engine: one request and one response fifo a channel. A request
 * moves at most RN_BUFFER_BYTES between one buffer and host memory and may cross page
 * boundaries; the engine translates (unless physical), splits by MPS, MRRS, RCB and
 * 4 KiB, and answers once. The messages come from messages.toml, as those of the RTL.
 */
#ifndef RN_NIC_MSG_DMA_H
#define RN_NIC_MSG_DMA_H

#include <stdint.h>

#include "nic/msg/gen/dma.h"

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

/* Field trace of a request. */
enum rn_dma_trace {
	RN_DMA_TRACE_TRANSLATION = 1, /* RN_STAMP_TRANSLATION when the first page is translated */
	RN_DMA_TRACE_VISIBLE =
		2, /* RN_STAMP_CQE_VISIBLE when the write is visible in host memory */
};

#endif
