#include "block/transport/server.h"

#include <check.h>
#include <string.h>

#include "base/mem.h"
#include "sim/buffer.h"

static uint64_t now(const struct world_host *host)
{
	return rn_sim_now_ps(host->world->sim);
}

static void serve_contexts(struct world_host *host, struct rn_fifo *requests,
			   struct rn_fifo *answers)
{
	const struct rn_context_req *req;

	while ((req = rn_fifo_peek(requests))) {
		if (req->op == RN_CONTEXT_ACQUIRE) {
			if (!rn_fifo_can_push(answers))
				return;
			bool exists = req->number < host->qpc.count;

			host->pins += exists;
			host->context_requests++;
			rn_fifo_push(answers, &(struct rn_context_rsp){
						      .token = req->token,
						      .status = exists ? RN_CONTEXT_OK
								       : RN_CONTEXT_BAD_NUMBER,
						      .line = req->number,
					      });
		} else if (req->op == RN_CONTEXT_RELEASE) {
			host->pins--;
		}
		rn_fifo_drop(requests);
	}
}

static uint8_t check_key(const struct world_host *host, uint32_t key, uint32_t pd, uint8_t access,
			 uint64_t va, uint64_t bytes)
{
	for (unsigned i = 0; i < host->keys; i++) {
		const struct world_key *k = &host->key[i];

		if (k->key != key)
			continue;
		if (k->pd != pd)
			return RN_PTE_BAD_PD;
		if (access & ~k->access)
			return RN_PTE_BAD_ACCESS;
		if (va < k->va || bytes > k->bytes || va - k->va > k->bytes - bytes)
			return RN_PTE_BAD_BOUNDS;
		return RN_PTE_OK;
	}
	return RN_PTE_BAD_KEY;
}

static uint8_t transfer(struct world_host *host, struct rn_fifo *requests,
			const struct rn_dma_req *req)
{
	if (requests == host->dma_fail_req && ++host->dma_fail_seen == host->dma_fail_nth)
		return host->dma_fail_status;
	if (check_key(host, req->key, req->pd, req->access, req->addr, req->len) != RN_PTE_OK)
		return RN_DMA_PROTECTION;

	uint8_t *data = rn_buffer_data(host->world->buffers, req->buf) + req->buf_off;
	uint8_t *memory = host->memory + (req->addr - WORLD_VA);

	ck_assert_uint_le(req->buf_off + req->len, RN_BUFFER_BYTES);
	if (req->op == RN_DMA_READ)
		memcpy(data, memory, req->len);
	else
		memcpy(memory, data, req->len);
	return RN_DMA_OK;
}

static void serve_dma(struct world_host *host, struct rn_fifo *requests, struct rn_fifo *answers)
{
	const struct rn_dma_req *req;

	while ((req = rn_fifo_peek(requests)) && rn_fifo_can_push(answers)) {
		uint64_t latency_ps = req->op == RN_DMA_READ ? host->world->dma_latency_ps
							     : host->world->dma_latency_ps / 4;

		ck_assert_uint_gt(req->len, 0);
		rn_fifo_push_at(answers,
				&(struct rn_dma_rsp){.token = req->token,
						     .status = transfer(host, requests, req)},
				now(host) + latency_ps);
		rn_fifo_drop(requests);
	}
}

static void serve_keys(struct world_host *host)
{
	const struct rn_pte_req *req;

	while ((req = rn_fifo_peek(host->ports.rx_pte_req)) &&
	       rn_fifo_can_push(host->ports.rx_pte_rsp)) {
		uint8_t status =
			check_key(host, req->key, req->pd, req->access, req->va, req->length);

		ck_assert(req->check_only);
		rn_fifo_push(host->ports.rx_pte_rsp,
			     &(struct rn_pte_rsp){.id = req->id, .status = status});
		rn_fifo_drop(host->ports.rx_pte_req);
	}
}

