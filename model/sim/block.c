#include "sim/block.h"

#include "base/assert.h"

static const char *const stall_names[RN_STALL_COUNT] = {
	[RN_STALL_NONE] = "none", [RN_STALL_OUTPUT] = "output", [RN_STALL_CREDIT] = "credit",
	[RN_STALL_TAG] = "tag",	  [RN_STALL_BUFFER] = "buffer", [RN_STALL_MISS] = "miss",
	[RN_STALL_LOCK] = "lock",
};

static void run(void *arg)
{
	struct rn_block *block = arg;
	uint64_t cycle = block->due_cycle;

	block->last_cycle = cycle;
	block->last_edge_ps = rn_sim_now_ps(block->sim);
	block->ticks++;
	rn_assert_context(block->name, cycle);
	block->tick(block->self, cycle);
}

void rn_block_init(struct rn_block *block, struct rn_sim *sim, const struct rn_clock *clock,
		   const char *name, void (*tick)(void *self, uint64_t cycle), void *self)
{
	*block = (struct rn_block){
		.sim = sim,
		.clock = clock,
		.name = name,
		.tick = tick,
		.self = self,
		.last_cycle = UINT64_MAX,
		.last_edge_ps = RN_TIME_NEVER,
	};
	rn_wake_init(sim, &block->wake, run, block);
}

void rn_block_wake_earlier(struct rn_block *block, uint64_t cycle, uint64_t edge_ps)
{
	if (block->last_edge_ps == edge_ps) {
		edge_ps = rn_clock_edge_ps(block->clock, ++cycle);
		if (block->wake.due_ps <= edge_ps)
			return;
	}
	block->due_cycle = cycle;
	rn_wake_at(block->sim, &block->wake, edge_ps);
}

void rn_block_wake_sooner(struct rn_block *block, uint64_t at_ps)
{
	uint64_t now_ps = rn_sim_now_ps(block->sim);

	if (at_ps < now_ps)
		at_ps = now_ps;
	/* A pending edge less than a period after @at_ps is the first edge after it. */
	if (block->wake.due_ps <= at_ps || (rn_wake_is_pending(&block->wake) &&
					    block->wake.due_ps - at_ps < block->clock->period_ps))
		return;
	/* It has ticked now, and the pending edge is the next. */
	if (block->last_edge_ps == at_ps && block->wake.due_ps - at_ps == block->clock->period_ps)
		return;

	uint64_t cycle = rn_block_cycle_at(block, at_ps);

	rn_block_wake_cycle(block, cycle, rn_clock_edge_ps(block->clock, cycle));
}

void rn_block_settle(struct rn_block *block)
{
	uint64_t now_ps = rn_sim_now_ps(block->sim);

	if (block->stall != RN_STALL_NONE)
		block->stall_ps[block->stall] += now_ps - block->stall_since_ps;
	block->stall_since_ps = now_ps;
}

void rn_block_change_stall(struct rn_block *block, enum rn_stall stall)
{
	RN_ASSERT(stall < RN_STALL_COUNT);
	rn_block_settle(block);
	block->stall = stall;
}

void rn_block_clear_stats(struct rn_block *block)
{
	block->ticks = 0;
	block->busy_cycles = 0;
	for (unsigned i = 0; i < RN_STALL_COUNT; i++)
		block->stall_ps[i] = 0;
	block->stall_since_ps = rn_sim_now_ps(block->sim);
}

const char *rn_stall_name(enum rn_stall stall)
{
	RN_ASSERT(stall < RN_STALL_COUNT);
	return stall_names[stall];
}
