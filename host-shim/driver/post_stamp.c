#include "driver/post_stamp.h"

#include <string.h>

#include "driver/internal.h"
#include "hw/gen/rnic_hw.h"
#include "sim/stamp.h"

static void stamp(const struct rn_driver *driver, uint64_t at_ps, uint32_t qpn, uint16_t wqe_idx)
{
	rn_stamps_record(driver->env.stamps, &(struct rn_stamp){.at_ps = at_ps,
								.host = driver->env.host,
								.qpn = qpn,
								.wqe_idx = wqe_idx,
								.stage = RN_STAMP_POST});
}

/* A doorbell announces every WQEBB up to its producer index. */
static void stamp_doorbell(struct rn_driver_client *client, uint64_t at_ps, const void *data)
{
	struct rn_hw_sq_doorbell doorbell;
	struct rn_qp_object *qp;

	memcpy(&doorbell, data, sizeof(doorbell));
	qp = rn_qp_find(client, doorbell.qpn);
	if (!qp)
		return;
	for (uint16_t idx = qp->stamped_pi; idx != (uint16_t)doorbell.pi; idx++)
		stamp(client->driver, at_ps, doorbell.qpn, idx);
	qp->stamped_pi = (uint16_t)doorbell.pi;
}

/* The first line of a BlueFlame buffer begins with the WQE's ctrl segment. */
static void stamp_blueflame(struct rn_driver_client *client, uint64_t at_ps, const void *data)
{
	const uint32_t per_wqebb = RN_WQEBB_BYTES / RN_WQE_SEGMENT_BYTES;
	struct rn_hw_wqe_ctrl ctrl;
	struct rn_qp_object *qp;
	uint32_t segments;

	memcpy(&ctrl, data, sizeof(ctrl));
	segments = ctrl.qpn_ds & 0xff;
	qp = rn_qp_find(client, ctrl.qpn_ds >> 8);
	if (!qp)
		return;
	stamp(client->driver, at_ps, ctrl.qpn_ds >> 8, ctrl.wqe_idx);
	qp->stamped_pi = (uint16_t)(ctrl.wqe_idx + (segments + per_wqebb - 1) / per_wqebb);
}

void rn_post_stamp(struct rn_driver_client *client, uint64_t at_ps, uint32_t offset,
		   const void *data, uint32_t len)
{
	const uint32_t end = RN_UAR_BLUEFLAME + RN_UAR_BLUEFLAME_COUNT * RN_UAR_BLUEFLAME_BYTES;

	if (!client->driver->env.stamps || !rn_stamps_is_enabled(client->driver->env.stamps))
		return;
	if (offset == RN_UAR_SQ_DOORBELL && len == sizeof(struct rn_hw_sq_doorbell))
		stamp_doorbell(client, at_ps, data);
	else if (offset >= RN_UAR_BLUEFLAME && offset < end &&
		 offset % RN_UAR_BLUEFLAME_BYTES == 0 && len >= sizeof(struct rn_hw_wqe_ctrl))
		stamp_blueflame(client, at_ps, data);
}
