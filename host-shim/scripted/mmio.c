/*
 * Doorbell writes at chosen simulated times, in order of time; one that finds the host's write queue
 * full is tried again, as the CPU's store would wait.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "scripted/internal.h"

#define RETRY_PS 50000

static bool post(struct rn_scripted *host, struct rn_scripted_write *write)
{
	if (write->ring_qp) {
		const struct rn_hw_sq_doorbell ring = rn_sq_doorbell(&write->ring_qp->sq);

		memcpy(write->data, &ring, sizeof(ring));
		rn_dbr_store(&write->ring_qp->dbr->sq_pi, ring.pi);
	}

	const enum rn_driver_mmio result = rn_driver_mmio(host->client, rn_scripted_now_ps(host), 0,
							  write->offset, write->data, write->bytes);

	RN_ASSERT(result != RN_DRIVER_MMIO_VIOLATION);
	return result == RN_DRIVER_MMIO_OK;
}

static void run_due(void *arg)
{
	struct rn_scripted *host = arg;
	const uint64_t now_ps = rn_scripted_now_ps(host);

	while (!rn_list_is_empty(&host->writes)) {
		struct rn_scripted_write *write =
			rn_list_entry(host->writes.next, struct rn_scripted_write, link);

		if (write->at_ps > now_ps) {
			rn_wake_at(host->env.sim, &host->write_wake, write->at_ps);
			return;
		}
		if (!post(host, write)) {
			rn_wake_at(host->env.sim, &host->write_wake, now_ps + RETRY_PS);
			return;
		}
		rn_list_remove(&write->link);
		free(write);
	}
}

/* Behind everything that is due no later. */
static void insert(struct rn_scripted *host, struct rn_scripted_write *write)
{
	struct rn_list *before = host->writes.prev;

	while (before != &host->writes &&
	       rn_list_entry(before, struct rn_scripted_write, link)->at_ps > write->at_ps)
		before = before->prev;
	rn_list_add(before->next, &write->link);
}

static void add(struct rn_scripted *host, const struct rn_scripted_write *from)
{
	struct rn_scripted_write now = *from;

	/* The usual case: nothing waits, and there is room. */
	if (from->at_ps <= rn_scripted_now_ps(host) && rn_list_is_empty(&host->writes) &&
	    post(host, &now))
		return;

	struct rn_scripted_write *write = rn_calloc(1, sizeof(*write));

	*write = *from;
	insert(host, write);
	rn_wake_at(host->env.sim, &host->write_wake,
		   write->at_ps > rn_scripted_now_ps(host) ? write->at_ps
							   : rn_scripted_now_ps(host) + RETRY_PS);
}

void rn_scripted_mmio(struct rn_scripted *host, uint64_t at_ps, uint32_t offset, const void *data,
		      uint32_t bytes)
{
	struct rn_scripted_write write = {.at_ps = at_ps, .offset = offset, .bytes = bytes};

	RN_ASSERT(bytes <= sizeof(write.data));
	memcpy(write.data, data, bytes);
	add(host, &write);
}

void rn_scripted_ring_at(struct rn_scripted_qp *qp, uint64_t at_ps)
{
	const struct rn_scripted_write write = {
		.ring_qp = qp,
		.at_ps = at_ps,
		.offset = RN_UAR_SQ_DOORBELL,
		.bytes = sizeof(struct rn_hw_sq_doorbell),
	};

	add(qp->host, &write);
}

void rn_scripted_ring(struct rn_scripted_qp *qp)
{
	rn_scripted_ring_at(qp, rn_scripted_now_ps(qp->host));
}

void rn_scripted_ring_blueflame(struct rn_scripted_qp *qp)
{
	uint8_t image[RN_UAR_BLUEFLAME_BYTES];
	const uint32_t bytes = rn_sq_blueflame(&qp->sq, image);
	const uint64_t now_ps = rn_scripted_now_ps(qp->host);

	if (!bytes) {
		rn_scripted_ring(qp);
		return;
	}
	rn_dbr_store(&qp->dbr->sq_pi, qp->sq.pi);
	for (uint32_t at = 0; at < bytes; at += 64)
		rn_scripted_mmio(qp->host, now_ps,
				 RN_UAR_BLUEFLAME + qp->bf_next * RN_UAR_BLUEFLAME_BYTES + at,
				 image + at, 64);
	qp->bf_next = (qp->bf_next + 1) % RN_UAR_BLUEFLAME_COUNT;
}

void rn_scripted_writes_init(struct rn_scripted *host)
{
	rn_list_init(&host->writes);
	rn_wake_init(host->env.sim, &host->write_wake, run_due, host);
}

void rn_scripted_writes_fini(struct rn_scripted *host)
{
	rn_wake_cancel(host->env.sim, &host->write_wake);
	while (!rn_list_is_empty(&host->writes)) {
		struct rn_list *node = host->writes.next;

		rn_list_remove(node);
		free(rn_list_entry(node, struct rn_scripted_write, link));
	}
}

void rn_scripted_writes_forget(struct rn_scripted_qp *qp)
{
	struct rn_list *node, *next;

	for (node = qp->host->writes.next; node != &qp->host->writes; node = next) {
		struct rn_scripted_write *write =
			rn_list_entry(node, struct rn_scripted_write, link);

		next = node->next;
		if (write->ring_qp != qp)
			continue;
		rn_list_remove(node);
		free(write);
	}
}
