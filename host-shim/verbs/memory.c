/*
 * Protection domains and memory regions.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/maps.h"
#include "verbs/objects.h"
#include "verbs/pin.h"

#define ACCESS_KNOWN                                                                               \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)
/* Allowed, and nothing here depends on them: windows are not there to be bound, huge pages are pinned as small ones. */
#define ACCESS_WITHOUT_EFFECT (IBV_ACCESS_ZERO_BASED | IBV_ACCESS_MW_BIND | IBV_ACCESS_HUGETLB)
/* Access that devices without on-demand paging and flush refuse; the latter's bits are newer than Debian's header. */
#define ACCESS_REFUSED (IBV_ACCESS_ON_DEMAND | 1u << 8 | 1u << 9)

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

int rn_simple_call(struct rn_conn *conn, uint32_t op, uint32_t handle)
{
	struct rn_uapi_req req = {.op = op, .handle = handle};
	struct rn_uapi_rsp rsp;
	const int error = rn_conn_call(conn, &req, sizeof(req), &rsp, sizeof(rsp));

	return rn_conn_is_dead(conn) ? 0 : error;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	const int error = rn_simple_call(rn_conn_of(pd->context), RN_UAPI_DEALLOC_PD, pd->handle);

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

/* What Linux's ib_check_mr_access says, in its order. */
static int check_access(unsigned access)
{
	/* Remote writing without local writing makes no sense to the hardware (IBA 10.6.3). */
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	if (access & ~(unsigned)(ACCESS_KNOWN | ACCESS_WITHOUT_EFFECT | ACCESS_REFUSED))
		return EINVAL;
	return access & ACCESS_REFUSED ? EOPNOTSUPP : 0;
}

/* Memory that the NIC may be asked to write must be writable (ib_access_writable). */
static unsigned pin_flags(unsigned access)
{
	return access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND) ? RN_PIN_WRITE : 0;
}

/* As ib_umem_get: nothing to pin, and a range that runs over the end of the address space, are wrong arguments. */
static int check_range(const struct rn_mr *mr)
{
	const uint64_t start = (uint64_t)(uintptr_t)mr->pinned;
	const uint64_t end = start + mr->pinned_bytes;

	return mr->pinned_bytes && end >= start && end <= UINT64_MAX - RN_PAGE_BYTES ? 0 : EINVAL;
}

static int register_region(struct rn_conn *conn, struct rn_mr *mr, uint64_t iova, unsigned access)
{
	int error = check_access(access);

	if (!error)
		error = check_range(mr);
	if (error)
		return error;
	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	error = rn_pin_range(conn->pin, mr->pinned, mr->pinned_bytes, pin_flags(access));
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
	const int error = rn_simple_call(conn, RN_UAPI_DEREG_MR, ibv->handle);

	if (error)
		return error;
	rn_unpin_range(conn->pin, mr->pinned, mr->pinned_bytes);
	free(mr);
	return 0;
}
