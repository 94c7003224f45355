/*
 * Scheduler: per-QP pending state on the chip and a round-robin list of the QPs that may send. Exact:
 * one grant a QP outstanding, a limited number in all, a doorbell always drains (one a cycle, no
 * context is fetched for it). The doorbell page of a QP is learnt at its first grant, from the context that
 * the WQE fetcher reads; from then on doorbells from another page are ignored. Before that a
 * doorbell from a second page is kept beside the first.
 * Left out: weights, priorities, rate limits.
 */
#include "nic/sched/sched.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "sim/stamp.h"
#include "sim/stats.h"

#define RN_PARAM_OWNER rn_sched_params
RN_PARAM_TABLE(rn_sched_param_table, "sched", RN_SCHED_PARAMS);

#define SCHED_COUNTERS(X)                                                                          \
	X(rings, "events", "send queue doorbells taken")                                           \
	X(rings_bad_qpn, "events", "doorbells of a QPN beyond the table, ignored")                 \
	X(rings_bad_page, "events", "doorbells from a page that is not the QP's, ignored")         \
	X(grants, "events", "grants given")                                                        \
	X(grants_refused, "events", "grants of a doorbell from a page that was not the QP's")      \
	X(turns_parked, "events", "queue pairs parked by transport")

struct sched_counters {
	SCHED_COUNTERS(RN_COUNTER_FIELD)
};

#define SCHED_ROW(field, unit, help) RN_COUNTER_ROW(struct sched_counters, field, unit, help)

static const struct rn_counter_desc sched_counter_descs[] = {SCHED_COUNTERS(SCHED_ROW)};

#define NO_QP UINT32_MAX
#define NO_PAGE UINT32_MAX

/* Flags of a queue pair. */
enum {
	QP_PARKED = 1,
	QP_IN_FLIGHT = 2, /* a grant is outstanding */
	QP_QUEUED = 4,	  /* in the ready list */
	QP_BOUND = 8,	  /* uar_page is the context's */
	QP_DISOWNED = 16, /* the grant's end says nothing about this QP any more (reset, refused) */
	QP_OTHER = 32,	  /* other_page, other_pi hold a doorbell from a second page */
};

struct queue_pair {
	uint32_t uar_page;
	uint32_t other_page;
	uint32_t link; /* next in the ready list */
	uint16_t pi;
	uint16_t next;
	uint16_t other_pi;
	uint8_t flags;
};

struct rn_sched {
	const struct rn_nic_env *env;
	struct rn_sched_params params;
	struct rn_sched_ports ports;
	char *name;
	struct rn_block block;
	struct sched_counters count;
	struct queue_pair *qp;
	uint32_t first; /* ready list */
	uint32_t last;
	uint32_t outstanding;
	uint64_t next_grant_cycle;
};

static void stamp(const struct rn_sched *sched, uint32_t qpn, uint16_t wqe_idx,
		  enum rn_stamp_stage stage)
{
	rn_stamps_record(sched->env->stamps, &(struct rn_stamp){
						     .at_ps = rn_sim_now_ps(sched->env->sim),
						     .host = sched->env->host,
						     .qpn = qpn,
						     .wqe_idx = wqe_idx,
						     .stage = (uint8_t)stage,
					     });
}

/* A doorbell covers every WQE from the last producer index to its own. */
static void stamp_ring(const struct rn_sched *sched, uint32_t qpn, uint16_t from, uint16_t to)
{
	if (!sched->env->stamps || !rn_stamps_is_enabled(sched->env->stamps))
		return;
	for (uint16_t idx = from; idx != to; idx++)
		stamp(sched, qpn, idx, RN_STAMP_DOORBELL);
}

static void queue_if_runnable(struct rn_sched *sched, uint32_t qpn)
{
	struct queue_pair *qp = &sched->qp[qpn];

	if (qp->pi == qp->next || (qp->flags & (QP_PARKED | QP_IN_FLIGHT | QP_QUEUED)))
		return;
	qp->flags |= QP_QUEUED;
	qp->link = NO_QP;
	if (sched->first == NO_QP)
		sched->first = qpn;
	else
		sched->qp[sched->last].link = qpn;
	sched->last = qpn;
}

