#include "block/transport/world.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "block/transport/server.h"
#include "sim/buffer.h"
#include "sim/stats.h"

struct rn_hw_qpc *world_qpc(struct world *world, unsigned host, uint32_t qpn)
{
	return rn_context_line(&world->host[host].qpc, qpn);
}

struct rn_hw_qpc_requester *world_requester(struct world *world, unsigned host, uint32_t qpn)
{
	return (void *)world_qpc(world, host, qpn)->requester;
}

struct rn_hw_qpc_responder *world_responder(struct world *world, unsigned host, uint32_t qpn)
{
	return (void *)world_qpc(world, host, qpn)->responder;
}

static void init_qpc(struct world *world, unsigned host, uint32_t qpn)
{
	struct rn_hw_qpc *qpc = world_qpc(world, host, qpn);

	*qpc = (struct rn_hw_qpc){
		.state = RN_QPS_INIT,
		.service = RN_QPT_RC,
		.access = 15,
		.qpn = qpn,
		.pd = 1,
		.log_sq_wqebbs = 8,
		.log_rq_wqes = 8,
		.send_cqn = 1,
		.recv_cqn = 2,
		.dest_qpn = qpn,
		.sq_psn = host ? 0xabcd00 : 0x123400,
		.rq_psn = host ? 0x123400 : 0xabcd00,
		.pkey = 0xffff,
		.udp_sport = 0xc000,
		.timeout = 8,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.hop_limit = 64,
	};
}

struct world *world_new(uint64_t permute_seed)
{
	struct world *world = rn_calloc(1, sizeof(*world));

	world->sim = rn_sim_new(permute_seed);
	rn_clock_init(&world->core, "core", 500000000);
	world->stats = rn_stats_new();
	world->buffers = rn_buffers_new();
	world->packets = rn_packets_new(world->buffers);
	world->frame = rn_calloc(WORLD_LOG, sizeof(*world->frame));
	world->dma_latency_ps = 600000;
	world->wire_latency_ps = 500000;
	world->mtu_log2 = 10;
	world->depth = 8;
	world->rq_slots = 64;
	rn_params_set_defaults(&rn_transport_param_table, &world->params);
	world->params.max_qps = WORLD_QPS;
	for (unsigned i = 0; i < 2; i++) {
		struct world_host *host = &world->host[i];

		host->world = world;
		host->number = i;
		host->qpc = (struct rn_context_sram){
			.lines = rn_calloc(WORLD_QPS, RN_QPC_BYTES),
			.bytes = RN_QPC_BYTES,
			.count = WORLD_QPS,
		};
		host->memory = rn_calloc(1, WORLD_MEMORY);
		host->key[host->keys++] = (struct world_key){.key = WORLD_KEY,
							     .pd = 1,
							     .access = 15,
							     .va = WORLD_VA,
							     .bytes = WORLD_MEMORY};
		for (uint32_t qpn = 0; qpn < WORLD_QPS; qpn++)
			init_qpc(world, i, qpn);
	}
	return world;
}

static void control(struct world *world, unsigned number, struct rn_qp_ctl ctl, bool tx, bool rx)
{
	struct world_host *host = &world->host[number];
	unsigned wanted = host->control_done + tx + rx;

	if (tx)
		rn_fifo_push(host->ports.tx_ctl, &ctl);
	if (rx)
		rn_fifo_push(host->ports.rx_ctl, &ctl);
	for (unsigned i = 0; i < 1000000 && host->control_done < wanted; i++)
		rn_sim_run(world->sim, RN_TIME_NEVER, 1);
	ck_assert_uint_eq(host->control_done, wanted);
}

void world_modify(struct world *world, unsigned host, uint32_t qpn, uint8_t state)
{
	struct rn_hw_qpc *qpc = world_qpc(world, host, qpn);
	struct rn_qp_ctl ctl = {.qpn = qpn, .op = RN_QP_PAUSE, .old_state = qpc->state};

	control(world, host, ctl, true, true);
	qpc->state = state;
	ctl.op = RN_QP_RESUME;
	ctl.new_state = state;
	control(world, host, ctl, true, true);
}

void world_forget(struct world *world, unsigned host, uint32_t qpn)
{
	control(world, host, (struct rn_qp_ctl){.qpn = qpn, .op = RN_QP_FORGET}, true, true);
	world_qpc(world, host, qpn)->state = RN_QPS_RESET;
}

void world_start(struct world *world)
{
	world_wire_new(world);
	for (unsigned i = 0; i < 2; i++)
		world_host_new(&world->host[i]);
	for (unsigned i = 0; i < 2; i++)
		for (uint32_t qpn = 0; qpn < WORLD_QPS; qpn++) {
			world_qpc(world, i, qpn)->mtu_log2 = (uint8_t)world->mtu_log2;
			world_modify(world, i, qpn, RN_QPS_RTR);
			world_modify(world, i, qpn, RN_QPS_RTS);
		}
}

