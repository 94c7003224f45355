/*
 * Control of queue pairs and CQs by the command unit: to sched, wqe_fetch, transport tx,
 * transport rx, cqe. Each receiver answers every request once it has taken effect.
 */
#ifndef RN_NIC_MSG_CONTROL_H
#define RN_NIC_MSG_CONTROL_H

#include <stdint.h>

enum rn_qp_ctl_op {
	RN_QP_PAUSE, /* finish what uses the context, hold everything else of this QP; then the command unit changes the config section */
	RN_QP_RESUME, /* go on under the (possibly new) state in the context: tx starts, drains (SQD), or flushes (ERR) */
	RN_QP_FORGET, /* 2RST, destroy: drop all state and work of this QP silently, also what is in flight to or from it; ends a pause */
};

struct rn_qp_ctl {
	uint32_t token;
	uint32_t qpn;
	uint8_t op;
	uint8_t old_state; /* enum rn_qp_state; of RESUME */
	uint8_t new_state;
	uint8_t reserved;
};

struct rn_ctl_done {
	uint32_t token;
};

/* cmd -> cqe: finish what concerns this CQ: completions that wait and CQE writes in flight; then answer. */
struct rn_cq_ctl {
	uint32_t token;
	uint32_t cqn;
	uint8_t drain_only; /* 0: forget the CQ too, its pending arms (destroy); 1: it lives on (resize) */
	uint8_t reserved[3];
};

#endif
