/*
 * The BTH opcode table. Service in bits 7:5, operation in bits 4:0 (IBA volume 1, table 38).
 */
#include "wire/opcode.h"

#include <stddef.h>

#define BTH 12
#define RETH 16
#define AETH 4
#define IMM 4
#define IETH 4
#define DETH 8
#define ATOMIC 28
#define ATOMIC_ACK 8

#define FIRST RN_OP_FIRST
#define MIDDLE RN_OP_MIDDLE
#define LAST RN_OP_LAST
#define ONLY (RN_OP_FIRST | RN_OP_LAST)
#define SEND (RN_OP_VALID | RN_OP_REQUEST | RN_OP_SEND | RN_OP_PAYLOAD)
#define WRITE (RN_OP_VALID | RN_OP_REQUEST | RN_OP_WRITE | RN_OP_PAYLOAD)
#define RESPONSE (RN_OP_VALID | RN_OP_RESPONSE | RN_OP_READ | RN_OP_PAYLOAD)
#define RECV RN_OP_CONSUMES_RECV

/* Rows of one service: SEND and WRITE are shared by RC and UC. */
#define STREAM_ROWS(service, prefix)                                                               \
	[(service) +                                                                               \
		RN_BTH_SEND_FIRST] = {prefix " SEND First", SEND | FIRST | RECV, BTH},             \
		[(service) + RN_BTH_SEND_MIDDLE] = {prefix " SEND Middle", SEND | MIDDLE, BTH},    \
		[(service) + RN_BTH_SEND_LAST] = {prefix " SEND Last", SEND | LAST, BTH},          \
		[(service) + RN_BTH_SEND_LAST_IMM] = {prefix " SEND Last Immediate",               \
						      SEND | LAST | RN_OP_IMM, BTH + IMM},         \
		[(service) + RN_BTH_SEND_ONLY] = {prefix " SEND Only", SEND | ONLY | RECV, BTH},   \
		[(service) + RN_BTH_SEND_ONLY_IMM] = {prefix " SEND Only Immediate",               \
						      SEND | ONLY | RN_OP_IMM | RECV, BTH + IMM},  \
		[(service) + RN_BTH_WRITE_FIRST] = {prefix " RDMA WRITE First",                    \
						    WRITE | FIRST | RN_OP_RETH, BTH + RETH},       \
		[(service) +                                                                       \
			RN_BTH_WRITE_MIDDLE] = {prefix " RDMA WRITE Middle", WRITE | MIDDLE, BTH}, \
		[(service) + RN_BTH_WRITE_LAST] = {prefix " RDMA WRITE Last", WRITE | LAST, BTH},  \
		[(service) + RN_BTH_WRITE_LAST_IMM] = {prefix " RDMA WRITE Last Immediate",        \
						       WRITE | LAST | RN_OP_IMM | RECV,            \
						       BTH + IMM},                                 \
		[(service) + RN_BTH_WRITE_ONLY] = {prefix " RDMA WRITE Only",                      \
						   WRITE | ONLY | RN_OP_RETH, BTH + RETH},         \
		[(service) + RN_BTH_WRITE_ONLY_IMM] = {                                            \
			prefix " RDMA WRITE Only Immediate",                                       \
			WRITE | ONLY | RN_OP_RETH | RN_OP_IMM | RECV, BTH + RETH + IMM}

static const struct rn_opcode_info opcodes[256] = {
	STREAM_ROWS(RN_BTH_SERVICE_RC, "RC"),
	STREAM_ROWS(RN_BTH_SERVICE_UC, "UC"),
	[RN_BTH_READ_REQUEST] = {"RC RDMA READ Request",
				 RN_OP_VALID | RN_OP_REQUEST | RN_OP_READ | ONLY | RN_OP_RETH,
				 BTH + RETH},
	[RN_BTH_READ_RESPONSE_FIRST] = {"RC RDMA READ Response First",
					RESPONSE | FIRST | RN_OP_AETH, BTH + AETH},
	[RN_BTH_READ_RESPONSE_MIDDLE] = {"RC RDMA READ Response Middle", RESPONSE | MIDDLE, BTH},
	[RN_BTH_READ_RESPONSE_LAST] = {"RC RDMA READ Response Last", RESPONSE | LAST | RN_OP_AETH,
				       BTH + AETH},
	[RN_BTH_READ_RESPONSE_ONLY] = {"RC RDMA READ Response Only", RESPONSE | ONLY | RN_OP_AETH,
				       BTH + AETH},
	[RN_BTH_ACKNOWLEDGE] = {"RC Acknowledge", RN_OP_VALID | RN_OP_RESPONSE | ONLY | RN_OP_AETH,
				BTH + AETH},
	[RN_BTH_ATOMIC_ACKNOWLEDGE] = {"RC Atomic Acknowledge",
				       RN_OP_VALID | RN_OP_RESPONSE | ONLY | RN_OP_AETH |
					       RN_OP_ATOMIC_ACK,
				       BTH + AETH + ATOMIC_ACK},
	[RN_BTH_COMPARE_SWAP] = {"RC Compare & Swap",
				 RN_OP_VALID | RN_OP_REQUEST | ONLY | RN_OP_ATOMIC, BTH + ATOMIC},
	[RN_BTH_FETCH_ADD] = {"RC Fetch & Add", RN_OP_VALID | RN_OP_REQUEST | ONLY | RN_OP_ATOMIC,
			      BTH + ATOMIC},
	[RN_BTH_SEND_LAST_INV] = {"RC SEND Last Invalidate", SEND | LAST | RN_OP_IETH, BTH + IETH},
	[RN_BTH_SEND_ONLY_INV] = {"RC SEND Only Invalidate", SEND | ONLY | RN_OP_IETH | RECV,
				  BTH + IETH},
	[RN_BTH_SERVICE_UD +
		RN_BTH_SEND_ONLY] = {"UD SEND Only", SEND | ONLY | RN_OP_DETH | RECV, BTH + DETH},
	[RN_BTH_SERVICE_UD + RN_BTH_SEND_ONLY_IMM] = {"UD SEND Only Immediate",
						      SEND | ONLY | RN_OP_DETH | RN_OP_IMM | RECV,
						      BTH + DETH + IMM},
};

const struct rn_opcode_info *rn_opcode_info(uint8_t opcode)
{
	return &opcodes[opcode];
}
