#include "cosim/common/faults.h"

#include <stdio.h>

#include "base/assert.h"

void cosim_faults_load(struct cosim_faults *faults, const char *path)
{
	FILE *file = fopen(path, "r");
	char line[512];

	RN_ASSERT(file);
	faults->count = 0;
	while (fgets(line, sizeof(line), file)) {
		struct cosim_fault *fault = &faults->fault[faults->count];

		RN_ASSERT(faults->count < COSIM_FAULTS);
		if (sscanf(line, "%u %*[^:]: %159[^\n]", &fault->number, fault->what) == 2)
			faults->count++;
	}
	fclose(file);
}
