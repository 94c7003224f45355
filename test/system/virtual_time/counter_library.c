/* A library that reads the counter in its constructor and when it is called. */
#include <stdint.h>
#include <x86intrin.h>

extern uint64_t counter_library_first;
uint64_t counter_library_read(void);

uint64_t counter_library_first;

__attribute__((constructor)) static void first(void)
{
	counter_library_first = __rdtsc();
}

uint64_t counter_library_read(void)
{
	return __rdtsc();
}
