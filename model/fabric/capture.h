/*
 * Packet capture: nanosecond pcap through libpcap, simulated time, one record a frame at the egress of
 * its NIC with the time of its first bit. Frames that the fabric drops appear too.
 */
#ifndef RN_FABRIC_CAPTURE_H
#define RN_FABRIC_CAPTURE_H

#include <stdint.h>

#include "wire/packet.h"

struct rn_capture;

/**
 * Open @path for writing. @snap_bytes: bytes kept of each frame, 0 all. Returns NULL and sets *@error to a
 * message (the caller free()s it) when the file cannot be made.
 */
struct rn_capture *rn_capture_open(const char *path, uint32_t snap_bytes,
				   struct rn_packets *packets, char **error);

/** Record a frame. Calls come in order of time, give or take 2 ps; the file is sorted by (time, @port, call). */
void rn_capture_frame(struct rn_capture *capture, uint64_t at_ps, uint32_t port, uint32_t packet);

/** Records so far. */
uint64_t rn_capture_frames(const struct rn_capture *capture);

/** Write everything out and close; errors as rn_output_close(). NULL is ignored. */
int rn_capture_close(struct rn_capture *capture, char **message);

#endif
