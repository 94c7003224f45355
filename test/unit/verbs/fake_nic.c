/* The fake simulator's NIC: doorbells, WQEs, copies, completions. */
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/bits.h"
#include "fake_internal.h"

static bool copy_in_page(struct fake_client *client, uint64_t va, void *data, uint32_t bytes,
			 bool write)
{
	const struct fake_page *page = fake_find_page(client, va & ~(uint64_t)(FAKE_PAGE - 1));
	struct iovec local = {data, bytes}, remote = {(void *)(uintptr_t)va, bytes};
	uint8_t *frame;

	if (!page)
		return false;
	if (page->offset == UINT64_MAX) {
		if (write)
			return process_vm_writev((pid_t)client->pid, &local, 1, &remote, 1, 0) ==
			       (ssize_t)bytes;
		return process_vm_readv((pid_t)client->pid, &local, 1, &remote, 1, 0) ==
		       (ssize_t)bytes;
	}
	frame = client->arena + page->offset + va % FAKE_PAGE;
	if (write)
		memcpy(frame, data, bytes);
	else
		memcpy(data, frame, bytes);
	return true;
}

bool fake_copy(struct fake_client *client, uint64_t va, void *data, uint32_t bytes, bool write)
{
	uint8_t *at = data;

	while (bytes) {
		const uint32_t n = (uint32_t)rn_min_u64(bytes, FAKE_PAGE - va % FAKE_PAGE);

		if (!copy_in_page(client, va, at, n, write))
			return false;
		va += n;
		at += n;
		bytes -= n;
	}
	return true;
}

static const struct fake_mr *find_mr(struct fake_sim *sim, uint32_t key, struct fake_client *client,
				     uint64_t va, uint64_t bytes)
{
	const struct fake_mr *mr = key >> 8 < FAKE_OBJECTS ? &sim->mr[key >> 8] : NULL;

	if (!mr || mr->client != client || va < mr->iova || va - mr->iova > mr->length ||
	    bytes > mr->length - (va - mr->iova))
		return NULL;
	return mr;
}

/* Access by key: 0 on success. */
static int access_mr(struct fake_sim *sim, struct fake_client *client, uint32_t key, uint64_t va,
		     void *data, uint32_t bytes, bool write)
{
	const struct fake_mr *mr;

	if (bytes == 0)
		return 0;
	mr = find_mr(sim, key, client, va, bytes);
	return mr && fake_copy(client, mr->va + (va - mr->iova), data, bytes, write) ? 0 : -1;
}

static void complete(struct fake_sim *sim, uint32_t cqn, struct rn_hw_cqe cqe, bool solicited)
{
	struct fake_cq *cq = &sim->cq[cqn];
	const uint32_t slot = cq->pi & (cq->create.cqes - 1);
	const uint64_t va = cq->create.ring_va + (uint64_t)slot * RN_CQE_BYTES;
	uint8_t owner = cq->pi & cq->create.cqes ? 0 : 1;

	fake_copy(cq->client, va, &cqe, RN_CQE_BYTES - 1, true);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	fake_copy(cq->client, va + RN_CQE_BYTES - 1, &owner, 1, true);
	cq->pi++;
	if (cq->armed && (!cq->solicited || solicited) && cq->channel_fd >= 0) {
		cq->armed = false;
		cq->comp_events++;
		send(cq->channel_fd, &cq->create.cookie, 8, MSG_NOSIGNAL);
	}
}

static bool take_recv(struct fake_qp *qp, uint16_t *idx, struct rn_hw_wqe_data *segments)
{
	const uint32_t bytes = qp->create.rq_segments * RN_RQ_SEGMENT_BYTES;
	struct rn_hw_qp_dbr dbr;

	fake_copy(qp->client, qp->create.dbr_va, &dbr, sizeof(dbr), false);
	if (qp->create.rq_wqes == 0 || (uint16_t)dbr.rq_pi == qp->rq_next)
		return false;
	*idx = qp->rq_next++;
	fake_copy(qp->client,
		  qp->create.rq_va + (uint64_t)(*idx & (qp->create.rq_wqes - 1)) * bytes, segments,
		  bytes, false);
	return true;
}

