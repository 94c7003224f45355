/* See error_rig.h. */
#include "error_rig.h"

#include <check.h>
#include <string.h>

void error_start(struct error_rig *rig)
{
	struct rn_scripted_path path = RN_SCRIPTED_PATH;

	path.mtu_bytes = ERROR_MTU;
	path.timeout = 8;
	path.psn[0] = ERROR_FIRST_PSN;
	path.retry_cnt = 2;
	world_init(&rig->world, 2, NULL);
	world_start(&rig->world, &(struct world_options){.capture = true});
	world_connect(&rig->world, ERROR_BUFFER, &path, &rig->link);
	for (unsigned n = 0; n < 2; n++)
		ck_assert_int_eq(rn_scripted_watch_async(rig->link.host[n]), 0);
	memset(rig->link.buffer[1].data, 0xee, ERROR_BUFFER);
}

void error_load(struct error_rig *rig)
{
	world_end(&rig->world);
	frames_load(&rig->frames, world_path(&rig->world, "pcap"), ERROR_MTU);
}

void error_finish(struct error_rig *rig)
{
	frames_free(&rig->frames);
	world_fini(&rig->world);
}

void error_post(struct error_rig *rig, const struct rn_scripted_wr *wr, uint64_t wr_id)
{
	struct rn_scripted_wr named = *wr;

	named.wr_id = wr_id;
	ck_assert_int_eq(rn_scripted_post(rig->link.qp[0], &named), RN_POST_OK);
}

/* What programs on mlx5 find in vendor_err; side 0 sends, side 1 receives. */
static uint16_t vendor_syndrome(uint8_t status, unsigned side)
{
	switch (status) {
	case RN_WC_LOC_LEN_ERR:
		return 0x69;
	case RN_WC_LOC_QP_OP_ERR:
		return 0x68;
	case RN_WC_LOC_PROT_ERR:
		return side ? 0x33 : 0x51;
	case RN_WC_WR_FLUSH_ERR:
		return 0xf9;
	case RN_WC_REM_INV_REQ_ERR:
		return 0x8a;
	case RN_WC_REM_ACCESS_ERR:
		return 0x88;
	case RN_WC_REM_OP_ERR:
		return 0x89;
	case RN_WC_RETRY_EXC_ERR:
		return 0x81;
	case RN_WC_RNR_RETRY_EXC_ERR:
		return 0x87;
	default:
		return 0;
	}
}

void error_expect(struct error_rig *rig, unsigned side, uint64_t wr_id, const uint8_t *statuses,
		  unsigned count)
{
	struct rn_scripted_cq *cq = rig->link.cq[side];
	struct rn_scripted_wc wc;

	for (unsigned n = 0; n < count; n++) {
		ck_assert_uint_eq(rn_scripted_wait(cq, &wc, 1, 100 * WORLD_MS), 1);
		ck_assert_uint_eq(wc.wr_id, wr_id + n);
		ck_assert_msg(wc.status == statuses[n], "side %u, completion %u: status %u", side,
			      n, wc.status);
		ck_assert_uint_eq(wc.vendor_syndrome, vendor_syndrome(wc.status, side));
	}
	rn_scripted_run_for(rig->link.host[0], 50 * WORLD_US);
	ck_assert_uint_eq(rn_scripted_poll(cq, &wc, 1), 0);
}

void error_expect_event(struct error_rig *rig, unsigned side, uint32_t type, uint32_t object)
{
	struct rn_uapi_async_event event;

	if (type != NO_EVENT) {
		ck_assert(rn_scripted_take_async(rig->link.host[side], &event));
		ck_assert_uint_eq(event.event_type, type);
		ck_assert_uint_eq(event.object, object);
	}
	ck_assert(!rn_scripted_take_async(rig->link.host[side], &event));
}
