/*
 * QP state transitions of the RC service: which attributes each requires and allows.
 */
#ifndef RN_DRIVER_QP_STATE_H
#define RN_DRIVER_QP_STATE_H

#include <stdbool.h>
#include <stdint.h>

/* Attribute mask bits; values are the verbs API's (enum ibv_qp_attr_mask). */
enum rn_qp_attr_bit {
	RN_QP_STATE = 1 << 0,
	RN_QP_CUR_STATE = 1 << 1,
	RN_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	RN_QP_ACCESS_FLAGS = 1 << 3,
	RN_QP_PKEY_INDEX = 1 << 4,
	RN_QP_PORT = 1 << 5,
	RN_QP_QKEY = 1 << 6,
	RN_QP_AV = 1 << 7,
	RN_QP_PATH_MTU = 1 << 8,
	RN_QP_TIMEOUT = 1 << 9,
	RN_QP_RETRY_CNT = 1 << 10,
	RN_QP_RNR_RETRY = 1 << 11,
	RN_QP_RQ_PSN = 1 << 12,
	RN_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	RN_QP_ALT_PATH = 1 << 14,
	RN_QP_MIN_RNR_TIMER = 1 << 15,
	RN_QP_SQ_PSN = 1 << 16,
	RN_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	RN_QP_PATH_MIG_STATE = 1 << 18,
	RN_QP_CAP = 1 << 19,
	RN_QP_DEST_QPN = 1 << 20,
};

struct rn_qp_transition {
	bool valid;
	uint32_t required;
	uint32_t optional;
};

/** The transition @from -> @to (enum rn_qp_state, 0 .. 6) for RC: IBA 11.2.5.2, ibv_modify_qp(3), Linux qp_state_table. */
const struct rn_qp_transition *rn_qp_transition(uint8_t from, uint8_t to);

/** Whether a modify from @from to @to may carry exactly @mask (Linux ib_modify_qp_is_ok). */
bool rn_qp_transition_allows(uint8_t from, uint8_t to, uint32_t mask);

#endif
