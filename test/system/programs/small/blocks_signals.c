/* A thread blocks all signals, as servers' workers do, and counts in memory that another one registers meanwhile. */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE 4096ul
#define PAGES 512ul
#define REGISTRATIONS 20

static volatile unsigned char *memory;
static _Atomic int rounds, stop;

static void *count(void *arg)
{
	const struct timespec pause = {.tv_nsec = 1000};
	sigset_t all;

	(void)arg;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	while (!stop) {
		for (size_t i = 0; i < PAGES; i++)
			memory[i * PAGE]++;
		rounds++;
		nanosleep(&pause, NULL); /* virtual time passes only in calls */
	}
	return NULL;
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_pd *pd = ibv_alloc_pd(ibv_open_device(list[0]));
	const struct timespec pause = {.tv_nsec = 100000};
	pthread_t thread;

	memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	pthread_create(&thread, NULL, count, NULL);
	while (!rounds)
		nanosleep(&pause, NULL);
	for (int i = 0; i < REGISTRATIONS; i++) {
		struct ibv_mr *mr =
			ibv_reg_mr(pd, (void *)memory, PAGES * PAGE, IBV_ACCESS_LOCAL_WRITE);

		if (!mr || ibv_dereg_mr(mr))
			return 1;
	}
	stop = 1;
	pthread_join(thread, NULL);
	for (size_t i = 0; i < PAGES; i++)
		if (memory[i * PAGE] != (unsigned char)rounds)
			return 2;
	puts("nothing lost");
	return 0;
}
