/*
 * The fifos of one RNIC. Blocks connect themselves to them; each is registered for the report as
 * "<nic>.<name>".
 */
#ifndef RN_NIC_NIC_FIFOS_H
#define RN_NIC_NIC_FIFOS_H

#include "nic/msg/context.h"
#include "nic/msg/dma.h"
#include "nic/msg/env.h"
#include "nic/msg/pte.h"
#include "nic/nic.h"
#include "sim/fifo.h"

/* Fifos between two blocks: name, message, depth parameter. */
#define RN_NIC_FIFOS(X)                                                                            \
	X(mmio_write, struct rn_mmio_write, mmio_fifo_depth)                                       \
	X(mmio_read, struct rn_mmio_read, mmio_fifo_depth)                                         \
	X(mmio_read_rsp, struct rn_mmio_read_rsp, mmio_fifo_depth)                                 \
	X(posted, struct rn_tlp, tlp_fifo_depth)                                                   \
	X(nonposted, struct rn_tlp, tlp_fifo_depth)                                                \
	X(sq_ring, struct rn_sq_ring, ring_fifo_depth)                                             \
	X(blueflame, struct rn_blueflame, ring_fifo_depth)                                         \
	X(cq_ring, struct rn_cq_ring, ring_fifo_depth)                                             \
	X(rq_ring, struct rn_rq_ring, ring_fifo_depth)                                             \
	X(cmd_ring, struct rn_cmd_ring, ring_fifo_depth)                                           \
	X(hca_status, uint32_t, ctl_fifo_depth)                                                    \
	X(grant, struct rn_grant, work_fifo_depth)                                                 \
	X(work, struct rn_work, work_fifo_depth)                                                   \
	X(bind, struct rn_bind, work_fifo_depth)                                                   \
	X(turn, struct rn_turn, work_fifo_depth)                                                   \
	X(sq_free, struct rn_slot_free, work_fifo_depth)                                           \
	X(sq_forget, struct rn_wqe_forget, work_fifo_depth)                                        \
	X(rq_fetch, struct rn_rq_fetch, recv_fifo_depth)                                           \
	X(rq_fetch_rsp, struct rn_rq_fetch_rsp, recv_fifo_depth)                                   \
	X(rq_free, struct rn_slot_free, recv_fifo_depth)                                           \
	X(pte_release, struct rn_pte_release, pte_fifo_depth)                                      \
	X(pte_inval, struct rn_pte_inval, ctl_fifo_depth)                                          \
	X(pte_inval_done, struct rn_pte_inval_done, ctl_fifo_depth)                                \
	X(pte_base, struct rn_pte_base, ctl_fifo_depth)                                            \
	X(context_base, struct rn_context_base, ctl_fifo_depth)                                    \
	X(tx_completion, struct rn_completion, completion_fifo_depth)                              \
	X(rx_completion, struct rn_completion, completion_fifo_depth)                              \
	X(cqe_event, struct rn_event, event_fifo_depth)                                            \
	X(tx_event, struct rn_event, event_fifo_depth)                                             \
	X(rx_event, struct rn_event, event_fifo_depth)                                             \
	X(cmd_event, struct rn_event, event_fifo_depth)                                            \
	X(tx_ctl, struct rn_qp_ctl, ctl_fifo_depth)                                                \
	X(rx_ctl, struct rn_qp_ctl, ctl_fifo_depth)                                                \
	X(cq_ctl, struct rn_cq_ctl, ctl_fifo_depth)                                                \
	X(eq_ctl, struct rn_eq_ctl, ctl_fifo_depth)                                                \
	X(tx_ctl_done, struct rn_ctl_done, ctl_fifo_depth)                                         \
	X(rx_ctl_done, struct rn_ctl_done, ctl_fifo_depth)                                         \
	X(cq_ctl_done, struct rn_ctl_done, ctl_fifo_depth)                                         \
	X(eq_ctl_done, struct rn_ctl_done, ctl_fifo_depth)

struct rn_nic_fifos {
#define RN_FIFO_FIELD(name, type, depth) struct rn_fifo name;
	RN_NIC_FIFOS(RN_FIFO_FIELD)
#undef RN_FIFO_FIELD
	struct rn_fifo dma_req[RN_DMA_CH_COUNT], dma_rsp[RN_DMA_CH_COUNT];
	struct rn_fifo context_req[RN_CONTEXT_CLIENT_COUNT], context_rsp[RN_CONTEXT_CLIENT_COUNT];
	struct rn_fifo pte_req[RN_PTE_CLIENT_COUNT], pte_rsp[RN_PTE_CLIENT_COUNT];
	struct rn_fifo completion;
	struct rn_fifo tx_frame, rx_frame, line_out, line_in;
};

/** Make and register all of them; @env's name is the NIC's. */
void rn_nic_fifos_init(struct rn_nic_fifos *fifos, const struct rn_nic_env *env,
		       const struct rn_nic_params *params, const struct rn_cable *cable);
void rn_nic_fifos_fini(struct rn_nic_fifos *fifos);

#endif
