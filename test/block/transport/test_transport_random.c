/*
 * Random work over random loss: every WQE completes once, in order, with success, and the data is right,
 * whatever the sizes of the engine's structures.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "block/transport/world.h"
#include "sim/buffer.h"
#include "wire/opcode.h"

#define US UINT64_C(1000000)
#define ROUNDS 40

/* Sixteen receive buffers a QP, in turn: more than slots, so that none is filled again before it is checked; senders' data lies below and never changes. */
#define RECV_BYTES 0x4000u
#define RECV_AT(qpn, idx) (0x200000u + (16 * (qpn) + ((idx)&15)) * RECV_BYTES)

struct plan {
	struct rn_rng rng;
	unsigned sent[2][WORLD_QPS];
	unsigned received[2][WORLD_QPS];
	/* Of the message that each receive WQE will take: where it lies at its sender. */
	uint32_t source[2][WORLD_QPS][WORLD_WQES];
	struct world *world;
};

static uint32_t below(struct plan *plan, uint32_t bound)
{
	return (uint32_t)rn_rng_below(&plan->rng, bound);
}

static void choose_sizes(struct world *world, struct plan *plan)
{
	struct rn_transport_params *p = &world->params;

	world->depth = 2 + below(plan, 8);
	world->rq_slots = below(plan, 2) ? 64 : 1 + below(plan, 20);
	p->receive_ahead_wqes = below(plan, 5);
	world->mtu_log2 = 8 + below(plan, 5);
	p->quantum_packets = 1 + below(plan, 5);
	p->tx_packet_slots = 1 + below(plan, 8);
	p->read_data_slots = 1 + below(plan, 8);
	p->rx_slots = 1 + below(plan, 8);
	p->rx_lookahead = 1 + below(plan, 4);
	p->reply_slots = 1 + below(plan, 4);
	p->reply_jobs = 1 + below(plan, 10);
	p->outstanding_wqes = 1 + below(plan, 30);
	p->outstanding_reads = 1 + below(plan, 5);
	p->max_outstanding_psns = 1 + below(plan, 100);
	p->ack_req_interval = 1 + below(plan, 20);
	p->ack_delay_ps = below(plan, 2) * 3 * US;
	p->ack_every_packets = below(plan, 3);
	p->context_hold_cycles = below(plan, 100);
	p->turn_cycles = below(plan, 5);
	p->completion_cycles = below(plan, 5);
	p->nak_reaction_cycles = below(plan, 2) * 500;
	p->timeout_reaction_cycles = below(plan, 2) * 500;
	p->advertise_credits = below(plan, 2);
}

/* The @nth frame of a kind is dropped, doubled, late or damaged, now and then. */
static void choose_faults(struct world *world, struct plan *plan)
{
	for (unsigned i = 0; i < 16; i++)
		world_add_rule(world, (enum world_fault)below(plan, 4), below(plan, 2), -1, -1,
			       1 + below(plan, 120));
}

static void post(struct world *world, struct plan *plan, unsigned host, uint32_t qpn)
{
	static const uint8_t opcodes[] = {RN_WQE_SEND,	     RN_WQE_SEND_IMM,
					  RN_WQE_RDMA_WRITE, RN_WQE_RDMA_WRITE_IMM,
					  RN_WQE_RDMA_READ,  RN_WQE_NOP};
	uint32_t mtu = 1u << world->mtu_log2;
	uint8_t opcode = opcodes[below(plan, 6)];
	uint32_t bytes = below(plan, 3) ? below(plan, 6 * mtu) : below(plan, 3) * mtu;

	if (bytes > RECV_BYTES)
		bytes = RECV_BYTES;
	if (opcode == RN_WQE_NOP)
		bytes = 0;
	uint32_t source = below(plan, 0x8000);
	struct rn_wqe *wqe =
		world_send(world, host, qpn, opcode, source, 0x40000 + below(plan, 0x8000), bytes);

	/* READs land where nobody else writes. */
	if (opcode == RN_WQE_RDMA_READ)
		wqe->sge[0].va = WORLD_VA + 0x80000 + below(plan, 0x8000);
	if (!below(plan, 4))
		wqe->flags |= RN_WQE_FENCE;
	plan->sent[host][qpn]++;
	if (opcode == RN_WQE_RDMA_READ || opcode == RN_WQE_RDMA_WRITE || opcode == RN_WQE_NOP)
		return;
	uint16_t idx = world->host[!host].queue[qpn].recv_pi;

	plan->source[!host][qpn][idx % WORLD_WQES] = source;
	world_recv(world, !host, qpn, RECV_AT(qpn, idx), RECV_BYTES);
	plan->received[!host][qpn]++;
}

