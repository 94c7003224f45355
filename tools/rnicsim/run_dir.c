#include "run_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/mem.h"
#include "descendants.h"
#include "driver/uapi.h"
#include "install.h"
#include "machine/machine.h"
#include "remove_tree.h"

#define LOCK ".lock"
#define UNIQUE "run-"
#define GATE_TRIES 500
#define GATE_WAIT_NS 20000000 /* 10 s in all */

/* --- where --- */

static char *parent_dir(void)
{
	bool is_relative;
	const char *folder = rn_machine_runtime_folder(&is_relative);

	if (is_relative)
		fprintf(stderr,
			"rnicsim: XDG_RUNTIME_DIR is not an absolute path and is not used: %s\n",
			getenv("XDG_RUNTIME_DIR"));
	if (strcmp(folder, "/tmp") != 0)
		return rn_asprintf("%s/rnicsim", folder);
	return rn_asprintf("/tmp/rnicsim-%u", (unsigned)getuid());
}

/* Make the parent; it must be the user's own. */
static bool make_parent(const char *parent)
{
	struct stat st;

	if (mkdir(parent, 0700) != 0 && errno != EEXIST) {
		fprintf(stderr, "rnicsim: cannot make %s: %s\n", parent, strerror(errno));
		return false;
	}
	if (lstat(parent, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid())
		return true;
	fprintf(stderr,
		"rnicsim: %s is not a folder of this user (its owner is user %u): remove it, or set XDG_RUNTIME_DIR to a "
		"folder of your own\n",
		parent, (unsigned)st.st_uid);
	return false;
}

/* --- locks --- */

/* A lock file in @dir, locked; -1 with errno EWOULDBLOCK when somebody holds it. */
static int lock(const char *dir, int flags)
{
	char *path = rn_asprintf("%s/" LOCK, dir);
	const int fd = open(path, O_RDWR | flags | O_CLOEXEC | O_NOFOLLOW, 0600);
	int error;

	free(path);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* The parent's lock: nobody makes or removes folders in it meanwhile. */
static int pass_gate(const char *parent)
{
	const struct timespec wait = {.tv_nsec = GATE_WAIT_NS};
	int fd = -1;

	for (unsigned i = 0; i < GATE_TRIES; i++) {
		fd = lock(parent, O_CREAT);
		if (fd >= 0 || errno != EWOULDBLOCK)
			break;
		nanosleep(&wait, NULL);
	}
	if (fd < 0)
		fprintf(stderr, "rnicsim: %s/" LOCK ": %s\n", parent, strerror(errno));
	return fd;
}

static bool answers(const char *dir)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool alive;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/" RN_RUN_DIR_SOCKET, dir);
	alive = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	if (fd >= 0)
		close(fd);
	return alive;
}

/* A folder without a lock file is one of an older version's. */
static bool is_live(const char *dir)
{
	const int fd = lock(dir, 0);

	if (fd < 0)
		return errno != ENOENT || answers(dir);
	close(fd);
	return false;
}

/* --- life --- */

static void remove_folder(const char *path)
{
	static const char *const names[] = {RN_RUN_DIR_SOCKET, RN_RUN_DIR_NETWORK,
					    RN_RUN_DIR_LIBRARIES, LOCK};

	for (size_t i = 0; i < RN_ARRAY_LEN(names); i++) {
		char *name = rn_asprintf("%s/%s", path, names[i]);

		unlink(name);
		free(name);
	}
	rn_remove_tree(path, RN_RUN_FILES);
	rmdir(path);
}

/* What a killed run has left: programs that no launcher ends any more, and the folder. */
static void remove_stale(const char *path)
{
	char *socket = rn_asprintf("%s/" RN_RUN_DIR_SOCKET, path);

	rn_descendants_kill_marked(RN_ENV_SOCKET, socket);
	free(socket);
	remove_folder(path);
}

static void sweep(const char *parent)
{
	DIR *dir = opendir(parent);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char *path;

		if (strncmp(entry->d_name, UNIQUE, strlen(UNIQUE)) != 0)
			continue;
		path = rn_asprintf("%s/%s", parent, entry->d_name);
		if (!is_live(path))
			remove_stale(path);
		free(path);
	}
	if (dir)
		closedir(dir);
}

bool rn_run_dir_is_name(const char *name)
{
	if (*name && *name != '.' && !strchr(name, '/') && strlen(name) <= 30 &&
	    rn_machine_is_loadable(name) && strncmp(name, UNIQUE, strlen(UNIQUE)) != 0)
		return true;
	fprintf(stderr,
		"rnicsim: --name: \"%s\" is not a plain name of at most 30 characters, without spaces and colons, "
		"that does not begin with " UNIQUE "\n",
		name);
	return false;
}

static char *make_unique(const char *parent)
{
	char *path = rn_asprintf("%s/" UNIQUE "XXXXXX", parent);

	if (mkdtemp(path))
		return path;
	fprintf(stderr, "rnicsim: cannot make a folder in %s: %s\n", parent, strerror(errno));
	free(path);
	return NULL;
}

static char *make_named(const char *parent, const char *name)
{
	char *path = rn_asprintf("%s/%s", parent, name);

	if (mkdir(path, 0700) == 0)
		return path;
	if (errno == EEXIST && !is_live(path)) {
		remove_folder(path);
		if (mkdir(path, 0700) == 0)
			return path;
	}
	fprintf(stderr, "rnicsim: cannot serve as %s: %s\n", name,
		errno == EEXIST || errno == EWOULDBLOCK
			? "it is running already; choose another --name"
			: strerror(errno));
	free(path);
	return NULL;
}

static bool fill(struct rn_run_dir *dir)
{
	const char *libraries = rn_install_library_dir();
	char *link = rn_asprintf("%s/" RN_RUN_DIR_LIBRARIES, dir->path);

	dir->lock_fd = lock(dir->path, O_CREAT | O_EXCL);
	if (dir->lock_fd >= 0 && (!libraries || symlink(libraries, link) == 0)) {
		free(link);
		return true;
	}
	fprintf(stderr, "rnicsim: %s: %s\n", dir->path, strerror(errno));
	free(link);
	rn_run_dir_remove(dir);
	return false;
}

static bool make(struct rn_run_dir *dir, const char *parent, const char *name)
{
	const int gate = pass_gate(parent);

	if (gate < 0)
		return false;
	sweep(parent);
	dir->path = name ? make_named(parent, name) : make_unique(parent);
	if (dir->path && !fill(dir))
		dir->path = NULL;
	close(gate);
	return dir->path != NULL;
}

bool rn_run_dir_make(struct rn_run_dir *dir, const char *name)
{
	char *parent;
	bool made;

	*dir = (struct rn_run_dir){.lock_fd = -1};
	if (name && !rn_run_dir_is_name(name))
		return false;
	parent = parent_dir();
	made = make_parent(parent) && make(dir, parent, name);
	free(parent);
	return made;
}

void rn_run_dir_remove(struct rn_run_dir *dir)
{
	remove_folder(dir->path);
	if (dir->lock_fd >= 0)
		close(dir->lock_fd);
	free(dir->path);
	*dir = (struct rn_run_dir){.lock_fd = -1};
}

char *rn_run_dir_find(const char *name)
{
	char *parent = parent_dir();
	char *dir = rn_asprintf("%s/%s", parent, name);

	free(parent);
	return dir;
}
