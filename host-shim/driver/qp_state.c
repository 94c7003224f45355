/*
 * Table of QP state transitions; see qp_state.h. SQE rows exist although an RC queue pair never gets
 * there: its errors go to ERR.
 */
#include "driver/qp_state.h"

#include "hw/gen/rnic_hw.h"

#define STATES (RN_QPS_ERR + 1)

/* What may be changed once the connection stands. */
#define RUNNING                                                                                    \
	(RN_QP_CUR_STATE | RN_QP_ALT_PATH | RN_QP_ACCESS_FLAGS | RN_QP_MIN_RNR_TIMER |             \
	 RN_QP_PATH_MIG_STATE)

static const struct rn_qp_transition transition[STATES][STATES] = {
	[RN_QPS_RESET] =
		{
			[RN_QPS_RESET] = {true, 0, 0},
			[RN_QPS_INIT] = {true, RN_QP_PKEY_INDEX | RN_QP_PORT | RN_QP_ACCESS_FLAGS,
					 0},
		},
	[RN_QPS_INIT] =
		{
			[RN_QPS_RESET] = {true, 0, 0},
			[RN_QPS_ERR] = {true, 0, 0},
			[RN_QPS_INIT] = {true, 0,
					 RN_QP_PKEY_INDEX | RN_QP_PORT | RN_QP_ACCESS_FLAGS},
			[RN_QPS_RTR] = {true,
					RN_QP_AV | RN_QP_PATH_MTU | RN_QP_DEST_QPN | RN_QP_RQ_PSN |
						RN_QP_MAX_DEST_RD_ATOMIC | RN_QP_MIN_RNR_TIMER,
					RN_QP_ALT_PATH | RN_QP_ACCESS_FLAGS | RN_QP_PKEY_INDEX},
		},
	[RN_QPS_RTR] =
		{
			[RN_QPS_RESET] = {true, 0, 0},
			[RN_QPS_ERR] = {true, 0, 0},
			[RN_QPS_RTS] = {true,
					RN_QP_TIMEOUT | RN_QP_RETRY_CNT | RN_QP_RNR_RETRY |
						RN_QP_SQ_PSN | RN_QP_MAX_QP_RD_ATOMIC,
					RUNNING},
		},
	[RN_QPS_RTS] =
		{
			[RN_QPS_RESET] = {true, 0, 0},
			[RN_QPS_ERR] = {true, 0, 0},
			[RN_QPS_RTS] = {true, 0, RUNNING},
			[RN_QPS_SQD] = {true, 0, RN_QP_EN_SQD_ASYNC_NOTIFY},
		},
	[RN_QPS_SQD] =
		{
			[RN_QPS_RESET] = {true, 0, 0},
			[RN_QPS_ERR] = {true, 0, 0},
			[RN_QPS_RTS] = {true, 0, RUNNING},
			[RN_QPS_SQD] = {true, 0,
					RN_QP_PORT | RN_QP_AV | RN_QP_TIMEOUT | RN_QP_RETRY_CNT |
						RN_QP_RNR_RETRY | RN_QP_MAX_QP_RD_ATOMIC |
						RN_QP_MAX_DEST_RD_ATOMIC | RN_QP_ALT_PATH |
						RN_QP_ACCESS_FLAGS | RN_QP_PKEY_INDEX |
						RN_QP_MIN_RNR_TIMER | RN_QP_PATH_MIG_STATE},
		},
	[RN_QPS_SQE] =
		{
			[RN_QPS_RESET] = {true, 0, 0},
			[RN_QPS_ERR] = {true, 0, 0},
			[RN_QPS_RTS] = {true, 0, 0},
		},
	[RN_QPS_ERR] =
		{
			[RN_QPS_RESET] = {true, 0, 0},
			[RN_QPS_ERR] = {true, 0, 0},
		},
};

const struct rn_qp_transition *rn_qp_transition(uint8_t from, uint8_t to)
{
	static const struct rn_qp_transition none;

	return from < STATES && to < STATES ? &transition[from][to] : &none;
}

bool rn_qp_transition_allows(uint8_t from, uint8_t to, uint32_t mask)
{
	const struct rn_qp_transition *move = rn_qp_transition(from, to);

	if (mask & RN_QP_CUR_STATE && from != RN_QPS_RTR && from != RN_QPS_RTS &&
	    from != RN_QPS_SQD && from != RN_QPS_SQE)
		return false;
	return move->valid && (mask & move->required) == move->required &&
	       !(mask & ~(move->required | move->optional | RN_QP_STATE));
}
