/* read_counter jump|ud2 COUNT: reads the processor's counter, where the read is rewritten by a jump, or by ud2. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

/* What follows can be moved. */
static uint64_t read_by_jump(uint64_t count)
{
	uint64_t sum = 0;

	while (count--)
		sum += __rdtsc();
	return sum;
}

/* What follows is a jump's target. */
static uint64_t read_by_ud2(uint64_t count)
{
	__asm__ volatile("1:	mov $1,%%ecx\n"
			 "	rdtsc\n"
			 "2:	dec %%ecx\n"
			 "	jnz 2b\n"
			 "	dec %0\n"
			 "	jnz 1b"
			 : "+r"(count)
			 :
			 : "rax", "rcx", "rdx", "cc");
	return count;
}

int main(int argc, char **argv)
{
	const uint64_t count = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
	const int by_jump = argc == 3 && !strcmp(argv[1], "jump");

	if (!count || (!by_jump && strcmp(argv[1], "ud2"))) {
		fputs("read_counter jump|ud2 COUNT\n", stderr);
		return 2;
	}
	return (by_jump ? read_by_jump(count) : read_by_ud2(count)) == 1;
}
