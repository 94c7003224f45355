/*
 * Receive WQEs: short lists end with a segment whose lkey is RN_LKEY_INVALID.
 */
#include "queue/rwqe.h"

#include <string.h>

void rn_rq_init(struct rn_rq *rq, void *ring, uint64_t *wr_id, uint32_t wqes, uint32_t segments)
{
	*rq = (struct rn_rq){.ring = ring,
			     .wr_id = wr_id,
			     .wqes = wqes,
			     .segments = segments,
			     .max_sge = segments};
}

void rn_rq_reset(struct rn_rq *rq)
{
	rq->pi = rq->ci = 0;
}

enum rn_post_status rn_rq_post(struct rn_rq *rq, uint64_t wr_id,
			       const struct rn_hw_wqe_data *segments, uint32_t segment_count)
{
	const struct rn_hw_wqe_data end = {.lkey = RN_LKEY_INVALID};
	const uint32_t slot = rq->pi & (rq->wqes - 1);
	uint8_t *wqe = rq->ring + (uint64_t)slot * rq->segments * RN_RQ_SEGMENT_BYTES;

	if (segment_count > rq->max_sge)
		return RN_POST_TOO_LONG;
	if (rq->pi - rq->ci >= rq->wqes)
		return RN_POST_FULL;
	if (segment_count)
		memcpy(wqe, segments, segment_count * sizeof(segments[0]));
	if (segment_count < rq->segments)
		memcpy(wqe + segment_count * sizeof(end), &end, sizeof(end));
	rq->wr_id[slot] = wr_id;
	rq->pi++;
	return RN_POST_OK;
}

bool rn_rq_retire(struct rn_rq *rq, uint16_t wqe_idx, uint64_t *wr_id)
{
	const uint16_t ahead = (uint16_t)(wqe_idx - (uint16_t)rq->ci);

	if (ahead >= rq->pi - rq->ci)
		return false;
	*wr_id = rq->wr_id[wqe_idx & (rq->wqes - 1)];
	rq->ci += ahead + 1u;
	return true;
}
