#include "cosim/pte_cache/tables.h"

uint64_t tables_mix(uint64_t value)
{
	struct rn_rng rng = {.state = value};

	rn_rng_next(&rng);
	return rn_rng_next(&rng);
}

static uint64_t start_va(uint64_t random_bits, uint64_t length)
{
	switch (random_bits & 7) {
	case 0:
		return 0;
	case 1: /* up to the top of the address space */
		return UINT64_MAX - length + 1;
	case 2: /* anywhere, not aligned */
		return tables_mix(random_bits) >> 1;
	default:
		return (tables_mix(random_bits) >> 1) & ~UINT64_C(0xfff);
	}
}

static uint64_t length_of(uint64_t random_bits, uint32_t log_page)
{
	uint64_t page = UINT64_C(1) << (log_page < 40 ? log_page : 40);

	switch (random_bits & 15) {
	case 0:
		return 0;
	case 1:
		return UINT64_C(1) << 33;
	case 2:
		return 1 + tables_mix(random_bits) % page;
	case 3:
		return tables_mix(random_bits) >> (random_bits >> 4 & 31);
	default:
		return (1 + tables_mix(random_bits) % 40) * page;
	}
}

static uint8_t log_page_of(uint64_t random_bits)
{
	static const uint8_t odd[] = {0, 11, 31, 64, 255, 30, 30, 29};

	if (!(random_bits & 15))
		return odd[random_bits >> 4 & 7];
	return (random_bits & 3) == 1 ? (uint8_t)(12 + (random_bits >> 4) % 19) : 12;
}

/* Few sets, so that regions take each other's lines. */
static uint64_t mtt_index_of(const struct random *random, uint64_t random_bits)
{
	const struct rn_pte_cache_params *params = &random->rig->params;
	uint64_t line = (random_bits & 1) + params->mtt_sets * (random_bits >> 1 & 3) +
			(random_bits >> 11 & 1) * (random_bits >> 12 & 63);
	uint64_t high = (random_bits >> 18 & 1) * tables_mix(random_bits >> 19 & 1);

	if (random_bits >> 20 & 1)
		high = UINT64_C(1) << (16 + (random_bits >> 21) % 24);
	high &= (UINT64_C(1) << random->base.log_mtts) - 1;
	high &= ~UINT64_C(0xffff);

	switch (random_bits >> 3 & 31) {
	case 0:
		return (UINT64_C(1) << random->base.log_mtts) - (random_bits >> 8 & 3);
	case 1:
		return (UINT64_C(1) << random->base.log_mtts) + (random_bits >> 8 & 1);
	case 2:
		return tables_mix(random_bits);
	default:
		return high + line * params->mtt_line_entries + (random_bits >> 8 & 7);
	}
}

struct rn_hw_mpt tables_mpt(const struct random *random, uint64_t index)
{
	uint64_t bits = tables_mix(random->seed ^ (index << 20) ^
				   ((uint64_t)random->versions[index % RANDOM_VERSIONS] << 44));
	struct rn_hw_mpt mpt = {
		.state = (uint8_t)(bits % 23 ? 1 + (bits % 5 ? 0 : bits >> 7 & 0x7f) : 0),
		.access = (uint8_t)(bits >> 8) | (bits % 2 ? 15 : 0),
		.log_page_bytes = log_page_of(bits >> 16),
		.key = (uint32_t)(index << 8 | (bits >> 24 & 255)),
		.pd = (uint32_t)(bits >> 32 & 1) * 0x80000001u,
	};

	mpt.key ^= bits % 61 ? 0 : 0x100;
	mpt.length = length_of(bits >> 36, mpt.log_page_bytes);
	mpt.start_va = start_va(bits >> 44, mpt.length);
	mpt.mtt_index = mtt_index_of(random, tables_mix(bits));
	return mpt;
}