static void take_ring(struct rn_sched *sched, const struct rn_sq_ring *ring)
{
	if (ring->qpn >= sched->params.max_qps) {
		sched->count.rings_bad_qpn++;
		return;
	}
	struct queue_pair *qp = &sched->qp[ring->qpn];
	bool is_free =
		qp->uar_page == NO_PAGE || (qp->pi == qp->next && !(qp->flags & QP_IN_FLIGHT));

	sched->count.rings++;
	if (!sched->ports.bind || (!(qp->flags & QP_BOUND) && is_free)) {
		qp->uar_page = ring->uar_page;
	} else if (ring->uar_page != qp->uar_page) {
		if (qp->flags & QP_BOUND) {
			sched->count.rings_bad_page++;
			return;
		}
		qp->flags |= QP_OTHER;
		qp->other_page = ring->uar_page;
		qp->other_pi = ring->pi;
		return;
	}
	stamp_ring(sched, ring->qpn, qp->pi, ring->pi);
	qp->pi = ring->pi;
	queue_if_runnable(sched, ring->qpn);
}

/* The answer to a QP's first grant: keep the doorbell that came from the right page. */
static void bind(struct rn_sched *sched, const struct rn_bind *answer)
{
	RN_ASSERT(answer->qpn < sched->params.max_qps);
	struct queue_pair *qp = &sched->qp[answer->qpn];
	bool is_right = answer->exists && answer->uar_page == qp->uar_page;
	bool is_other =
		answer->exists && (qp->flags & QP_OTHER) && answer->uar_page == qp->other_page;

	/* The queue pair was reset since; its next grant asks again. */
	if (qp->flags & QP_DISOWNED)
		return;
	if (answer->exists) {
		qp->uar_page = answer->uar_page;
		qp->flags |= QP_BOUND;
	}
	if (qp->flags & QP_OTHER)
		sched->count.rings_bad_page += !is_other;
	qp->flags &= (uint8_t)~QP_OTHER;
	if (is_right)
		return;
	sched->count.grants_refused++;
	sched->count.rings_bad_page++;
	qp->pi = is_other ? qp->other_pi : qp->next;
	if (qp->flags & QP_IN_FLIGHT)
		qp->flags |= QP_DISOWNED;
	queue_if_runnable(sched, answer->qpn);
}

static void end_grant(struct rn_sched *sched, struct queue_pair *qp, const struct rn_turn *turn)
{
	bool is_disowned = qp->flags & QP_DISOWNED;

	/* One that ends no grant is transport's way to say where it stands. */
	if (qp->flags & QP_IN_FLIGHT)
		sched->outstanding--;
	qp->flags &= (uint8_t) ~(QP_IN_FLIGHT | QP_DISOWNED);
	if (is_disowned)
		return;
	qp->next = turn->next;
	if (turn->kind == RN_TURN_PARK) {
		qp->flags |= QP_PARKED;
		sched->count.turns_parked++;
	}
}

static void reset(struct queue_pair *qp, uint16_t next)
{
	qp->pi = next;
	qp->next = next;
	qp->uar_page = NO_PAGE;
	/* A queued QP stays in the list and is passed over when its turn comes. */
	qp->flags &= QP_IN_FLIGHT | QP_QUEUED;
	if (qp->flags & QP_IN_FLIGHT)
		qp->flags |= QP_DISOWNED;
}

static void take_turn(struct rn_sched *sched, const struct rn_turn *turn)
{
	if (turn->qpn >= sched->params.max_qps)
		return;
	struct queue_pair *qp = &sched->qp[turn->qpn];

	switch (turn->kind) {
	case RN_TURN_END:
	case RN_TURN_PARK:
		end_grant(sched, qp, turn);
		break;
	case RN_TURN_ACTIVATE:
		qp->next = turn->next;
		qp->flags &= (uint8_t)~QP_PARKED;
		break;
	case RN_TURN_RESET:
		reset(qp, turn->next);
		break;
	}
	/* The doorbell from the first page has led to nothing: try the second one's. */
	if ((qp->flags & QP_OTHER) && qp->pi == qp->next && !(qp->flags & QP_IN_FLIGHT)) {
		qp->flags &= (uint8_t)~QP_OTHER;
		qp->uar_page = qp->other_page;
		qp->pi = qp->other_pi;
	}
	queue_if_runnable(sched, turn->qpn);
}

