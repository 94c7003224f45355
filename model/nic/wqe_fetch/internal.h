/*
 * The WQE fetcher's state, shared by its sources: send side, receive side, context port.
 */
#ifndef RN_NIC_WQE_FETCH_INTERNAL_H
#define RN_NIC_WQE_FETCH_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/msg/doorbell.h"
#include "nic/wqe_fetch/cache.h"
#include "nic/wqe_fetch/wqe_fetch.h"
#include "sim/stamp.h"
#include "sim/stats.h"

#define WQE_FETCH_COUNTERS(X)                                                                      \
	X(sq_wqes, "WQEs", "send WQEs decoded and passed on")                                      \
	X(sq_fetches, "events", "DMA reads of send WQEs")                                          \
	X(sq_fetched_wqebbs, "WQEBBs", "send WQE blocks read by DMA")                              \
	X(sq_cache_hits, "events", "grants served from prefetched send WQEs")                      \
	X(sq_cache_misses, "events", "grants that had to read memory")                             \
	X(blueflame_hits, "events", "grants served from a BlueFlame WQE")                          \
	X(blueflame_dropped, "events", "BlueFlame WQEs that were displaced or came too late")      \
	X(sq_malformed, "WQEs", "send WQEs with an illegal opcode, length, index or QPN")          \
	X(sq_bad_qp, "events",                                                                     \
	  "grants of a QP that is not there, not the page's or does not send")                     \
	X(sq_dma_errors, "events", "send WQEs that could not be read")                             \
	X(sq_forgets, "events", "set-backs, errors and resets of a send queue")                    \
	X(rq_wqes, "WQEs", "receive WQEs decoded and passed on")                                   \
	X(rq_fetches, "events", "DMA reads of receive WQEs")                                       \
	X(rq_fetched_wqes, "WQEs", "receive WQEs read by DMA")                                     \
	X(rq_cache_hits, "events", "receive WQEs served from the cache")                           \
	X(rq_pi_reads, "events", "DMA reads of a receive queue's doorbell record")                 \
	X(rq_empty, "events", "requests that found the receive queue empty")                       \
	X(rq_bad_pi, "events", "doorbell records with an impossible producer index")               \
	X(rq_bad_qp, "events", "requests of a QP that is not there")                               \
	X(rq_dma_errors, "events", "receive WQEs or doorbell records that could not be read")

struct wqe_fetch_counters {
	WQE_FETCH_COUNTERS(RN_COUNTER_FIELD)
};

/* A ring of job numbers, with a place for every job. */
struct job_queue {
	uint16_t *job;
	uint32_t capacity;
	uint32_t head;
	uint32_t count;
};

void rn_wqe_queue_init(struct job_queue *queue, uint32_t capacity);
void rn_wqe_queue_push(struct job_queue *queue, uint16_t job);
/** The oldest job stays until it is dropped; the queue is not empty. */
uint16_t rn_wqe_queue_first(const struct job_queue *queue);
void rn_wqe_queue_drop(struct job_queue *queue);

enum job_state {
	JOB_FREE,
	JOB_CONTEXT, /* waits for the QP context */
	JOB_READ,    /* waits for the DMA port */
	JOB_DMA,     /* waits for the data */
	JOB_DECODE,  /* waits for the decoder, a slot and the output */
};

/* One grant. */
struct send_job {
	enum job_state state;
	uint32_t qpn;
	uint32_t uar_page;
	uint32_t mkey;
	uint32_t pd;
	uint32_t ring_mask; /* WQEBBs of the send queue - 1 */
	uint32_t buf;	    /* RN_BUFFER_NONE: no data */
	uint16_t pi;
	uint16_t idx;	/* sq_next */
	uint16_t avail; /* WQEBBs from idx to pi */
	uint16_t skip;	/* WQEBBs in the buffer before idx */
	uint16_t have;	/* WQEBBs in the buffer from idx on */
	uint16_t want;	/* WQEBBs to have before decoding */
	uint16_t asked; /* WQEBBs of the DMA read under way */
	uint8_t status; /* enum rn_work_status */
	bool bind;
	bool is_cached; /* the buffer is a cache line's */
	bool is_stale;	/* the queue was set back: start again */
	uint64_t ready_cycle;
};

