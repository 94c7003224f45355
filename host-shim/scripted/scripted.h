/*
 * The scripted host: a process of a simulated host without a process. It uses the same driver
 * interface, rings and doorbell pages as a program, in simulated time, for tests and benchmarks.
 *
 *	struct rn_scripted *a = rn_scripted_new(&env_a), *b = rn_scripted_new(&env_b);
 *	struct rn_scripted_cq *cq_a = rn_scripted_cq_new(a, 256), *cq_b = rn_scripted_cq_new(b, 256);
 *	struct rn_scripted_qp *qp_a = rn_scripted_qp_new(a, &(struct rn_scripted_qp_spec){.send_cq = cq_a});
 *	...
 *	rn_scripted_connect(qp_a, qp_b, &RN_SCRIPTED_PATH);
 *	rn_scripted_post(qp_a, &(struct rn_scripted_wr){.opcode = RN_WQE_RDMA_WRITE, ...});
 *	rn_scripted_ring(qp_a);
 *	rn_scripted_wait(cq_a, wc, 1, RN_SCRIPTED_SECOND_PS);
 *
 * Calls that need the driver run the simulation until it has answered. Nothing here is
 * thread-safe. What takes place on the host's CPU takes no simulated time.
 */
#ifndef RN_SCRIPTED_SCRIPTED_H
#define RN_SCRIPTED_SCRIPTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"
#include "hw/gen/rnic_hw.h"
#include "queue/wqe.h"
#include "sim/sim.h"

#define RN_SCRIPTED_SECOND_PS UINT64_C(1000000000000)

struct rn_scripted;
struct rn_scripted_cq;
struct rn_scripted_qp;

/* --- process --- */

struct rn_scripted_env {
	struct rn_sim *sim;
	struct rn_driver *driver; /* started */
	/* Runs the simulation: at least one wake due by @until_ps, false when there is none. NULL: rn_sim_run(). */
	bool (*step)(void *arg, uint64_t until_ps);
	void *step_arg;
};

/** A new process with a PD of its own. NULL when the driver refuses. @env's pointers outlive it. */
struct rn_scripted *rn_scripted_new(const struct rn_scripted_env *env);

/** Detach and run the simulation until everything is freed; also frees its CQs, QPs and buffers. */
void rn_scripted_free(struct rn_scripted *host);

/** As rn_scripted_free(), as if the process was killed: no running; the driver frees in simulated time. */
void rn_scripted_kill(struct rn_scripted *host);

/**
 * One request to the driver (driver/uapi.h); the header's op and bytes are filled in. The answer, at most @room bytes of
 * it, goes to @answer (may be NULL). Returns its errno; ETIMEDOUT when none came within 10 simulated seconds.
 */
int rn_scripted_call(struct rn_scripted *host, uint32_t op, void *request, uint32_t bytes,
		     void *answer, uint32_t room);

/** Listen to asynchronous events from now on. Returns the driver's errno. */
int rn_scripted_watch_async(struct rn_scripted *host);
/** Take the oldest event that has come; false when there is none. */
bool rn_scripted_take_async(struct rn_scripted *host, struct rn_uapi_async_event *event);

struct rn_driver *rn_scripted_driver(struct rn_scripted *host);
struct rn_driver_client *rn_scripted_client(struct rn_scripted *host);
uint32_t rn_scripted_pd(const struct rn_scripted *host);

/* --- time --- */

/**
 * Run the simulation until @is_true(@arg), looked at after every wake, or the simulated time @deadline_ps. Returns what
 * @is_true says last. The time stands at the wake that made it true, or at the deadline.
 */
bool rn_scripted_run_until(struct rn_scripted *host, bool (*is_true)(void *arg), void *arg,
			   uint64_t deadline_ps);

/** Run for @ps of simulated time. */
void rn_scripted_run_for(struct rn_scripted *host, uint64_t ps);
uint64_t rn_scripted_now_ps(const struct rn_scripted *host);

/* --- memory --- */

/* Pinned memory: contiguous here and at @va (what WQEs and peers name), scattered frames in between. */
struct rn_scripted_buffer {
	uint8_t *data;
	uint64_t va;
	uint64_t bytes; /* whole pages */
};

