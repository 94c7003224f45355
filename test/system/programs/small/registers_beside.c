/* Registers heap memory next to other blocks while a second thread writes to its page; built with a sanitizer it
 * must run as without. */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES 1000
#define REGISTRATIONS 50

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn, written;

/* Once for each registration. */
static void *write_beside(void *arg)
{
	char *block = arg;

	for (int i = 0; i < REGISTRATIONS; i++) {
		pthread_mutex_lock(&lock);
		while (turn <= i)
			pthread_cond_wait(&changed, &lock);
		block[i]++;
		written++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void let_it_write(int i)
{
	pthread_mutex_lock(&lock);
	turn = i + 1;
	pthread_cond_broadcast(&changed);
	while (written <= i)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && *list ? ibv_open_device(*list) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	char *block = calloc(1, BYTES), *beside = calloc(1, BYTES);
	pthread_t thread;

	if (!pd || !block || !beside || pthread_create(&thread, NULL, write_beside, beside))
		return 1;
	for (int i = 0; i < REGISTRATIONS; i++) {
		struct ibv_mr *mr = ibv_reg_mr(pd, block, BYTES, IBV_ACCESS_LOCAL_WRITE);

		if (!mr)
			return 2;
		let_it_write(i);
		if (ibv_dereg_mr(mr))
			return 3;
	}
	pthread_join(thread, NULL);
	for (int i = 0; i < REGISTRATIONS; i++)
		if (beside[i] != 1)
			return 4;
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	ibv_free_device_list(list);
	free(block);
	free(beside);
	puts("ok");
	return 0;
}
