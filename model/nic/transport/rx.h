/*
 * Transport rx, private to its files: frame intake and responder.
 *
 *   frame -> response: passed on to tx | request: lookahead queue -> check (responder.c) -> slot
 *   slot -> key check, DMA writes, then in order: ACK, NAK or READ to tx, completion (placement.c)
 *
 * One operation at a time holds a QP context. A request that passes its check counts as executed
 * there (epsn and msn move on); what can still go wrong with it ends the QP.
 */
#ifndef RN_NIC_TRANSPORT_RX_H
#define RN_NIC_TRANSPORT_RX_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/transport/context_port.h"
#include "nic/transport/counters.h"
#include "nic/transport/link.h"
#include "nic/transport/occupancy.h"
#include "nic/transport/outbox.h"
#include "nic/transport/tables.h"
#include "nic/transport/transport.h"
#include "wire/packet.h"

/* Values of the responder section's message field. */
enum rn_rx_message { RN_MESSAGE_NONE, RN_MESSAGE_SEND, RN_MESSAGE_WRITE };

enum rn_rx_todo {
	RN_RX_TODO_FAIL = 1, /* the QP is in error: flush its receive queue */
	RN_RX_TODO_KICK = 2, /* look at the receive queue of a QP in error */
};

#define RN_RX_KICK_MIXED UINT32_MAX /* kicks from several pages wait */

/* Written by park.c alone. References into the parking are 1-based, those to QPs QPN + 1; 0 is none. */
struct rn_rx_park {
	uint32_t head, tail; /* its requests kept aside, in order */
	uint32_t next;	     /* QP behind it in its list */
	uint8_t list;	     /* enum rn_rx_list */
	bool waits;
};

enum rn_rx_list {
	RN_RX_LIST_NONE,
	RN_RX_LIST_BACK,  /* requests kept aside can go on */
	RN_RX_LIST_ENTRY, /* waits for a place to ask for its receive WQE */
	RN_RX_LISTS
};

/* On the chip for every QP. */
struct rn_rx_flow {
	struct rn_rx_park park;
	uint32_t inflight; /* slots of this QP */
	uint32_t todo_next;
	uint32_t entry;	    /* 1-based: receive WQE asked for (receive.c) */
	uint32_t rq_slot;   /* 1-based: receive WQE kept from packet to packet of a SEND */
	uint32_t kick_page; /* of the kick that waits */
	uint16_t rq_pi;	    /* receive producer index last read */
	uint16_t reads;	    /* READs handed to tx and not done */
	uint8_t todo;
	uint8_t event; /* enum rn_qp_event to raise with the failure, 0 none */
	bool tell;     /* the requester does not know of the failure */
	bool todo_listed;
	bool paused;
	bool dying;
	bool dead;    /* failed: what is still in slots has no effect */
	bool refused; /* a key was refused: what comes behind is not placed, and the QP will fail */
	bool pi_known; /* rq_pi holds */
	bool nak_due;  /* the failure has still to be answered: with nak_code for nak_psn */
	uint8_t nak_code;
	uint32_t nak_psn;
	uint32_t nak_msn;
	bool failed_receive; /* receive WQE failed_idx has completed with an error in mid-message */
	uint16_t failed_idx;
};

struct rn_rx_waiting {
	uint32_t packet;
	bool is_checked; /* it has been through the check, but for its receive WQE */
	uint64_t ready_cycle;
};

/* A request kept aside. */
struct rn_rx_parked {
	struct rn_rx_waiting waiting;
	uint32_t next;
};

struct rn_rx_queue {
	uint32_t head, tail;
};

struct rn_rx_parking {
	struct rn_rx_parked *packet;
	uint32_t free;
	uint32_t waiting; /* QPs that wait */
	struct rn_rx_queue queue[RN_RX_LISTS];
};

enum rn_rx_check { RN_RX_CHECK_NONE, RN_RX_CHECK_WAIT, RN_RX_CHECK_DONE };

/* A request between its check and its acknowledgement. */
struct rn_rx_slot {
	uint32_t qpn;
	uint32_t packet; /* RN_PACKET_NONE: no payload */
	uint32_t psn;
	uint32_t msn;	  /* before this request */
	uint32_t rq_slot; /* 1-based: receive WQE that takes the payload */
	bool rq_free;	  /* give it back at the end */
	bool remote;	  /* the payload goes to, or comes from, a remote key's memory */
	bool issued;	  /* all DMA writes requested */
	bool last;	  /* the payload ends its message */
	bool fatal;	  /* the QP fails with this slot */
	bool final;	  /* the answer of a QP that has failed: goes out all the same */
	bool judged;
	bool replies;	    /* reply holds */
	bool completes;	    /* completion holds and is due */
	uint8_t event;	    /* with fatal */
	uint8_t key_check;  /* enum rn_rx_check */
	uint8_t key_status; /* enum rn_pte_status */
	uint8_t dma_status; /* enum rn_dma_status */
	uint32_t pending;   /* DMA writes not answered */
	/* Payload still to be written. */
	uint32_t left_bytes;
	uint32_t pd;
	uint32_t rkey;
	uint64_t va; /* WRITE */
	uint32_t sge;
	uint32_t sge_off;
	uint16_t buf_off;
	struct rn_reply reply;
	struct rn_completion completion;
};