/** Pages for @bytes (>= 1), zeroed. False when the driver has none. */
bool rn_scripted_alloc(struct rn_scripted *host, uint64_t bytes, struct rn_scripted_buffer *buffer);
/** Give it back; nothing may be registered on it. Returns the driver's errno. */
int rn_scripted_release(struct rn_scripted *host, struct rn_scripted_buffer *buffer);

/** Register [va, va + bytes) in the process's PD; lkey = rkey = *@key. Returns an errno. */
int rn_scripted_reg_mr(struct rn_scripted *host, uint64_t va, uint64_t bytes, uint32_t access,
		       uint32_t *key);
int rn_scripted_dereg_mr(struct rn_scripted *host, uint32_t key);

/** Buffer with a key over all of it: local write, remote write and read. False when refused. */
bool rn_scripted_alloc_mr(struct rn_scripted *host, uint64_t bytes,
			  struct rn_scripted_buffer *buffer, uint32_t *key);

/** A pattern that differs in every byte position and with @seed; and whether it is there. */
void rn_scripted_fill(void *data, uint64_t bytes, uint64_t seed);
bool rn_scripted_holds(const void *data, uint64_t bytes, uint64_t seed);

/* --- completion queues --- */

/* A completion, as ibv_poll_cq() gives it. */
struct rn_scripted_wc {
	uint64_t wr_id;
	struct rn_scripted_qp *qp; /* NULL: it is gone */
	uint64_t made_ps;	   /* when the NIC made the CQE */
	uint32_t byte_len;
	uint32_t imm_be;
	uint16_t vendor_syndrome;
	uint8_t status;	    /* enum rn_wc_status */
	uint8_t opcode;	    /* enum rn_cqe_opcode */
	uint8_t req_opcode; /* enum rn_wqe_opcode; of a send completion, also a failed one */
	bool is_recv;
};

/** A CQ of @cqes (rounded up to a power of two). NULL when refused. */
struct rn_scripted_cq *rn_scripted_cq_new(struct rn_scripted *host, uint32_t cqes);

/** The same with completion events by completion vector @vector: an 8-byte read of rn_scripted_event_fd() each. */
struct rn_scripted_cq *rn_scripted_cq_new_with_events(struct rn_scripted *host, uint32_t cqes,
						      uint32_t vector);
int rn_scripted_cq_free(struct rn_scripted_cq *cq); /* an errno; EBUSY with QPs */
uint32_t rn_scripted_cqn(const struct rn_scripted_cq *cq);

/** Arm for the next completion (or the next solicited one), now. */
void rn_scripted_arm(struct rn_scripted_cq *cq, bool solicited_only);
int rn_scripted_event_fd(const struct rn_scripted_cq *cq);
/** Whether an event has come; takes one. */
bool rn_scripted_take_event(struct rn_scripted_cq *cq);

/** Take up to @count completions that are there now; publishes the consumer index. Returns how many. */
uint32_t rn_scripted_poll(struct rn_scripted_cq *cq, struct rn_scripted_wc *wc, uint32_t count);

/** Run until @count completions have been taken, for @ps of simulated time at most. Returns how many came. */
uint32_t rn_scripted_wait(struct rn_scripted_cq *cq, struct rn_scripted_wc *wc, uint32_t count,
			  uint64_t ps);

/**
 * Let the process poll by itself, every @interval_ps of simulated time, and hand each completion to @fn; it may post.
 * @interval_ps 0 stops it.
 */
void rn_scripted_poll_every(struct rn_scripted_cq *cq, uint64_t interval_ps,
			    void (*fn)(void *arg, const struct rn_scripted_wc *wc), void *arg);

/* --- queue pairs --- */

struct rn_scripted_qp_spec {
	struct rn_scripted_cq *send_cq;
	struct rn_scripted_cq *recv_cq; /* NULL: send_cq */
	uint32_t sq_wqebbs;		/* power of two; 0: 256 */
	uint32_t rq_wqes;		/* power of two; 0: 256 */
	uint32_t rq_segments;		/* power of two; 0: 1 */
	uint64_t cookie;		/* comes with async events */
};

/** An RC QP in RESET. NULL when refused. */
struct rn_scripted_qp *rn_scripted_qp_new(struct rn_scripted *host,
					  const struct rn_scripted_qp_spec *spec);
