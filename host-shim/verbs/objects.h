/*
 * The library's objects. Each begins with the struct that the program sees.
 *
 * Locks: a CQ's before a QP's; a CQ's or QP's before the connection's. Two CQs are locked in order of address.
 */
#ifndef RN_VERBS_OBJECTS_H
#define RN_VERBS_OBJECTS_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "queue/cq.h"
#include "queue/rwqe.h"
#include "queue/wqe.h"
#include "verbs/conn.h"
#include "verbs/export.h"

/** What a verb that returns an errno leaves behind: the same in errno, as a failed system call would; 0 leaves it alone. */
static inline int rn_return(int error)
{
	if (error)
		errno = error;
	return error;
}

#define RN_CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* What provider libraries take a device for: they compare `ops` with their own to recognise theirs. */
struct rn_device {
	struct ibv_device ibv;
	const void *ops;
	int refcount;
	void *list_next, *list_prev;
	void *sysfs;
	uint64_t core_support;
	struct rn_conn *conn;
};

_Static_assert(offsetof(struct rn_device, ops) == 664, "providers look for ops here");

struct rn_context {
	struct rn_conn *conn;
	struct rn_device *device;
	struct verbs_context verbs; /* ends with the program's struct ibv_context */
};

struct rn_pd {
	struct ibv_pd ibv;
};

struct rn_mr {
	struct ibv_mr ibv;
	void *pinned;
	size_t pinned_bytes;
};

struct rn_verbs_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	struct rn_conn *conn;
	struct rn_cq queue;
	struct rn_ring ring;
	pthread_mutex_t lock;
	uint64_t cookie;
	uint32_t uar_page;
	uint32_t comp_events;  /* handed to the program */
	uint32_t async_events; /* the same */
	bool single_threaded;
	struct ibv_wc current; /* of start_poll and next_poll */
	uint64_t current_ps;
	uint64_t epoch_ns; /* CLOCK_REALTIME at simulated time 0, where completions carry it */
};

struct rn_verbs_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	struct rn_conn *conn;
	struct rn_sq sq;
	struct rn_rq rq;
	struct rn_ring ring;
	struct rn_hw_qp_dbr *dbr;
	pthread_mutex_t sq_lock;
	pthread_mutex_t rq_lock;
	uint64_t cookie;
	uint32_t uar_page;
	struct ibv_qp_cap cap;
	bool is_ex;
	bool sq_sig_all;
	_Atomic bool flushing; /* in error: receive posts ring the NIC too */
	uint32_t async_events; /* handed to the program */

	/* ibv_wr_start ... ibv_wr_complete */
	uint32_t wr_pi, wr_posted; /* where the batch began */
	int wr_error;
	bool wr_open; /* a work request waits for its data */
	struct rn_send_request wr;
};

static inline struct rn_context *rn_context_of(struct ibv_context *ibv)
{
	return RN_CONTAINER(ibv, struct rn_context, verbs.context);
}

static inline struct rn_conn *rn_conn_of(struct ibv_context *ibv)
{
	return rn_context_of(ibv)->conn;
}

static inline struct rn_verbs_cq *rn_cq_of(struct ibv_cq *ibv)
{
	return (struct rn_verbs_cq *)(void *)ibv;
}

static inline struct rn_verbs_qp *rn_qp_of(struct ibv_qp *ibv)
{
	return (struct rn_verbs_qp *)(void *)ibv;
}

/**
 * A call that takes a handle and gives nothing. 0 or an errno; an object whose driver is gone, or that belongs to the
 * parent process, goes without complaint.
 */
int rn_simple_call(struct rn_conn *conn, uint32_t op, uint32_t handle);

/* ops.c: fill a context's tables. */
void rn_context_set_ops(struct rn_context *context);

/* Parts of the verbs API that are reached through tables only. */
int rn_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);
int rn_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int rn_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int rn_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int rn_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_bytes);
int rn_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		  size_t attr_bytes);
struct ibv_qp *rn_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_cq_ex *rn_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);

/* clock.c */
/** What the NIC's clock shows at simulated time @ps. */
uint64_t rn_clock_ticks(const struct rn_conn *conn, uint64_t ps);
/** CLOCK_REALTIME at simulated time 0, in ns; in free-run as of this call (the two clocks drift apart). 0 or an errno. */
int rn_clock_find_epoch(struct rn_conn *conn, uint64_t *epoch_ns);
/** CLOCK_REALTIME at simulated time @ps, in ns; not later than now. */
uint64_t rn_clock_wall_ns(uint64_t epoch_ns, uint64_t ps);
int rn_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);

/* events.c */
/** The driver's handle of a completion channel. */
uint32_t rn_channel_handle(const struct ibv_comp_channel *channel);

/* cq_ex.c */
/** What completions of an extended CQ may be asked for. */
#define RN_CQ_EX_FLAGS                                                                             \
	((uint64_t)IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                   \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
void rn_cq_set_ex_ops(struct rn_verbs_cq *cq);

/* cq_poll.c */
/** Take the next completion. The CQ's lock is held. False: none. */
bool rn_cq_next(struct rn_verbs_cq *cq, struct ibv_wc *wc, uint64_t *timestamp_ps);
/**
 * An empty poll: wait a little. 0, or EIO when the simulator is gone. *@again (virtual time): simulated time has passed,
 * look once more before saying that there is nothing.
 */
int rn_cq_miss(struct rn_verbs_cq *cq, bool *again);
/** Virtual time: charge for a poll that found @found completions. */
void rn_cq_charge_poll(unsigned found);
/** The thread has made another call than a poll: its next empty poll is a first one. */
void rn_cq_worked(void);
/** Forget the completions of a QP that is gone or was reset. */
void rn_cq_forget_qp(struct rn_verbs_cq *cq, uint32_t qpn);

/* qp.c */
/** Lock or unlock both CQs of a QP. */
void rn_qp_lock_cqs(struct rn_verbs_qp *qp, bool lock);
/** With both CQs locked: no completion of the QP is left in them. */
void rn_qp_forget_completions(struct rn_verbs_qp *qp);

/* qp_ex.c */
/** Operations of ibv_qp_ex that this library has; others are refused when the QP is made. */
#define RN_SEND_OPS                                                                                \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |    \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ)
void rn_qp_set_ex_ops(struct rn_verbs_qp *qp);

/* post.c */
/** May a send be posted in the QP's present state? 0, EINVAL or EIO. */
int rn_qp_check_send(const struct rn_verbs_qp *qp);
/** Announce what has been built since @pi: by BlueFlame when it is one short WQE, else by doorbell. 0 or EIO. */
int rn_qp_ring(struct rn_verbs_qp *qp, uint32_t posted_before);
/** Virtual time: charge for @posted send requests of one call. */
void rn_qp_charge_posted(uint32_t posted);
/** Map a queue's answer to errno. */
int rn_post_errno(enum rn_post_status status);

#endif
