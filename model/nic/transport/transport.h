/*
 * Transport engine: requester and completer (tx), responder (rx), retransmission (retx).
 */
#ifndef RN_NIC_TRANSPORT_TRANSPORT_H
#define RN_NIC_TRANSPORT_TRANSPORT_H

#include "nic/msg/completion.h"
#include "nic/msg/context.h"
#include "nic/msg/control.h"
#include "nic/msg/dma.h"
#include "nic/msg/doorbell.h"
#include "nic/msg/env.h"
#include "nic/msg/frame.h"
#include "nic/msg/identity.h"
#include "nic/msg/pte.h"
#include "nic/msg/work.h"
#include "sim/fifo.h"
#include "sim/param.h"

#define RN_TRANSPORT_PARAMS(X)                                                                          \
	X(u32, max_qps, 16384, 1, 1048576, "QPs", "queue pairs with timers and lists on the chip")      \
	X(u32, quantum_packets, 16, 1, 65536, "packets", "packets a grant may send")                    \
	X(u32, tx_packet_slots, 32, 1, 4096, "packets", "request packets being gathered at once")       \
	X(u32, outstanding_wqes, 4096, 1, 1048576, "WQEs",                                              \
	  "send WQEs without completion, all QPs")                                                      \
	X(u32, outstanding_reads, 256, 1, 65536, "WQEs", "READs among them (their SGE lists)")          \
	X(u32, read_data_slots, 32, 1, 4096, "packets", "READ response packets being written")          \
	X(u32, max_outstanding_psns, 8388608, 1, 8388608, "PSNs", "window of a queue pair")             \
	X(u32, ack_req_interval, 32, 1, 65535, "packets",                                               \
	  "AckReq on every n-th packet of a message")                                                   \
	X(bool, honour_credits, 1, 0, 1, "", "SENDs obey the peer's AETH credits")                      \
	X(u64, timeout_factor, 1, 1, 16, "", "local ACK timeout in units of 4.096 us * 2^timeout")      \
	X(u32, timeout_floor_log2, 0, 0, 31, "", "smallest timeout exponent the timer uses")            \
	X(u32, context_hold_cycles, 256, 0, 1000000, "cycles",                                          \
	  "an idle QP context is kept for its next use")                                                \
	X(u32, turn_cycles, 4, 0, 4096, "cycles", "per work item, before its first packet")             \
	X(u32, tx_packet_cycles, 4, 1, 4096, "cycles", "between request packets built")                 \
	X(u32, tx_pipeline_cycles, 8, 0, 4096, "cycles", "payload complete to frame at the MAC")        \
	X(u32, completion_cycles, 2, 0, 4096, "cycles", "per ACK, NAK or READ response processed")      \
	X(u32, nak_reaction_cycles, 0, 0, 10000000, "cycles",                                           \
	  "sequence NAK taken to retransmission begun")                                                 \
	X(u32, timeout_reaction_cycles, 0, 0, 10000000, "cycles",                                       \
	  "timer expired to retransmission begun")                                                      \
	X(u32, rx_lookahead, 8, 1, 1024, "packets", "requests whose context is prefetched")             \
	X(u32, rx_park_packets, 512, 0, 65536, "packets",                                               \
	  "requests kept aside while their queue pair waits for a receive WQE")                         \
	X(u32, receive_ahead_wqes, 16, 0, 4096, "WQEs",                                                 \
	  "receive WQEs asked for at once, also before their SEND comes; 0: one, for the SEND at hand") \
	X(u32, rx_slots, 32, 1, 4096, "packets", "requests being placed in memory at once")             \
	X(u32, rx_pipeline_cycles, 8, 1, 4096, "cycles", "frame from the MAC to its first check")       \
	X(u32, rx_packet_cycles, 4, 1, 4096, "cycles", "between request packets checked")               \
	X(bool, advertise_credits, 1, 0, 1, "",                                                         \
	  "ACKs carry credits; else the code that says none")                                           \
	X(u32, credit_refresh_wqes, 16, 0, 32768, "WQEs",                                               \
	  "read the producer index afresh when so few receive WQEs are left")                           \
	X(u32, ack_every_packets, 0, 0, 65535, "packets",                                               \
	  "also acknowledge every n-th packet; 0 never")                                                \
	X(u64, ack_delay_ps, 0, 0, 1000000000000, "ps",                                                 \
	  "an ACK due waits for a later one to merge with")                                             \
	X(u32, ack_generation_cycles, 2, 1, 4096, "cycles",                                             \
	  "request placed to ACK or response queued")                                                   \
	X(u32, nak_generation_cycles, 2, 1, 10000000, "cycles", "error found to NAK queued")            \
	X(u32, reply_jobs, 16384, 1, 1048576, "jobs", "ACKs, NAKs and READs waiting to be sent")        \
	X(u32, reply_slots, 32, 1, 4096, "packets", "response packets being gathered at once")          \
	X(u32, reply_quantum_packets, 4, 1, 65536, "packets",                                           \
	  "response packets of a queue pair in a row")                                                  \
	X(u32, reply_packet_cycles, 2, 1, 4096, "cycles", "between response packets built")             \
	X(u32, response_fifo_depth, 64, 1, 65536, "packets", "responses from rx to the completer")      \
	X(u32, reply_fifo_depth, 32, 1, 65536, "jobs", "jobs from rx to the response sender")           \
	X(u32, feedback_fifo_depth, 16, 1, 65536, "messages", "messages from tx to rx")