static void check_all(const struct world *world, const struct plan *plan)
{
	unsigned send[2][WORLD_QPS] = {{0}};
	unsigned recv[2][WORLD_QPS] = {{0}};

	for (unsigned host = 0; host < 2; host++)
		for (unsigned i = 0; i < world->host[host].completions; i++) {
			const struct rn_completion *c = &world->host[host].completion[i];
			unsigned *count =
				c->opcode == RN_CQE_REQ ? &send[host][c->qpn] : &recv[host][c->qpn];

			ck_assert_uint_eq(c->status, RN_WC_SUCCESS);
			ck_assert_uint_eq(c->wqe_idx, (*count)++);
		}
	ck_assert_mem_eq(send, plan->sent, sizeof(send));
	ck_assert_mem_eq(recv, plan->received, sizeof(recv));
}

static void check_data(void *arg, unsigned host, const struct rn_completion *completion)
{
	const struct plan *plan = arg;
	const struct world *world = plan->world;
	uint16_t idx = completion->wqe_idx;
	uint32_t qpn = completion->qpn;

	if (completion->opcode != RN_CQE_RECV && completion->opcode != RN_CQE_RECV_IMM)
		return;
	ck_assert_mem_eq(world->host[host].memory + RECV_AT(qpn, idx),
			 world->host[!host].memory + plan->source[host][qpn][idx % WORLD_WQES],
			 completion->byte_len);
}

START_TEST(random_work_over_random_loss_completes_in_order)
{
	static struct plan plan;
	struct world *world;

	memset(&plan, 0, sizeof(plan));
	rn_rng_init(&plan.rng, (uint64_t)_i, "random");
	world = world_new((uint64_t)_i);
	choose_sizes(world, &plan);
	world_start(world);
	choose_faults(world, &plan);
	plan.world = world;
	world->on_completion = check_data;
	world->arg = &plan;
	for (unsigned host = 0; host < 2; host++)
		world_fill(world, host, 0, 0x80000, (uint8_t)(host + 1));
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned host = below(&plan, 2);
		uint32_t qpn = 1 + below(&plan, WORLD_QPS - 1);

		for (unsigned i = below(&plan, 6); i; i--)
			post(world, &plan, host, qpn);
		world_ring(world, host, qpn);
		world_run(world, below(&plan, 4) * US);
	}
	world_run(world, 500000 * US);
	check_all(world, &plan);
	world_free(world, true);
}
END_TEST

/* The same with errors and control in between: nothing is left over, nothing completes twice. */
START_TEST(random_errors_and_control_leave_nothing_behind)
{
	static struct plan plan;
	struct world *world;

	memset(&plan, 0, sizeof(plan));
	rn_rng_init(&plan.rng, (uint64_t)_i + 1000, "control");
	world = world_new((uint64_t)_i);
	choose_sizes(world, &plan);
	world_start(world);
	choose_faults(world, &plan);
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned host = below(&plan, 2);
		uint32_t qpn = 1 + below(&plan, WORLD_QPS - 1);
		struct world_queue *queue = &world->host[host].queue[qpn];

		for (unsigned i = below(&plan, 6); i; i--)
			post(world, &plan, host, qpn);
		if (!below(&plan, 4) && queue->send_pi) {
			struct rn_wqe *wqe = &queue->send[(queue->send_pi - 1) % WORLD_WQES];

			switch (below(&plan, 4)) {
			case 0:
				wqe->rkey = 0x9900;
				break;
			case 1:
				wqe->sge[0].lkey = 0x9900;
				break;
			case 2:
				wqe->valid = 0;
				break;
			default:
				wqe->raddr = UINT64_MAX - 50;
				break;
			}
		}
		world_ring(world, host, qpn);
		world_run(world, below(&plan, 4) * US);
		if (!below(&plan, 8))
			world_modify(world, host, qpn, below(&plan, 2) ? RN_QPS_ERR : RN_QPS_SQD);
		else if (!below(&plan, 12))
			world_forget(world, host, qpn);
		else if (!below(&plan, 6))
			world_kick(world, host, qpn);
	}
	world_run(world, 500000 * US);
	for (uint32_t qpn = 1; qpn < WORLD_QPS; qpn++)
		for (unsigned host = 0; host < 2; host++)
			world_forget(world, host, qpn);
	world_run(world, 1000 * US);
	world_free(world, true);
}
END_TEST

