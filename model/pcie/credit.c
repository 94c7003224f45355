/*
 * Credits come back in order, so the present state is a queue of return times: a TLP that needs
 * more than there are waits for the oldest of them.
 */
#include "pcie/credit.h"

#include "base/assert.h"
#include "sim/sim.h"

void rn_credit_init(struct rn_credit *credit, uint32_t headers, uint32_t data)
{
	RN_ASSERT(headers >= 1 && headers < RN_CREDIT_HEADERS_MAX);
	*credit = (struct rn_credit){.header_limit = headers, .data_limit = data};
}

static inline uint32_t back_idx(const struct rn_credit *credit, uint32_t nth)
{
	return (credit->oldest_idx + nth) % RN_CREDIT_HEADERS_MAX;
}

uint64_t rn_credit_ready_ps(struct rn_credit *credit, uint32_t data)
{
	RN_ASSERT(data <= credit->data_limit);
	while (credit->headers == credit->header_limit ||
	       credit->data + data > credit->data_limit) {
		if (!credit->known)
			return RN_TIME_NEVER;
		credit->free_ps = credit->back[credit->oldest_idx].at_ps;
		credit->data -= credit->back[credit->oldest_idx].data;
		credit->oldest_idx = back_idx(credit, 1);
		credit->headers--;
		credit->known--;
	}
	return credit->free_ps;
}

void rn_credit_take(struct rn_credit *credit, uint32_t data)
{
	RN_ASSERT(credit->headers < credit->header_limit);
	credit->back[back_idx(credit, credit->headers)].data = data;
	credit->headers++;
	credit->data += data;
}

void rn_credit_give(struct rn_credit *credit, uint64_t at_ps)
{
	RN_ASSERT(credit->known < credit->headers);
	credit->back[back_idx(credit, credit->known)].at_ps = at_ps;
	credit->known++;
}
