/*
 * Behind the NIC: the driver's tables as they lie in host memory, for tests that look or write there.
 */
#include "scripted/internal.h"

static void *at(struct rn_scripted *host, uint64_t pa, uint64_t bytes)
{
	return rn_host_memory_at(rn_driver_memory(host->env.driver), pa, bytes);
}

uint64_t *rn_scripted_mtt(struct rn_scripted *host, uint32_t key, uint64_t page)
{
	struct rn_driver_icm icm;
	uint64_t first;
	uint32_t count;

	if (!rn_driver_find_mtt(host->env.driver, key, &first, &count) || page >= count)
		return NULL;
	rn_driver_get_icm(host->env.driver, &icm);
	return at(host, icm.mtt_pa + (first + page) * RN_MTT_BYTES, RN_MTT_BYTES);
}

struct rn_hw_mpt *rn_scripted_mpt(struct rn_scripted *host, uint32_t key)
{
	struct rn_driver_icm icm;

	rn_driver_get_icm(host->env.driver, &icm);
	return at(host, icm.mpt_pa + (uint64_t)(key >> 8) * RN_MPT_BYTES, RN_MPT_BYTES);
}

struct rn_hw_qpc *rn_scripted_qpc(struct rn_scripted_qp *qp)
{
	struct rn_driver_icm icm;

	rn_driver_get_icm(qp->host->env.driver, &icm);
	return at(qp->host, icm.qpc_pa + (uint64_t)qp->qpn * RN_QPC_BYTES, RN_QPC_BYTES);
}

struct rn_hw_cqc *rn_scripted_cqc(struct rn_scripted_cq *cq)
{
	struct rn_driver_icm icm;

	rn_driver_get_icm(cq->host->env.driver, &icm);
	return at(cq->host, icm.cqc_pa + (uint64_t)cq->queue.cqn * RN_CQC_BYTES, RN_CQC_BYTES);
}

void *rn_scripted_wqebb(struct rn_scripted_qp *qp, uint32_t index)
{
	return qp->sq.ring + (uint64_t)(index & (qp->sq.wqebbs - 1)) * RN_WQEBB_BYTES;
}
