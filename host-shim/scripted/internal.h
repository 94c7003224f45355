/*
 * The scripted host's objects, shared by its files.
 */
#ifndef RN_SCRIPTED_INTERNAL_H
#define RN_SCRIPTED_INTERNAL_H

#include "base/mem.h"
#include "driver/list.h"
#include "queue/cq.h"
#include "queue/rwqe.h"
#include "queue/wqe.h"
#include "scripted/scripted.h"

struct rn_scripted_map { /* a buffer */
	struct rn_list link;
	struct rn_scripted_buffer buffer;
};

struct rn_scripted_write { /* an MMIO write that is not posted yet */
	struct rn_list link;
	struct rn_scripted_qp *ring_qp; /* a doorbell made when it is due; NULL: data */
	uint64_t at_ps;
	uint32_t offset, bytes;
	uint8_t data[64];
};

struct rn_scripted {
	struct rn_scripted_env env;
	struct rn_driver_client *client;
	struct rn_driver_client_info info;
	uint32_t pd;
	uint64_t next_va;
	struct rn_list maps, cqs, qps, writes;
	struct rn_wake write_wake;
	struct rn_scripted_qp **by_qpn;
	uint32_t by_qpn_entries;
	bool gone;
	/* The request under way. */
	bool answered;
	void *answer;
	uint32_t answer_room;
	int error;
	int fd;	      /* descriptor that came with the answer */
	int async_fd; /* -1: nobody listens */
};

struct rn_scripted_cq {
	struct rn_list link;
	struct rn_scripted *host;
	struct rn_cq queue;
	struct rn_scripted_buffer memory;
	uint32_t channel;
	int event_fd; /* -1 none */
	uint64_t interval_ps;
	void (*fn)(void *arg, const struct rn_scripted_wc *wc);
	void *arg;
	struct rn_wake wake;
};

struct rn_scripted_qp {
	struct rn_list link;
	struct rn_scripted *host;
	struct rn_sq sq;
	struct rn_rq rq;
	struct rn_hw_qp_dbr *dbr;
	struct rn_scripted_buffer memory;
	uint32_t qpn;
	uint32_t bf_next; /* BlueFlame buffer to use */
};

/** Run a step towards @until_ps; false when nothing is due until then. */
bool rn_scripted_step(struct rn_scripted *host, uint64_t until_ps);
void rn_scripted_writes_init(struct rn_scripted *host);
void rn_scripted_writes_fini(struct rn_scripted *host);
/** Drop doorbells of a QP that are still to come. */
void rn_scripted_writes_forget(struct rn_scripted_qp *qp);
/** Free without telling the driver. */
void rn_scripted_cq_drop(struct rn_scripted_cq *cq);
void rn_scripted_qp_drop(struct rn_scripted_qp *qp);
struct rn_scripted_qp *rn_scripted_find_qp(const struct rn_scripted *host, uint32_t qpn);

#endif
