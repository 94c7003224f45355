/*
 * Memory: shared, sealed, locked, and room for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "machine/internal.h"

#define LOCKED_BYTES 65536u
#define SHARED_BYTES (1u << 20)
/* Of two hosts with 64 GiB each, reserved, with what the simulator itself takes. */
#define ROOM_BYTES (UINT64_C(160) << 30)

/* As programs and the simulator share it. */
void rn_probe_sealed_memory(struct rn_machine_finding *finding)
{
	const int fd = memfd_create("rnicsim-probe", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	char *memory = MAP_FAILED;

	if (fd < 0) {
		rn_machine_refuse(finding, "memfd_create", errno);
		return;
	}
	if (ftruncate(fd, SHARED_BYTES) != 0 || fcntl(fd, F_ADD_SEALS, seals) != 0)
		rn_machine_refuse(finding, "sealing", errno);
	else if (ftruncate(fd, 0) == 0)
		rn_machine_refuse(finding, "seals have no effect", 0);
	else if ((memory = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) ==
		 MAP_FAILED)
		rn_machine_refuse(finding, "mmap", errno);
	else
		finding->works = true;
	if (memory != MAP_FAILED)
		munmap(memory, SHARED_BYTES);
	close(fd);
}

void rn_probe_locked_memory(struct rn_machine_finding *finding)
{
	struct rlimit limit = {0};
	void *memory = mmap(NULL, LOCKED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	if (memory == MAP_FAILED || mlock(memory, LOCKED_BYTES) != 0)
		rn_machine_refuse(finding, "mlock of 64 KiB", errno);
	else
		finding->works = true;
	if (memory != MAP_FAILED)
		munmap(memory, LOCKED_BYTES);
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (finding->works && limit.rlim_cur == RLIM_INFINITY)
		rn_machine_detail(finding, "no limit");
	else if (finding->works)
		rn_machine_detail(finding, "%llu KiB a process",
				  (unsigned long long)limit.rlim_cur / 1024);
}

void rn_probe_address_space(struct rn_machine_finding *finding)
{
	const int fd = memfd_create("rnicsim-probe", MFD_CLOEXEC);
	void *memory = MAP_FAILED;

	/* Of a file, as the hosts' memory is; where there are none, of nothing. */
	if (fd < 0 || ftruncate(fd, (off_t)ROOM_BYTES) == 0)
		memory = mmap(NULL, ROOM_BYTES, PROT_READ | PROT_WRITE,
			      MAP_NORESERVE | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED),
			      fd, 0);
	finding->works = memory != MAP_FAILED;
	if (finding->works)
		munmap(memory, ROOM_BYTES);
	else
		rn_machine_refuse(finding,
				  "160 GiB that stay empty (ulimit -v, vm.overcommit_memory)",
				  errno);
	if (fd >= 0)
		close(fd);
}

void rn_probe_shared_memory(struct rn_machine_finding *finding)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/rnicsim-probe-%d", (int)getpid());
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0) {
		rn_machine_refuse(finding, "shm_open", errno);
		return;
	}
	if (posix_fallocate(fd, 0, SHARED_BYTES) != 0)
		rn_machine_refuse(finding, "1 MiB in /dev/shm", ENOSPC);
	else
		finding->works = true;
	shm_unlink(name);
	close(fd);
}
