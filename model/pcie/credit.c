/*
 * Credits come back in order, so the present state is a queue of return times: a TLP that needs
 * more than there are waits for the oldest of them.
 */
#include "pcie/credit.h"

#include "base/assert.h"

void rn_credit_init(struct rn_credit *credit, uint32_t headers, uint32_t data)
{
	RN_ASSERT(headers >= 1 && headers < RN_CREDIT_HEADERS_MAX);
	*credit = (struct rn_credit){.header_limit = headers, .data_limit = data};
}

uint64_t rn_credit_take_back(struct rn_credit *credit, uint32_t data)
{
	while (credit->headers == credit->header_limit ||
	       credit->data + data > credit->data_limit) {
		if (!credit->known)
			return RN_TIME_NEVER;
		credit->free_ps = credit->back[credit->oldest_idx].at_ps;
		credit->data -= credit->back[credit->oldest_idx].data;
		credit->oldest_idx = rn_credit_idx(credit, 1);
		credit->headers--;
		credit->known--;
	}
	return credit->free_ps;
}
