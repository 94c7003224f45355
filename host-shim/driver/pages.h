/*
 * Pinned pages of one process: virtual page number -> physical address and reference counts. A hash
 * table with linear probing, at most half full.
 */
#ifndef RN_DRIVER_PAGES_H
#define RN_DRIVER_PAGES_H

#include <stdbool.h>
#include <stdint.h>

struct rn_page {
	uint64_t vpn; /* virtual page number plus 1; 0: slot is free */
	uint64_t pa;
	uint32_t pins; /* RN_UAPI_PIN less RN_UAPI_UNPIN */
	uint32_t uses; /* memory keys and contexts that refer to it */
};

struct rn_pages {
	struct rn_page *slot;
	uint64_t slots; /* power of two */
	uint64_t used;
	uint64_t secret; /* of the hash */
};

void rn_pages_init(struct rn_pages *pages);
void rn_pages_fini(struct rn_pages *pages);

/** The page that holds @va, or NULL. Valid until the next add or remove. */
struct rn_page *rn_pages_find(const struct rn_pages *pages, uint64_t va);

/** Add the page of @va, which is not there yet, with one pin. */
void rn_pages_add(struct rn_pages *pages, uint64_t va, uint64_t pa);

/** Remove a page that rn_pages_find() returned. */
void rn_pages_remove(struct rn_pages *pages, struct rn_page *page);

#endif
