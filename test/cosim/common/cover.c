#include "cosim/common/cover.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void cosim_cover_init(struct cosim_cover *cover, const char *const *names, uint32_t count)
{
	*cover = (struct cosim_cover){
		.names = names,
		.count = count,
		.hits = rn_calloc(count, sizeof(*cover->hits)),
	};
}

void cosim_cover_fini(struct cosim_cover *cover)
{
	free(cover->hits);
}

static void add_old(uint64_t *sums, const struct cosim_cover *cover, FILE *file)
{
	char line[256];

	while (fgets(line, sizeof(line), file)) {
		char *name;
		uint64_t hits = strtoull(line, &name, 10);

		line[strcspn(line, "\n")] = 0;
		for (uint32_t i = 0; i < cover->count; i++)
			if (!strcmp(name + (*name == ' '), cover->names[i]))
				sums[i] += hits;
	}
}

bool cosim_cover_write(const struct cosim_cover *cover, const char *path)
{
	uint64_t *sums = rn_calloc(cover->count, sizeof(*sums));
	FILE *file = fopen(path, "r");

	memcpy(sums, cover->hits, cover->count * sizeof(*sums));
	if (file) {
		add_old(sums, cover, file);
		fclose(file);
	}
	file = fopen(path, "w");
	for (uint32_t i = 0; file && i < cover->count; i++)
		fprintf(file, "%" PRIu64 " %s\n", sums[i], cover->names[i]);
	free(sums);
	return file && !fclose(file);
}

const char *cosim_cover_missing(const struct cosim_cover *cover, uint32_t *point)
{
	for (; *point < cover->count; ++*point)
		if (!cover->hits[*point])
			return cover->names[*point];
	return NULL;
}
