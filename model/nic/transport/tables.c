#include "nic/transport/tables.h"

#include "base/bits.h"
#include "hw/gen/rnic_hw.h"

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

/*
 * What mlx5 writes into vendor_err_synd of an error CQE, as public reports of its users have it; 0 where none is
 * known. One row for send queues, one for receive queues.
 */
static const uint8_t vendor_syndromes[2][RN_WC_RNR_RETRY_EXC_ERR + 1] = {
	{
		[RN_WC_LOC_LEN_ERR] = 0x69,
		[RN_WC_LOC_QP_OP_ERR] = 0x68,
		[RN_WC_LOC_PROT_ERR] = 0x51,
		[RN_WC_WR_FLUSH_ERR] = 0xf9,
		[RN_WC_REM_INV_REQ_ERR] = 0x8a,
		[RN_WC_REM_ACCESS_ERR] = 0x88,
		[RN_WC_REM_OP_ERR] = 0x89,
		[RN_WC_RETRY_EXC_ERR] = 0x81,
		[RN_WC_RNR_RETRY_EXC_ERR] = 0x87,
	},
	{
		[RN_WC_LOC_LEN_ERR] = 0x69,
		[RN_WC_LOC_QP_OP_ERR] = 0x68,
		[RN_WC_LOC_PROT_ERR] = 0x33,
		[RN_WC_WR_FLUSH_ERR] = 0xf9,
	},
};

uint8_t rn_vendor_syndrome(uint8_t status, bool is_receive)
{
	return status < RN_ARRAY_LEN(vendor_syndromes[0]) ? vendor_syndromes[is_receive][status]
							  : 0;
}

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