static uint8_t buffer[1 << 24];

/* Scatter @bytes of buffer into the segments; 0 or a wc_status. */
static uint8_t scatter(struct fake_sim *sim, struct fake_client *client,
		       const struct rn_hw_wqe_data *segments, uint32_t count, uint32_t bytes)
{
	uint32_t done = 0;

	for (uint32_t i = 0; i < count && done < bytes; i++) {
		const uint32_t n = (uint32_t)rn_min_u64(segments[i].bytes, bytes - done);

		if (segments[i].lkey == RN_LKEY_INVALID)
			break;
		if (access_mr(sim, client, segments[i].lkey, segments[i].va, buffer + done, n,
			      true))
			return RN_WC_LOC_PROT_ERR;
		done += n;
	}
	return done == bytes ? RN_WC_SUCCESS : RN_WC_LOC_LEN_ERR;
}

static void fail(struct fake_qp *qp)
{
	qp->attr.qp_state = RN_QPS_ERR;
	qp->rq_kicked = true;
}

struct job {
	struct fake_sim *sim;
	struct fake_qp *qp, *peer;
	struct rn_hw_wqe_ctrl ctrl;
	struct rn_hw_wqe_raddr raddr;
	const struct rn_hw_wqe_data *segments;
	uint32_t count;
	uint32_t bytes; /* gathered in buffer */
};

static bool has_imm(const struct job *job)
{
	return job->ctrl.opcode == RN_WQE_SEND_IMM || job->ctrl.opcode == RN_WQE_RDMA_WRITE_IMM;
}

/* False: the receiver is not ready. */
static bool deliver(struct job *job, uint8_t opcode, bool data, uint8_t *status)
{
	struct rn_hw_wqe_data segments[64];
	struct rn_hw_cqe cqe = {
		.qpn = job->qp->attr.dest_qpn, .opcode = opcode, .byte_len = job->bytes};

	if (!take_recv(job->peer, &cqe.wqe_idx, segments))
		return false;
	cqe.imm_be = has_imm(job) ? job->ctrl.imm_be : 0;
	if (data)
		cqe.status = scatter(job->sim, job->peer->client, segments,
				     job->peer->create.rq_segments, job->bytes);
	if (cqe.status) {
		cqe.opcode = RN_CQE_RECV_ERR;
		*status =
			cqe.status == RN_WC_LOC_LEN_ERR ? RN_WC_REM_INV_REQ_ERR : RN_WC_REM_OP_ERR;
		fail(job->peer);
	}
	complete(job->sim, job->peer->create.recv_cq, cqe, job->ctrl.flags & RN_WQE_SOLICITED);
	return true;
}

static bool execute(struct job *job, uint8_t *status)
{
	struct fake_client *peer = job->peer->client;
	const bool read = job->ctrl.opcode == RN_WQE_RDMA_READ;
	const bool write =
		job->ctrl.opcode == RN_WQE_RDMA_WRITE || job->ctrl.opcode == RN_WQE_RDMA_WRITE_IMM;

	if (job->ctrl.opcode == RN_WQE_SEND || job->ctrl.opcode == RN_WQE_SEND_IMM)
		return deliver(job, has_imm(job) ? RN_CQE_RECV_IMM : RN_CQE_RECV, true, status);
	if (access_mr(job->sim, peer, job->raddr.rkey, job->raddr.va, buffer, job->bytes, write))
		*status = RN_WC_REM_ACCESS_ERR;
	else if (read)
		*status = scatter(job->sim, job->qp->client, job->segments, job->count, job->bytes);
	else if (has_imm(job))
		return deliver(job, RN_CQE_RECV_WRITE_IMM, false, status);
	return true;
}

