/* Interposes mremap() with four arguments, as memory hooks of communication libraries do: a fifth is lost. */
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTES 100000

static unsigned unmaps;

void *mremap(void *at, size_t old_bytes, size_t new_bytes, int flags, ...)
{
	return (void *)syscall(SYS_mremap, at, old_bytes, new_bytes, flags);
}

int munmap(void *at, size_t bytes)
{
	unmaps++;
	return (int)syscall(SYS_munmap, at, bytes);
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = ibv_open_device(list[0]);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	char *block = malloc(BYTES);
	const unsigned before = unmaps;
	struct ibv_mr *mr = ibv_reg_mr(pd, block, BYTES, IBV_ACCESS_LOCAL_WRITE);

	if (!cq || !mr) {
		printf("%s\n", strerror(errno));
		return 1;
	}
	memset(block, 1, BYTES);
	if (ibv_dereg_mr(mr) || block[BYTES - 1] != 1)
		return 2;
	printf("registered, %u unmappings seen\n", unmaps - before);
	return 0;
}
