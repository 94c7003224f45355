/*
 * Preloaded into a verbs program by tools/bench: when the program deregisters a memory region, writes the hashes of
 * its two halves to the file named by RN_BENCH_HASH. ib_write_bw reads from the first half of its region and is
 * written to in the second, so the sender's first hash is the receiver's second.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The public part of struct ibv_mr (rdma-core, infiniband/verbs.h). */
struct ibv_mr {
	void *context;
	void *pd;
	void *addr;
	size_t length;
};

__attribute__((visibility("default"))) int ibv_dereg_mr(struct ibv_mr *mr);

/* FNV-1a over 64-bit words. */
static uint64_t hash(const uint8_t *data, size_t bytes)
{
	uint64_t value = UINT64_C(0xcbf29ce484222325);
	uint64_t word;

	for (size_t i = 0; i + sizeof(word) <= bytes; i += sizeof(word)) {
		memcpy(&word, data + i, sizeof(word));
		value = (value ^ word) * UINT64_C(0x100000001b3);
	}
	return value;
}

static void write_hashes(const struct ibv_mr *mr)
{
	const char *path = getenv("RN_BENCH_HASH");
	FILE *out = path ? fopen(path, "we") : NULL;
	size_t half = mr->length / 2;

	if (!out)
		return;
	fprintf(out, "%zu %016" PRIx64 " %016" PRIx64 "\n", mr->length, hash(mr->addr, half),
		hash((const uint8_t *)mr->addr + half, half));
	fclose(out);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	void *next = dlsym(RTLD_NEXT, "ibv_dereg_mr");
	int (*dereg)(struct ibv_mr *) = NULL;

	if (!next)
		abort();
	memcpy(&dereg, &next, sizeof(dereg));
	write_hashes(mr);
	return dereg(mr);
}