void world_free(struct world *world, bool clean)
{
	for (unsigned i = 0; i < 2; i++) {
		struct world_host *host = &world->host[i];

		if (clean)
			ck_assert_int_eq(host->slots_out, 0);
		if (world->has_late[i])
			rn_packet_put(world->packets, world->late[i].packet);
		rn_transport_free(host->transport);
		for (unsigned f = 0; f < host->fifos; f++)
			rn_fifo_fini(&host->fifo[f]);
		free(host->qpc.lines);
		free(host->memory);
		free(host->sq_slots.slot);
		free(host->rq_slots.slot);
	}
	if (clean) {
		ck_assert_uint_eq(rn_packets_in_use(world->packets), 0);
		ck_assert_uint_eq(rn_buffers_in_use(world->buffers), 0);
	}
	rn_packets_free(world->packets);
	rn_buffers_free(world->buffers);
	rn_stats_free(world->stats);
	rn_sim_free(world->sim);
	free(world->frame);
	free(world);
}

struct rn_wqe *world_send(struct world *world, unsigned host, uint32_t qpn, uint8_t opcode,
			  uint32_t local, uint32_t remote, uint64_t bytes)
{
	struct world_queue *queue = &world->host[host].queue[qpn];
	struct rn_wqe *wqe = &queue->send[queue->send_pi % WORLD_WQES];

	*wqe = (struct rn_wqe){
		.raddr = WORLD_VA + remote,
		.total_bytes = bytes,
		.rkey = WORLD_KEY,
		.imm_be = 0x78563412,
		.inline_buf = RN_BUFFER_NONE,
		.wqe_idx = queue->send_pi++,
		.wqebbs = 1,
		.opcode = opcode,
		.flags = RN_WQE_SIGNALED,
		.sge_count = 1,
		.valid = 1,
		.sge = {{.va = WORLD_VA + local, .bytes = (uint32_t)bytes, .lkey = WORLD_KEY}},
	};
	return wqe;
}

struct rn_wqe *world_recv(struct world *world, unsigned host, uint32_t qpn, uint32_t local,
			  uint32_t bytes)
{
	struct world_queue *queue = &world->host[host].queue[qpn];
	struct rn_wqe *wqe = &queue->recv[queue->recv_pi % WORLD_WQES];

	*wqe = (struct rn_wqe){
		.total_bytes = bytes,
		.inline_buf = RN_BUFFER_NONE,
		.wqe_idx = queue->recv_pi++,
		.sge_count = 1,
		.valid = 1,
		.sge = {{.va = WORLD_VA + local, .bytes = bytes, .lkey = WORLD_KEY}},
	};
	return wqe;
}

void world_ring(struct world *world, unsigned host, uint32_t qpn)
{
	struct world_queue *queue = &world->host[host].queue[qpn];

	queue->pi = queue->send_pi;
	rn_block_wake_at(&world->host[host].server, rn_sim_now_ps(world->sim));
}

void world_kick(struct world *world, unsigned host, uint32_t qpn)
{
	struct rn_fifo *ring = world->host[host].ports.rq_ring;

	if (rn_fifo_can_push(ring))
		rn_fifo_push(ring, &(struct rn_rq_ring){.qpn = qpn});
}

void world_add_rule(struct world *world, enum world_fault fault, unsigned host, int opcode,
		    int64_t psn, uint32_t nth)
{
	world->rule[world->rules++] = (struct world_rule){
		.fault = fault, .host = (uint8_t)host, .opcode = opcode, .psn = psn, .nth = nth};
}

void world_run(struct world *world, uint64_t for_ps)
{
	rn_sim_run(world->sim, rn_sim_now_ps(world->sim) + for_ps, UINT64_MAX);
}

uint64_t world_count(struct world *world, unsigned host, const char *counter)
{
	return rn_stats_value(world->stats, host ? "host1.nic0.transport" : "host0.nic0.transport",
			      counter);
}

const struct world_frame *world_frame(const struct world *world, unsigned host, int opcode,
				      unsigned nth)
{
	for (unsigned i = 0; i < world->frames; i++) {
		const struct world_frame *frame = &world->frame[i];

		if (frame->host == host && (opcode < 0 || frame->packet.opcode == opcode) && !nth--)
			return frame;
	}
	return NULL;
}

unsigned world_frames(const struct world *world, unsigned host, int opcode)
{
	unsigned count = 0;

	while (world_frame(world, host, opcode, count))
		count++;
	return count;
}

unsigned world_naks(const struct world *world, unsigned host, uint8_t syndrome)
{
	unsigned count = 0;

	for (unsigned i = 0; i < world->frames; i++)
		count += world->frame[i].host == host && world->frame[i].packet.opcode == 0x11 &&
			 world->frame[i].packet.aeth_syndrome == syndrome;
	return count;
}

void world_fill(struct world *world, unsigned host, uint32_t offset, uint32_t bytes, uint8_t seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		world->host[host].memory[offset + i] = (uint8_t)(7 * i + (i >> 8) + seed);
}

bool world_same(const struct world *world, uint32_t offset0, uint32_t offset1, uint32_t bytes)
{
	return !memcmp(world->host[0].memory + offset0, world->host[1].memory + offset1, bytes);
}
