/*
 * What the virtual files tell of the host and its device.
 */
#ifndef RN_PRELOAD_FILES_FACTS_H
#define RN_PRELOAD_FILES_FACTS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "preload/names.h"

#define RN_FACTS_GIDS 256
#define RN_FACTS_PKEYS 128

struct rn_facts {
	char host_name[RN_NAME_CHARS];
	bool has_device;					   /* everything below is valid */
	char device[IBV_SYSFS_NAME_MAX], node[IBV_SYSFS_NAME_MAX]; /* rnicsim0, uverbs0 */
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	char board_id[64];
	struct ibv_gid_entry gid[RN_FACTS_GIDS];
	bool has_gid[RN_FACTS_GIDS];
	uint16_t pkey[RN_FACTS_PKEYS]; /* host order */
};

/** Ask the verbs library of this process. Without a device only the host's name is known. */
void rn_facts_gather(struct rn_facts *facts);

#endif
