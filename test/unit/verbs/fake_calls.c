/* The fake simulator's driver: the control protocol. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_internal.h"

/* An answer under construction. */
struct reply {
	union {
		struct rn_uapi_rsp rsp;
		struct rn_uapi_attach_rsp attach;
		struct rn_uapi_device device;
		struct rn_uapi_clock clock;
		struct rn_uapi_port port;
		struct rn_uapi_reg_mr_rsp mr;
		struct rn_uapi_destroy_rsp destroy;
		struct rn_uapi_query_qp_rsp qp;
		uint8_t raw[RN_UAPI_MAX_BYTES];
	};
	size_t bytes;
	int fd[3];
	unsigned fds;
	bool close_fds; /* they were made for the client alone */
};

static size_t page_index(const struct fake_client *client, uint64_t va)
{
	size_t lo = 0, hi = client->pages;

	while (lo < hi) {
		const size_t mid = (lo + hi) / 2;

		if (client->page[mid].va < va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct fake_page *fake_find_page(struct fake_client *client, uint64_t va)
{
	const size_t i = page_index(client, va);

	return i < client->pages && client->page[i].va == va ? &client->page[i] : NULL;
}

static void add_page(struct fake_client *client, struct fake_page page)
{
	const size_t i = page_index(client, page.va);

	if (client->pages == client->capacity) {
		client->capacity = client->capacity ? client->capacity * 2 : 1024;
		client->page = realloc(client->page, client->capacity * sizeof(*client->page));
	}
	memmove(&client->page[i + 1], &client->page[i], (client->pages - i) * sizeof(page));
	client->page[i] = page;
	client->pages++;
}

static void attach(struct fake_sim *sim, struct fake_client *client, const void *request,
		   struct reply *reply)
{
	const struct rn_uapi_attach *req = request;
	const uint64_t arena_bytes =
		sim->options.arena_bytes ? sim->options.arena_bytes : UINT64_C(1) << 40;
	const int channel_fd = memfd_create("channel", MFD_CLOEXEC);

	client->pid = req->pid;
	client->arena_fd = memfd_create("arena", MFD_CLOEXEC);
	client->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ftruncate(channel_fd, (off_t)RN_CHANNEL_BYTES) ||
	    ftruncate(client->arena_fd, (off_t)arena_bytes))
		reply->rsp.error = ENOMEM;
	client->channel =
		mmap(NULL, RN_CHANNEL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, channel_fd, 0);
	client->channel->magic = RN_CHANNEL_MAGIC;
	client->arena = mmap(NULL, FAKE_MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			     client->arena_fd, 0);
	reply->attach.arena_bytes = arena_bytes;
	reply->attach.channel_bytes = RN_CHANNEL_BYTES;
	reply->attach.uar_pages = 1;
	reply->attach.hosts = 1;
	reply->attach.free_run = 1;
	reply->bytes = sizeof(reply->attach);
	reply->fd[0] = channel_fd;
	reply->fd[1] = client->arena_fd;
	reply->fd[2] = client->wake_fd;
	reply->fds = 3;
}

static void query_device(struct fake_sim *sim, struct reply *reply)
{
	struct rn_uapi_device *d = &reply->device;

	reply->bytes = sizeof(*d);
	snprintf(d->name, sizeof(d->name), "rnicsim0");
	snprintf(d->fw_ver, sizeof(d->fw_ver), "0.1");
	snprintf(d->board_id, sizeof(d->board_id), "FAKE");
	d->node_guid_be = 0x0100000000000002;
	d->max_mr_size = UINT64_C(1) << 40;
	d->page_size_cap = FAKE_PAGE;
	d->vendor_id = 0x2c9;
	d->vendor_part_id = 4119;
	d->max_qp = d->max_cq = d->max_mr = d->max_pd = FAKE_OBJECTS;
	d->max_qp_wr = 8192;
	d->max_sge = d->max_sge_rd = d->max_recv_sge = 16;
	d->max_cqe = 65536;
	d->max_qp_rd_atom = d->max_qp_init_rd_atom = 16;
	d->max_inline_data = 512;
	d->num_comp_vectors = 1;
	d->max_sq_wqebbs = 32768;
	d->core_khz = 400000;
	d->blueflame_bytes = sim->options.blueflame ? RN_UAR_BLUEFLAME_BYTES : 0;
}

static void query_port(struct reply *reply)
{
	struct rn_uapi_port *p = &reply->port;

	reply->bytes = sizeof(*p);
	p->state = 4;
	p->max_mtu = p->active_mtu = 5;
	p->gid_tbl_len = 16;
	p->gids = 2;
	p->pkey_tbl_len = 1;
	p->pkey[0] = 0xffff;
	p->link_layer = 2;
	p->phys_state = 5;
	p->active_width = 2;
	p->active_speed = 32;
	p->max_msg_sz = 1u << 31;
	memcpy(p->gid[0], "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\1", 16);
	memcpy(p->gid[1], "\xfe\x80\0\0\0\0\0\0\0\0\0\xff\xfe\0\0\1", 16);
	p->gid_type[0] = p->gid_type[1] = 2;
}

/* Runs of at most run_pages frames with a gap of one between them. */
static void pin(struct fake_sim *sim, struct fake_client *client, const void *request,
		struct reply *reply)
{
	const struct rn_uapi_pin *req = request;
	struct rn_uapi_run *run = (void *)(reply->raw + sizeof(reply->rsp));
	const uint32_t limit = sim->options.run_pages ? sim->options.run_pages : 8;
	uint32_t runs = 0;

	for (uint32_t i = 0; i < req->pages; i++) {
		const uint64_t va = req->va + (uint64_t)i * FAKE_PAGE;
		struct fake_page *page = fake_find_page(client, va);
		const bool swap = req->swap[i / 8] >> i % 8 & 1;
		const bool fresh = !page;
		uint64_t offset = swap ? client->next_frame : UINT64_MAX;
		struct rn_uapi_run *last = runs ? &run[runs - 1] : NULL;

		if (page)
			offset = page->offset;
		const bool joins =
			last && last->fresh == fresh && last->pages < limit &&
			(offset == UINT64_MAX
				 ? last->arena_offset == UINT64_MAX
				 : last->arena_offset + (uint64_t)last->pages * FAKE_PAGE ==
					   offset);

		if (fresh && swap && !joins) {
			client->next_frame += FAKE_PAGE; /* the gap */
			offset += FAKE_PAGE;
		}
		if (fresh) {
			add_page(client, (struct fake_page){va, offset, 1});
			sim->pinned++;
			if (swap)
				client->next_frame = offset + FAKE_PAGE;
		} else {
			page->pins++;
		}
		if (joins)
			last->pages++;
		else
			run[runs++] = (struct rn_uapi_run){offset, 1, fresh};
	}
	reply->rsp.handle = runs;
	reply->bytes = sizeof(reply->rsp) + runs * sizeof(*run);
}

static void unpin(struct fake_sim *sim, struct fake_client *client, const void *request,
		  struct reply *reply)
{
	const struct rn_uapi_unpin *req = request;
	uint8_t *last = reply->raw + sizeof(reply->rsp);

	memset(last, 0, (req->pages + 7) / 8);
	reply->bytes = sizeof(reply->rsp) + (req->pages + 7) / 8;
	for (uint32_t i = 0; i < req->pages; i++) {
		struct fake_page *page = fake_find_page(client, req->va + (uint64_t)i * FAKE_PAGE);

		if (!page) {
			reply->rsp.error = EINVAL;
			return;
		}
		if (page->pins == 1)
			last[i / 8] |= (uint8_t)(1u << i % 8);
		if (!req->commit || --page->pins)
			continue;
		if (page->offset != UINT64_MAX)
			fallocate(client->arena_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				  (off_t)page->offset, FAKE_PAGE);
		memmove(page, page + 1,
			(client->pages - (size_t)(page - client->page) - 1) * sizeof(*page));
		client->pages--;
		sim->pinned--;
	}
}

static void reg_mr(struct fake_sim *sim, struct fake_client *client, const void *request,
		   struct reply *reply)
{
	const struct rn_uapi_reg_mr *req = request;

	for (uint32_t i = 1; i < FAKE_OBJECTS; i++) {
		if (sim->mr[i].client)
			continue;
		sim->mr[i] = (struct fake_mr){client,	   req->va, req->iova,
					      req->length, req->pd, req->access};
		reply->rsp.handle = i;
		reply->mr.lkey = reply->mr.rkey = i << 8 | 0x11;
		reply->bytes = sizeof(reply->mr);
		return;
	}
	reply->rsp.error = ENOMEM;
}

static void create_cq(struct fake_sim *sim, struct fake_client *client, const void *request,
		      struct reply *reply)
{
	const struct rn_uapi_create_cq *req = request;

	for (uint32_t i = 1; i < FAKE_OBJECTS; i++) {
		if (sim->cq[i].client)
			continue;
		sim->cq[i] = (struct fake_cq){.client = client, .create = *req, .channel_fd = -1};
		if (req->channel)
			sim->cq[i].channel_fd = sim->channel_fd[req->channel];
		reply->rsp.handle = i;
		return;
	}
	reply->rsp.error = ENOMEM;
}

static void create_qp(struct fake_sim *sim, struct fake_client *client, const void *request,
		      struct reply *reply)
{
	for (uint32_t i = 1; i < FAKE_OBJECTS; i++) {
		if (sim->qp[i].client)
			continue;
		sim->qp[i] = (struct fake_qp){.client = client};
		memcpy(&sim->qp[i].create, request, sizeof(sim->qp[i].create));
		reply->rsp.handle = i;
		return;
	}
	reply->rsp.error = ENOMEM;
}

static void modify_qp(struct fake_sim *sim, const void *request, struct reply *reply)
{
	const struct rn_uapi_modify_qp *req = request;
	struct fake_qp *qp = &sim->qp[req->req.handle % FAKE_OBJECTS];

	reply->rsp.error = qp->client ? 0 : EINVAL;
	if (req->attr_mask & 1)
		qp->attr.qp_state = req->attr.qp_state;
	if (req->attr_mask & 1 << 20)
		qp->attr.dest_qpn = req->attr.dest_qpn;
	if (qp->attr.qp_state == RN_QPS_ERR)
		qp->rq_kicked = true;
	if (qp->attr.qp_state == RN_QPS_RESET)
		qp->sq_pi = qp->sq_next = qp->rq_next = 0;
}

static void query_qp(struct fake_sim *sim, uint32_t qpn, struct reply *reply)
{
	reply->qp.attr = sim->qp[qpn % FAKE_OBJECTS].attr;
	reply->bytes = sizeof(reply->qp);
}

static void create_channel(struct fake_sim *sim, struct reply *reply)
{
	int pair[2];

	for (uint32_t i = 1; i < FAKE_OBJECTS; i++) {
		if (sim->channel_fd[i])
			continue;
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
			break;
		sim->channel_fd[i] = pair[0];
		reply->fd[0] = pair[1];
		reply->fds = 1;
		reply->close_fds = true;
		reply->rsp.handle = i;
		return;
	}
	reply->rsp.error = ENOMEM;
}

static void open_async(struct fake_client *client, struct reply *reply)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		reply->rsp.error = ENOMEM;
		return;
	}
	client->async_fd = pair[0];
	reply->fd[0] = pair[1];
	reply->fds = 1;
	reply->close_fds = true;
}

