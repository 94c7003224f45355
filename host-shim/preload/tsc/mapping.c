/*
 * Calls by which a program makes memory executable: what is in it is rewritten before it can run.
 */
#include <errno.h>
#include <sys/mman.h>

#include "preload/tsc/tsc.h"
#include "preload/virtual.h"

static void look(void)
{
	const int saved_errno = errno;

	rn_tsc_look();
	errno = saved_errno;
}

RN_EXPORT void *mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	void *memory = RN_REAL(mmap)(at, bytes, prot, flags, fd, offset);

	if ((prot & PROT_EXEC) && memory != MAP_FAILED)
		look();
	return memory;
}

RN_EXPORT void *mmap64(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	return mmap(at, bytes, prot, flags, fd, offset);
}

RN_EXPORT int mprotect(void *at, size_t bytes, int prot)
{
	const int result = RN_REAL(mprotect)(at, bytes, prot);

	if ((prot & PROT_EXEC) && !result)
		look();
	return result;
}

RN_EXPORT int pkey_mprotect(void *at, size_t bytes, int prot, int key)
{
	const int result = RN_REAL(pkey_mprotect)(at, bytes, prot, key);

	if ((prot & PROT_EXEC) && !result)
		look();
	return result;
}
