/*
 * Calls by which a program makes memory executable: what is in it is rewritten before it can run.
 */
#include <errno.h>
#include <sys/mman.h>

#include "preload/tsc/tsc.h"
#include "preload/virtual.h"

static bool is_anonymous(int flags)
{
	return (flags & MAP_TYPE) == MAP_PRIVATE && (flags & MAP_ANONYMOUS);
}

RN_EXPORT void *mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	void *memory = RN_REAL(mmap)(at, bytes, prot, flags, fd, offset);
	const int saved_errno = errno;

	if (memory != MAP_FAILED)
		rn_tsc_mapped(memory, bytes, prot, is_anonymous(flags));
	errno = saved_errno;
	return memory;
}

RN_EXPORT void *mmap64(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	return mmap(at, bytes, prot, flags, fd, offset);
}

RN_EXPORT int munmap(void *at, size_t bytes)
{
	const int result = RN_REAL(munmap)(at, bytes);

	if (!result)
		rn_tsc_unmapped(at, bytes);
	return result;
}

static int protected(int result, void *at, size_t bytes, int prot)
{
	const int saved_errno = errno;

	if (!result)
		rn_tsc_protected(at, bytes, prot);
	errno = saved_errno;
	return result;
}

RN_EXPORT int mprotect(void *at, size_t bytes, int prot)
{
	return protected(RN_REAL(mprotect)(at, bytes, prot), at, bytes, prot);
}

RN_EXPORT int pkey_mprotect(void *at, size_t bytes, int prot, int key)
{
	return protected(RN_REAL(pkey_mprotect)(at, bytes, prot, key), at, bytes, prot);
}
