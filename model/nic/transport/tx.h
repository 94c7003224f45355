/*
 * Transport tx, private to its files: requester, completer, retransmission, response sender.
 *
 *   work -> turn (requester.c) -> packet ring (packet_ring.c) -> frame
 *   response, timer -> completer.c, retx.c -> outstanding list (outstanding.c) -> completion
 *   reply -> reply.c -> packet ring -> frame
 *
 * One operation at a time holds a QP context (tx.c). The state of a QP that outlives its eviction is in
 * the context's requester section; what the chip keeps for every QP is struct rn_tx_flow.
 */
#ifndef RN_NIC_TRANSPORT_TX_H
#define RN_NIC_TRANSPORT_TX_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/transport/context_port.h"
#include "nic/transport/counters.h"
#include "nic/transport/link.h"
#include "nic/transport/occupancy.h"
#include "nic/transport/outbox.h"
#include "nic/transport/transport.h"
#include "wire/packet.h"

#define RN_NONE 0u /* of the 1-based references below */

/* What the one timer of a QP runs for. */
enum rn_tx_timer {
	RN_TIMER_OFF,
	RN_TIMER_ACK,	/* local ACK timeout */
	RN_TIMER_RNR,	/* wait after an RNR NAK */
	RN_TIMER_REACT, /* wait before a retransmission */
};

/* Things to do when the context is held. */
enum rn_tx_todo {
	RN_TODO_RETIRE = 1,   /* completions may be due */
	RN_TODO_TIMER = 2,    /* the timer has expired */
	RN_TODO_PAYLOAD = 4,  /* payload could not be read: fail_psn */
	RN_TODO_ACTIVATE = 8, /* an outstanding entry is free */
};

/* On the chip for every QP, indexed by QPN. References are 1-based, RN_NONE is none. */
struct rn_tx_flow {
	uint64_t deadline_ps;  /* of the timer */
	uint64_t delay_due_ps; /* of the delayed ACK */
	uint64_t expiry_ps; /* local ACK timeout, 0 never; from the context, set with each packet */
	uint32_t heap_pos;  /* in the timer heap */
	uint32_t epoch;	    /* request packets of an older one are dropped unsent */
	uint32_t reply_epoch; /* the same for response packets */
	uint32_t inflight;    /* packet slots and data writes of this QP */
	uint32_t out_head;    /* outstanding WQEs, oldest first */
	uint32_t out_tail;
	uint32_t send_entry; /* the one being sent or sent again; RN_NONE: the next WQE is new */
	uint32_t fail_psn;
	uint32_t todo_next;
	uint32_t waiter_next;
	uint32_t job_head;
	uint32_t job_tail;
	uint32_t reply_next;
	uint8_t timer; /* enum rn_tx_timer */
	uint8_t todo;  /* enum rn_tx_todo bits */
	bool todo_listed;
	bool paused;
	bool dying;    /* FORGET under way: everything of this QP is dropped */
	bool parked;   /* sched waits for ACTIVATE */
	bool waiter;   /* in the list of those that wait for an outstanding entry */
	bool replying; /* in the ring of QPs with responses to send */
	bool delayed;  /* its one ACK waits for ack_delay_ps */
};

/* A send WQE without completion. */
struct rn_tx_entry {
	uint32_t qpn;
	uint32_t next; /* in the QP's list or the free list */
	uint32_t generation;
	uint32_t first_psn;
	uint32_t psns; /* 0: takes none (NOP, or failed before its first packet) */
	uint32_t bytes;
	uint32_t ssn;
	uint32_t writes;   /* READ: packets being written to memory */
	uint32_t sge_list; /* READ: 1-based */
	uint16_t wqe_idx;
	uint8_t wqebbs;
	uint8_t opcode;
	uint8_t flags;
	uint8_t status; /* enum rn_wc_status; not SUCCESS: failed */
	bool complete;	/* READ: its last response has come */
};

struct rn_tx_sge_list {
	uint32_t count;
	uint32_t next;
	struct rn_sge sge[RN_WQE_MAX_SGE];
};

/* A packet between its making and its frame. */
struct rn_tx_slot {
	uint32_t packet;
	uint32_t qpn;
	uint32_t epoch;
	uint32_t pending; /* DMA reads not answered */
	uint64_t ready_ps;
	uint16_t wqe_idx;
	uint8_t stamp;	/* first packet of its WQE */
	uint8_t status; /* enum rn_dma_status */
	bool open;	/* more reads to come */
};

