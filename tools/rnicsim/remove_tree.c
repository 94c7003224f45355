#include "remove_tree.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

#define DESCRIPTORS 16

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
	(void)status;
	(void)type;
	(void)at;
	remove(path);
	return 0;
}

void rn_remove_tree(const char *dir, const char *name)
{
	char *path = rn_asprintf("%s/%s", dir, name);

	nftw(path, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
	free(path);
}
