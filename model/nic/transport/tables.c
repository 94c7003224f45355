#include "nic/transport/tables.h"

#include "base/bits.h"

#define TEN_US_PS UINT64_C(10000000)

/* In units of 10 us (IBA volume 1, table 45). */
static const uint16_t rnr_timers[32] = {
	0,    1,    2,	  3,	4,    6,     8,	    12,	   16,	  24,	 32,
	48,   64,   96,	  128,	192,  256,   384,   512,   768,	  1024,	 1536,
	2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

static const uint16_t credits[31] = {
	0,    1,    2,	  3,	4,    6,     8,	    12,	   16,	  24,	32,
	48,   64,   96,	  128,	192,  256,   384,   512,   768,	  1024, 1536,
	2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

uint64_t rn_rnr_timer_ps(uint8_t code)
{
	return code & 31 ? rnr_timers[code & 31] * TEN_US_PS : 65536 * TEN_US_PS;
}

uint32_t rn_aeth_credits(uint8_t code)
{
	return code < RN_ARRAY_LEN(credits) ? credits[code] : UINT32_MAX;
}

uint8_t rn_aeth_credit_code(uint32_t wqes)
{
	uint8_t code = RN_ARRAY_LEN(credits) - 1;

	while (credits[code] > wqes)
		code--;
	return code;
}
