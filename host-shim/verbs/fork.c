/*
 * The fork interface. Pages are copied in the child by conn.c's handlers in any case, so there is nothing to
 * switch on.
 */
#include "verbs/export.h"

RN_EXPORT int ibv_dontfork_range(void *base, size_t size);
RN_EXPORT int ibv_dofork_range(void *base, size_t size);

int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}