static void serve_receives(struct world_host *host)
{
	const struct rn_rq_fetch *req;
	struct rn_slot_free back;

	while (rn_fifo_pop(host->ports.rq_free, &back)) {
		ck_assert_uint_lt(back.slot, host->rq_slots.count);
		ck_assert_uint_lt(host->rq_slots_free, host->rq_slots.count);
		host->rq_slot_free[host->rq_slots_free++] = back.slot;
		host->slots_out--;
	}
	while ((req = rn_fifo_peek(host->ports.rq_fetch))) {
		struct world_queue *queue = &host->queue[req->qpn];
		struct rn_rq_fetch_rsp rsp = {.token = req->token, .pi = queue->recv_pi};

		if (!req->forget) {
			if (!rn_fifo_can_push(host->ports.rq_fetch_rsp))
				return;
			if (queue->recv_hidden)
				rsp.pi = req->idx;
			if (rsp.pi == req->idx)
				rsp.status = RN_WORK_EMPTY;
			if (rsp.status == RN_WORK_OK && !req->pi_only) {
				if (!host->rq_slots_free)
					return;
				rsp.slot = host->rq_slot_free[--host->rq_slots_free];
				host->rq_slots.slot[rsp.slot] = queue->recv[req->idx % WORLD_WQES];
				host->slots_out++;
			}
			rn_fifo_push_at(host->ports.rq_fetch_rsp, &rsp, now(host) + 50000);
		}
		rn_fifo_drop(host->ports.rq_fetch);
	}
}

static void serve_turns(struct world_host *host)
{
	struct rn_turn turn;
	struct rn_slot_free back;
	struct rn_wqe_forget forget;

	while (rn_fifo_pop(host->ports.sq_free, &back))
		host->slots_out--;
	while (rn_fifo_pop(host->ports.sq_forget, &forget))
		;
	while (rn_fifo_pop(host->ports.turn, &turn)) {
		struct world_queue *queue = &host->queue[turn.qpn];

		queue->next = turn.next;
		switch (turn.kind) {
		case RN_TURN_PARK:
			queue->parked = true;
			queue->granted = false;
			break;
		case RN_TURN_END:
			queue->granted = false;
			break;
		case RN_TURN_ACTIVATE:
			queue->parked = false;
			break;
		default:
			queue->parked = false;
			queue->pi = turn.next;
			break;
		}
	}
}

static void grant(struct world_host *host)
{
	for (uint32_t qpn = 0; qpn < WORLD_QPS; qpn++) {
		struct world_queue *queue = &host->queue[qpn];
		const struct rn_hw_qpc_requester *r =
			world_requester(host->world, host->number, qpn);

		if (queue->granted || queue->parked || queue->next == queue->pi)
			continue;
		if (!rn_fifo_can_push(host->ports.work))
			return;
		/* The fetch finds what sq_next says now. */
		struct rn_work work = {.qpn = qpn, .pi = queue->pi};

		if ((uint16_t)r->sq_next == queue->pi) {
			work.status = RN_WORK_EMPTY;
		} else {
			work.slot = host->sq_slot_next++ % host->sq_slots.count;
			host->sq_slots.slot[work.slot] = queue->send[r->sq_next % WORLD_WQES];
			host->slots_out++;
			queue->fetches++;
		}
		queue->granted = true;
		rn_fifo_push_at(host->ports.work, &work, now(host) + 20000);
	}
}

static void take_results(struct world_host *host, struct rn_fifo *completions)
{
	while (host->completions < WORLD_LOG &&
	       rn_fifo_pop(completions, &host->completion[host->completions])) {
		host->completion_ps[host->completions] = now(host);
		if (host->world->on_completion)
			host->world->on_completion(host->world->arg, host->number,
						   &host->completion[host->completions]);
		host->completions++;
	}
}

