/*
 * The driver's own memory, arena 0: ICM tables, event queues, command queue, mailboxes. One
 * anonymous, sparse mapping that no client ever receives. Objects' entries are written by the NIC's
 * command unit; the driver writes MTT entries of keys that do not exist yet, and nothing else.
 */
#include <errno.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "driver/internal.h"

static uint64_t place(uint64_t *end, uint64_t bytes)
{
	const uint64_t at = *end;

	*end += rn_div_ceil(bytes, RN_FRAME_BYTES) * RN_FRAME_BYTES;
	return at;
}

static void lay_out(struct rn_icm *icm)
{
	uint64_t end = RN_FRAME_BYTES; /* address 0 stays empty: mailbox 0 means none */

	icm->qpc = place(&end, (uint64_t)RN_QPC_BYTES << icm->log_qps);
	icm->cqc = place(&end, (uint64_t)RN_CQC_BYTES << icm->log_cqs);
	icm->srqc = place(&end, (uint64_t)RN_SRQC_BYTES << icm->log_srqs);
	icm->mpt = place(&end, (uint64_t)RN_MPT_BYTES << icm->log_mpts);
	icm->mtt = place(&end, (uint64_t)RN_MTT_BYTES << icm->log_mtts);
	icm->eq = place(&end, (uint64_t)icm->eqs * RN_EQE_BYTES << RN_DRIVER_EQ_LOG);
	icm->command = place(&end, RN_CMD_BYTES * RN_CMD_QUEUE_ENTRIES);
	icm->mailbox = place(&end, 2u * RN_MAILBOX_BYTES * RN_CMD_QUEUE_ENTRIES);
	icm->bytes = end;
}

int rn_icm_init(struct rn_driver *driver)
{
	struct rn_icm *icm = &driver->icm;

	lay_out(icm);
	icm->base = mmap(NULL, icm->bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (icm->base == MAP_FAILED) {
		icm->base = NULL;
		return errno;
	}
	icm->arena = rn_host_memory_add(driver->memory, icm->base, icm->bytes);
	return icm->arena < 0 ? ENOMEM : 0;
}

void rn_icm_fini(struct rn_driver *driver)
{
	struct rn_icm *icm = &driver->icm;

	if (!icm->base)
		return;
	if (icm->arena >= 0)
		rn_host_memory_remove(driver->memory, icm->arena);
	munmap(icm->base, icm->bytes);
	icm->base = NULL;
}

void rn_icm_set_mtt(struct rn_icm *icm, uint64_t index, uint64_t pa)
{
	rn_put_le64(icm->base + icm->mtt + index * RN_MTT_BYTES, pa | RN_MTT_PRESENT);
}

void rn_driver_get_icm(const struct rn_driver *driver, struct rn_driver_icm *out)
{
	const struct rn_icm *icm = &driver->icm;

	*out = (struct rn_driver_icm){
		.qpc_pa = rn_icm_pa(icm, icm->qpc),
		.cqc_pa = rn_icm_pa(icm, icm->cqc),
		.mpt_pa = rn_icm_pa(icm, icm->mpt),
		.mtt_pa = rn_icm_pa(icm, icm->mtt),
	};
}
