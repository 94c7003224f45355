/*
 * BlueFlame WQEs that wait for their grant: a small store, searched by QPN. What it loses lies in memory.
 */
#include "base/bits.h"
#include "hw/gen/rnic_hw.h"
#include "nic/wqe_fetch/internal.h"
#include "sim/buffer.h"

static void free_blueflame(struct rn_wqe_fetch *wf, struct blueflame_slot *slot)
{
	slot->wqe.buf = RN_BUFFER_NONE;
	wf->send.blueflame_count--;
}

static void drop_blueflame(struct rn_wqe_fetch *wf, struct blueflame_slot *slot)
{
	rn_buffer_put(wf->env->buffers, slot->wqe.buf);
	free_blueflame(wf, slot);
	wf->count.blueflame_dropped++;
}

/* A WQE that comes takes a free slot, or the place of the oldest one, which lies in memory too. */
bool rn_wqe_blueflame_take(struct rn_wqe_fetch *wf)
{
	struct rn_blueflame wqe;

	if (!rn_fifo_pop(wf->ports.blueflame, &wqe))
		return false;
	if (!wf->params.blueflame_slots) {
		rn_buffer_put(wf->env->buffers, wqe.buf);
		wf->count.blueflame_dropped++;
		return true;
	}
	struct blueflame_slot *slot = &wf->send.blueflame[0];

	for (uint32_t i = 0; i < wf->params.blueflame_slots; i++) {
		struct blueflame_slot *other = &wf->send.blueflame[i];

		if (other->wqe.buf == RN_BUFFER_NONE) {
			slot = other;
			break;
		}
		if (other->since < slot->since)
			slot = other;
	}
	if (slot->wqe.buf != RN_BUFFER_NONE)
		drop_blueflame(wf, slot);
	slot->wqe = wqe;
	slot->since = wf->send.blueflame_seen++;
	wf->send.blueflame_count++;
	return true;
}

/* Take the WQE held for exactly this job; drop the QP's others that the queue has passed. */
bool rn_wqe_blueflame_use(struct rn_wqe_fetch *wf, struct send_job *job)
{
	bool found = false;

	if (!wf->send.blueflame_count)
		return false;
	for (uint32_t i = 0; i < wf->params.blueflame_slots; i++) {
		struct blueflame_slot *slot = &wf->send.blueflame[i];

		if (slot->wqe.buf == RN_BUFFER_NONE || slot->wqe.qpn != job->qpn)
			continue;
		uint16_t behind = job->idx - slot->wqe.wqe_idx;
		uint16_t wqebbs = slot->wqe.bytes / RN_WQEBB_BYTES;

		if (!behind && !found && slot->wqe.uar_page == job->uar_page &&
		    wqebbs <= job->avail) {
			found = true;
			job->buf = slot->wqe.buf;
			job->have = wqebbs;
			free_blueflame(wf, slot);
		} else if (behind < 0x8000 || slot->wqe.uar_page != job->uar_page) {
			drop_blueflame(wf, slot);
		}
	}
	return found;
}

void rn_wqe_blueflame_forget(struct rn_wqe_fetch *wf, uint32_t qpn)
{
	for (uint32_t i = 0; i < wf->params.blueflame_slots && wf->send.blueflame_count; i++)
		if (wf->send.blueflame[i].wqe.buf != RN_BUFFER_NONE &&
		    wf->send.blueflame[i].wqe.qpn == qpn)
			drop_blueflame(wf, &wf->send.blueflame[i]);
}
