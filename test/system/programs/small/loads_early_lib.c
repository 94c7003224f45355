/* A library whose constructor reads the clock and asks for the host's name. */
#include <time.h>
#include <unistd.h>

struct timespec at_load;
char name_at_load[64];

__attribute__((constructor)) static void load(void)
{
	clock_gettime(CLOCK_REALTIME, &at_load);
	gethostname(name_at_load, sizeof(name_at_load));
}
