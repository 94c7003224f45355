/*
 * The POST stamp of send WQEs: when host software rings for them. Seen from the doorbell writes, for the timeline of
 * a run; no part of the driver's work.
 */
#ifndef RN_DRIVER_POST_STAMP_H
#define RN_DRIVER_POST_STAMP_H

#include <stdint.h>

struct rn_driver_client;

/** A client's doorbell page gets @data at @offset at @at_ps: stamp the WQEs that it announces. */
void rn_post_stamp(struct rn_driver_client *client, uint64_t at_ps, uint32_t offset,
		   const void *data, uint32_t len);

#endif
