/*
 * Recorded stimulus of the doorbell unit, written and replayed (format: cosim/common/stimulus.h).
 */
#ifndef RN_TEST_COSIM_DOORBELL_RECORDING_H
#define RN_TEST_COSIM_DOORBELL_RECORDING_H

#include "cosim/doorbell/rig.h"

struct recording;

/** NULL when @path cannot be written. */
struct recording *recording_new(const char *path, const struct rn_doorbell_params *params);
/** What the rig's last cycle had at its inputs. */
void recording_add(struct recording *recording, const struct rig *rig);
void recording_end(struct recording *recording, const struct rig *rig);

struct replay;

/** NULL when @path cannot be read or is not the doorbell's. */
struct replay *replay_open(const char *path);
void replay_close(struct replay *replay);

/** The block's parameters. */
const struct rn_doorbell_params *replay_params(const struct replay *replay);

/** Of the first event, at least 2. */
uint64_t replay_first_cycle(const struct replay *replay);

/** Inputs and readiness of the rig's next cycle; false when there is no more, or a line is not understood. */
bool replay_drive(struct replay *replay, struct rig *rig);

/** Whether the end has been reached, and the line in question if not. */
bool replay_is_through(const struct replay *replay);
unsigned replay_line(const struct replay *replay);

#endif