enum rn_rx_op { RN_RX_OP_NONE, RN_RX_OP_CONTROL, RN_RX_OP_TODO, RN_RX_OP_PACKET };

/* What an operation says of itself. */
enum rn_rx_step { RN_RX_DONE, RN_RX_WAIT };

enum rn_rx_fetch_state { RN_FETCH_NONE, RN_FETCH_ASKED, RN_FETCH_ANSWERED };

struct rn_rx {
	const struct rn_nic_env *env;
	const struct rn_transport_params *params;
	struct rn_transport_ports ports;
	struct rn_transport_counters *count;
	struct rn_block block;
	struct rn_context_port context;
	struct rn_fifo *response; /* out */
	struct rn_fifo *reply;	  /* out */
	struct rn_fifo *feedback; /* in */
	struct rn_outbox fetches, frees, completions, events, notices, control_done;

	struct rn_rx_flow *flow;
	enum rn_rx_op op;
	uint32_t op_qpn;
	bool op_todo_next; /* todo before packets at the next choice */
	bool op_back_next; /* requests kept aside before those that just came */
	bool op_is_parked; /* the packet at hand is one of those kept aside */
	struct rn_qp_ctl control;
	bool control_taken;
	uint32_t todo_head, todo_tail;

	/* Requests whose context is being prefetched. */
	struct rn_rx_waiting *waiting;
	uint32_t waiting_head, waiting_used;
	uint64_t packet_cycle; /* the next one may be checked */
	struct rn_rx_parking parking;

	/* Receive WQE of the packet or flush at hand. */
	enum rn_rx_fetch_state fetch;
	struct rn_rq_fetch_rsp fetched;
	bool refreshing; /* a producer index is being read beside */
	uint32_t refresh_qpn;
	uint32_t held;		   /* receive WQEs kept in flows */
	struct rn_rx_entry *entry; /* receive WQEs asked for */
	uint32_t entries;
	uint32_t entry_next; /* the oldest, of those that nobody waits for */
	bool asks_ahead;
	/* Flush of a receive queue. */
	bool flushing;
	uint16_t flush_left;

	struct rn_rx_slot *slot;
	uint32_t slot_head, slot_issue, slot_used, slot_unissued;

	struct rn_occupancy occupancy;
	uint64_t cycle;
	bool busy;
	bool again; /* tick in the next cycle */
	enum rn_stall stall;
};

static inline struct rn_hw_qpc_responder *rn_rx_responder(struct rn_hw_qpc *qpc)
{
	return (struct rn_hw_qpc_responder *)(void *)qpc->responder;
}

/* rx.c */
struct rn_rx *rn_rx_new(const struct rn_nic_env *env, const struct rn_transport_params *params,
			const struct rn_transport_ports *ports, const char *name,
			struct rn_transport_counters *count);
void rn_rx_link(struct rn_rx *rx, struct rn_fifo *response, struct rn_fifo *reply,
		struct rn_fifo *feedback);
void rn_rx_free(struct rn_rx *rx);
void rn_rx_add_todo(struct rn_rx *rx, uint32_t qpn, uint8_t bits);
void rn_rx_put_event(struct rn_rx *rx, uint32_t qpn, uint8_t subtype);

/* intake.c: frames to responses and waiting requests. */
void rn_rx_intake(struct rn_rx *rx);
struct rn_packet *rn_rx_first_waiting(struct rn_rx *rx, struct rn_rx_waiting *waiting);
void rn_rx_drop_waiting(struct rn_rx *rx, bool put);

/* rx_control.c */
bool rn_rx_control_begin(struct rn_rx *rx);
void rn_rx_control_run(struct rn_rx *rx, struct rn_hw_qpc *qpc);

/* responder.c: check and execute the oldest waiting request. */
enum rn_rx_step rn_rx_packet_run(struct rn_rx *rx, struct rn_hw_qpc *qpc);

/* execute.c: requests that passed their check become slots. */
void rn_rx_execute_data(struct rn_rx *rx, struct rn_hw_qpc *qpc, const struct rn_packet *packet,
			uint32_t idx);
void rn_rx_execute_read(struct rn_rx *rx, struct rn_hw_qpc *qpc, const struct rn_packet *packet,
			bool is_duplicate);