/* A frame that no peer sends: any opcode, PSNs about where they are expected, any lengths. */
static void inject(struct world *world, struct plan *plan, uint32_t qpn)
{
	struct rn_fifo *fifo = world->host[1].ports.rx_frame;
	uint32_t idx = rn_packet_get(world->packets);
	struct rn_packet *packet = rn_packet_at(world->packets, idx);
	const uint32_t bases[] = {world_responder(world, 1, qpn)->epsn,
				  world_requester(world, 1, qpn)->una_psn, below(plan, 1 << 24)};

	packet->opcode = (uint8_t)below(plan, below(plan, 4) ? 0x18 : 256);
	packet->dqpn = below(plan, 20) ? qpn : below(plan, 1 << 24);
	packet->psn = (bases[below(plan, 3)] + below(plan, 6) - 3) & 0xffffff;
	packet->ackreq = below(plan, 2) != 0;
	packet->aeth_syndrome = (uint8_t)below(plan, 256);
	packet->aeth_msn = below(plan, 1 << 24);
	packet->reth_va =
		below(plan, 2) ? WORLD_VA + below(plan, WORLD_MEMORY) : rn_rng_next(&plan->rng);
	packet->reth_rkey = below(plan, 3) ? WORLD_KEY : below(plan, UINT32_MAX);
	packet->reth_bytes = below(plan, 2) ? below(plan, 10000) : below(plan, UINT32_MAX);
	packet->pkey = below(plan, 10) ? 0xffff : 0x7fff;
	packet->payload_bytes = (uint16_t)below(plan, 2) * (uint16_t)below(plan, 4097);
	if (!below(plan, 3))
		packet->payload_bytes = (uint16_t)(1u << world->mtu_log2);
	if (packet->payload_bytes)
		packet->payload_buf = rn_buffer_get(world->buffers);
	if (rn_fifo_can_push(fifo))
		rn_fifo_push(fifo, &(struct rn_frame){.packet = idx, .bytes = 100});
	else
		rn_packet_put(world->packets, idx);
}

START_TEST(hostile_frames_harm_their_queue_pair_at_most)
{
	static struct plan plan;
	struct world *world;

	memset(&plan, 0, sizeof(plan));
	rn_rng_init(&plan.rng, (uint64_t)_i, "hostile");
	world = world_new((uint64_t)_i);
	choose_sizes(world, &plan);
	world_start(world);
	for (unsigned i = 0; i < 10; i++) {
		post(world, &plan, 0, 7);
		world_ring(world, 0, 7);
		for (uint32_t qpn = 1; qpn < 7; qpn++) {
			world_recv(world, 1, qpn, 0xc0000, 5000);
			world_send(world, 1, qpn, RN_WQE_RDMA_READ, 0, 0x40000, below(&plan, 9000));
			world_send(world, 1, qpn, RN_WQE_RDMA_WRITE, 0, 0x40000,
				   below(&plan, 9000));
			world_ring(world, 1, qpn);
			for (unsigned n = below(&plan, 8); n; n--)
				inject(world, &plan, qpn);
		}
		world_run(world, below(&plan, 5) * US);
	}
	world_run(world, 200000 * US);
	/* QP 7 was left alone. */
	unsigned good = 0;

	for (unsigned i = 0; i < world->host[0].completions; i++)
		good += world->host[0].completion[i].qpn == 7 &&
			world->host[0].completion[i].opcode == RN_CQE_REQ;
	ck_assert_uint_eq(good, plan.sent[0][7]);
	for (uint32_t qpn = 1; qpn < WORLD_QPS; qpn++)
		for (unsigned host = 0; host < 2; host++)
			world_forget(world, host, qpn);
	world_run(world, 1000 * US);
	world_free(world, true);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("transport_random");
	TCase *tests = tcase_create("all");
	SRunner *runner = srunner_create(suite);
	const char *rounds = getenv("RN_RANDOM_ROUNDS"); /* COUNT or FIRST-END, for long runs */
	int first = 0;
	int end = rounds ? atoi(rounds) : 100;

	if (rounds && strchr(rounds, '-')) {
		first = end;
		end = atoi(strchr(rounds, '-') + 1);
	}
	tcase_add_loop_test(tests, random_work_over_random_loss_completes_in_order, first, end);
	tcase_add_loop_test(tests, random_errors_and_control_leave_nothing_behind, first, end);
	tcase_add_loop_test(tests, hostile_frames_harm_their_queue_pair_at_most, first, end);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
