/*
 * Event queues. An event becomes an EQE in a ring in the driver's memory and, behind it on PCIe, an
 * MSI-X message. Exact: the order of EQE and MSI-X (the MSI-X is requested when the EQE has entered
 * the posted queue), pass parity, round robin over the four sources. The NIC does not know the
 * driver's consumer index: the driver makes each ring large enough for all its events (EQE_COMPLETION once an
 * arm, EQE_COMMAND once a command ...). Left out: moderation, coalescing of MSI-X messages.
 */
#include "nic/eq/eq.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "hw/gen/rnic_hw.h"
#include "nic/msg/control.h"
#include "sim/buffer.h"
#include "sim/stats.h"

#define RN_PARAM_OWNER rn_eq_params
RN_PARAM_TABLE(rn_eq_param_table, "eq", RN_EQ_PARAMS);

#define EQ_COUNTERS(X)                                                                             \
	X(completion_events, "events", "EQEs of armed CQs")                                        \
	X(command_events, "events", "EQEs of completed commands")                                  \
	X(async_events, "events", "EQEs of QP, CQ and port events")                                \
	X(interrupts, "events", "MSI-X messages sent")                                             \
	X(dropped_no_eq, "events", "events for an EQ that does not exist")                         \
	X(write_errors, "events", "EQEs or MSI-X messages that could not be written")

struct eq_counters {
	EQ_COUNTERS(RN_COUNTER_FIELD)
};

#define EQ_ROW(field, unit, help) RN_COUNTER_ROW(struct eq_counters, field, unit, help)

static const struct rn_counter_desc eq_counter_descs[] = {EQ_COUNTERS(EQ_ROW)};

enum { EQ_INPUTS = 4 };

struct queue {
	uint64_t base_pa;
	uint32_t pi;
	uint32_t in_flight; /* slots that work for it */
	uint16_t vector;
	uint8_t log_eqes;
	bool is_live;
};

/* An event on its way: its EQE is being written, then its MSI-X message. */
struct slot {
	uint32_t buf; /* RN_BUFFER_NONE: in the MSI-X phase */
	uint8_t eqn;
};

struct rn_eq {
	const struct rn_nic_env *env;
	struct rn_eq_params params;
	struct rn_eq_ports ports;
	char *name;
	struct rn_block block;
	struct eq_counters count;
	struct rn_fifo *input[EQ_INPUTS];
	unsigned turn; /* input to look at first */
	struct queue *queue;
	struct slot *slot;
	uint16_t *free_slot; /* stack */
	uint32_t free_count;
	uint16_t *msi; /* slots whose MSI-X message waits, a ring of in_flight entries */
	uint32_t msi_head;
	uint32_t msi_count;
	uint64_t next_event_cycle;
	enum rn_stall stall;
};

static void free_slot(struct rn_eq *eq, uint16_t idx)
{
	RN_ASSERT(eq->queue[eq->slot[idx].eqn].in_flight > 0);
	eq->queue[eq->slot[idx].eqn].in_flight--;
	eq->free_slot[eq->free_count++] = idx;
}

static void take_answer(struct rn_eq *eq, const struct rn_dma_rsp *rsp)
{
	RN_ASSERT(rsp->token < eq->params.in_flight);
	struct slot *slot = &eq->slot[rsp->token];

	if (rsp->status != RN_DMA_OK)
		eq->count.write_errors++;
	if (slot->buf == RN_BUFFER_NONE) {
		free_slot(eq, rsp->token);
		return;
	}
	rn_buffer_put(eq->env->buffers, slot->buf);
	slot->buf = RN_BUFFER_NONE;
	if (rsp->status != RN_DMA_OK) {
		free_slot(eq, rsp->token);
		return;
	}
	RN_ASSERT(eq->msi_count < eq->params.in_flight);
	eq->msi[(eq->msi_head + eq->msi_count++) % eq->params.in_flight] = rsp->token;
}

