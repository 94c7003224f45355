/* Counts the verbs devices and looks whether their files are there: how UCX and others decide to use one. With an argument: by a
 * library that it loads from that path. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int count_by(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	struct ibv_device **(*list)(int *) = NULL;
	int count = 0;

	if (!library)
		return 1;
	*(void **)&list = dlsym(library, "ibv_get_device_list");
	list(&count);
	printf("%d devices by %s\n", count, path);
	return 0;
}

static void look(const char *path)
{
	struct stat status, of_open;
	const int fd = open(path, O_RDWR);

	if (access(path, R_OK | W_OK) || stat(path, &status) || fd < 0 || fstat(fd, &of_open)) {
		printf("%s: %s\n", path, strerror(errno));
		return;
	}
	printf("%s: %s %u:%u%s\n", path, S_ISCHR(status.st_mode) ? "character device" : "file",
	       major(status.st_rdev), minor(status.st_rdev),
	       of_open.st_rdev == status.st_rdev ? "" : ", another when open");
	close(fd);
}

int main(int argc, char **argv)
{
	int count = 0;
	struct ibv_device **list;
	char path[256];

	if (argc > 1)
		return count_by(argv[1]);
	list = ibv_get_device_list(&count);
	printf("%d devices\n", count);
	if (!list || !count)
		return 1;
	snprintf(path, sizeof(path), "/dev/infiniband/%s", list[0]->dev_name);
	look(path);
	printf("%s: %s\n", list[0]->ibdev_path,
	       access(list[0]->ibdev_path, F_OK) ? strerror(errno) : "there");
	return 0;
}
