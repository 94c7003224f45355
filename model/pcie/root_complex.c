/*
 * Root complex: posted writes and interrupts; construction. Writes become visible in the order in
 * which they came, write_latency_ps after the memory system has taken them at its bandwidth. A
 * read waits for the writes before it; an MSI-X message counts as a write. Approximated: the TLPs
 * of one DMA write that follow each other at once become visible together, with the last of them.
 * Left out: caches, NUMA, IOMMU, atomics.
 */
#include "pcie/root_complex.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "nic/msg/dma.h"
#include "pcie/endpoint.h"
#include "pcie/root_port.h"
#include "sim/buffer.h"
#include "sim/stamp.h"

#define RN_PARAM_OWNER rn_root_complex_params
RN_PARAM_TABLE(rn_root_complex_param_table, "root_complex", RN_ROOT_COMPLEX_PARAMS);

const struct rn_clock rn_pcie_clock = {
	.name = "picosecond",
	.num = 1,
	.den = 1,
	.period_ps = 1,
	.num_inverse = UINT64_MAX,
	.den_inverse = UINT64_MAX,
};

static const struct rn_counter_desc counter_descs[] = {
#define ROOT_COUNTER(field, unit, help)                                                            \
	RN_COUNTER_ROW(struct rn_root_complex_counters, field, unit, help)
	RN_ROOT_COMPLEX_COUNTERS(ROOT_COUNTER)
#undef ROOT_COUNTER
};

void rn_root_take_write(struct rn_root_complex *rc, const struct rn_tlp *tlp, uint64_t drained_ps)
{
	struct rn_root_write *write = rn_ring_push(&rc->writes);

	rn_block_account(&rc->write_block,
			 rc->write_server.counters.busy_ps - rc->write_accounted_ps, RN_STALL_NONE);
	rc->write_accounted_ps = rc->write_server.counters.busy_ps;
	rc->visible_ps = drained_ps + rc->params.write_latency_ps;
	write->tlp = *tlp;
	write->visible_ps = rc->visible_ps;
	if (tlp->channel == RN_DMA_CH_CQE)
		*(uint64_t *)rn_ring_push(&rc->completions) = rc->visible_ps;
	if (tlp->flags & RN_TLP_MORE)
		return;
	*(uint64_t *)rn_ring_push(&rc->flushes) = rc->visible_ps;
	rn_block_wake_at(&rc->block, rc->visible_ps);
}

static void record_visible(const struct rn_root_complex *rc, const struct rn_tlp *tlp,
			   uint64_t visible_ps)
{
	if (!(tlp->trace & RN_DMA_TRACE_VISIBLE))
		return;
	rn_stamps_record(rc->env.stamps, &(struct rn_stamp){
						 .at_ps = visible_ps,
						 .host = rc->env.host,
						 .qpn = tlp->trace_qpn,
						 .wqe_idx = tlp->trace_wqe,
						 .stage = RN_STAMP_CQE_VISIBLE,
						 .receive = tlp->trace_receive,
					 });
}

static void store(struct rn_root_complex *rc, const struct rn_tlp *tlp)
{
	const uint8_t *data = rn_buffer_data(rc->env.buffers, tlp->buf) + tlp->buf_off;
	bool there = rn_host_memory_write(rc->env.memory, tlp->addr, data, tlp->len);

	rn_buffer_put(rc->env.buffers, tlp->buf);
	rc->counters.writes++;
	rc->counters.write_bytes += tlp->len;
	if (!there) {
		rc->counters.write_aborts++;
		if (rc->abort_hook)
			rc->abort_hook(rc->abort_hook_arg, tlp->addr);
	}
	if (there && (tlp->flags & RN_TLP_LAST) && rc->write_hook)
		rc->write_hook(rc->write_hook_arg, tlp->addr + tlp->len - 1);
	if (there && tlp->channel == RN_DMA_CH_CQE && rc->completion_hook)
		rc->completion_hook(rc->completion_hook_arg, tlp->addr + tlp->len - 1);
}

static bool continues(const struct rn_tlp *tlp, const struct rn_tlp *next)
{
	return (tlp->flags & RN_TLP_MORE) && next->type == RN_TLP_MWR && next->buf == tlp->buf &&
	       next->buf_off == tlp->buf_off + tlp->len && next->addr == tlp->addr + tlp->len;
}