/* Queue pairs that were parked, reset or have caught up since they were queued leave the list. */
static void drop_idle(struct rn_sched *sched)
{
	while (sched->first != NO_QP) {
		struct queue_pair *qp = &sched->qp[sched->first];

		if (qp->pi != qp->next && !(qp->flags & (QP_PARKED | QP_IN_FLIGHT)))
			return;
		qp->flags &= (uint8_t)~QP_QUEUED;
		sched->first = qp->link;
	}
}

/* Returns why no grant was given, or RN_STALL_NONE. */
static enum rn_stall grant(struct rn_sched *sched, uint64_t cycle, bool *busy)
{
	drop_idle(sched);
	if (sched->first == NO_QP)
		return RN_STALL_NONE;
	if (sched->outstanding >= sched->params.grants_outstanding)
		return RN_STALL_LOCK;
	if (cycle < sched->next_grant_cycle) {
		rn_block_wake_in(&sched->block, sched->next_grant_cycle - cycle);
		return RN_STALL_NONE;
	}
	if (!rn_fifo_can_push(sched->ports.grant))
		return RN_STALL_OUTPUT;

	uint32_t qpn = sched->first;
	struct queue_pair *qp = &sched->qp[qpn];
	struct rn_grant message = {.qpn = qpn,
				   .uar_page = qp->uar_page,
				   .pi = qp->pi,
				   .bind = sched->ports.bind && !(qp->flags & QP_BOUND)};

	rn_fifo_push(sched->ports.grant, &message);
	stamp(sched, qpn, qp->next, RN_STAMP_SCHED);
	sched->first = qp->link;
	qp->flags = (uint8_t)((qp->flags & ~QP_QUEUED) | QP_IN_FLIGHT);
	sched->outstanding++;
	sched->count.grants++;
	sched->next_grant_cycle = cycle + sched->params.interval_cycles;
	*busy = true;
	if (sched->first != NO_QP)
		rn_block_wake_in(&sched->block, sched->params.interval_cycles);
	return RN_STALL_NONE;
}

static void tick(void *self, uint64_t cycle)
{
	struct rn_sched *sched = self;
	struct rn_bind bind_message;
	struct rn_turn turn;
	struct rn_sq_ring sq_ring;
	bool busy = false;

	if (sched->ports.bind && rn_fifo_pop(sched->ports.bind, &bind_message)) {
		bind(sched, &bind_message);
		busy = true;
	}
	if (rn_fifo_pop(sched->ports.turn, &turn)) {
		take_turn(sched, &turn);
		busy = true;
	}
	if (rn_fifo_pop(sched->ports.sq_ring, &sq_ring)) {
		take_ring(sched, &sq_ring);
		busy = true;
	}

	enum rn_stall stall = grant(sched, cycle, &busy);

	rn_block_account(&sched->block, busy, stall);
}

struct rn_sched *rn_sched_new(const struct rn_nic_env *env, const struct rn_sched_params *params,
			      const struct rn_sched_ports *ports)
{
	struct rn_sched *sched = rn_calloc(1, sizeof(*sched));

	sched->env = env;
	sched->params = *params;
	sched->ports = *ports;
	sched->name = rn_asprintf("%s.sched", env->name);
	sched->qp = rn_calloc(params->max_qps, sizeof(struct queue_pair));
	sched->first = NO_QP;
	for (uint32_t qpn = 0; qpn < params->max_qps; qpn++)
		sched->qp[qpn].uar_page = NO_PAGE;
	rn_block_init(&sched->block, env->sim, env->core, sched->name, tick, sched);
	rn_fifo_set_consumer(ports->sq_ring, &sched->block);
	rn_fifo_set_consumer(ports->turn, &sched->block);
	if (ports->bind)
		rn_fifo_set_consumer(ports->bind, &sched->block);
	rn_fifo_set_producer(ports->grant, &sched->block);
	rn_stats_add_block(env->stats, &sched->block);
	rn_stats_add_counters(env->stats, sched->name, sched_counter_descs,
			      RN_ARRAY_LEN(sched_counter_descs), &sched->count);
	return sched;
}

void rn_sched_free(struct rn_sched *sched)
{
	if (!sched)
		return;
	free(sched->qp);
	free(sched->name);
	free(sched);
}
