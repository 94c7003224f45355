#include "network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "driver/uapi.h"
#include "run_dir.h"

#define NETWORKS 65024 /* 127.1.0 to 127.254.255 */
#define LOCK_HOST 254
#define LOCK_PORT 4791

/* A UDP socket bound in the network is the lock: the kernel drops it with the process. */
static int try_network(unsigned a, unsigned b)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(LOCK_PORT),
		.sin_addr.s_addr = htonl(127u << 24 | a << 16 | b << 8 | LOCK_HOST),
	};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

int rn_network_take(unsigned hosts)
{
	unsigned first = (unsigned)getpid() % NETWORKS;

	for (unsigned i = 0; i < NETWORKS; i++) {
		unsigned number = (first + i) % NETWORKS + 256;
		int fd = try_network(number >> 8, number & 0xff);
		char *text;

		if (fd < 0 && errno != EADDRINUSE)
			break;
		if (fd < 0)
			continue;
		text = rn_asprintf("%u.%u.%u", number >> 8, number & 0xff, hosts);
		setenv(RN_ENV_NET, text, 1);
		free(text);
		return fd;
	}
	fprintf(stderr, "rnicsim: no loopback network for the run: %s\n", strerror(errno));
	return -1;
}

int rn_network_save(const char *dir)
{
	char *path = rn_asprintf("%s/" RN_RUN_DIR_NETWORK, dir);
	FILE *file = fopen(path, "we");
	int result = -1;

	if (file && fputs(getenv(RN_ENV_NET), file) >= 0 && fclose(file) == 0)
		result = 0;
	else
		fprintf(stderr, "rnicsim: %s: %s\n", path, strerror(errno));
	free(path);
	return result;
}

int rn_network_load(const char *dir)
{
	char *path = rn_asprintf("%s/" RN_RUN_DIR_NETWORK, dir);
	FILE *file = fopen(path, "re");
	char text[32] = "";
	int result = -1;

	if (file && fgets(text, sizeof(text), file)) {
		setenv(RN_ENV_NET, text, 1);
		result = 0;
	} else {
		fprintf(stderr, "rnicsim: %s: %s\n", path, strerror(errno));
	}
	if (file)
		fclose(file);
	free(path);
	return result;
}

unsigned rn_network_hosts(void)
{
	const char *text = getenv(RN_ENV_NET);
	unsigned hosts = 0;

	if (!text || sscanf(text, "%*u.%*u.%u", &hosts) != 1)
		return 0;
	return hosts;
}
