/*
 * Random commands, most of them wrong: each is completed with some status, none stops the unit, and the
 * memory afterwards is the same in whatever order the blocks tick.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "block/cmd/fixture.h"
#include "run_suite.h"

#define COMMANDS 600

static struct fixture f;

static void fill(struct rn_rng *rng, uint8_t *in, uint8_t opcode)
{
	for (unsigned i = 0; i < 512; i++)
		in[i] = rn_rng_below(rng, 3) ? 0 : (uint8_t)rn_rng_next(rng);
	/* Right often enough to get deeper. */
	if (opcode == RN_CMD_CREATE_QP && rn_rng_below(rng, 2)) {
		memset(in, 0, 512);
		in[offsetof(struct rn_hw_qpc, service)] = RN_QPT_RC;
	}
	if (opcode == RN_CMD_MODIFY_QP && rn_rng_below(rng, 2)) {
		memset(in, 0, 512);
		in[0] = (uint8_t)rn_rng_below(rng, 3);
		in[1] = (uint8_t)rn_rng_below(rng, 3);
		in[16 + offsetof(struct rn_hw_qpc, service)] = RN_QPT_RC;
		in[16 + offsetof(struct rn_hw_qpc, mtu_log2)] = 10;
	}
	if (opcode == RN_CMD_CREATE_CQ && rn_rng_below(rng, 2))
		memset(in, 0, 512);
}

static uint8_t random_command(struct rn_rng *rng)
{
	uint8_t in[512];
	uint8_t opcode = (uint8_t)rn_rng_below(rng, 16);
	uint32_t slot;

	fill(rng, in, opcode);
	slot = submit(&f, opcode, (uint32_t)rn_rng_below(rng, 6), in, 512);
	if (rn_rng_below(rng, 20) == 0)
		entry_at(&f, slot)->in_pa = rn_rng_next(rng) & ~UINT64_C(7);
	if (rn_rng_below(rng, 20) == 0)
		entry_at(&f, slot)->out_pa = rn_rng_next(rng) & ~UINT64_C(7);
	if (rn_rng_below(rng, 20) == 0)
		entry_at(&f, slot)->modifier = (uint32_t)rn_rng_next(rng);
	return finish(&f, slot);
}

static uint64_t run(uint64_t permute_seed, unsigned *ok)
{
	struct rn_hw_init_hca hca = init_hca();
	struct rn_rng rng;
	uint64_t hash = UINT64_C(14695981039346656037);

	fixture_prepare(&f, permute_seed);
	fixture_build(&f);
	execute(&f, RN_CMD_INIT_HCA, 0, &hca, sizeof(hca));
	rn_rng_init(&rng, 1, "random");
	*ok = 0;
	for (unsigned i = 0; i < COMMANDS; i++) {
		uint8_t status = random_command(&rng);

		ck_assert_uint_le(status, RN_CMD_DMA_ERROR);
		*ok += status == RN_CMD_OK;
		hash = (hash ^ status) * UINT64_C(1099511628211);
	}
	for (uint64_t i = 0; i < MEMORY_BYTES; i++)
		hash = (hash ^ f.memory.bytes[i]) * UINT64_C(1099511628211);
	hash ^= f.bench.cycle;
	fixture_free(&f);
	return hash;
}

START_TEST(every_command_completes_and_tick_order_does_not_matter)
{
	unsigned ok;
	uint64_t first = run(0, &ok);

	ck_assert_uint_gt(ok, 60);
	ck_assert_uint_lt(ok, COMMANDS - 60);
	for (uint64_t seed = 1; seed <= 8; seed++)
		ck_assert_uint_eq(run(seed, &ok), first);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("random");

	tcase_add_test(tcase, every_command_completes_and_tick_order_does_not_matter);
	return run_suite(tcase, "cmd_random");
}
