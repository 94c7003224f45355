/* Pins of rn_doorbell. */
#include "systemc/cosim/adapter.h"

static void connect(RN_RTL_CLASS &top, rn_rtl_pins *pins)
{
	unsigned i = 0;

	pins->events = PIN(top, events_o, RN_MSG_DOORBELL_EVENTS_BITS);
	pins->constant = PIN(top, identity_i, RN_MSG_DOORBELL_IDENTITY_BITS);
	pins->port[i++] = IN_PORT(top, status, HCA_STATUS, 1);
	pins->port[i] = IN_PORT(top, mmio_write, MMIO_WRITE, 1);
	pins->port[i++].level = PIN(top, mmio_write_level_i, 16);
	pins->port[i++] = IN_PORT(top, mmio_read, MMIO_READ, 1);
	pins->port[i++] = OUT_PORT(top, mmio_read_rsp, MMIO_READ_RSP, 1);
	pins->port[i++] = OUT_PORT(top, sq_ring, SQ_RING, 1);
	pins->port[i] = OUT_PORT(top, blueflame, BLUEFLAME, 1);
	pins->port[i++].side = PIN(top, blueflame_data_o, 2048);
	pins->port[i++] = OUT_PORT(top, cq_ring, CQ_RING, 1);
	pins->port[i++] = OUT_PORT(top, rq_ring, RQ_RING, 1);
	pins->port[i++] = OUT_PORT(top, cmd_ring, CMD_RING, 1);
}

RN_RTL_MAKE_KIND(RN_UNIT_DOORBELL);