RN_PARAM_STRUCT(rn_transport_params, RN_TRANSPORT_PARAMS);
extern const struct rn_param_table rn_transport_param_table;

struct rn_transport_ports {
	/* Work. */
	struct rn_fifo *work;	      /* in: struct rn_work, from wqe_fetch */
	struct rn_fifo *turn;	      /* out: struct rn_turn, to sched */
	struct rn_fifo *sq_free;      /* out: struct rn_slot_free, to wqe_fetch */
	struct rn_fifo *sq_forget;    /* out: struct rn_wqe_forget, to wqe_fetch */
	struct rn_fifo *rq_fetch;     /* out: struct rn_rq_fetch, to wqe_fetch */
	struct rn_fifo *rq_fetch_rsp; /* in: struct rn_rq_fetch_rsp */
	struct rn_fifo *rq_free;      /* out: struct rn_slot_free */
	struct rn_fifo *rq_ring;      /* in: struct rn_rq_ring, from doorbell */
	/* Contexts and translation. */
	struct rn_fifo *tx_context_req, *tx_context_rsp;
	struct rn_fifo *rx_context_req, *rx_context_rsp;
	struct rn_fifo *rx_pte_req, *rx_pte_rsp; /* RETH checks (check_only) */
	/* DMA. */
	struct rn_fifo *tx_dma_req, *tx_dma_rsp;	       /* channel TX */
	struct rn_fifo *resp_dma_req, *resp_dma_rsp;	       /* channel RESP */
	struct rn_fifo *rx_dma_req, *rx_dma_rsp;	       /* channel RX */
	struct rn_fifo *read_data_dma_req, *read_data_dma_rsp; /* channel READ_DATA */
	/* Completions and events. */
	struct rn_fifo *tx_completion, *rx_completion; /* out: struct rn_completion */
	struct rn_fifo *tx_event, *rx_event;	       /* out: struct rn_event (EQ 0) */
	/* Control. */
	struct rn_fifo *tx_ctl, *rx_ctl;	   /* in: struct rn_qp_ctl */
	struct rn_fifo *tx_ctl_done, *rx_ctl_done; /* out: struct rn_ctl_done */
	/* Wire. */
	struct rn_fifo *tx_frame; /* out: struct rn_frame, to mac */
	struct rn_fifo *rx_frame; /* in: struct rn_frame, from mac */
	/* Shared memories. */
	struct rn_context_sram *qpc; /* tx writes the requester section, rx the responder section */
	const struct rn_wqe_slots *sq_slots;
	const struct rn_wqe_slots *rq_slots;
	const struct rn_nic_identity *identity;
};

struct rn_transport;

/** Build the block and connect itself as consumer or producer of its ports (rn_fifo_set_producer, rn_fifo_set_consumer). */
struct rn_transport *rn_transport_new(const struct rn_nic_env *env,
				      const struct rn_transport_params *params,
				      const struct rn_transport_ports *ports);
void rn_transport_free(struct rn_transport *transport);

#endif