static void peek(struct fake_client *client, const struct rn_uapi_pin *req, struct reply *reply)
{
	uint8_t byte = (uint8_t)req->pages;

	if (!fake_copy(client, req->va, &byte, 1, req->req.op == FAKE_OP_POKE))
		reply->rsp.error = EFAULT;
	reply->rsp.handle = byte;
}

static void dispatch(struct fake_sim *sim, struct fake_client *client, const void *request,
		     struct reply *reply)
{
	const struct rn_uapi_req *req = request;
	const uint32_t handle = req->handle % FAKE_OBJECTS;

	switch (req->op) {
	case RN_UAPI_ATTACH:
		attach(sim, client, request, reply);
		break;
	case RN_UAPI_QUERY_DEVICE:
		query_device(sim, reply);
		break;
	case RN_UAPI_QUERY_PORT:
		query_port(reply);
		break;
	case RN_UAPI_ALLOC_PD:
		reply->rsp.handle = ++sim->pds;
		break;
	case RN_UAPI_PIN:
		pin(sim, client, request, reply);
		break;
	case RN_UAPI_UNPIN:
		unpin(sim, client, request, reply);
		break;
	case RN_UAPI_REG_MR:
		reg_mr(sim, client, request, reply);
		break;
	case RN_UAPI_DEREG_MR:
		sim->mr[handle].client = NULL;
		break;
	case RN_UAPI_CREATE_CHANNEL:
		create_channel(sim, reply);
		break;
	case RN_UAPI_DESTROY_CHANNEL:
		close(sim->channel_fd[handle]);
		sim->channel_fd[handle] = 0;
		break;
	case RN_UAPI_CREATE_CQ:
		create_cq(sim, client, request, reply);
		break;
	case RN_UAPI_DESTROY_CQ:
		reply->destroy.comp_events = sim->cq[handle].comp_events;
		reply->bytes = sizeof(reply->destroy);
		sim->cq[handle].client = NULL;
		break;
	case RN_UAPI_CREATE_QP:
		create_qp(sim, client, request, reply);
		break;
	case RN_UAPI_MODIFY_QP:
		modify_qp(sim, request, reply);
		break;
	case RN_UAPI_QUERY_QP:
		query_qp(sim, handle, reply);
		break;
	case RN_UAPI_DESTROY_QP:
		reply->bytes = sizeof(reply->destroy);
		sim->qp[handle].client = NULL;
		break;
	case RN_UAPI_OPEN_ASYNC:
		open_async(client, reply);
		break;
	case FAKE_OP_PEEK:
	case FAKE_OP_POKE:
		peek(client, request, reply);
		break;
	case FAKE_OP_PINNED:
		reply->rsp.handle = sim->pinned;
		break;
	case RN_UAPI_QUERY_CLOCK:
		reply->bytes = sizeof(reply->clock);
		reply->clock.now_ps = FAKE_CLOCK_PS;
		break;
	case RN_UAPI_CREATE_AH:
		reply->rsp.handle = 1;
		break;
	case RN_UAPI_DEALLOC_PD:
	case RN_UAPI_DESTROY_AH:
		break;
	default:
		reply->rsp.error = EINVAL;
	}
}

