/*
 * Constants of the RC protocol, each indexed by its wire value (IBA volume 1, chapter 9.7).
 */
#ifndef RN_NIC_TRANSPORT_TABLES_H
#define RN_NIC_TRANSPORT_TABLES_H

#include <stdbool.h>
#include <stdint.h>

/* AETH syndrome: bits 6:5 the kind, 4:0 a value. */
enum rn_aeth_kind {
	RN_AETH_ACK = 0x00,
	RN_AETH_RNR_NAK = 0x20,
	RN_AETH_NAK = 0x60,
	RN_AETH_KIND_MASK = 0x60,
	RN_AETH_VALUE_MASK = 0x1f,
};

enum rn_nak_code {
	RN_NAK_SEQUENCE,
	RN_NAK_INVALID_REQUEST,
	RN_NAK_REMOTE_ACCESS,
	RN_NAK_REMOTE_OPERATIONAL,
};

#define RN_CREDITS_NONE 31u

/* Subtypes of RN_EQE_QP_EVENT: the verbs API's event numbers. */
enum rn_qp_event {
	RN_QP_EVENT_FATAL = 1,
	RN_QP_EVENT_REQ_ERR = 2,
	RN_QP_EVENT_ACCESS_ERR = 3,
	RN_QP_EVENT_COMM_EST = 4,
	RN_QP_EVENT_SQ_DRAINED = 5,
};

/** Vendor syndrome (ibv_wc.vendor_err) of a completion with @status (enum rn_wc_status), as mlx5 sets it; 0: none known. */
uint8_t rn_vendor_syndrome(uint8_t status, bool is_receive);

/** Time of RNR timer @code (0 .. 31): 0 is 655.36 ms, 1 is 0.01 ms, 31 is 491.52 ms. */
uint64_t rn_rnr_timer_ps(uint8_t code);

/** Credits that AETH code @code (0 .. 30) stands for. */
uint32_t rn_aeth_credits(uint8_t code);

/** Largest AETH code that promises no more than @wqes. */
uint8_t rn_aeth_credit_code(uint32_t wqes);

#endif
