/*
 * Everything at once: several connections, messages of every kind and of sizes around the MTU in both directions on
 * each, posted in one go. Data and completions are checked at the end.
 */
#ifndef RN_TEST_SYSTEM_TRAFFIC_H
#define RN_TEST_SYSTEM_TRAFFIC_H

#include "world.h"

#define TRAFFIC_LINKS_MAX 8
#define TRAFFIC_MESSAGES_MAX 64

struct traffic {
	struct world *world;
	unsigned links;
	unsigned messages; /* of each side of each link */
	struct world_link link[TRAFFIC_LINKS_MAX];
	unsigned sent[TRAFFIC_LINKS_MAX][2]; /* completions */
	unsigned received[TRAFFIC_LINKS_MAX][2];
	uint64_t digest; /* of all completions with their times */
};

/** Connect @links QPs a host, fill the buffers, post receives. */
void traffic_init(struct traffic *traffic, struct world *world, unsigned links, unsigned messages,
		  const struct rn_scripted_path *path);

/** Post everything, ring all doorbells, and run until all is complete. False after @ps of simulated time. */
bool traffic_run(struct traffic *traffic, uint64_t ps);

/** Every byte where it belongs, and none beside it. */
void traffic_check(const struct traffic *traffic);

#endif
