/*
 * Matching of scripted faults.
 */
#include "fabric/fault.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/mem.h"
#include "fabric/connections.h"
#include "wire/opcode.h"
#include "wire/psn.h"

#define SYNDROME_KIND 0x60
#define SYNDROME_RNR 0x20
#define SYNDROME_NAK 0x60

struct rn_faults {
	struct rn_fault *rule;
	unsigned rules;
	struct rn_connections connections;
};

static const char *const class_names[RN_FAULT_CLASSES] = {
	[RN_FAULT_ANY] = "any",
	[RN_FAULT_REQUEST_FIRST] = "request_first",
	[RN_FAULT_REQUEST_MIDDLE] = "request_middle",
	[RN_FAULT_REQUEST_LAST] = "request_last",
	[RN_FAULT_REQUEST_ONLY] = "request_only",
	[RN_FAULT_ACK] = "ack",
	[RN_FAULT_NAK] = "nak",
	[RN_FAULT_RNR_NAK] = "rnr_nak",
	[RN_FAULT_READ_REQUEST] = "read_request",
	[RN_FAULT_READ_RESPONSE_FIRST] = "read_response_first",
	[RN_FAULT_READ_RESPONSE_MIDDLE] = "read_response_middle",
	[RN_FAULT_READ_RESPONSE_LAST] = "read_response_last",
	[RN_FAULT_READ_RESPONSE_ONLY] = "read_response_only",
};

static const char *const action_names[] = {
	[RN_FAULT_DROP] = "drop",
	[RN_FAULT_CORRUPT] = "corrupt",
	[RN_FAULT_DUPLICATE] = "duplicate",
	[RN_FAULT_DELAY] = "delay",
};

const char *rn_fault_class_name(enum rn_fault_class class)
{
	return class < RN_FAULT_CLASSES ? class_names[class] : NULL;
}

const char *rn_fault_action_name(enum rn_fault_action action)
{
	return action < RN_ARRAY_LEN(action_names) ? action_names[action] : NULL;
}

struct rn_faults *rn_faults_new(void)
{
	return rn_calloc(1, sizeof(struct rn_faults));
}

void rn_faults_free(struct rn_faults *faults)
{
	if (!faults)
		return;
	free(faults->rule);
	rn_connections_fini(&faults->connections);
	free(faults);
}

unsigned rn_faults_add(struct rn_faults *faults, const struct rn_fault *fault)
{
	faults->rule = rn_reallocarray(faults->rule, faults->rules + 1, sizeof(*fault));
	faults->rule[faults->rules] = *fault;
	faults->rule[faults->rules].seen = 0;
	faults->rule[faults->rules].done = 0;
	return faults->rules++;
}

const struct rn_fault *rn_faults_at(const struct rn_faults *faults, unsigned idx)
{
	return idx < faults->rules ? &faults->rule[idx] : NULL;
}

static enum rn_fault_class class_of_ack(const struct rn_packet *packet)
{
	switch (packet->aeth_syndrome & SYNDROME_KIND) {
	case SYNDROME_RNR:
		return RN_FAULT_RNR_NAK;
	case SYNDROME_NAK:
		return RN_FAULT_NAK;
	default:
		return RN_FAULT_ACK;
	}
}

/* @first and the three behind it: first, middle, last, only. */
static enum rn_fault_class by_position(uint32_t flags, enum rn_fault_class first)
{
	bool is_first = flags & RN_OP_FIRST, is_last = flags & RN_OP_LAST;

	if (is_first && is_last)
		return first + 3;
	if (is_first)
		return first;
	return first + (is_last ? 2 : 1);
}

enum rn_fault_class rn_fault_class_of(const struct rn_packet *packet)
{
	uint32_t flags = rn_opcode_info(packet->opcode)->flags;

	if (packet->opcode == RN_BTH_ACKNOWLEDGE)
		return class_of_ack(packet);
	if (packet->opcode == RN_BTH_READ_REQUEST)
		return RN_FAULT_READ_REQUEST;
	if (flags & RN_OP_RESPONSE)
		return by_position(flags, RN_FAULT_READ_RESPONSE_FIRST);
	return by_position(flags, RN_FAULT_REQUEST_FIRST);
}

static bool fits(const struct rn_fault *rule, const struct rn_packet *packet, uint32_t connection,
		 uint32_t psn_offset)
{
	return rule->host == packet->src_host &&
	       (rule->class == RN_FAULT_ANY || rule->class == rn_fault_class_of(packet)) &&
	       (rule->connection == RN_FAULT_ANY_VALUE || rule->connection == connection) &&
	       (rule->psn_offset == RN_FAULT_ANY_VALUE || rule->psn_offset == psn_offset);
}

const struct rn_fault *rn_faults_match(struct rn_faults *faults, const struct rn_packet *packet)
{
	const struct rn_fault *found = NULL;
	unsigned end, stream;
	struct rn_connection *c;
	uint32_t connection, offset;

	if (!faults->rules)
		return NULL;
	connection = rn_connections_find(&faults->connections, packet, &end);
	c = &faults->connections.at[connection];
	/* A response belongs to the stream of its peer's requests. */
	stream = packet->is_request ? end : 1 - end;
	if (packet->is_request && !c->started[stream]) {
		c->started[stream] = true;
		c->first_psn[stream] = packet->psn;
	}
	offset = rn_psn_add(packet->psn, RN_PSN_MASK + 1 - c->first_psn[stream]);
	for (unsigned i = 0; i < faults->rules; i++) {
		struct rn_fault *rule = &faults->rule[i];

		if (!fits(rule, packet, connection, offset))
			continue;
		rule->seen++;
		if (found || (rule->transmission && rule->seen != rule->transmission))
			continue;
		rule->done++;
		found = rule;
	}
	return found;
}
