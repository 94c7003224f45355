/*
 * Linked statically, so it never joins virtual time: the processor's counter must run freely in it, and clocks are the
 * machine's.
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define EPOCH_S 1700000000 /* where virtual time begins; the machine's clock is past it */
#define DAY_S 86400

int main(int argc, char **argv)
{
	const uint64_t first = __builtin_ia32_rdtsc();
	const uint64_t second = __builtin_ia32_rdtsc();
	cpu_set_t set;

	if (argc > 1 && !strcmp(argv[1], "processors")) {
		printf("%d processors\n",
		       sched_getaffinity(0, sizeof(set), &set) ? -1 : CPU_COUNT(&set));
		return 0;
	}
	printf("unattached by %s: counter %s, clock %s\n", argc > 1 ? argv[1] : "hand",
	       second > first ? "runs" : "stands",
	       time(NULL) > EPOCH_S + DAY_S ? "of the machine" : "virtual");
	return 0;
}
