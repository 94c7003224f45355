/* Pins of rn_pte_cache. */
#include "systemc/cosim/adapter.h"

#include "nic/msg/pte.h"

static void connect(RN_RTL_CLASS &top, rn_rtl_pins *pins)
{
	rn_rtl_port_pins req = IN_PORT(top, req, PTE_REQ, RN_PTE_CLIENT_COUNT);
	rn_rtl_port_pins rsp = OUT_PORT(top, rsp, PTE_RSP, RN_PTE_CLIENT_COUNT);
	unsigned i = 0;

	pins->events = PIN(top, events_o, RN_MSG_PTE_CACHE_EVENTS_BITS);
	pins->lookup = PIN(top, lookup_o, RN_MSG_PTE_CACHE_LOOKUP_BITS);
	pins->drop_valid = RAW_PIN(top, drop_valid_o);
	pins->drop_number = RAW_PIN(top, drop_number_o);
	pins->port[i++] = req;
	pins->port[i++] = req;
	pins->port[i++] = IN_PORT(top, release, PTE_RELEASE, 1);
	pins->port[i++] = IN_PORT(top, inval, PTE_INVAL, 1);
	pins->port[i++] = IN_PORT(top, base, PTE_BASE, 1);
	pins->port[i] = IN_PORT(top, dma_rsp, DMA_RSP, 1);
	pins->port[i++].side = RAW_PIN(top, dma_rsp_data_i);
	pins->port[i++] = rsp;
	pins->port[i++] = rsp;
	pins->port[i++] = OUT_PORT(top, inval_done, PTE_INVAL_DONE, 1);
	pins->port[i++] = OUT_PORT(top, dma_req, DMA_REQ, 1);
}

RN_RTL_MAKE_KIND(RN_UNIT_PTE_CACHE);