static uint8_t gather(struct job *job, const uint8_t *data)
{
	if (job->ctrl.flags & RN_WQE_INLINE) {
		memcpy(&job->bytes, data, 4);
		memcpy(buffer, data + 4, job->bytes);
		return RN_WC_SUCCESS;
	}
	for (uint32_t i = 0; i < job->count; i++) {
		const struct rn_hw_wqe_data *s = &job->segments[i];

		if (job->bytes + (uint64_t)s->bytes > sizeof(buffer))
			return RN_WC_LOC_LEN_ERR;
		if (job->ctrl.opcode != RN_WQE_RDMA_READ &&
		    access_mr(job->sim, job->qp->client, s->lkey, s->va, buffer + job->bytes,
			      s->bytes, false))
			return RN_WC_LOC_PROT_ERR;
		job->bytes += s->bytes;
	}
	return RN_WC_SUCCESS;
}

static void read_wqe(struct fake_qp *qp, uint8_t wqe[1024])
{
	for (uint32_t n = 0; n < 16 && n < qp->create.sq_wqebbs; n++) {
		const uint32_t slot = (qp->sq_next + n) & (qp->create.sq_wqebbs - 1);

		fake_copy(qp->client, qp->create.sq_va + (uint64_t)slot * 64, wqe + n * 64, 64,
			  false);
	}
}

/* One send WQE; false when nothing could be done. */
static bool run_sq(struct fake_sim *sim, struct fake_qp *qp)
{
	_Alignas(16) uint8_t wqe[1024];
	struct job job = {.sim = sim, .qp = qp};
	struct rn_hw_cqe cqe = {.qpn = (uint32_t)(qp - sim->qp)};
	uint8_t status = RN_WC_SUCCESS;
	uint32_t headers = 1;

	if (qp->sq_next == qp->sq_pi || qp->attr.qp_state < RN_QPS_RTS)
		return false;
	read_wqe(qp, wqe);
	memcpy(&job.ctrl, wqe, sizeof(job.ctrl));
	if (job.ctrl.opcode >= RN_WQE_RDMA_WRITE) {
		memcpy(&job.raddr, wqe + 16, sizeof(job.raddr));
		headers = 2;
	}
	job.segments = (const void *)(wqe + headers * 16);
	job.count = (job.ctrl.qpn_ds & 0xff) - headers;
	job.peer = qp->attr.dest_qpn < FAKE_OBJECTS ? &sim->qp[qp->attr.dest_qpn] : qp;
	if (qp->attr.qp_state == RN_QPS_ERR)
		status = RN_WC_WR_FLUSH_ERR;
	else if (!job.peer->client || job.peer->attr.qp_state == RN_QPS_ERR)
		status = RN_WC_RETRY_EXC_ERR;
	else
		status = gather(&job, wqe + headers * 16);
	if (!status && !execute(&job, &status))
		return false;
	cqe.wqe_idx = job.ctrl.wqe_idx;
	cqe.opcode = status ? RN_CQE_REQ_ERR : RN_CQE_REQ;
	cqe.status = status;
	cqe.byte_len = job.bytes;
	cqe.req_opcode = job.ctrl.opcode;
	if (status && status != RN_WC_WR_FLUSH_ERR)
		fail(qp);
	qp->sq_next = (uint16_t)(qp->sq_next + rn_div_ceil((job.ctrl.qpn_ds & 0xff) * 16, 64));
	if (status || (job.ctrl.flags & RN_WQE_SIGNALED))
		complete(sim, qp->create.send_cq, cqe, false);
	return true;
}

static bool flush_rq(struct fake_sim *sim, struct fake_qp *qp)
{
	struct rn_hw_wqe_data segments[64];
	struct rn_hw_cqe cqe = {.qpn = (uint32_t)(qp - sim->qp),
				.opcode = RN_CQE_RECV_ERR,
				.status = RN_WC_WR_FLUSH_ERR};

	if (qp->attr.qp_state != RN_QPS_ERR || !take_recv(qp, &cqe.wqe_idx, segments))
		return false;
	complete(sim, qp->create.recv_cq, cqe, false);
	return true;
}

