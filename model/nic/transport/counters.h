/*
 * Counters of the transport engine, one struct for both halves; each field has one writer.
 */
#ifndef RN_NIC_TRANSPORT_COUNTERS_H
#define RN_NIC_TRANSPORT_COUNTERS_H

#include "sim/stats.h"

#define RN_TRANSPORT_COUNTERS(X)                                                                   \
	/* Written by tx. */                                                                       \
	X(tx_send_packets, "packets", "SEND packets sent")                                         \
	X(tx_write_packets, "packets", "RDMA WRITE packets sent")                                  \
	X(tx_read_requests, "packets", "RDMA READ requests sent")                                  \
	X(tx_read_response_packets, "packets", "RDMA READ response packets sent")                  \
	X(tx_ack_packets, "packets", "ACKs sent")                                                  \
	X(tx_nak_packets, "packets", "NAKs and RNR NAKs sent")                                     \
	X(tx_payload_bytes, "bytes", "payload sent in requests and responses")                     \
	X(tx_retransmitted_packets, "packets", "request packets built again")                      \
	X(acks_merged, "packets", "ACKs that a later one replaced before it was sent")             \
	X(rx_ack_packets, "packets", "ACKs taken")                                                 \
	X(rx_nak_packets, "packets", "NAKs and RNR NAKs taken")                                    \
	X(rx_read_response_packets, "packets", "RDMA READ response packets taken")                 \
	X(rx_read_response_bytes, "bytes", "their payload")                                        \
	X(stale_responses, "packets", "ACKs and responses for no outstanding PSN, ignored")        \
	X(packet_seq_err, "packets", "sequence NAKs taken")                                        \
	X(implied_nak_seq_err, "events", "READ responses found missing by a later packet")         \
	X(local_ack_timeout_err, "events", "local ACK timer expired")                              \
	X(rnr_nak_retry_err, "packets", "RNR NAKs taken")                                          \
	X(req_remote_invalid_request, "packets", "NAKs remote invalid request")                    \
	X(req_remote_access_errors, "packets", "NAKs remote access error")                         \
	X(req_remote_operational_errors, "packets", "NAKs remote operational error")               \
	X(req_transport_retries_exceeded, "events", "queue pairs that used up retry_cnt")          \
	X(req_rnr_retries_exceeded, "events", "queue pairs that used up rnr_retry")                \
	X(local_protection_errors, "events", "local keys refused, at the requester")               \
	X(req_cqe_error, "completions", "send completions with an error, flushed ones included")   \
	X(req_cqe_flush_error, "completions", "send completions flushed")                          \
	X(bad_work, "events", "work items of no queue pair that may send")                         \
	X(turns, "events", "work items served")                                                    \
	X(turns_parked, "events", "turns that ended because the queue pair was blocked")           \
	/* Written by rx. */                                                                       \
	X(rx_send_packets, "packets", "SEND packets executed")                                     \
	X(rx_write_packets, "packets", "RDMA WRITE packets executed")                              \
	X(rx_payload_bytes, "bytes", "payload of requests executed")                               \
	X(rx_write_requests, "requests", "RDMA WRITE requests executed")                           \
	X(rx_read_requests, "requests", "RDMA READ requests executed")                             \
	X(rx_atomic_requests, "requests", "atomic requests taken (refused)")                       \
	X(out_of_sequence, "packets", "requests beyond the expected PSN")                          \
	X(duplicate_request, "packets", "requests before the expected PSN")                        \
	X(rx_parked_packets, "packets", "requests kept aside behind a receive WQE on its way")     \
	X(out_of_buffer, "packets", "requests that found no receive WQE")                          \
	X(resp_local_length_error, "events", "SENDs longer than their receive WQE")                \
	X(resp_remote_access_errors, "events", "requests refused: key, bounds or access")          \
	X(resp_remote_invalid_request, "events", "requests refused: invalid")                      \
	X(resp_remote_operational_errors, "events", "requests failed by a local fault")            \
	X(resp_cqe_error, "completions",                                                           \
	  "receive completions with an error, flushed ones included")                              \
	X(resp_cqe_flush_error, "completions", "receive completions flushed")                      \
	X(rx_icrc_encapsulated, "packets", "packets dropped: ICRC error")                          \
	X(rx_unknown_qp, "packets", "packets dropped: no such queue pair")                         \
	X(rx_bad_state, "packets", "packets dropped: queue pair not in a state that receives")     \
	X(rx_bad_pkey, "packets", "packets dropped: other P_Key")                                  \
	X(rx_bad_header, "packets", "packets dropped: opcode or service not known")                \
	X(rq_kicks_ignored, "events", "receive queue kicks from a wrong page or state")

struct rn_transport_counters {
	RN_TRANSPORT_COUNTERS(RN_COUNTER_FIELD)
};

#endif