int rn_scripted_qp_free(struct rn_scripted_qp *qp);
uint32_t rn_scripted_qpn(const struct rn_scripted_qp *qp);
struct rn_sq *rn_scripted_sq(struct rn_scripted_qp *qp);

/* How two QPs are connected; both sides alike but for the PSNs. */
struct rn_scripted_path {
	uint32_t mtu_bytes; /* 256 .. 4096 */
	uint32_t psn[2];    /* first PSN that the first, the second QP sends */
	uint32_t rd_atomic; /* READs outstanding, both roles */
	uint32_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint32_t gid_index; /* 0 IPv4, 1 IPv6 */
	uint32_t tclass, flow_label;
};

extern const struct rn_scripted_path
	RN_SCRIPTED_PATH; /* MTU 4096, PSNs from 0, timeout 14, retries 7, IPv4 */

/** RESET -> INIT -> RTR -> RTS on both, by the driver's full sequence. Returns the first errno. */
int rn_scripted_connect(struct rn_scripted_qp *first, struct rn_scripted_qp *second,
			const struct rn_scripted_path *path);

/** A single modify, in verbs terms. To RESET also forgets what the rings hold. */
int rn_scripted_modify(struct rn_scripted_qp *qp, uint32_t attr_mask,
		       const struct rn_uapi_qp_attr *attr);
/** State by query (enum rn_qp_state); UINT32_MAX when the query fails. */
uint32_t rn_scripted_state(struct rn_scripted_qp *qp);

/* A send work request with one segment; @data instead of a key sends inline. */
struct rn_scripted_wr {
	uint8_t opcode; /* enum rn_wqe_opcode */
	uint8_t flags;	/* enum rn_wqe_flag; RN_WQE_SIGNALED is not implied */
	uint64_t wr_id;
	uint64_t va;
	uint32_t bytes;
	uint32_t lkey;
	const void *data;
	uint64_t raddr;
	uint32_t rkey;
	uint32_t imm_be;
};

/** Write a WQE; the NIC learns of it by the next ring. */
enum rn_post_status rn_scripted_post(struct rn_scripted_qp *qp, const struct rn_scripted_wr *wr);
/** The same with any number of segments. */
enum rn_post_status rn_scripted_post_request(struct rn_scripted_qp *qp,
					     const struct rn_send_request *request);
enum rn_post_status rn_scripted_post_recv(struct rn_scripted_qp *qp, uint64_t wr_id, uint64_t va,
					  uint32_t bytes, uint32_t lkey);
/** The same with up to spec.rq_segments segments. */
enum rn_post_status rn_scripted_post_recv_segments(struct rn_scripted_qp *qp, uint64_t wr_id,
						   const struct rn_hw_wqe_data *segments,
						   uint32_t count);

/** Ring the doorbell for everything posted: now, or at a simulated time (what is posted until then counts). */
void rn_scripted_ring(struct rn_scripted_qp *qp);
void rn_scripted_ring_at(struct rn_scripted_qp *qp, uint64_t at_ps);
/** Send the WQE posted last by BlueFlame (its 64-byte lines) instead; a doorbell when it is too long. */
void rn_scripted_ring_blueflame(struct rn_scripted_qp *qp);
/** Any write to the process's doorbell page. */
void rn_scripted_mmio(struct rn_scripted *host, uint64_t at_ps, uint32_t offset, const void *data,
		      uint32_t bytes);

/* --- behind the NIC --- */

/** The MTT entry of page @page of a key, in the driver's memory; NULL when there is none. */
uint64_t *rn_scripted_mtt(struct rn_scripted *host, uint32_t key, uint64_t page);
/** Contexts as they lie in memory now; the NIC may hold newer ones. */
struct rn_hw_qpc *rn_scripted_qpc(struct rn_scripted_qp *qp);
struct rn_hw_cqc *rn_scripted_cqc(struct rn_scripted_cq *cq);
struct rn_hw_mpt *rn_scripted_mpt(struct rn_scripted *host, uint32_t key);
/** A WQEBB of the send queue in host memory. */
void *rn_scripted_wqebb(struct rn_scripted_qp *qp, uint32_t index);

#endif
