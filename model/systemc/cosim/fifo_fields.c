#include "systemc/cosim/fifo_fields.h"

#include <ctype.h>
#include <string.h>

#include "base/bits.h"
#include "nic/msg/completion.h"
#include "nic/msg/context.h"
#include "nic/msg/control.h"
#include "nic/msg/dma.h"
#include "nic/msg/doorbell.h"
#include "nic/msg/frame.h"
#include "nic/msg/pcie.h"
#include "nic/msg/pte.h"
#include "nic/msg/work.h"

/* Rows of one message: reserved fields and what is no hardware are left out. */
#define F(type, field_)                                                                            \
	{                                                                                          \
		.name = #field_, .offset = offsetof(struct rn_##type, field_),                     \
		.bytes = sizeof(((struct rn_##type *)0)->field_)                                   \
	}

static const struct rn_fifo_field mmio_write_fields[] = {
	F(mmio_write, offset),
	F(mmio_write, len),
	F(mmio_write, data),
};
static const struct rn_fifo_field mmio_read_fields[] = {
	F(mmio_read, offset),
	F(mmio_read, len),
	F(mmio_read, tag),
};
static const struct rn_fifo_field mmio_read_rsp_fields[] = {
	F(mmio_read_rsp, tag),
	F(mmio_read_rsp, value),
};
static const struct rn_fifo_field sq_ring_fields[] = {
	F(sq_ring, qpn),
	F(sq_ring, uar_page),
	F(sq_ring, pi),
};
static const struct rn_fifo_field blueflame_fields[] = {
	F(blueflame, qpn),   F(blueflame, uar_page), F(blueflame, wqe_idx),
	F(blueflame, bytes), F(blueflame, buf),
};
static const struct rn_fifo_field cq_ring_fields[] = {
	F(cq_ring, cqn),       F(cq_ring, uar_page), F(cq_ring, ci),
	F(cq_ring, solicited), F(cq_ring, sn),
};
static const struct rn_fifo_field rq_ring_fields[] = {
	F(rq_ring, qpn),
	F(rq_ring, uar_page),
};
static const struct rn_fifo_field cmd_ring_fields[] = {
	F(cmd_ring, queue_pa),
	F(cmd_ring, pi),
};
static const struct rn_fifo_field pte_req_fields[] = {
	F(pte_req, id), F(pte_req, access), F(pte_req, check_only), F(pte_req, key),
	F(pte_req, pd), F(pte_req, length), F(pte_req, va),
};
static const struct rn_fifo_field pte_rsp_fields[] = {
	F(pte_rsp, id),	   F(pte_rsp, status), F(pte_rsp, hit),
	F(pte_rsp, epoch), F(pte_rsp, bytes),  F(pte_rsp, pa),
};
static const struct rn_fifo_field pte_release_fields[] = {
	F(pte_release, epoch),
};
static const struct rn_fifo_field pte_inval_fields[] = {
	F(pte_inval, token),
	F(pte_inval, key),
	F(pte_inval, mtt_index),
	F(pte_inval, mtt_count),
};
static const struct rn_fifo_field pte_inval_done_fields[] = {
	F(pte_inval_done, token),
};
static const struct rn_fifo_field pte_base_fields[] = {
	F(pte_base, mpt_pa),
	F(pte_base, mtt_pa),
	F(pte_base, log_mpts),
	F(pte_base, log_mtts),
};
static const struct rn_fifo_field dma_req_fields[] = {
	F(dma_req, op),	     F(dma_req, flags), F(dma_req, access), F(dma_req, token),
	F(dma_req, buf_off), F(dma_req, buf),	F(dma_req, len),    F(dma_req, key),
	F(dma_req, pd),	     F(dma_req, addr),
};
static const struct rn_fifo_field dma_rsp_fields[] = {
	F(dma_rsp, token),
	F(dma_rsp, status),
};
static const struct rn_fifo_field context_req_fields[] = {
	F(context_req, op),	   F(context_req, type),  F(context_req, dirty),
	F(context_req, exclusive), F(context_req, token), F(context_req, number),
};
static const struct rn_fifo_field context_rsp_fields[] = {
	F(context_rsp, token),
	F(context_rsp, status),
	F(context_rsp, hit),
	F(context_rsp, line),
};
static const struct rn_fifo_field context_base_fields[] = {
	F(context_base, type),
	F(context_base, log_entries),
	F(context_base, base_pa),
};
static const struct rn_fifo_field grant_fields[] = {
	F(grant, qpn),
	F(grant, uar_page),
	F(grant, pi),
	F(grant, bind),
};
static const struct rn_fifo_field bind_fields[] = {
	F(bind, qpn),
	F(bind, uar_page),
	F(bind, exists),
};
static const struct rn_fifo_field work_fields[] = {
	F(work, qpn),
	F(work, slot),
	F(work, pi),
	F(work, status),
};
static const struct rn_fifo_field slot_free_fields[] = {
	F(slot_free, slot),
};
static const struct rn_fifo_field wqe_forget_fields[] = {
	F(wqe_forget, qpn),
};
static const struct rn_fifo_field turn_fields[] = {
	F(turn, qpn),
	F(turn, kind),
	F(turn, next),
};
static const struct rn_fifo_field rq_fetch_fields[] = {
	F(rq_fetch, qpn),    F(rq_fetch, idx),	 F(rq_fetch, pi_only),
	F(rq_fetch, forget), F(rq_fetch, token),
};
static const struct rn_fifo_field rq_fetch_rsp_fields[] = {
	F(rq_fetch_rsp, token),
	F(rq_fetch_rsp, pi),
	F(rq_fetch_rsp, status),
	F(rq_fetch_rsp, slot),
};
static const struct rn_fifo_field completion_fields[] = {
	F(completion, cqn),
	F(completion, qpn),
	F(completion, byte_len),
	F(completion, imm_be),
	F(completion, src_qpn),
	F(completion, wqe_idx),
	F(completion, vendor_syndrome),
	F(completion, opcode),
	F(completion, status),
	F(completion, req_opcode),
	F(completion, solicited),
};
static const struct rn_fifo_field event_fields[] = {
	F(event, eqn),
	F(event, type),
	F(event, subtype),
	F(event, number),
};
static const struct rn_fifo_field eq_ctl_fields[] = {
	F(eq_ctl, create), F(eq_ctl, eqn),     F(eq_ctl, log_eqes),
	F(eq_ctl, vector), F(eq_ctl, base_pa),
};
static const struct rn_fifo_field qp_ctl_fields[] = {
	F(qp_ctl, token), F(qp_ctl, qpn), F(qp_ctl, op), F(qp_ctl, old_state), F(qp_ctl, new_state),
};
static const struct rn_fifo_field cq_ctl_fields[] = {
	F(cq_ctl, token),
	F(cq_ctl, cqn),
	F(cq_ctl, drain_only),
};
static const struct rn_fifo_field ctl_done_fields[] = {
	F(ctl_done, token),
};
static const struct rn_fifo_field frame_fields[] = {
	F(frame, packet),
	F(frame, bytes),
};
static const struct rn_fifo_field tlp_fields[] = {
	F(tlp, type),	 F(tlp, flags), F(tlp, channel), F(tlp, status), F(tlp, tag),
	F(tlp, buf_off), F(tlp, buf),	F(tlp, len),	 F(tlp, addr),
};

#define MESSAGE(type)                                                                              \
	{                                                                                          \
		.name = #type, .field = type##_fields, .fields = RN_ARRAY_LEN(type##_fields)       \
	}

static const struct rn_fifo_message messages[] = {
	MESSAGE(mmio_write),	 MESSAGE(mmio_read),   MESSAGE(mmio_read_rsp), MESSAGE(sq_ring),
	MESSAGE(blueflame),	 MESSAGE(cq_ring),     MESSAGE(rq_ring),       MESSAGE(cmd_ring),
	MESSAGE(pte_req),	 MESSAGE(pte_rsp),     MESSAGE(pte_release),   MESSAGE(pte_inval),
	MESSAGE(pte_inval_done), MESSAGE(pte_base),    MESSAGE(dma_req),       MESSAGE(dma_rsp),
	MESSAGE(context_req),	 MESSAGE(context_rsp), MESSAGE(context_base),  MESSAGE(grant),
	MESSAGE(bind),		 MESSAGE(work),	       MESSAGE(slot_free),     MESSAGE(wqe_forget),
	MESSAGE(turn),		 MESSAGE(rq_fetch),    MESSAGE(rq_fetch_rsp),  MESSAGE(completion),
	MESSAGE(event),		 MESSAGE(eq_ctl),      MESSAGE(qp_ctl),	       MESSAGE(cq_ctl),
	MESSAGE(ctl_done),	 MESSAGE(frame),       MESSAGE(tlp),
};

/* Fifos that are not called as their message is. */
static const struct {
	const char *fifo, *message;
} others[] = {
	{"posted", "tlp"},
	{"nonposted", "tlp"},
	{"completion", "tlp"},
	{"sq_free", "slot_free"},
	{"rq_free", "slot_free"},
	{"sq_forget", "wqe_forget"},
	{"tx_completion", "completion"},
	{"rx_completion", "completion"},
	{"cqe_event", "event"},
	{"tx_event", "event"},
	{"rx_event", "event"},
	{"cmd_event", "event"},
	{"tx_ctl", "qp_ctl"},
	{"rx_ctl", "qp_ctl"},
	{"tx_ctl_done", "ctl_done"},
	{"rx_ctl_done", "ctl_done"},
	{"cq_ctl_done", "ctl_done"},
	{"eq_ctl_done", "ctl_done"},
	{"tx_frame", "frame"},
	{"rx_frame", "frame"},
	{"line_out", "frame"},
	{"line_in", "frame"},
};

/* Whether @name is @wanted, with a number behind it or without. */
static bool is_called(const char *name, const char *wanted)
{
	size_t length = strlen(wanted);

	if (strncmp(name, wanted, length) != 0)
		return false;
	for (name += length; isdigit((unsigned char)*name); name++)
		;
	return !*name;
}

const struct rn_fifo_message *rn_fifo_message_find(const char *fifo)
{
	const char *dot = strrchr(fifo, '.');
	const char *name = dot ? dot + 1 : fifo;

	for (size_t i = 0; i < RN_ARRAY_LEN(others); i++)
		if (strcmp(name, others[i].fifo) == 0)
			name = others[i].message;
	for (size_t i = 0; i < RN_ARRAY_LEN(messages); i++)
		if (is_called(name, messages[i].name))
			return &messages[i];
	return NULL;
}
