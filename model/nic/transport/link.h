/*
 * Messages between the two clocked halves of the transport engine, by registered fifo.
 */
#ifndef RN_NIC_TRANSPORT_LINK_H
#define RN_NIC_TRANSPORT_LINK_H

#include <stdint.h>

/* rx -> tx: what concerns the requester. */
enum rn_response_kind {
	RN_RESPONSE_PACKET, /* an ACK, NAK or READ response; packet passes on */
	RN_RESPONSE_ERROR,  /* the responder of this queue pair is in error */
};

struct rn_response {
	uint32_t qpn;
	uint32_t packet; /* rn_packets index */
	uint32_t kind;
};

/* rx -> tx: what the response sender has to send. */
enum rn_reply_kind { RN_REPLY_ACK, RN_REPLY_NAK, RN_REPLY_READ };

struct rn_reply {
	uint32_t qpn;
	uint32_t packet; /* rn_packets index: an ACK, or a READ's header without opcode and payload */
	uint64_t va;	 /* READ */
	uint32_t rkey;
	uint32_t bytes;
	uint32_t pd;
	uint8_t kind;
	uint8_t mtu_log2;
	uint8_t continued; /* READ: the rest of an earlier one; opcodes go on with MIDDLE, LAST */
	uint8_t counted;   /* READ: tell rx when it is done */
};

/* tx -> rx. */
enum rn_feedback_kind {
	RN_FEEDBACK_READ_DONE,	     /* one counted READ less */
	RN_FEEDBACK_REQUESTER_ERROR, /* the requester of this queue pair is in error */
	RN_FEEDBACK_REPLY_ERROR,     /* data of a READ response could not be read; the NAK is out */
};

struct rn_feedback {
	uint32_t qpn;
	uint32_t kind;
};

#endif
