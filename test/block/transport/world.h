/*
 * Two transport engines back to back on a test wire, each with fake scheduler, WQE fetcher, context cache,
 * key check, DMA engine and CQE writer over byte arrays. The wire logs every frame at its egress and drops,
 * doubles, delays or damages frames by rule.
 */
#ifndef RN_TEST_TRANSPORT_WORLD_H
#define RN_TEST_TRANSPORT_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "hw/gen/rnic_hw.h"
#include "nic/transport/transport.h"
#include "sim/sim.h"
#include "wire/packet.h"

#define WORLD_QPS 8
#define WORLD_MEMORY (1u << 22)
#define WORLD_WQES 256
#define WORLD_LOG 16384
#define WORLD_KEY 0x1100u /* covers all memory, every right, PD 1 */
#define WORLD_VA 0x10000000u

struct world_frame {
	uint64_t at_ps;
	uint8_t host; /* sender */
	bool arrived;
	struct rn_packet packet;
};

struct world_key {
	uint32_t key, pd;
	uint8_t access;
	uint64_t va, bytes;
};

enum world_fault { WORLD_DROP, WORLD_DOUBLE, WORLD_DELAY, WORLD_CORRUPT };

/* What happens to frames of @host with (@opcode or any) and @psn: to the @nth such (from 1), 0 to all. */
struct world_rule {
	enum world_fault fault;
	uint8_t host;
	int opcode;  /* -1 any */
	int64_t psn; /* -1 any */
	uint32_t nth;
	uint32_t seen;
};

struct world_queue {
	struct rn_wqe send[WORLD_WQES]; /* by WQEBB index; every WQE is one WQEBB */
	struct rn_wqe recv[WORLD_WQES];
	uint16_t send_pi, recv_pi;
	bool recv_hidden; /* rq_pi reads as 0 */
	uint32_t fetches; /* of send WQEs */
	/* Fake scheduler. */
	uint16_t next, pi;
	bool parked, granted;
};

struct world;

struct world_host {
	struct world *world;
	uint32_t number;
	struct rn_nic_env env;
	struct rn_nic_identity identity;
	struct rn_transport_ports ports;
	struct rn_transport *transport;
	struct rn_block server;
	struct rn_fifo fifo[40];
	unsigned fifos;
	struct rn_context_sram qpc;
	struct rn_wqe_slots sq_slots, rq_slots;
	uint32_t sq_slot_next;
	uint32_t rq_slot_free[64]; /* stack */
	uint32_t rq_slots_free;
	uint8_t *memory;
	struct world_key key[8];
	unsigned keys;
	struct world_queue queue[WORLD_QPS];
	struct rn_completion completion[WORLD_LOG];
	uint64_t completion_ps[WORLD_LOG];
	unsigned completions;
	struct rn_event event[256];
	unsigned events;
	unsigned control_done;
	unsigned pins;
	int slots_out;
	uint32_t context_requests;
	/* Fails DMA of this channel from the nth request (1-based), 0 never. */
	struct rn_fifo *dma_fail_req;
	uint32_t dma_fail_nth, dma_fail_seen;
	uint8_t dma_fail_status;
};

struct world {
	struct rn_sim *sim;
	struct rn_clock core;
	struct rn_stats *stats;
	struct rn_buffers *buffers;
	struct rn_packets *packets;
	struct rn_block wire;
	struct rn_transport_params params;
	struct world_host host[2];
	struct world_rule rule[16];
	unsigned rules;
	struct rn_frame late[2];
	bool has_late[2];
	struct world_frame *frame;
	unsigned frames;
	uint64_t dma_latency_ps;
	uint64_t wire_latency_ps;
	uint64_t wire_interval_ps; /* between two frames of a host; 0 none */
	uint64_t line_free_ps[2];
	uint32_t mtu_log2;
	uint32_t depth; /* of the fifos */
	uint32_t rq_slots;
	/* Called with each completion as it is taken. */
	void (*on_completion)(void *arg, unsigned host, const struct rn_completion *completion);
	void *arg;
};

/** Defaults of parameters, before world_start(). */
struct world *world_new(uint64_t permute_seed);
/** Build the transports and connect QP @n of host 0 with QP @n of host 1, in RTS. */
void world_start(struct world *world);
/** Checks that nothing is left over (packets, buffers, slots) when @clean. */
void world_free(struct world *world, bool clean);

/** The context of a QP; its config may be changed before world_start(). */
struct rn_hw_qpc *world_qpc(struct world *world, unsigned host, uint32_t qpn);
struct rn_hw_qpc_requester *world_requester(struct world *world, unsigned host, uint32_t qpn);
struct rn_hw_qpc_responder *world_responder(struct world *world, unsigned host, uint32_t qpn);

/** Post a send WQE with one segment at memory offset @local, to offset @remote; returns it, to be changed. */
struct rn_wqe *world_send(struct world *world, unsigned host, uint32_t qpn, uint8_t opcode,
			  uint32_t local, uint32_t remote, uint64_t bytes);
struct rn_wqe *world_recv(struct world *world, unsigned host, uint32_t qpn, uint32_t local,
			  uint32_t bytes);
/** Ring the doorbell for all posted. */
void world_ring(struct world *world, unsigned host, uint32_t qpn);
void world_kick(struct world *world, unsigned host, uint32_t qpn);
void world_add_rule(struct world *world, enum world_fault fault, unsigned host, int opcode,
		    int64_t psn, uint32_t nth);
/** Run until nothing is left to do or @for_ps have passed. */
void world_run(struct world *world, uint64_t for_ps);
/** PAUSE both halves, set the state, RESUME; or FORGET. */
void world_modify(struct world *world, unsigned host, uint32_t qpn, uint8_t state);
void world_forget(struct world *world, unsigned host, uint32_t qpn);

uint64_t world_count(struct world *world, unsigned host, const char *counter);
/** The @nth (from 0) frame of @host with @opcode (-1 any), or NULL. */
const struct world_frame *world_frame(const struct world *world, unsigned host, int opcode,
				      unsigned nth);
unsigned world_frames(const struct world *world, unsigned host, int opcode);
/** Frames of @host that are NAKs with @syndrome. */
unsigned world_naks(const struct world *world, unsigned host, uint8_t syndrome);
void world_fill(struct world *world, unsigned host, uint32_t offset, uint32_t bytes, uint8_t seed);
bool world_same(const struct world *world, uint32_t offset0, uint32_t offset1, uint32_t bytes);

#endif
