#include "run_dir.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/mem.h"
#include "driver/uapi.h"
#include "remove_tree.h"

/* $XDG_RUNTIME_DIR where there is one that fits a socket's path, else /tmp. */
static char *parent_dir(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	if (runtime && strlen(runtime) < 60 && stat(runtime, &st) == 0 && S_ISDIR(st.st_mode) &&
	    access(runtime, W_OK) == 0)
		return rn_asprintf("%s/rnicsim", runtime);
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
	if (lstat(parent, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != getuid()) {
		fprintf(stderr, "rnicsim: %s is not a folder of this user\n", parent);
		return false;
	}
	return true;
}

static bool is_alive(const char *dir)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool alive;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", dir);
	alive = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	if (fd >= 0)
		close(fd);
	return alive;
}

static char *make_unique(const char *parent)
{
	char *dir = rn_asprintf("%s/run-XXXXXX", parent);

	if (mkdtemp(dir))
		return dir;
	fprintf(stderr, "rnicsim: cannot make a folder in %s: %s\n", parent, strerror(errno));
	free(dir);
	return NULL;
}

bool rn_run_dir_is_name(const char *name)
{
	if (*name && *name != '.' && !strchr(name, '/') && strlen(name) <= 30)
		return true;
	fprintf(stderr, "rnicsim: --name: \"%s\" is not a plain name of at most 30 characters\n",
		name);
	return false;
}

static char *make_named(const char *parent, const char *name)
{
	char *dir = rn_asprintf("%s/%s", parent, name);

	if (!rn_run_dir_is_name(name)) {
		free(dir);
		return NULL;
	}
	if (mkdir(dir, 0700) == 0)
		return dir;
	if (errno == EEXIST && !is_alive(dir)) {
		rn_run_dir_remove(dir);
		if (mkdir(dir, 0700) == 0)
			return dir;
	}
	fprintf(stderr, "rnicsim: cannot serve as %s: %s\n", name,
		errno == EEXIST ? "it is running already; choose another --name" : strerror(errno));
	free(dir);
	return NULL;
}

char *rn_run_dir_make(const char *name)
{
	char *parent = parent_dir();
	char *dir = NULL;

	if (make_parent(parent))
		dir = name ? make_named(parent, name) : make_unique(parent);
	free(parent);
	return dir;
}

char *rn_run_dir_find(const char *name)
{
	char *parent = parent_dir();
	char *dir = rn_asprintf("%s/%s", parent, name);

	free(parent);
	return dir;
}

void rn_run_dir_remove(const char *dir)
{
	static const char *const names[] = {"socket", "net"};

	for (size_t i = 0; i < RN_ARRAY_LEN(names); i++) {
		char *path = rn_asprintf("%s/%s", dir, names[i]);

		unlink(path);
		free(path);
	}
	rn_remove_tree(dir, RN_RUN_FILES);
	rmdir(dir);
}
