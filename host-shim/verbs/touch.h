/*
 * Asking the kernel whether pages are there, as pinning them would: an address can be mapped and yet lead nowhere.
 */
#ifndef RN_VERBS_TOUCH_H
#define RN_VERBS_TOUCH_H

#include <stdbool.h>
#include <stdint.h>

/**
 * Bring in @pages pages from @va on, for writing if @write (which gives private pages of files their own copy). Their mappings
 * must allow that. 0; EFAULT when one of them cannot be had: behind the end of its file, poisoned, of a device.
 */
int rn_touch_pages(uint64_t va, unsigned pages, bool write);

/** For tests: false makes this kernel an older one, which has no MADV_POPULATE. */
void rn_touch_allow_populate(bool allowed);

#endif
