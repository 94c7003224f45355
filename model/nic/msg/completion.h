/*
 * Completions and events: transport -> cqe -> eq.
 */
#ifndef RN_NIC_MSG_COMPLETION_H
#define RN_NIC_MSG_COMPLETION_H

#include <stdint.h>

/* transport tx, transport rx -> cqe. Data of the message has entered the posted queue before. */
struct rn_completion {
	uint32_t cqn;
	uint32_t qpn;
	uint32_t byte_len;
	uint32_t imm_be;
	uint32_t src_qpn;
	uint16_t wqe_idx;
	uint16_t vendor_syndrome;
	uint8_t opcode;	    /* enum rn_cqe_opcode */
	uint8_t status;	    /* enum rn_wc_status */
	uint8_t req_opcode; /* enum rn_wqe_opcode */
	uint8_t solicited;
};

/* cqe, transport, cmd -> eq */
struct rn_event {
	uint8_t eqn;
	uint8_t type; /* enum rn_eqe_type */
	uint8_t subtype;
	uint8_t reserved;
	uint32_t number;
};

/* cmd -> eq */
struct rn_eq_ctl {
	uint8_t create; /* 1 create, 0 destroy */
	uint8_t eqn;
	uint8_t log_eqes;
	uint8_t reserved;
	uint16_t vector;
	uint16_t reserved2;
	uint64_t base_pa;
};

#endif