/* One request for a receive WQE. */
struct recv_job {
	enum job_state state;
	struct rn_rq_fetch request;
	uint32_t mkey;
	uint32_t pd;
	uint32_t ring_mask;
	uint64_t dbr_pa;
	uint32_t buf;
	uint16_t pi;
	uint16_t stride_bytes;
	uint16_t skip;	/* receive WQEs in the buffer before the one asked for */
	uint16_t asked; /* receive WQEs of the DMA read under way; 0: it reads the doorbell record */
	uint8_t max_sge;
	uint8_t status;
	bool is_stale;
	uint64_t ready_cycle;
};

struct blueflame_slot {
	struct rn_blueflame wqe; /* buf RN_BUFFER_NONE: free */
	uint64_t since;
};

/* Free list of decoded-WQE slots. */
struct slot_list {
	struct rn_wqe_slots *slots;
	uint32_t *idx;
	uint32_t count;
};

struct send_side {
	struct send_job *job;
	struct job_queue read;	 /* jobs in JOB_READ */
	struct job_queue decode; /* jobs in JOB_DECODE */
	struct rn_wqe_cache *cache;
	struct slot_list free;
	struct blueflame_slot *blueflame;
	uint32_t blueflame_count;
	uint64_t blueflame_seen;
	uint32_t jobs_in_use;
	uint64_t next_decode_cycle;
};

struct recv_side {
	struct recv_job *job;
	struct job_queue read;
	struct job_queue decode;
	struct rn_wqe_cache *cache;
	struct slot_list free;
	uint32_t jobs_in_use;
	uint64_t next_decode_cycle;
};

struct rn_wqe_fetch {
	const struct rn_nic_env *env;
	struct rn_wqe_fetch_params params;
	struct rn_wqe_fetch_ports ports;
	char *name;
	struct rn_block block;
	struct wqe_fetch_counters count;
	struct send_side send;
	struct recv_side recv;
	/* Context port: send jobs by their number, receive jobs behind them. */
	struct job_queue context;
	bool is_acquiring; /* the first of the queue has asked for its line */
	enum rn_stall stall;
};

/** Enter a job for the context port; @number: receive jobs are numbered behind the send jobs. */
void rn_wqe_fetch_want_context(struct rn_wqe_fetch *wf, uint16_t number);

/** Take a free slot; @list has one. */
uint32_t rn_wqe_fetch_take_slot(struct slot_list *list);

/** Wake the block in cycle @due, which is not past; a present one means the next. */
void rn_wqe_fetch_wake(struct rn_wqe_fetch *wf, uint64_t cycle, uint64_t due);

void rn_wqe_fetch_stamp(const struct rn_wqe_fetch *wf, uint32_t qpn, uint16_t idx, bool receive);

/* Send side */
void rn_wqe_send_init(struct rn_wqe_fetch *wf);
void rn_wqe_send_fini(struct rn_wqe_fetch *wf);
/** Set-backs; before the context port, so that what is read then is not thrown away. */
bool rn_wqe_send_take_forgets(struct rn_wqe_fetch *wf);
/** Everything but the context port; true when something was done. */
bool rn_wqe_send_tick(struct rn_wqe_fetch *wf, uint64_t cycle);
/** Whether the answer for job @number can be used now (its output has space). */
bool rn_wqe_send_can_take_context(struct rn_wqe_fetch *wf, uint16_t number);
/** The context of job @number; @qpc NULL when there is none. It is read now and not kept. */
void rn_wqe_send_take_context(struct rn_wqe_fetch *wf, uint16_t number, const void *qpc,
			      uint64_t cycle);

/* BlueFlame store */
/** Take a WQE that has come in; true when there was one. */
bool rn_wqe_blueflame_take(struct rn_wqe_fetch *wf);
/** Give the WQE held for exactly @job's queue, page and index to it; drop those the queue has passed. */
bool rn_wqe_blueflame_use(struct rn_wqe_fetch *wf, struct send_job *job);
void rn_wqe_blueflame_forget(struct rn_wqe_fetch *wf, uint32_t qpn);

/* Receive side, likewise */
void rn_wqe_recv_init(struct rn_wqe_fetch *wf);
void rn_wqe_recv_fini(struct rn_wqe_fetch *wf);
bool rn_wqe_recv_tick(struct rn_wqe_fetch *wf, uint64_t cycle);
void rn_wqe_recv_take_context(struct rn_wqe_fetch *wf, uint16_t number, const void *qpc,
			      uint64_t cycle);

#endif
