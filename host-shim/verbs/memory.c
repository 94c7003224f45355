/*
 * Protection domains, memory regions, and the memory of rings.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/maps.h"
#include "verbs/objects.h"
#include "verbs/pin.h"
#include "verbs/raw.h"

#define ACCESS_KNOWN                                                                               \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)

int rn_ring_new(struct rn_conn *conn, size_t bytes, struct rn_ring *ring)
{
	const size_t total = bytes + RN_PAGE_BYTES;
	uint8_t *base = rn_raw_mmap(NULL, total, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int error;

	if (!base)
		return ENOMEM;
	error = rn_pin_range(conn->pin, base, total, RN_PIN_OWN | RN_PIN_WRITE);
	if (error) {
		rn_raw_munmap(base, total);
		return error;
	}
	*ring = (struct rn_ring){.base = base, .bytes = total, .dbr = base + bytes};
	return 0;
}

void rn_ring_free(struct rn_conn *conn, struct rn_ring *ring)
{
	if (!ring->base)
		return;
	rn_unpin_discard(conn->pin, ring->base, ring->bytes);
	rn_raw_munmap(ring->base, ring->bytes);
	ring->base = NULL;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct rn_uapi_req req = {.op = RN_UAPI_ALLOC_PD};
	struct rn_uapi_rsp rsp;
	struct rn_pd *pd = calloc(1, sizeof(*pd));
	int error;

	if (!pd)
		return NULL;
	error = rn_conn_call(rn_conn_of(context), &req, sizeof(req), &rsp, sizeof(rsp));
	if (error) {
		free(pd);
		errno = error;
		return NULL;
	}
	pd->ibv.context = context;
	pd->ibv.handle = rsp.handle;
	return &pd->ibv;
}

/* An object whose driver is gone, or that belongs to the parent process, is freed without complaint. */
static int simple_call(struct rn_conn *conn, uint32_t op, uint32_t handle)
{
	struct rn_uapi_req req = {.op = op, .handle = handle};
	struct rn_uapi_rsp rsp;
	const int error = rn_conn_call(conn, &req, sizeof(req), &rsp, sizeof(rsp));

	return rn_conn_is_dead(conn) ? 0 : error;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	const int error = simple_call(rn_conn_of(pd->context), RN_UAPI_DEALLOC_PD, pd->handle);

	if (!error)
		free(pd);
	return error;
}

static int reg_call(struct rn_conn *conn, struct rn_mr *mr, uint64_t iova, unsigned access)
{
	struct rn_uapi_reg_mr req = {.req.op = RN_UAPI_REG_MR,
				     .pd = mr->ibv.pd->handle,
				     .access = access,
				     .va = (uint64_t)(uintptr_t)mr->ibv.addr,
				     .length = mr->ibv.length,
				     .iova = iova};
	struct rn_uapi_reg_mr_rsp rsp;
	const int error = rn_conn_call(conn, &req, sizeof(req), &rsp, sizeof(rsp));

	mr->ibv.handle = rsp.rsp.handle;
	mr->ibv.lkey = rsp.lkey;
	mr->ibv.rkey = rsp.rkey;
	return error;
}

static int check_access(unsigned access)
{
	if (access & ~(unsigned)(ACCESS_KNOWN | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_MW_BIND |
				 IBV_ACCESS_HUGETLB | IBV_ACCESS_ON_DEMAND))
		return EINVAL;
	if (access & (IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND))
		return EOPNOTSUPP;
	/* Remote writing without local writing makes no sense to the hardware (IBA 10.6.3). */
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

static int register_region(struct rn_conn *conn, struct rn_mr *mr, uint64_t iova, unsigned access)
{
	const unsigned flags = access & IBV_ACCESS_LOCAL_WRITE ? RN_PIN_WRITE : 0;
	int error = check_access(access);

	if (error)
		return error;
	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	error = rn_pin_range(conn->pin, mr->pinned, mr->pinned_bytes, flags);
	if (error)
		return error;
	error = reg_call(conn, mr, iova, access & ACCESS_KNOWN);
	if (error)
		rn_unpin_range(conn->pin, mr->pinned, mr->pinned_bytes);
	return error;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	struct rn_mr *mr = calloc(1, sizeof(*mr));
	int error;

	if (!mr)
		return NULL;
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.addr = addr;
	mr->ibv.length = length;
	mr->pinned = addr;
	mr->pinned_bytes = length;
	error = register_region(rn_conn_of(pd->context), mr, iova,
				access & ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE);
	if (error) {
		free(mr);
		errno = error;
		return NULL;
	}
	return &mr->ibv;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uint64_t)(uintptr_t)addr, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

int ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct rn_mr *mr = (struct rn_mr *)(void *)ibv;
	struct rn_conn *conn = rn_conn_of(ibv->context);
	const int error = simple_call(conn, RN_UAPI_DEREG_MR, ibv->handle);

	if (error)
		return error;
	rn_unpin_range(conn->pin, mr->pinned, mr->pinned_bytes);
	free(mr);
	return 0;
}
