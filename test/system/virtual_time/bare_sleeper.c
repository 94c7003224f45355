/*
 * Sleeps COUNT times MILLISECONDS by system calls of its own, as runtimes without the C library do: nobody sees when
 * it goes on. With RN_NOTE_OF_GO it has the note by which programs of Go are known.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#ifdef RN_NOTE_OF_GO
__attribute__((section(".note.go.buildid"), aligned(4), used)) static const struct {
	unsigned name_bytes, bytes, type;
	char name[4], build[4];
} note = {4, 4, 4, "Go", "abc"};
#endif

static void sleep_bare(long ms)
{
	const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(SYS_nanosleep), "D"(&time), "S"(0)
			 : "rcx", "r11", "memory");
}

int main(int argc, char **argv)
{
	const long count = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
	const long ms = argc > 2 ? strtol(argv[2], NULL, 10) : 100;

	for (long n = 0; n < count; n++)
		sleep_bare(ms);
	printf("slept %ld times\n", count);
	return 0;
}
