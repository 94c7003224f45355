/*
 * Files: how many may be open, and where they can lie.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/internal.h"

/* Of the simulator: two hosts with a program each, which has a connection, rings, completion channels, a time page. */
#define DESCRIPTORS_NEEDED 48u
#define DESCRIPTORS_GOOD 256u
#define TEMPORARY_BYTES (UINT64_C(64) << 20)
#define MIB (1u << 20)
/* "/rnicsim/", a name, "/socket": what is left of sockaddr_un's 108 bytes. */
#define RUNTIME_BYTES_MAX 60

/* The simulator raises its limit as far as it may. */
void rn_probe_descriptors(struct rn_machine_finding *finding)
{
	struct rlimit limit;
	int fds[DESCRIPTORS_NEEDED];
	unsigned opened = 0;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
		rn_machine_refuse(finding, "getrlimit", errno);
		return;
	}
	while (opened < DESCRIPTORS_NEEDED && limit.rlim_max >= DESCRIPTORS_NEEDED &&
	       (fds[opened] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		opened++;
	for (unsigned i = 0; i < opened; i++)
		close(fds[i]);
	finding->works = opened == DESCRIPTORS_NEEDED ||
			 (limit.rlim_max > limit.rlim_cur && limit.rlim_max >= DESCRIPTORS_GOOD);
	rn_machine_detail(finding, "%llu in a process%s", (unsigned long long)limit.rlim_max,
			  !finding->works		      ? ": too few"
			  : limit.rlim_max < DESCRIPTORS_GOOD ? ": enough for a few programs"
							      : "");
}

bool rn_machine_is_loadable(const char *path)
{
	return !strpbrk(path, " \t\n:;$");
}

const char *rn_machine_runtime_folder(bool *is_relative)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	if (is_relative)
		*is_relative = runtime && *runtime && *runtime != '/';
	if (runtime && *runtime == '/' && strlen(runtime) < RUNTIME_BYTES_MAX &&
	    rn_machine_is_loadable(runtime) && stat(runtime, &st) == 0 && S_ISDIR(st.st_mode) &&
	    access(runtime, W_OK) == 0)
		return runtime;
	return "/tmp";
}

static bool bind_in(const char *folder)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool bound;
	int error;

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/socket", folder);
	bound = fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0;
	error = errno;
	unlink(at.sun_path);
	if (fd >= 0)
		close(fd);
	errno = error;
	return bound;
}

void rn_probe_run_folder(struct rn_machine_finding *finding)
{
	const char *runtime = rn_machine_runtime_folder(NULL);
	char *folder = rn_asprintf("%s/rnicsim-probe-XXXXXX", runtime);

	rn_machine_detail(finding, "%s", runtime);
	if (!mkdtemp(folder)) {
		rn_machine_refuse(finding, folder, errno);
	} else {
		finding->works = bind_in(folder);
		if (!finding->works)
			rn_machine_refuse(finding, "a socket in it", errno);
		rmdir(folder);
	}
	free(folder);
}

void rn_probe_temporary_space(struct rn_machine_finding *finding)
{
	const char *set = getenv("TMPDIR");
	const char *folder = set && *set ? set : "/tmp";
	char *path = rn_asprintf("%s/rnicsim-probe-XXXXXX", folder);
	const int fd = mkstemp(path);
	struct statvfs space;

	if (fd < 0) {
		rn_machine_refuse(finding, folder, errno);
	} else if (posix_fallocate(fd, 0, TEMPORARY_BYTES) != 0) {
		rn_machine_refuse(finding, "64 MiB cannot be had", ENOSPC);
	} else {
		finding->works = true;
		if (fstatvfs(fd, &space) == 0)
			rn_machine_detail(finding, "%s, %llu MiB", folder,
					  (unsigned long long)space.f_bavail * space.f_frsize /
						  MIB);
	}
	if (fd >= 0) {
		unlink(path);
		close(fd);
	}
	free(path);
}
