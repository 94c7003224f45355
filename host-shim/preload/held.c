/*
 * For the verbs library: who is held by the baton while this thread has it.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/virtual.h"

RN_EXPORT unsigned rn_time_held_threads(void);

unsigned rn_time_held_threads(void)
{
	const struct rn_time_page *page = rn_virtual_page();
	const int32_t self = (int32_t)syscall(SYS_gettid);
	unsigned held = 0;

	if (!rn_virtual_is_running())
		return 0;
	for (uint32_t n = 0; n < RN_TIME_SLOTS; n++)
		held += page->slot[n].tid != self &&
			atomic_load(&page->slot[n].state) == RN_TIME_WAITING;
	return held;
}