static void ring_sq(struct fake_sim *sim, uint32_t qpn, uint16_t pi)
{
	if (qpn < FAKE_OBJECTS)
		sim->qp[qpn].sq_pi = pi;
}

static void ring_blueflame(struct fake_sim *sim, struct fake_client *client,
			   const struct rn_channel_entry *entry)
{
	const uint32_t at = entry->offset - RN_UAR_BLUEFLAME;
	uint8_t *image = client->bf[at / RN_UAR_BLUEFLAME_BYTES];
	struct rn_hw_wqe_ctrl ctrl;
	uint32_t bytes;

	memcpy(image + at % RN_UAR_BLUEFLAME_BYTES, entry->data, entry->len);
	memcpy(&ctrl, image, sizeof(ctrl));
	bytes = (ctrl.qpn_ds & 0xff) * 16;
	if (at % RN_UAR_BLUEFLAME_BYTES + entry->len >= bytes)
		ring_sq(sim, ctrl.qpn_ds >> 8, (uint16_t)(ctrl.wqe_idx + rn_div_ceil(bytes, 64)));
}

static void arm(struct fake_sim *sim, const struct rn_hw_cq_arm *doorbell)
{
	struct fake_cq *cq = &sim->cq[(doorbell->cqn_cmd & 0xffffff) % FAKE_OBJECTS];

	cq->armed = true;
	cq->solicited = doorbell->cqn_cmd >> 24 & 1;
	if (!cq->solicited && cq->pi != doorbell->ci && cq->channel_fd >= 0) {
		cq->armed = false;
		cq->comp_events++;
		send(cq->channel_fd, &cq->create.cookie, 8, MSG_NOSIGNAL);
	}
}

static void doorbell(struct fake_sim *sim, struct fake_client *client,
		     const struct rn_channel_entry *entry)
{
	struct rn_hw_sq_doorbell sq;
	struct rn_hw_cq_arm cq_arm;

	memcpy(&sq, entry->data, sizeof(sq));
	memcpy(&cq_arm, entry->data, sizeof(cq_arm));
	if (entry->offset == RN_UAR_SQ_DOORBELL)
		ring_sq(sim, sq.qpn, (uint16_t)sq.pi);
	else if (entry->offset == RN_UAR_CQ_ARM)
		arm(sim, &cq_arm);
	else if (entry->offset == RN_UAR_RQ_KICK)
		sim->qp[sq.qpn % FAKE_OBJECTS].rq_kicked = true;
	else if (entry->offset >= RN_UAR_BLUEFLAME)
		ring_blueflame(sim, client, entry);
}

static bool take_doorbells(struct fake_sim *sim, struct fake_client *client)
{
	struct rn_channel_entry entry;
	bool any = false;

	while (rn_channel_take(client->channel, &client->head, &entry) == RN_CHANNEL_TAKEN) {
		doorbell(sim, client, &entry);
		any = true;
	}
	return any;
}

bool fake_nic_run(struct fake_sim *sim)
{
	bool any = false;

	for (unsigned i = 0; i < FAKE_CLIENTS; i++)
		if (sim->client[i].fd >= 0 && sim->client[i].channel)
			any |= take_doorbells(sim, &sim->client[i]);
	for (unsigned i = 1; i < FAKE_OBJECTS; i++) {
		struct fake_qp *qp = &sim->qp[i];

		if (!qp->client)
			continue;
		while (run_sq(sim, qp))
			any = true;
		/* In error: flush what is there, then again only when asked. */
		while (qp->rq_kicked && flush_rq(sim, qp))
			any = true;
		qp->rq_kicked = false;
	}
	return any;
}