/* Slots in order of emission. */
struct rn_tx_ring {
	struct rn_tx_slot *slot;
	uint32_t count;
	uint32_t head;
	uint32_t used;
};

enum rn_turn_state {
	RN_TURN_STATE_NONE,
	RN_TURN_STATE_START, /* a work item was taken; its context is wanted */
	RN_TURN_STATE_BUILD,
	RN_TURN_STATE_GATHER, /* reads of the packet built last are being issued */
};

struct rn_tx_turn {
	struct rn_work work;
	enum rn_turn_state state;
	bool last;     /* ends when the gather is through */
	uint8_t kind;  /* enum rn_turn_kind to end with */
	uint16_t next; /* its sq_next */
	uint32_t epoch;
	uint32_t packets;
	uint64_t next_cycle;
	/* Gather. */
	uint32_t slot;
	uint32_t pd;
	uint32_t left_bytes;
	uint16_t buf_off;
	uint32_t sge;
	uint32_t sge_off;
	uint64_t gathered_bytes; /* of the message, up to (sge, sge_off) */
};

/* A READ response packet being written to memory. */
struct rn_tx_write {
	uint32_t packet;
	uint32_t qpn;
	uint32_t entry;
	uint32_t generation;
	uint32_t pending;
	uint32_t next; /* free list */
	uint8_t status;
};

struct rn_tx_scatter {
	bool active;
	bool last; /* the message ends with this packet */
	uint32_t write;
	uint32_t sge_list; /* of the WQE, which stays while data is on its way */
	uint32_t sge;
	uint32_t sge_off;
	uint32_t pd;
	uint32_t left_bytes;
	uint16_t buf_off;
};

struct rn_tx_job {
	struct rn_reply reply;
	uint32_t next;
	uint32_t sent_packets;
};

struct rn_tx_delay {
	uint32_t qpn;
	uint64_t due_ps;
};

/* A key may lie before the flow's deadline, which moves on with every ACK; never behind it. */
struct rn_tx_heap_node {
	uint64_t key_ps;
	uint32_t qpn;
};

enum rn_tx_op {
	RN_TX_OP_NONE,
	RN_TX_OP_CONTROL,
	RN_TX_OP_RESPONSE,
	RN_TX_OP_TODO,
	RN_TX_OP_TURN,
};

struct rn_tx {
	const struct rn_nic_env *env;
	const struct rn_transport_params *params;
	struct rn_transport_ports ports;
	struct rn_transport_counters *count;
	struct rn_block block;
	struct rn_context_port context;
	struct rn_fifo *response; /* in: struct rn_response */
	struct rn_fifo *reply;	  /* in: struct rn_reply */
	struct rn_outbox turns, frees, forgets, completions, events, feedback, control_done;

	struct rn_tx_flow *flow;
	/* Operation that holds or wants the context. */
	enum rn_tx_op op;
	enum rn_tx_op last_op;
	uint32_t op_qpn;
	uint64_t op_cycle; /* its effect is due */
	bool op_ran;	   /* what is left is retiring */
	bool op_held;	   /* op_cycle is known */
	struct rn_qp_ctl control;
	bool control_taken;

	struct rn_tx_turn turn;
	struct rn_tx_ring requests;
	struct rn_tx_ring replies;
	bool emit_replies_next;
	uint16_t ip_id;

	struct rn_tx_entry *entry; /* outstanding WQEs; reference i is entry[i - 1] */
	uint32_t entry_free;
	struct rn_tx_sge_list *sge_list;
	uint32_t sge_list_free;
	uint32_t waiter_head, waiter_tail;
	uint32_t todo_head, todo_tail;

	struct rn_tx_write *write;
	uint32_t write_free; /* 1-based */
	struct rn_tx_scatter scatter;

	struct rn_tx_heap_node *heap; /* positions are 1-based */
	uint32_t heap_count;
	struct rn_wake timer_wake;

	struct rn_tx_job *job;
	uint32_t job_free;
	uint32_t reply_head, reply_tail;
	uint32_t reply_quantum_left;
	uint64_t reply_cycle;
	struct rn_tx_delay *delay;
	uint32_t delay_head, delay_used;

