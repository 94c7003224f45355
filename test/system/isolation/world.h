/*
 * What a hostile client needs to reach the NIC: a PD, pinned memory, a key, a completion queue with a channel and two
 * queue pairs connected with each other or with anybody. With `lies` some attributes of each request are spoiled.
 */
#ifndef HOSTILE_WORLD_H
#define HOSTILE_WORLD_H

#include "hostile.h"

#define WORLD_PAGES 32u
#define WORLD_QPS 2u
#define WORLD_SQ_WQEBBS 64u
#define WORLD_RQ_WQES 64u
#define WORLD_CQES 128u

enum world_stage {
	WORLD_PD,
	WORLD_MEMORY,
	WORLD_MR,
	WORLD_CQ,
	WORLD_QP,
	WORLD_INIT,
	WORLD_RTR,
	WORLD_RTS,
	WORLD_STAGES,
};

struct world {
	struct raw raw;
	bool lies;
	uint32_t pd, channel, cq, mr;
	uint32_t qp[WORLD_QPS];
	uint32_t psn; /* of both */
	char *memory; /* WORLD_PAGES pages, mapped for as long as the world */
	uint8_t gid[16];
};

bool world_open(struct world *world, struct rn_rng *rng, uint32_t host);
/** Build one stage; what fails is left out. */
void world_step(struct world *world, uint32_t stage);
void world_destroy_something(struct world *world);
/** Hang up, without destroying anything. */
void world_close(struct world *world);

/* Places in the memory. */
char *world_sq(const struct world *world, unsigned qp);
char *world_rq(const struct world *world, unsigned qp);
char *world_cq_ring(const struct world *world);
uint32_t *world_qp_dbr(const struct world *world, unsigned qp);
uint32_t *world_cq_dbr(const struct world *world);
char *world_data(const struct world *world);
#define WORLD_DATA_BYTES (8u * PAGE)

#endif
