/*
 * Consumer side of a completion queue.
 */
#include "queue/cq.h"

#include <stddef.h>
#include <string.h>

static struct rn_hw_cqe *entry(const struct rn_cq *cq, uint32_t index)
{
	return (struct rn_hw_cqe *)(void *)(cq->ring +
					    (size_t)(index & (cq->cqes - 1)) * RN_CQE_BYTES);
}

/* Parity of the pass over the ring in which entry @index is written: 1 first, then 0, ... */
static uint8_t parity(const struct rn_cq *cq, uint32_t index)
{
	return (index & cq->cqes) ? 0 : 1;
}

static bool is_written(const struct rn_cq *cq, uint32_t index)
{
	const uint8_t owner = __atomic_load_n(&entry(cq, index)->owner, __ATOMIC_ACQUIRE);

	return (owner & 1) == parity(cq, index);
}

void rn_cq_init(struct rn_cq *cq, void *ring, struct rn_hw_cq_dbr *dbr, uint32_t cqes)
{
	*cq = (struct rn_cq){.ring = ring, .dbr = dbr, .cqes = cqes};
	memset(ring, 0, (size_t)cqes * RN_CQE_BYTES);
	if (dbr)
		memset(dbr, 0, sizeof(*dbr));
}

const struct rn_hw_cqe *rn_cq_peek(const struct rn_cq *cq)
{
	return is_written(cq, cq->ci) ? entry(cq, cq->ci) : NULL;
}

void rn_cq_advance(struct rn_cq *cq)
{
	cq->ci++;
}

void rn_cq_publish(struct rn_cq *cq)
{
	if (cq->dbr)
		__atomic_store_n(&cq->dbr->ci, cq->ci, __ATOMIC_RELEASE);
}

struct rn_hw_cq_arm rn_cq_arm(struct rn_cq *cq, bool solicited_only)
{
	const bool behind = (int32_t)(cq->notified - cq->ci) > 0;
	const struct rn_hw_cq_arm arm = {
		.cqn_cmd = cq->cqn | (uint32_t)solicited_only << 24 | (cq->arm_sn & 3) << 28,
		.ci = behind ? cq->notified : cq->ci,
	};

	cq->arm_ci = arm.ci;
	if (cq->dbr)
		__atomic_store_n(&cq->dbr->arm, arm.cqn_cmd, __ATOMIC_RELEASE);
	return arm;
}

void rn_cq_event(struct rn_cq *cq)
{
	cq->arm_sn++;
	cq->notified = cq->arm_ci + 1;
}

uint32_t rn_cq_clean(struct rn_cq *cq, uint32_t qpn,
		     void (*drop)(void *user, const struct rn_hw_cqe *cqe), void *user)
{
	uint32_t end = cq->ci, freed = 0;

	while (end - cq->ci < cq->cqes && is_written(cq, end))
		end++;
	for (uint32_t i = end; i != cq->ci; i--) {
		const struct rn_hw_cqe *from = entry(cq, i - 1);
		struct rn_hw_cqe *to = entry(cq, i - 1 + freed);

		if (from->qpn == qpn) {
			if (drop)
				drop(user, from);
			freed++;
		} else if (freed) {
			/* The owner byte belongs to the place, not to the completion. */
			memcpy(to, from, offsetof(struct rn_hw_cqe, owner));
		}
	}
	cq->ci += freed;
	rn_cq_publish(cq);
	return freed;
}