/* Oldest write with those that continue it and are visible too: one copy. */
static void apply_write(struct rn_root_complex *rc, uint64_t now_ps)
{
	struct rn_root_write write = *(struct rn_root_write *)rn_ring_front(&rc->writes);
	const struct rn_root_write *next;

	rn_ring_pop(&rc->writes);
	if (write.tlp.type == RN_TLP_MSI) {
		struct rn_root_interrupt *interrupt = rn_ring_push(&rc->interrupts);

		interrupt->due_ps = write.visible_ps + rc->params.interrupt_latency_ps;
		interrupt->vector = (uint32_t)write.tlp.addr;
		return;
	}
	while ((next = rn_ring_front(&rc->writes)) && next->visible_ps <= now_ps &&
	       continues(&write.tlp, &next->tlp)) {
		write.tlp.len += next->tlp.len;
		write.tlp.flags = next->tlp.flags;
		write.tlp.trace = next->tlp.trace;
		rn_buffer_put(rc->env.buffers, next->tlp.buf);
		rn_ring_pop(&rc->writes);
	}
	record_visible(rc, &write.tlp, now_ps);
	store(rc, &write.tlp);
}

static void drop_done(struct rn_ring *times, uint64_t now_ps)
{
	const uint64_t *at_ps;

	while ((at_ps = rn_ring_front(times)) && *at_ps <= now_ps)
		rn_ring_pop(times);
}

static void apply_writes(struct rn_root_complex *rc, uint64_t now_ps)
{
	const struct rn_root_write *write;

	while ((write = rn_ring_front(&rc->writes)) && write->visible_ps <= now_ps)
		apply_write(rc, now_ps);
	drop_done(&rc->flushes, now_ps);
	drop_done(&rc->completions, now_ps);
}

static void deliver_interrupts(struct rn_root_complex *rc, uint64_t now_ps)
{
	const struct rn_root_interrupt *interrupt;

	while ((interrupt = rn_ring_front(&rc->interrupts)) && interrupt->due_ps <= now_ps) {
		uint32_t vector = interrupt->vector;

		rn_ring_pop(&rc->interrupts);
		rc->counters.interrupts++;
		if (rc->msi)
			rc->msi(rc->msi_arg, vector);
	}
}

static void arm(struct rn_root_complex *rc)
{
	const uint64_t *flush_ps = rn_ring_front(&rc->flushes);
	const struct rn_root_interrupt *interrupt = rn_ring_front(&rc->interrupts);
	uint64_t next_ps = rn_min_u64(rn_root_next_read_ps(rc), rn_root_next_mmio_ps(rc));

	if (flush_ps)
		next_ps = rn_min_u64(next_ps, *flush_ps);
	if (interrupt)
		next_ps = rn_min_u64(next_ps, interrupt->due_ps);
	if (next_ps != RN_TIME_NEVER)
		rn_block_wake_at(&rc->block, next_ps);
}

static void tick(void *self, uint64_t cycle)
{
	struct rn_root_complex *rc = self;

	/* The clock's cycles are picoseconds. */
	apply_writes(rc, cycle);
	deliver_interrupts(rc, cycle);
	rn_root_run_mmio(rc, cycle);
	rn_root_serve_reads(rc, cycle);
	arm(rc);
}

static void never_ticks(void *self, uint64_t cycle)
{
	(void)self;
	(void)cycle;
	RN_ASSERT(!"an account has no work of its own");
}

void rn_root_complex_set_msi(struct rn_root_complex *rc, void (*fn)(void *arg, uint32_t vector),
			     void *arg)
{
	rc->msi = fn;
	rc->msi_arg = arg;
}

void rn_root_complex_set_abort_hook(struct rn_root_complex *rc, void (*fn)(void *arg, uint64_t pa),
				    void *arg)
{
	rc->abort_hook = fn;
	rc->abort_hook_arg = arg;
}

void rn_root_complex_set_write_hook(struct rn_root_complex *rc, void (*fn)(void *arg, uint64_t pa),
				    void *arg)
{
	rc->write_hook = fn;
	rc->write_hook_arg = arg;
}

void rn_root_complex_set_completion_hook(struct rn_root_complex *rc,
					 void (*fn)(void *arg, uint64_t pa), void *arg)
{
	rc->completion_hook = fn;
	rc->completion_hook_arg = arg;
}

