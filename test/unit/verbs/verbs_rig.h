/* A pair of connected QPs of one process over the fake simulator. */
#ifndef RN_TEST_VERBS_RIG_H
#define RN_TEST_VERBS_RIG_H

#include <check.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "fake_sim.h"

#define RIG_BYTES 65536u

struct rig {
	struct ibv_device **list;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr[2];
	uint8_t *buf[2];
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq[2]; /* one a QP, for both queues */
	struct ibv_qp *qp[2];
	uint32_t max_wr, max_sge, max_inline;
};

void rig_open(struct rig *rig);
void rig_close(struct rig *rig);
/** @ops: send_ops_flags of an extended QP, 0 for a plain one. */
void rig_connect(struct rig *rig, uint64_t ops);
/** To @state, with all attributes that takes. */
int rig_modify(struct rig *rig, unsigned qp, enum ibv_qp_state state);
int rig_post_send(struct rig *rig, unsigned qp, enum ibv_wr_opcode opcode, uint32_t bytes,
		  unsigned flags, uint64_t wr_id);
int rig_post_recv(struct rig *rig, unsigned qp, uint32_t bytes, uint64_t wr_id);
/** Poll until a completion comes. */
struct ibv_wc rig_poll(struct rig *rig, unsigned qp);

#endif