static bool send_msi(struct rn_eq *eq)
{
	if (!eq->msi_count)
		return false;
	if (!rn_fifo_can_push(eq->ports.dma_req)) {
		eq->stall = RN_STALL_OUTPUT;
		return false;
	}
	uint16_t idx = eq->msi[eq->msi_head];
	struct rn_dma_req req = {.op = RN_DMA_MSI,
				 .token = idx,
				 .buf = RN_BUFFER_NONE,
				 .len = 4,
				 .addr = eq->queue[eq->slot[idx].eqn].vector};

	rn_fifo_push(eq->ports.dma_req, &req);
	eq->msi_head = (eq->msi_head + 1) % eq->params.in_flight;
	eq->msi_count--;
	eq->count.interrupts++;
	if (eq->msi_count)
		rn_block_wake_next(&eq->block);
	return true;
}

static void count_event(struct rn_eq *eq, uint8_t type)
{
	if (type == RN_EQE_COMPLETION)
		eq->count.completion_events++;
	else if (type == RN_EQE_COMMAND)
		eq->count.command_events++;
	else
		eq->count.async_events++;
}

static void write_eqe(struct rn_eq *eq, struct queue *queue, const struct rn_event *event)
{
	uint16_t idx = eq->free_slot[--eq->free_count];
	uint32_t buf = rn_buffer_get(eq->env->buffers);
	struct rn_hw_eqe eqe = {
		.type = event->type,
		.subtype = event->subtype,
		.number = event->number,
		.timestamp_ps = rn_sim_now_ps(eq->env->sim),
		.owner = !(queue->pi >> queue->log_eqes & 1),
	};
	uint32_t mask = (UINT32_C(1) << queue->log_eqes) - 1;
	struct rn_dma_req req = {.op = RN_DMA_WRITE,
				 .flags = RN_DMA_PHYSICAL,
				 .token = idx,
				 .buf = buf,
				 .len = RN_EQE_BYTES,
				 .addr = queue->base_pa +
					 (uint64_t)(queue->pi & mask) * RN_EQE_BYTES};

	memcpy(rn_buffer_data(eq->env->buffers, buf), &eqe, sizeof(eqe));
	eq->slot[idx] = (struct slot){.buf = buf, .eqn = event->eqn};
	rn_fifo_push(eq->ports.dma_req, &req);
	queue->pi++;
	queue->in_flight++;
	count_event(eq, event->type);
}

/* The input whose turn it is, or NULL when none has an event. */
static struct rn_fifo *next_input(const struct rn_eq *eq, unsigned *turn)
{
	for (unsigned i = 0; i < EQ_INPUTS; i++) {
		unsigned idx = (eq->turn + i) % EQ_INPUTS;

		*turn = (idx + 1) % EQ_INPUTS;
		if (rn_fifo_peek(eq->input[idx]))
			return eq->input[idx];
	}
	return NULL;
}

static bool can_write(struct rn_eq *eq)
{
	if (!eq->free_count)
		eq->stall = RN_STALL_TAG;
	else if (!rn_fifo_can_push(eq->ports.dma_req))
		eq->stall = RN_STALL_OUTPUT;
	else
		return true;
	return false;
}

static bool take_event(struct rn_eq *eq, uint64_t cycle)
{
	unsigned turn;
	struct rn_fifo *input = next_input(eq, &turn);

	if (!input)
		return false;
	if (cycle < eq->next_event_cycle) {
		rn_block_wake_in(&eq->block, eq->next_event_cycle - cycle);
		return false;
	}
	const struct rn_event *event = rn_fifo_peek(input);

	if (event->eqn >= eq->params.max_eqs || !eq->queue[event->eqn].is_live)
		eq->count.dropped_no_eq++;
	else if (can_write(eq))
		write_eqe(eq, &eq->queue[event->eqn], event);
	else
		return false;
	rn_fifo_drop(input);
	eq->turn = turn;
	eq->next_event_cycle = cycle + eq->params.interval_cycles;
	/* Another input may have waited for this one. */
	rn_block_wake_in(&eq->block, eq->params.interval_cycles);
	return true;
}

