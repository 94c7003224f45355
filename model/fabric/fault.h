/*
 * Scripted faults on the wire. A fault names one frame by its role, not by its number in a capture:
 * (sending host, connection ordinal, opcode class, PSN offset from the connection's start, transmission
 * number), so that it means the same frame in every configuration.
 */
#ifndef RN_FABRIC_FAULT_H
#define RN_FABRIC_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"

enum rn_fault_action {
	RN_FAULT_DROP,
	RN_FAULT_CORRUPT,   /* damaged: the ICRC fails at the receiver */
	RN_FAULT_DUPLICATE, /* delivered twice, back to back */
	RN_FAULT_DELAY,	    /* delivered delay_ps later, overtaken by what follows */
};

enum rn_fault_class {
	RN_FAULT_ANY,
	RN_FAULT_REQUEST_FIRST,
	RN_FAULT_REQUEST_MIDDLE,
	RN_FAULT_REQUEST_LAST,
	RN_FAULT_REQUEST_ONLY,
	RN_FAULT_ACK,
	RN_FAULT_NAK,
	RN_FAULT_RNR_NAK,
	RN_FAULT_READ_REQUEST,
	RN_FAULT_READ_RESPONSE_FIRST,
	RN_FAULT_READ_RESPONSE_MIDDLE,
	RN_FAULT_READ_RESPONSE_LAST,
	RN_FAULT_READ_RESPONSE_ONLY,
	RN_FAULT_CLASSES
};

#define RN_FAULT_ANY_VALUE UINT32_MAX

struct rn_fault {
	enum rn_fault_action action;
	enum rn_fault_class class;
	uint32_t host; /* sender */
	uint32_t connection; /* ordinal of the connection by its first frame on the fabric, from 0; or ANY_VALUE */
	uint32_t psn_offset; /* PSN minus the first request PSN of the stream that the frame belongs to; or ANY_VALUE */
	uint32_t transmission; /* 1: the first frame that fits, 2: the second ...; 0: every one */
	uint64_t delay_ps;     /* of DELAY */
	uint64_t seen;	       /* frames that fitted so far */
	uint64_t done;	       /* frames acted on so far */
};

/** Name of a class in configuration and reports, e.g. "read_response_first". NULL beyond the last. */
const char *rn_fault_class_name(enum rn_fault_class class);
const char *rn_fault_action_name(enum rn_fault_action action);
enum rn_fault_class rn_fault_class_of(const struct rn_packet *packet);

struct rn_faults; /* rules and the table of connections they speak of */

struct rn_faults *rn_faults_new(void);
void rn_faults_free(struct rn_faults *faults);
/**
 * @fault is copied; seen and done start at 0. Returns its index. Connections and their first PSNs are noted from the
 * first rule on: add one before the traffic whose offsets are to count from its start.
 */
unsigned rn_faults_add(struct rn_faults *faults, const struct rn_fault *fault);
const struct rn_fault *rn_faults_at(const struct rn_faults *faults, unsigned idx);

/** The first rule that acts on this frame as it leaves its NIC, or NULL. Counts it. */
const struct rn_fault *rn_faults_match(struct rn_faults *faults, const struct rn_packet *packet);

#endif
