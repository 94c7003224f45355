/* Inside of the fake simulator. */
#ifndef RN_TEST_FAKE_INTERNAL_H
#define RN_TEST_FAKE_INTERNAL_H

#include "bar/channel.h"
#include "driver/uapi.h"
#include "fake_sim.h"
#include "hw/gen/rnic_hw.h"

#define FAKE_CLIENTS 8
#define FAKE_OBJECTS 256
#define FAKE_PAGE 4096u
#define FAKE_MAPPED (UINT64_C(1) << 34) /* of an arena, in this process */

/* Test back doors in the protocol. */
enum { FAKE_OP_PEEK = 1000, FAKE_OP_POKE, FAKE_OP_PINNED };

struct fake_page {
	uint64_t va;
	uint64_t offset; /* UINT64_MAX: fallback */
	uint32_t pins;
};

struct fake_client {
	int fd; /* -1: free */
	int wake_fd, arena_fd, async_fd;
	uint32_t pid;
	struct rn_channel *channel;
	uint64_t head;
	uint8_t *arena;
	uint64_t next_frame;
	struct fake_page *page;
	size_t pages, capacity;
	uint8_t bf[2][RN_UAR_BLUEFLAME_BYTES];
};

struct fake_mr {
	struct fake_client *client;
	uint64_t va, iova, length;
	uint32_t pd, access;
};

struct fake_cq {
	struct fake_client *client;
	struct rn_uapi_create_cq create;
	int channel_fd;
	uint32_t pi, arm_ci;
	bool armed, solicited;
	uint32_t comp_events;
};

struct fake_qp {
	struct fake_client *client;
	struct rn_uapi_create_qp create;
	struct rn_uapi_qp_attr attr;
	uint16_t sq_pi, sq_next;
	uint16_t rq_next;
	bool rq_kicked;
};

struct fake_sim {
	struct fake_sim_options options;
	int listener;
	struct fake_client client[FAKE_CLIENTS];
	struct fake_mr mr[FAKE_OBJECTS];
	struct fake_cq cq[FAKE_OBJECTS];
	struct fake_qp qp[FAKE_OBJECTS];
	int channel_fd[FAKE_OBJECTS];
	uint32_t pds;
	unsigned pinned;
};

/** fake_calls.c: one request; false when the client is to be dropped. */
bool fake_serve(struct fake_sim *sim, struct fake_client *client);
void fake_drop(struct fake_sim *sim, struct fake_client *client);
struct fake_page *fake_find_page(struct fake_client *client, uint64_t va);

/** fake_nic.c: take doorbells and move data; true when something happened. */
bool fake_nic_run(struct fake_sim *sim);
/** Copy between this process and a client's memory at @va (through frames or the process). False: not pinned. */
bool fake_copy(struct fake_client *client, uint64_t va, void *data, uint32_t bytes, bool write);

#endif