uint64_t rn_root_complex_quiet_ps(struct rn_root_complex *rc)
{
	const uint64_t *visible_ps = rn_ring_front(&rc->completions);

	return visible_ps ? *visible_ps
			  : rn_sim_now_ps(rc->env.sim) + rc->pcie.propagation_ps +
				    rc->params.write_latency_ps;
}

struct rn_host_memory *rn_root_complex_memory(struct rn_root_complex *rc)
{
	return rc->env.memory;
}

static void init_rings(struct rn_root_complex *rc)
{
	rn_ring_init(&rc->writes, sizeof(struct rn_root_write));
	rn_ring_init(&rc->flushes, sizeof(uint64_t));
	rn_ring_init(&rc->completions, sizeof(uint64_t));
	rn_ring_init(&rc->interrupts, sizeof(struct rn_root_interrupt));
	rn_ring_init(&rc->reads, sizeof(struct rn_root_read));
	rn_ring_init(&rc->answers, sizeof(struct rn_mmio_answer));
	rc->slot_free_ps = rn_calloc(rc->params.outstanding_reads, sizeof(uint64_t));
	rc->mmio = rn_calloc(rc->params.mmio_queue_entries, sizeof(struct rn_mmio_op));
	rn_link_init_rate(&rc->write_server, 8000, rc->params.memory_gbps);
	rn_link_init_rate(&rc->read_server, 8000, rc->params.memory_gbps);
}

static void init_blocks(struct rn_root_complex *rc)
{
	const struct rn_root_complex_env *env = &rc->env;

	rc->name = rn_asprintf("%s.root_complex", env->name);
	rc->down_name = rn_asprintf("%s.pcie_down", env->nic_name);
	rc->write_name = rn_asprintf("%s.root_complex_write", env->name);
	rn_block_init(&rc->write_block, env->sim, &rn_pcie_clock, rc->write_name, never_ticks, rc);
	rn_block_init(&rc->block, env->sim, &rn_pcie_clock, rc->name, tick, rc);
	rn_block_init(&rc->down_block, env->sim, &rn_pcie_clock, rc->down_name, never_ticks, rc);
	rn_stats_add_block(env->stats, &rc->block);
	rn_stats_add_block(env->stats, &rc->down_block);
	rn_stats_add_block(env->stats, &rc->write_block);
	rn_stats_add_counters(env->stats, rc->name, counter_descs, RN_ARRAY_LEN(counter_descs),
			      &rc->counters);
	rn_link_register(&rc->down, env->stats, rc->down_name);
}

struct rn_root_complex *rn_root_complex_new(const struct rn_root_complex_env *env)
{
	struct rn_root_complex *rc = rn_calloc(1, sizeof(*rc));

	rc->env = *env;
	rc->params = *env->params;
	rc->pcie = *env->pcie;
	rc->ports = *env->ports;
	rn_link_init(&rc->down, env->pcie);
	init_rings(rc);
	init_blocks(rc);
	rn_fifo_set_producer(rc->ports.completion, &rc->block);
	rn_fifo_set_producer(rc->ports.mmio_write, &rc->block);
	rn_fifo_set_producer(rc->ports.mmio_read, &rc->block);
	rc->endpoint = rn_endpoint_new(rc);
	return rc;
}

void rn_root_complex_free(struct rn_root_complex *rc)
{
	if (!rc)
		return;
	for (; !rn_ring_is_empty(&rc->writes); rn_ring_pop(&rc->writes)) {
		const struct rn_root_write *write = rn_ring_front(&rc->writes);

		if (write->tlp.type == RN_TLP_MWR)
			rn_buffer_put(rc->env.buffers, write->tlp.buf);
	}
	rn_endpoint_free(rc->endpoint);
	rn_ring_fini(&rc->writes);
	rn_ring_fini(&rc->flushes);
	rn_ring_fini(&rc->completions);
	rn_ring_fini(&rc->interrupts);
	rn_ring_fini(&rc->reads);
	rn_ring_fini(&rc->answers);
	free(rc->slot_free_ps);
	free(rc->mmio);
	free(rc->name);
	free(rc->down_name);
	free(rc->write_name);
	free(rc);
}
