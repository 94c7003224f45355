/*
 * BTH opcodes (IBA volume 1, 9.2.1): headers and kind of each, indexed by the wire value.
 */
#ifndef RN_WIRE_OPCODE_H
#define RN_WIRE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

enum rn_bth_opcode {
	RN_BTH_SEND_FIRST = 0x00,
	RN_BTH_SEND_MIDDLE = 0x01,
	RN_BTH_SEND_LAST = 0x02,
	RN_BTH_SEND_LAST_IMM = 0x03,
	RN_BTH_SEND_ONLY = 0x04,
	RN_BTH_SEND_ONLY_IMM = 0x05,
	RN_BTH_WRITE_FIRST = 0x06,
	RN_BTH_WRITE_MIDDLE = 0x07,
	RN_BTH_WRITE_LAST = 0x08,
	RN_BTH_WRITE_LAST_IMM = 0x09,
	RN_BTH_WRITE_ONLY = 0x0a,
	RN_BTH_WRITE_ONLY_IMM = 0x0b,
	RN_BTH_READ_REQUEST = 0x0c,
	RN_BTH_READ_RESPONSE_FIRST = 0x0d,
	RN_BTH_READ_RESPONSE_MIDDLE = 0x0e,
	RN_BTH_READ_RESPONSE_LAST = 0x0f,
	RN_BTH_READ_RESPONSE_ONLY = 0x10,
	RN_BTH_ACKNOWLEDGE = 0x11,
	RN_BTH_ATOMIC_ACKNOWLEDGE = 0x12,
	RN_BTH_COMPARE_SWAP = 0x13,
	RN_BTH_FETCH_ADD = 0x14,
	RN_BTH_SEND_LAST_INV = 0x16,
	RN_BTH_SEND_ONLY_INV = 0x17,
};

#define RN_BTH_SERVICE_RC 0x00
#define RN_BTH_SERVICE_UC 0x20
#define RN_BTH_SERVICE_UD 0x60
#define RN_BTH_CNP 0x81

enum rn_opcode_flag {
	RN_OP_RETH = 1 << 0,
	RN_OP_AETH = 1 << 1,
	RN_OP_IMM = 1 << 2,
	RN_OP_IETH = 1 << 3,
	RN_OP_DETH = 1 << 4,
	RN_OP_ATOMIC = 1 << 5,
	RN_OP_ATOMIC_ACK = 1 << 6,
	RN_OP_PAYLOAD = 1 << 7,
	RN_OP_FIRST = 1 << 8,
	RN_OP_MIDDLE = 1 << 9,
	RN_OP_LAST = 1 << 10, /* ONLY has FIRST and LAST */
	RN_OP_REQUEST = 1 << 11,
	RN_OP_RESPONSE = 1 << 12,
	RN_OP_SEND = 1 << 13,
	RN_OP_WRITE = 1 << 14,
	RN_OP_READ = 1 << 15,
	RN_OP_VALID = 1 << 16,
	RN_OP_CONSUMES_RECV =
		1 << 17, /* on its first (SEND) or last (WRITE with immediate) packet */
};

struct rn_opcode_info {
	const char *name; /* "RC SEND First"; NULL when reserved */
	uint32_t flags;
	uint8_t header_bytes; /* BTH and extended headers */
};

/** Information for a whole opcode byte; flags 0 for a reserved one. Never NULL. */
const struct rn_opcode_info *rn_opcode_info(uint8_t opcode);

#endif