void rn_rx_execute_ack(struct rn_rx *rx, struct rn_hw_qpc *qpc, uint32_t psn);
/** Answer with a NAK of @syndrome; @fatal ends the QP with @event. Returns the slot. */
struct rn_rx_slot *rn_rx_execute_nak(struct rn_rx *rx, struct rn_hw_qpc *qpc, uint8_t syndrome,
				     uint32_t psn);
struct rn_rx_slot *rn_rx_execute_fatal(struct rn_rx *rx, struct rn_hw_qpc *qpc, uint8_t code,
				       uint32_t psn, uint8_t event);
void rn_rx_fill_completion(const struct rn_hw_qpc *qpc, uint16_t idx, uint8_t status,
			   struct rn_completion *completion);

/* The request at hand: of those kept aside, or the oldest waiting one. */
struct rn_packet *rn_rx_packet_at_hand(struct rn_rx *rx, struct rn_rx_waiting *waiting);
void rn_rx_drop_at_hand(struct rn_rx *rx, bool put);
/** Keep the request at hand and those behind it aside; its queue pair waits already. */
void rn_rx_keep_at_hand(struct rn_rx *rx);

/* park.c: queue pairs that wait for a receive WQE. */
void rn_rx_park_init(struct rn_rx *rx);
void rn_rx_park_fini(struct rn_rx *rx);
/** Whether what comes for @qpn has to be kept aside. */
bool rn_rx_is_parked(const struct rn_rx *rx, uint32_t qpn);
/** Keep a request aside, behind the others of @qpn. False when the buffer is full. */
bool rn_rx_park_packet(struct rn_rx *rx, uint32_t qpn, const struct rn_rx_waiting *waiting);
/** @qpn waits for its receive WQE: until rn_rx_park_end(). */
void rn_rx_park_wait(struct rn_rx *rx, uint32_t qpn);
/** @qpn waits for an entry: until rn_rx_park_entry_is_free() has come to it. */
void rn_rx_park_wait_for_entry(struct rn_rx *rx, uint32_t qpn);
void rn_rx_park_entry_is_free(struct rn_rx *rx);
void rn_rx_park_end(struct rn_rx *rx, uint32_t qpn);
/** The requests of @qpn kept aside may go on, if there are any and it does not wait. */
void rn_rx_park_list(struct rn_rx *rx, uint32_t qpn);
/** QPN + 1 of a queue pair whose requests kept aside may go on; 0 none. */
uint32_t rn_rx_park_back(struct rn_rx *rx);
const struct rn_rx_waiting *rn_rx_park_first(const struct rn_rx *rx, uint32_t qpn);
void rn_rx_park_drop(struct rn_rx *rx, uint32_t qpn);
void rn_rx_park_forget(struct rn_rx *rx, uint32_t qpn);

/* receive.c: receive WQEs. */
void rn_rx_receive_init(struct rn_rx *rx);
void rn_rx_receive_fini(struct rn_rx *rx);
/** Ask for receive WQE @idx of the QP at hand before its request comes, in case it is known to be posted. */
void rn_rx_ahead_ask(struct rn_rx *rx, const struct rn_hw_qpc *qpc, uint16_t idx);
/** Whether receive WQE @idx of the QP at hand is here (rx->fetched). If not, the QP waits for it from now on. */
bool rn_rx_receive(struct rn_rx *rx, uint16_t idx);
/** Ask for the producer index of the receive queue; ANSWERED: see rx->fetched. */
enum rn_rx_fetch_state rn_rx_fetch_pi(struct rn_rx *rx, uint32_t qpn, uint16_t idx);
void rn_rx_take_fetched(struct rn_rx *rx);
/** Read the producer index afresh, beside the work, when few receive WQEs are known. */
void rn_rx_refresh(struct rn_rx *rx, const struct rn_hw_qpc *qpc);
void rn_rx_free_wqe(struct rn_rx *rx, uint32_t slot);
void rn_rx_release_held(struct rn_rx *rx, uint32_t qpn);
bool rn_rx_can_hold(const struct rn_rx *rx);

/* flush.c: queue pairs in error. */
enum rn_rx_step rn_rx_todo_run(struct rn_rx *rx, struct rn_hw_qpc *qpc);

/* placement.c */
void rn_rx_slots_init(struct rn_rx *rx);
static inline bool rn_rx_slots_are_full(const struct rn_rx *rx)
{
	return rx->slot_used == rx->params->rx_slots;
}
struct rn_rx_slot *rn_rx_slot_add(struct rn_rx *rx, uint32_t qpn);
/** Have the key of @slot's first byte checked for the whole request. The PTE fifo has space. */
void rn_rx_check_key(struct rn_rx *rx, struct rn_rx_slot *slot, uint8_t access, uint64_t va,
		     uint32_t bytes);
void rn_rx_take_answers(struct rn_rx *rx);
void rn_rx_place(struct rn_rx *rx);
void rn_rx_retire(struct rn_rx *rx);

#endif