static void tick(void *self, uint64_t cycle)
{
	struct world_host *host = self;
	const struct rn_transport_ports *p = &host->ports;
	struct rn_ctl_done done;

	(void)cycle;
	serve_contexts(host, p->tx_context_req, p->tx_context_rsp);
	serve_contexts(host, p->rx_context_req, p->rx_context_rsp);
	serve_dma(host, p->tx_dma_req, p->tx_dma_rsp);
	serve_dma(host, p->resp_dma_req, p->resp_dma_rsp);
	serve_dma(host, p->rx_dma_req, p->rx_dma_rsp);
	serve_dma(host, p->read_data_dma_req, p->read_data_dma_rsp);
	serve_keys(host);
	serve_receives(host);
	serve_turns(host);
	grant(host);
	take_results(host, p->tx_completion);
	take_results(host, p->rx_completion);
	while (host->events < 256 && rn_fifo_pop(p->tx_event, &host->event[host->events]))
		host->events++;
	while (host->events < 256 && rn_fifo_pop(p->rx_event, &host->event[host->events]))
		host->events++;
	while (rn_fifo_pop(p->tx_ctl_done, &done))
		host->control_done++;
	while (rn_fifo_pop(p->rx_ctl_done, &done))
		host->control_done++;
}

static struct rn_fifo *make_fifo(struct world_host *host, uint32_t bytes, bool to_transport)
{
	struct rn_fifo *fifo = &host->fifo[host->fifos++];

	ck_assert_uint_le(host->fifos, 40);
	rn_fifo_init(fifo, host->world->sim, "test", host->world->depth, bytes, 1);
	if (to_transport)
		rn_fifo_set_producer(fifo, &host->server);
	else
		rn_fifo_set_consumer(fifo, &host->server);
	return fifo;
}

static void make_slots(struct rn_wqe_slots *slots, uint32_t count)
{
	slots->count = count;
	slots->slot = rn_calloc(slots->count, sizeof(*slots->slot));
}

void world_host_new(struct world_host *host)
{
	struct world *world = host->world;
	struct rn_transport_ports *p = &host->ports;

	host->env = (struct rn_nic_env){
		.sim = world->sim,
		.core = &world->core,
		.mac = &world->core,
		.stats = world->stats,
		.buffers = world->buffers,
		.packets = world->packets,
		.name = host->number ? "host1.nic0" : "host0.nic0",
		.host = host->number,
	};
	host->identity.smac[5] = (uint8_t)(host->number + 1);
	make_slots(&host->sq_slots, 64);
	make_slots(&host->rq_slots, world->rq_slots);
	while (host->rq_slots_free < world->rq_slots) {
		host->rq_slot_free[host->rq_slots_free] = host->rq_slots_free;
		host->rq_slots_free++;
	}
	rn_block_init(&host->server, world->sim, &world->core, "server", tick, host);
#define IN(field, type) p->field = make_fifo(host, sizeof(struct type), true)
#define OUT(field, type) p->field = make_fifo(host, sizeof(struct type), false)
	IN(work, rn_work);
	OUT(turn, rn_turn);
	OUT(sq_free, rn_slot_free);
	OUT(sq_forget, rn_wqe_forget);
	OUT(rq_fetch, rn_rq_fetch);
	IN(rq_fetch_rsp, rn_rq_fetch_rsp);
	OUT(rq_free, rn_slot_free);
	IN(rq_ring, rn_rq_ring);
	OUT(tx_context_req, rn_context_req);
	IN(tx_context_rsp, rn_context_rsp);
	OUT(rx_context_req, rn_context_req);
	IN(rx_context_rsp, rn_context_rsp);
	OUT(rx_pte_req, rn_pte_req);
	IN(rx_pte_rsp, rn_pte_rsp);
	OUT(tx_dma_req, rn_dma_req);
	IN(tx_dma_rsp, rn_dma_rsp);
	OUT(resp_dma_req, rn_dma_req);
	IN(resp_dma_rsp, rn_dma_rsp);
	OUT(rx_dma_req, rn_dma_req);
	IN(rx_dma_rsp, rn_dma_rsp);
	OUT(read_data_dma_req, rn_dma_req);
	IN(read_data_dma_rsp, rn_dma_rsp);
	OUT(tx_completion, rn_completion);
	OUT(rx_completion, rn_completion);
	OUT(tx_event, rn_event);
	OUT(rx_event, rn_event);
	IN(tx_ctl, rn_qp_ctl);
	IN(rx_ctl, rn_qp_ctl);
	OUT(tx_ctl_done, rn_ctl_done);
	OUT(rx_ctl_done, rn_ctl_done);
#undef IN
#undef OUT
	p->qpc = &host->qpc;
	p->sq_slots = &host->sq_slots;
	p->rq_slots = &host->rq_slots;
	p->identity = &host->identity;
	host->transport = rn_transport_new(&host->env, &world->params, p);
}

