/*
 * What N objects of a kind cost to make and to end. Prints a line of JSON: wall and CPU microseconds of this process for each
 * object, for the first and the last eighth of them, so that growth shows in one run.
 *
 * Usage: many_objects pd|cq|qp|mr N
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE 4096u
#define PARTS 8

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static uint8_t *memory; /* two pages an object: neighbours are no help */

static void *make_pd(size_t n)
{
	(void)n;
	return ibv_alloc_pd(context);
}

static int end_pd(void *object)
{
	return ibv_dealloc_pd(object);
}

static void *make_cq(size_t n)
{
	(void)n;
	return ibv_create_cq(context, 16, NULL, NULL, 0);
}

static int end_cq(void *object)
{
	return ibv_destroy_cq(object);
}

static void *make_qp(size_t n)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 0}};

	(void)n;
	return ibv_create_qp(pd, &init);
}

static int end_qp(void *object)
{
	return ibv_destroy_qp(object);
}

static void *make_mr(size_t n)
{
	return ibv_reg_mr(pd, memory + 2 * n * PAGE, PAGE, IBV_ACCESS_LOCAL_WRITE);
}

static int end_mr(void *object)
{
	return ibv_dereg_mr(object);
}

static const struct kind {
	const char *name;
	void *(*make)(size_t n);
	int (*end)(void *object);
} kinds[] = {
	{"pd", make_pd, end_pd},
	{"cq", make_cq, end_cq},
	{"qp", make_qp, end_qp},
	{"mr", make_mr, end_mr},
};

static double now_us(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

struct cost {
	double wall_us[PARTS], cpu_us[PARTS]; /* of each eighth */
};

/* @begin: make objects, else end them. */
static void run_part(const struct kind *kind, void **object, size_t from, size_t end, int begin)
{
	for (size_t n = from; n < end; n++) {
		if (begin)
			object[n] = kind->make(n);
		if (begin ? !object[n] : kind->end(object[n])) {
			fprintf(stderr, "many_objects: %s %zu: ", kind->name, n);
			perror(begin ? "made" : "ended");
			exit(1);
		}
	}
}

static void run(const struct kind *kind, void **object, size_t count, int begin, struct cost *cost)
{
	for (size_t part = 0; part < PARTS; part++) {
		const double wall = now_us(CLOCK_MONOTONIC);
		const double cpu = now_us(CLOCK_PROCESS_CPUTIME_ID);

		run_part(kind, object, part * count / PARTS, (part + 1) * count / PARTS, begin);
		cost->wall_us[part] = now_us(CLOCK_MONOTONIC) - wall;
		cost->cpu_us[part] = now_us(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	}
}

static void print(const char *what, const struct cost *cost, size_t count)
{
	const double each = (double)PARTS / (double)count;
	double wall = 0;

	for (size_t part = 0; part < PARTS; part++)
		wall += cost->wall_us[part];
	printf("\"%s_us\": %.2f, \"%s_cpu_first_us\": %.2f, \"%s_cpu_last_us\": %.2f", what,
	       wall / (double)count, what, cost->cpu_us[0] * each, what,
	       cost->cpu_us[PARTS - 1] * each);
}

static void prepare(size_t count)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	pd = context ? ibv_alloc_pd(context) : NULL;
	cq = pd ? ibv_create_cq(context, 64, NULL, NULL, 0) : NULL;
	memory = mmap(NULL, 2 * count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (!cq || memory == MAP_FAILED) {
		perror("many_objects: no device");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	const size_t count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

	for (size_t n = 0; count >= PARTS && n < sizeof(kinds) / sizeof(kinds[0]); n++) {
		struct cost made, ended;
		void **object;

		if (strcmp(argv[1], kinds[n].name))
			continue;
		prepare(count);
		object = calloc(count, sizeof(*object));
		run(&kinds[n], object, count, 1, &made);
		run(&kinds[n], object, count, 0, &ended);
		printf("{\"kind\": \"%s\", \"count\": %zu, ", kinds[n].name, count);
		print("make", &made, count);
		printf(", ");
		print("end", &ended, count);
		printf("}\n");
		free(object);
		return 0;
	}
	fprintf(stderr, "usage: many_objects pd|cq|qp|mr N (8 or more)\n");
	return 2;
}