	struct rn_occupancy occupancy;
	/* Account of the present tick. */
	uint64_t cycle;
	bool busy;
	bool freed; /* something that an operation may wait for */
	enum rn_stall stall;
};

static inline struct rn_hw_qpc_requester *rn_tx_requester(struct rn_hw_qpc *qpc)
{
	return (struct rn_hw_qpc_requester *)(void *)qpc->requester;
}

static inline struct rn_tx_entry *rn_tx_entry_at(struct rn_tx *tx, uint32_t ref)
{
	RN_ASSERT(ref && ref <= tx->params->outstanding_wqes);
	return &tx->entry[ref - 1];
}

static inline bool rn_tx_in_error(const struct rn_hw_qpc *qpc, const struct rn_hw_qpc_requester *r)
{
	return r->error || qpc->state == RN_QPS_ERR;
}

/* Nothing is sent before a timer has run. */
static inline bool rn_tx_is_waiting(const struct rn_tx_flow *flow)
{
	return flow->timer == RN_TIMER_RNR || flow->timer == RN_TIMER_REACT;
}

/* tx.c */
struct rn_tx *rn_tx_new(const struct rn_nic_env *env, const struct rn_transport_params *params,
			const struct rn_transport_ports *ports, const char *name,
			struct rn_transport_counters *count);
void rn_tx_free(struct rn_tx *tx);
/** Connect the fifos from and to rx. */
void rn_tx_link(struct rn_tx *tx, struct rn_fifo *response, struct rn_fifo *reply,
		struct rn_fifo *feedback);
/** Have @bits done for @qpn when its context is held. */
void rn_tx_add_todo(struct rn_tx *tx, uint32_t qpn, uint8_t bits);
void rn_tx_put_turn(struct rn_tx *tx, uint32_t qpn, enum rn_turn_kind kind, uint16_t next);
void rn_tx_put_event(struct rn_tx *tx, uint32_t qpn, uint8_t subtype);

/* control.c: PAUSE, RESUME, FORGET. */
/** Take the next request if there is one; true when it wants the context of tx->op_qpn. */
bool rn_tx_control_begin(struct rn_tx *tx);
void rn_tx_control_run(struct rn_tx *tx, struct rn_hw_qpc *qpc);

/* requester.c: turns. */
/** Take work, issue DMA reads: what needs no context. */
void rn_tx_turn_step(struct rn_tx *tx);
bool rn_tx_turn_wants_context(const struct rn_tx *tx, uint64_t cycle);
void rn_tx_turn_run(struct rn_tx *tx, struct rn_hw_qpc *qpc);
/** End the turn of the work item in hand, if it is of @qpn and between packets. */
void rn_tx_turn_abandon(struct rn_tx *tx, uint32_t qpn);
/** Payload of the packet fail_psn could not be read: its WQE fails. */
void rn_tx_payload_failed(struct rn_tx *tx, struct rn_hw_qpc *qpc);
/** The context could not be had. */
void rn_tx_turn_drop(struct rn_tx *tx);

/* turn_check.c: may this WQE begin? */
enum rn_tx_check { RN_CHECK_GO, RN_CHECK_PARK, RN_CHECK_END };
enum rn_tx_check rn_tx_turn_check(struct rn_tx *tx, struct rn_hw_qpc *qpc);

/* request_packet.c: header of the next packet of @entry; returns the PSNs it takes. */
uint32_t rn_tx_request_packet(struct rn_tx *tx, const struct rn_hw_qpc *qpc,
			      const struct rn_tx_entry *entry, const struct rn_wqe *wqe,
			      struct rn_packet *packet);

/* packet_ring.c */
void rn_tx_ring_init(struct rn_tx_ring *ring, uint32_t count);
static inline bool rn_tx_ring_is_full(const struct rn_tx_ring *ring)
{
	return ring->used == ring->count;
}
/** A slot for @packet, open for DMA reads. The ring is not full. Returns its index. */
uint32_t rn_tx_ring_add(struct rn_tx *tx, struct rn_tx_ring *ring, uint32_t qpn, uint32_t epoch,
			uint32_t packet);
/** No more reads will come. */
void rn_tx_slot_close(struct rn_tx *tx, struct rn_tx_slot *slot);
void rn_tx_take_reads(struct rn_tx *tx);
void rn_tx_emit(struct rn_tx *tx);