/* The wire */

static void deliver(struct world *world, unsigned to, const struct rn_frame *frame)
{
	rn_fifo_push_at(world->host[to].ports.rx_frame, frame,
			rn_sim_now_ps(world->sim) + world->wire_latency_ps);
}

static const struct world_rule *find_rule(struct world *world, unsigned from,
					  const struct rn_packet *packet)
{
	const struct world_rule *found = NULL;

	for (unsigned i = 0; i < world->rules; i++) {
		struct world_rule *rule = &world->rule[i];

		if (rule->host != from || (rule->opcode >= 0 && rule->opcode != packet->opcode) ||
		    (rule->psn >= 0 && rule->psn != packet->psn))
			continue;
		rule->seen++;
		if (!rule->nth || rule->nth == rule->seen)
			found = rule;
	}
	return found;
}

static void carry(struct world *world, unsigned from, struct rn_frame frame)
{
	struct rn_packet *packet = rn_packet_at(world->packets, frame.packet);
	const struct world_rule *rule = find_rule(world, from, packet);

	ck_assert_uint_lt(world->frames, WORLD_LOG);
	world->frame[world->frames++] = (struct world_frame){
		.at_ps = rn_sim_now_ps(world->sim),
		.host = (uint8_t)from,
		.arrived = !rule || rule->fault != WORLD_DROP,
		.packet = *packet,
	};
	if (rule && rule->fault == WORLD_DROP) {
		rn_packet_put(world->packets, frame.packet);
		return;
	}
	if (rule && rule->fault == WORLD_DELAY && !world->has_late[from]) {
		world->late[from] = frame;
		world->has_late[from] = true;
		return;
	}
	if (rule && rule->fault == WORLD_DOUBLE) {
		struct rn_frame copy = {.packet = rn_packet_clone(world->packets, frame.packet),
					.bytes = frame.bytes};

		deliver(world, !from, &copy);
	}
	if (rule && rule->fault == WORLD_CORRUPT)
		packet->corrupt = 1;
	deliver(world, !from, &frame);
	if (world->has_late[from])
		deliver(world, !from, &world->late[from]);
	world->has_late[from] = false;
}

static void wire_tick(void *self, uint64_t cycle)
{
	struct world *world = self;
	struct rn_frame frame;
	uint64_t now_ps = rn_sim_now_ps(world->sim);

	(void)cycle;
	for (unsigned i = 0; i < 2; i++)
		while (rn_fifo_peek(world->host[i].ports.tx_frame)) {
			if (now_ps < world->line_free_ps[i]) {
				rn_block_wake_at(&world->wire, world->line_free_ps[i]);
				break;
			}
			if (!rn_fifo_has_space(world->host[!i].ports.rx_frame, 2))
				break;
			rn_fifo_pop(world->host[i].ports.tx_frame, &frame);
			world->line_free_ps[i] = now_ps + world->wire_interval_ps;
			carry(world, i, frame);
		}
}

void world_wire_new(struct world *world)
{
	rn_block_init(&world->wire, world->sim, &world->core, "wire", wire_tick, world);
	for (unsigned i = 0; i < 2; i++) {
		struct world_host *host = &world->host[i];

		host->ports.tx_frame = &host->fifo[host->fifos++];
		host->ports.rx_frame = &host->fifo[host->fifos++];
		rn_fifo_init(host->ports.tx_frame, world->sim, "tx_frame", world->depth,
			     sizeof(struct rn_frame), 1);
		/* What the wire holds is no fifo of the NIC: it must not push back. */
		rn_fifo_init(host->ports.rx_frame, world->sim, "rx_frame", 1024,
			     sizeof(struct rn_frame), 1);
		rn_fifo_set_consumer(host->ports.tx_frame, &world->wire);
		rn_fifo_set_producer(host->ports.rx_frame, &world->wire);
	}
}