static bool answer(struct fake_client *client, struct reply *reply)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(reply->fd))] = {0};
	struct iovec iov = {reply->raw, reply->bytes};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	bool sent;

	reply->rsp.bytes = (uint32_t)reply->bytes;
	if (reply->fds) {
		struct cmsghdr *c = (void *)control;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(reply->fds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(reply->fds * sizeof(int));
		memcpy(CMSG_DATA(c), reply->fd, reply->fds * sizeof(int));
	}
	sent = sendmsg(client->fd, &msg, MSG_NOSIGNAL) >= 0;
	if (reply->close_fds)
		close(reply->fd[0]);
	return sent;
}

bool fake_serve(struct fake_sim *sim, struct fake_client *client)
{
	static _Alignas(8) uint8_t request[RN_UAPI_MAX_BYTES];
	static struct reply reply;
	const ssize_t got = recv(client->fd, request, sizeof(request), 0);

	if (got < (ssize_t)sizeof(struct rn_uapi_req))
		return false;
	memset(&reply, 0, sizeof(reply));
	reply.bytes = sizeof(reply.rsp);
	dispatch(sim, client, request, &reply);
	return answer(client, &reply);
}

void fake_drop(struct fake_sim *sim, struct fake_client *client)
{
	for (unsigned i = 0; i < FAKE_OBJECTS; i++) {
		if (sim->mr[i].client == client)
			sim->mr[i].client = NULL;
		if (sim->cq[i].client == client)
			sim->cq[i].client = NULL;
		if (sim->qp[i].client == client)
			sim->qp[i].client = NULL;
	}
	close(client->fd);
	close(client->arena_fd);
	close(client->wake_fd);
	if (client->async_fd >= 0)
		close(client->async_fd);
	munmap(client->arena, FAKE_MAPPED);
	munmap(client->channel, RN_CHANNEL_BYTES);
	sim->pinned -= (unsigned)client->pages;
	free(client->page);
	*client = (struct fake_client){.fd = -1, .async_fd = -1};
}