static void create(struct rn_eq *eq, const struct rn_eq_ctl *ctl)
{
	eq->queue[ctl->eqn] = (struct queue){
		.base_pa = ctl->base_pa,
		.vector = ctl->vector,
		.log_eqes = ctl->log_eqes < 31 ? ctl->log_eqes : 31,
		.is_live = true,
	};
}

/* Creation and destruction take effect when nothing of the EQ is on its way. */
static bool take_ctl(struct rn_eq *eq)
{
	const struct rn_eq_ctl *ctl = rn_fifo_peek(eq->ports.ctl);

	if (!ctl)
		return false;
	if (ctl->eqn < eq->params.max_eqs) {
		struct queue *queue = &eq->queue[ctl->eqn];

		queue->is_live = false;
		if (queue->in_flight || !rn_fifo_can_push(eq->ports.ctl_done))
			return false;
		if (ctl->create)
			create(eq, ctl);
	} else if (!rn_fifo_can_push(eq->ports.ctl_done)) {
		return false;
	}
	rn_fifo_push(eq->ports.ctl_done, &(struct rn_ctl_done){.token = ctl->eqn});
	rn_fifo_drop(eq->ports.ctl);
	return true;
}

static void tick(void *self, uint64_t cycle)
{
	struct rn_eq *eq = self;
	struct rn_dma_rsp rsp;
	bool busy = false;

	eq->stall = RN_STALL_NONE;
	while (rn_fifo_pop(eq->ports.dma_rsp, &rsp)) {
		take_answer(eq, &rsp);
		busy = true;
	}
	busy |= take_ctl(eq);
	busy |= send_msi(eq);
	busy |= take_event(eq, cycle);
	rn_block_account(&eq->block, busy, eq->stall);
}

static void connect(struct rn_eq *eq)
{
	struct rn_eq_ports *p = &eq->ports;

	for (unsigned i = 0; i < EQ_INPUTS; i++)
		rn_fifo_set_consumer(eq->input[i], &eq->block);
	rn_fifo_set_consumer(p->ctl, &eq->block);
	rn_fifo_set_consumer(p->dma_rsp, &eq->block);
	rn_fifo_set_producer(p->ctl_done, &eq->block);
	rn_fifo_set_producer(p->dma_req, &eq->block);
}

struct rn_eq *rn_eq_new(const struct rn_nic_env *env, const struct rn_eq_params *params,
			const struct rn_eq_ports *ports)
{
	struct rn_eq *eq = rn_calloc(1, sizeof(*eq));

	eq->env = env;
	eq->params = *params;
	eq->ports = *ports;
	eq->name = rn_asprintf("%s.eq", env->name);
	eq->input[0] = ports->cqe_event;
	eq->input[1] = ports->tx_event;
	eq->input[2] = ports->rx_event;
	eq->input[3] = ports->cmd_event;
	eq->queue = rn_calloc(params->max_eqs, sizeof(struct queue));
	eq->slot = rn_calloc(params->in_flight, sizeof(struct slot));
	eq->free_slot = rn_calloc(params->in_flight, sizeof(uint16_t));
	eq->msi = rn_calloc(params->in_flight, sizeof(uint16_t));
	for (uint32_t i = 0; i < params->in_flight; i++) {
		eq->slot[i].buf = RN_BUFFER_NONE;
		eq->free_slot[eq->free_count++] = (uint16_t)(params->in_flight - 1 - i);
	}
	rn_block_init(&eq->block, env->sim, env->core, eq->name, tick, eq);
	connect(eq);
	rn_stats_add_block(env->stats, &eq->block);
	rn_stats_add_counters(env->stats, eq->name, eq_counter_descs,
			      RN_ARRAY_LEN(eq_counter_descs), &eq->count);
	return eq;
}

void rn_eq_free(struct rn_eq *eq)
{
	if (!eq)
		return;
	for (uint32_t i = 0; i < eq->params.in_flight; i++)
		rn_buffer_put(eq->env->buffers, eq->slot[i].buf);
	free(eq->msi);
	free(eq->free_slot);
	free(eq->slot);
	free(eq->queue);
	free(eq->name);
	free(eq);
}
