/*
 * The fake neighbours of a transport engine; see world.h.
 */
#ifndef RN_TEST_TRANSPORT_SERVER_H
#define RN_TEST_TRANSPORT_SERVER_H

#include "block/transport/world.h"

void world_host_new(struct world_host *host);
void world_wire_new(struct world *world);

#endif
