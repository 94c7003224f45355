/* Objects of a hostile client. */
#include "world.h"

#include <infiniband/verbs.h>
#include <string.h>
#include <sys/mman.h>

#include "hw/gen/rnic_hw.h"

/* Pages: data 0-7, CQ ring 8-9, doorbell records 10, then four for each queue pair. */
#define CQ_PAGE 8u
#define DBR_PAGE 10u
#define QP_PAGE(qp) (12u + 4u * (qp))

char *world_data(const struct world *world)
{
	return world->memory;
}

char *world_cq_ring(const struct world *world)
{
	return world->memory + CQ_PAGE * PAGE;
}

uint32_t *world_cq_dbr(const struct world *world)
{
	return (uint32_t *)(void *)(world->memory + DBR_PAGE * PAGE);
}

uint32_t *world_qp_dbr(const struct world *world, unsigned qp)
{
	return (uint32_t *)(void *)(world->memory + DBR_PAGE * PAGE + 64 + 64 * (size_t)qp);
}

char *world_sq(const struct world *world, unsigned qp)
{
	return world->memory + QP_PAGE(qp) * PAGE;
}

char *world_rq(const struct world *world, unsigned qp)
{
	return world->memory + (QP_PAGE(qp) + 2) * PAGE;
}

bool world_open(struct world *world, struct rn_rng *rng, uint32_t host)
{
	*world = (struct world){.psn = below(rng, 1u << 24)};
	if (!raw_attach(&world->raw, rng, host))
		return false;
	world->memory = mmap(NULL, WORLD_PAGES * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (world->memory != MAP_FAILED)
		return true;
	raw_close(&world->raw);
	return false;
}

void world_close(struct world *world)
{
	raw_close(&world->raw);
	munmap(world->memory, WORLD_PAGES * PAGE);
}

static uint32_t create(struct world *world, void *request, size_t bytes)
{
	struct rn_uapi_rsp rsp;

	if (world->lies && one_in(world->raw.rng, 3))
		mutate(world->raw.rng, request, bytes, sizeof(struct rn_uapi_req));
	return raw_call(&world->raw, request, bytes, &rsp, sizeof(rsp)) ? 0 : rsp.handle;
}

static void make_mr(struct world *world)
{
	struct rn_uapi_reg_mr request = {
		.req.op = RN_UAPI_REG_MR,
		.pd = world->pd,
		.access = 7,
		.va = (uintptr_t)world_data(world),
		.length = WORLD_DATA_BYTES,
		.iova = (uintptr_t)world_data(world),
	};
	struct rn_uapi_reg_mr_rsp rsp;

	if (world->lies && one_in(world->raw.rng, 3))
		mutate(world->raw.rng, &request, sizeof(request), sizeof(request.req));
	if (!raw_call(&world->raw, &request, sizeof(request), &rsp, sizeof(rsp)))
		world->mr = rsp.lkey;
}

static void make_cq(struct world *world)
{
	struct rn_uapi_create_cq request = {
		.req.op = RN_UAPI_CREATE_CQ,
		.cqes = WORLD_CQES,
		.cookie = nasty64(world->raw.rng),
		.ring_va = (uintptr_t)world_cq_ring(world),
		.dbr_va = (uintptr_t)world_cq_dbr(world),
	};

	/* Nobody reads its events. */
	world->channel = raw_call_handle(&world->raw, RN_UAPI_CREATE_CHANNEL, 0);
	raw_call_handle(&world->raw, RN_UAPI_OPEN_ASYNC, 0);
	request.channel = world->channel;
	world->cq = create(world, &request, sizeof(request));
}

static void make_qp(struct world *world, unsigned qp)
{
	struct rn_uapi_create_qp request = {
		.req.op = RN_UAPI_CREATE_QP,
		.pd = world->pd,
		.service = RN_QPT_RC,
		.send_cq = world->cq,
		.recv_cq = world->cq,
		.sq_wqebbs = WORLD_SQ_WQEBBS,
		.rq_wqes = WORLD_RQ_WQES,
		.rq_segments = 2,
		.rq_max_sge = 2,
		.sq_va = (uintptr_t)world_sq(world, qp),
		.rq_va = (uintptr_t)world_rq(world, qp),
		.dbr_va = (uintptr_t)world_qp_dbr(world, qp),
	};

	world->qp[qp] = create(world, &request, sizeof(request));
}

static void learn_gid(struct world *world)
{
	struct rn_uapi_req req = {.op = RN_UAPI_QUERY_PORT, .handle = 1};
	struct rn_uapi_port port;

	if (raw_call(&world->raw, &req, sizeof(req), &port, sizeof(port)) == 0)
		memcpy(world->gid, port.gid[0], sizeof(world->gid));
}

static const uint32_t masks[] = {
	IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		IBV_QP_MAX_QP_RD_ATOMIC,
};

/*
 * The other one of the two; with lies, anybody's number on any host. Who sends from the right host and hits QPN and PSN
 * is taken for the peer, as by hardware: RC has no other secret. So its PSNs are drawn, and those beside it use others.
 */
static void choose_peer(const struct world *world, unsigned qp, struct rn_uapi_qp_attr *attr)
{
	struct rn_rng *rng = world->raw.rng;

	attr->dest_qpn = world->qp[!qp];
	attr->sq_psn = attr->rq_psn = world->psn;
	memcpy(attr->dgid, world->gid, sizeof(attr->dgid));
	if (!world->lies || one_in(rng, 2))
		return;
	attr->dest_qpn = nearby(rng, world->qp[0]);
	attr->dgid[15] = (uint8_t)(1 + below(rng, world->raw.hosts));
}

static void move(struct world *world, unsigned qp, uint32_t stage)
{
	struct rn_rng *rng = world->raw.rng;
	struct rn_uapi_modify_qp request = {
		.req = {.op = RN_UAPI_MODIFY_QP, .handle = world->qp[qp]},
		.attr_mask = masks[stage - WORLD_INIT],
		.attr = {.qp_state = 1 + stage - WORLD_INIT,
			 .path_mtu = IBV_MTU_256 + below(rng, 5),
			 .access = 7,
			 .port_num = 1,
			 .max_rd_atomic = 1,
			 .max_dest_rd_atomic = 1,
			 .min_rnr_timer = 1,
			 .timeout = 8 + below(rng, 4),
			 .retry_cnt = below(rng, 4),
			 .rnr_retry = below(rng, 8),
			 .is_global = 1,
			 .hop_limit = 64,
			 .ah_port = 1},
	};

	choose_peer(world, qp, &request.attr);
	if (world->lies && one_in(rng, 4))
		mutate(rng, &request, sizeof(request), sizeof(request.req));
	raw_call(&world->raw, &request, sizeof(request), NULL, 0);
}

void world_step(struct world *world, uint32_t stage)
{
	switch ((enum world_stage)stage) {
	case WORLD_PD:
		world->pd = raw_call_handle(&world->raw, RN_UAPI_ALLOC_PD, 0);
		learn_gid(world);
		break;
	case WORLD_MEMORY:
		raw_pin(&world->raw, world->memory, WORLD_PAGES);
		break;
	case WORLD_MR:
		make_mr(world);
		break;
	case WORLD_CQ:
		make_cq(world);
		break;
	case WORLD_QP:
		for (unsigned qp = 0; qp < WORLD_QPS; qp++)
			make_qp(world, qp);
		break;
	case WORLD_INIT:
	case WORLD_RTR:
	case WORLD_RTS:
		for (unsigned qp = 0; qp < WORLD_QPS; qp++)
			move(world, qp, stage);
		break;
	case WORLD_STAGES:
		break;
	}
}

void world_destroy_something(struct world *world)
{
	switch (below(world->raw.rng, 6)) {
	case 0:
		raw_call_handle(&world->raw, RN_UAPI_DESTROY_QP, world->qp[0]);
		break;
	case 1:
		raw_call_handle(&world->raw, RN_UAPI_DESTROY_QP, world->qp[1]);
		break;
	case 2:
		raw_call_handle(&world->raw, RN_UAPI_DESTROY_CQ, world->cq);
		break;
	case 3:
		raw_call_handle(&world->raw, RN_UAPI_DEREG_MR, world->mr);
		break;
	case 4:
		raw_call_handle(&world->raw, RN_UAPI_DESTROY_CHANNEL, world->channel);
		break;
	default:
		raw_call_handle(&world->raw, RN_UAPI_DEALLOC_PD, world->pd);
	}
}
