/* Reads the clock and the host's name in main(); loads_early_lib.c did when it was loaded. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern struct timespec at_load;
extern char name_at_load[64];

int main(void)
{
	struct timespec now;
	char name[64];
	double passed_s;

	clock_gettime(CLOCK_REALTIME, &now);
	gethostname(name, sizeof(name));
	passed_s = (double)(now.tv_sec - at_load.tv_sec) +
		   (double)(now.tv_nsec - at_load.tv_nsec) / 1e9;
	printf("%lld %s %s\n", (long long)at_load.tv_sec,
	       passed_s >= 0 && passed_s < 10 ? "same clock" : "another clock",
	       strcmp(name, name_at_load) ? "another name" : name);
	return 0;
}
