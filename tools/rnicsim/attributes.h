/*
 * Device and port attributes as the verbs API shows them, from a scenario.
 */
#ifndef RN_RNICSIM_ATTRIBUTES_H
#define RN_RNICSIM_ATTRIBUTES_H

#include "driver/uapi.h"
#include "system/scenario.h"

/** Attributes of @host's device and port under @scenario. */
void rn_attributes_fill(const struct rn_scenario *scenario, unsigned host,
			struct rn_uapi_device *device, struct rn_uapi_port *port);

#endif
