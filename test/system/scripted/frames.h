/*
 * The frames of a run, read back from its own capture. Times have the file's resolution of 1 ns.
 */
#ifndef RN_TEST_SYSTEM_FRAMES_H
#define RN_TEST_SYSTEM_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/fault.h"
#include "wire/packet.h"

struct frame {
	uint64_t at_ps; /* first bit at the egress of its NIC, rounded down to 1 ns */
	uint32_t bytes; /* without FCS */
	uint32_t host;	/* that sent it, by its MAC address */
	enum rn_fault_class class;
	bool is_again; /* a request, or a READ response, with a PSN that its stream had before */
	struct rn_packet packet; /* headers; no payload */
};

struct frames {
	struct frame *frame; /* pause frames are no frames here */
	size_t count;
	size_t pauses;
};

/** Every frame of capture @path in order, path MTU @mtu_bytes; a frame that does not decode ends the process. */
void frames_load(struct frames *frames, const char *path, uint32_t mtu_bytes);
void frames_free(struct frames *frames);

#define FRAMES_ANY UINT32_MAX

/**
 * The @nth (from 0) frame that @host sent of @class (RN_FAULT_ANY: any) with @psn (FRAMES_ANY: any); NULL when there
 * are not so many.
 */
const struct frame *frames_find(const struct frames *frames, uint32_t host,
				enum rn_fault_class class, uint32_t psn, unsigned nth);
unsigned frames_count(const struct frames *frames, uint32_t host, enum rn_fault_class class);

/** The first request that @host sent again; NULL: none. */
const struct frame *frames_first_again(const struct frames *frames, uint32_t host);

/** A whole file in memory; the caller free()s it. Ends the process when it cannot be read. */
void *frames_read_file(const char *path, size_t *bytes);

#endif