/* outstanding.c */
void rn_tx_outstanding_init(struct rn_tx *tx);
/** A new entry at the end of @qpn's list, or RN_NONE. @with_sges: with an SGE list. */
uint32_t rn_tx_entry_add(struct rn_tx *tx, uint32_t qpn, bool with_sges);
bool rn_tx_can_add(const struct rn_tx *tx, bool with_sges);
void rn_tx_wait_for_entry(struct rn_tx *tx, uint32_t qpn);
/** Wake those that wait for an entry while there are free ones. */
void rn_tx_serve_waiters(struct rn_tx *tx);
/** The entry that holds @psn, RN_NONE if there is none. */
uint32_t rn_tx_entry_of_psn(struct rn_tx *tx, uint32_t qpn, uint32_t psn);
/** Complete the oldest WQE if that is due. True when nothing is left to do now. */
bool rn_tx_retire(struct rn_tx *tx, struct rn_hw_qpc *qpc);
/** The send queue is in error from now on. @tell: the responder does not know. */
void rn_tx_enter_error(struct rn_tx *tx, struct rn_hw_qpc *qpc, bool tell);
/** Drop everything of @qpn silently. */
void rn_tx_forget(struct rn_tx *tx, uint32_t qpn);
void rn_tx_complete(struct rn_tx *tx, const struct rn_hw_qpc *qpc, const struct rn_tx_entry *entry,
		    uint8_t status);
bool rn_tx_is_drained(const struct rn_tx_flow *flow);
void rn_tx_check_drained(struct rn_tx *tx, struct rn_hw_qpc *qpc);

/* completer.c */
/** Whether the response can be taken now; false also notes why in tx->stall. */
bool rn_tx_response_is_ready(struct rn_tx *tx, const struct rn_response *response);
void rn_tx_response_run(struct rn_tx *tx, struct rn_hw_qpc *qpc,
			const struct rn_response *response);

/* read_data.c: READ responses into memory. */
void rn_tx_writes_init(struct rn_tx *tx);
bool rn_tx_can_write(const struct rn_tx *tx);
/** Write @packet's payload to byte @offset of the READ @ref; takes the packet over. */
void rn_tx_write_begin(struct rn_tx *tx, const struct rn_hw_qpc *qpc, uint32_t ref, uint32_t packet,
		       uint64_t offset);
void rn_tx_scatter_step(struct rn_tx *tx);
void rn_tx_take_writes(struct rn_tx *tx);

/* retx.c: timers and set-back. */
void rn_tx_timer_set(struct rn_tx *tx, uint32_t qpn, enum rn_tx_timer kind, uint64_t deadline_ps);
void rn_tx_timer_stop(struct rn_tx *tx, uint32_t qpn);
void rn_tx_timers_due(struct rn_tx *tx);
void rn_tx_timer_run(struct rn_tx *tx, struct rn_hw_qpc *qpc);
uint64_t rn_tx_expiry_ps(const struct rn_tx *tx, const struct rn_hw_qpc *qpc);
/** Send again from una_psn, after @delay_ps. Spends no retry. */
void rn_tx_set_back(struct rn_tx *tx, struct rn_hw_qpc *qpc, enum rn_tx_timer kind,
		    uint64_t delay_ps);
/** Spend one of retry_cnt and set back; when none is left the oldest WQE fails. */
void rn_tx_retry(struct rn_tx *tx, struct rn_hw_qpc *qpc, uint64_t reaction_cycles);
/** Let the QP be granted again. */
void rn_tx_activate(struct rn_tx *tx, struct rn_hw_qpc *qpc);
/** Fail the WQE that holds una_psn. */
void rn_tx_fail_una(struct rn_tx *tx, struct rn_hw_qpc *qpc, uint8_t status);
uint64_t rn_tx_cycles_ps(const struct rn_tx *tx, uint64_t cycles);
void rn_tx_retx_init(struct rn_tx *tx);

/* reply.c: the response sender. */
void rn_tx_reply_init(struct rn_tx *tx);
void rn_tx_take_replies(struct rn_tx *tx);
void rn_tx_reply_step(struct rn_tx *tx);
void rn_tx_drop_jobs(struct rn_tx *tx, uint32_t qpn);
/** Payload of a response could not be read: make it a NAK. False: not now. */
bool rn_tx_reply_failed(struct rn_tx *tx, struct rn_tx_slot *slot);

#endif
