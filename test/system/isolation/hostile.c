/*
 * The acts, chosen by chance, in workers that are killed and started again now and then, for a given time. Exits with 1
 * when a worker found the simulator silent, else with 0.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hostile.h"

#define WORKERS_MAX 16u

static const struct {
	const char *name;
	act *play;
	uint32_t weight;
} acts[] = {
	{"half_messages", act_half_messages, 4},
	{"wrong_attach", act_wrong_attach, 2},
	{"garbage_requests", act_garbage_requests, 4},
	{"unread_answers", act_unread_answers, 1},
	{"descriptors", act_descriptors, 1},
	{"many_connections", act_many_connections, 1},
	{"shared_memory", act_shared_memory, 3},
	{"scribbled_channel", act_scribbled_channel, 4},
	{"doorbells", act_doorbells, 4},
	{"rewritten_entries", act_rewritten_entries, 2},
	{"ring_flood", act_ring_flood, 1},
	{"objects", act_objects, 6},
	{"foreign_handles", act_foreign_handles, 3},
	{"absurd_sizes", act_absurd_sizes, 3},
	{"pin_flood", act_pin_flood, 1},
	{"work_requests", act_work_requests, 6},
	{"rewritten_work", act_rewritten_work, 3},
};

enum { ACTS = sizeof(acts) / sizeof(acts[0]) };

static const char usage[] =
	"Usage: hostile [-s SEED] [-t SECONDS] [-w WORKERS] [-a ACT] [-L]\n"
	"Abuses the simulator of RNICSIM_SOCKET as a client of host RNICSIM_HOST.\n"
	"  -a ACT  this act only      -L  list the acts      -n N  end after N acts of each worker\n";

static struct settings {
	uint64_t seed;
	double seconds;
	unsigned workers;
	unsigned acts; /* of each worker; 0: until the time is over */
	const char *only;
	uint32_t host;
} settings = {.seed = 1, .seconds = 5, .workers = 2};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static unsigned choose(struct rn_rng *rng)
{
	uint32_t total = 0, pick;
	unsigned at = 0;

	for (unsigned n = 0; n < ACTS; n++)
		total += acts[n].weight;
	for (pick = below(rng, total); pick >= acts[at].weight; at++)
		pick -= acts[at].weight;
	return at;
}

/* In the child: never returns. */
static void work(uint64_t seed, double until_s)
{
	struct rn_rng rng;

	rn_rng_init(&rng, seed, "hostile");
	for (unsigned done = 0; now_s() < until_s && (!settings.acts || done < settings.acts);
	     done++) {
		const unsigned chosen = choose(&rng);

		if (!settings.only)
			acts[chosen].play(&rng, settings.host);
		for (unsigned n = 0; settings.only && n < ACTS; n++)
			if (!strcmp(settings.only, acts[n].name))
				acts[n].play(&rng, settings.host);
	}
	exit(0);
}

static pid_t start_worker(uint64_t seed, double until_s)
{
	const pid_t pid = fork();

	if (pid == 0)
		work(seed, until_s);
	return pid;
}

/* Kill a worker now and then, in whatever it is doing. */
static unsigned disturb(struct rn_rng *rng, pid_t *pids, double until_s)
{
	unsigned killed = 0;

	while (now_s() < until_s) {
		const unsigned victim = below(rng, settings.workers);
		int status;

		usleep(20000 + below(rng, 150000));
		if (waitpid(pids[victim], &status, WNOHANG) == 0) {
			kill(pids[victim], SIGKILL);
			waitpid(pids[victim], &status, 0);
			killed++;
		}
		if (WIFEXITED(status) && WEXITSTATUS(status))
			exit(1);
		pids[victim] = start_worker(rn_rng_next(rng), until_s);
	}
	return killed;
}

static int supervise(void)
{
	const double until_s = now_s() + settings.seconds;
	pid_t pids[WORKERS_MAX];
	unsigned killed = 0;
	struct rn_rng rng;
	int failed = 0;

	rn_rng_init(&rng, settings.seed, "supervisor");
	for (unsigned n = 0; n < settings.workers; n++)
		pids[n] = start_worker(rn_rng_next(&rng), until_s);
	if (!settings.acts)
		killed = disturb(&rng, pids, until_s);
	for (unsigned n = 0; n < settings.workers; n++) {
		int status;

		waitpid(pids[n], &status, 0);
		failed |= !WIFEXITED(status) || WEXITSTATUS(status);
	}
	printf("hostile: seed %llu, %u workers killed, %s\n", (unsigned long long)settings.seed,
	       killed, failed ? "FAILED" : "done");
	return failed;
}

static void list_acts(void)
{
	for (unsigned n = 0; n < ACTS; n++)
		printf("%s\n", acts[n].name);
	exit(0);
}

int main(int argc, char **argv)
{
	const char *host = getenv(RN_ENV_HOST);
	int letter;

	settings.host = host ? (uint32_t)strtoul(host, NULL, 10) : 0;
	while ((letter = getopt(argc, argv, "s:t:w:n:a:L")) != -1) {
		if (letter == 's')
			settings.seed = strtoull(optarg, NULL, 0);
		else if (letter == 't')
			settings.seconds = strtod(optarg, NULL);
		else if (letter == 'w')
			settings.workers = (unsigned)strtoul(optarg, NULL, 0) % (WORKERS_MAX + 1);
		else if (letter == 'n')
			settings.acts = (unsigned)strtoul(optarg, NULL, 0);
		else if (letter == 'a')
			settings.only = optarg;
		else if (letter == 'L')
			list_acts();
		else
			return fprintf(stderr, "%s", usage), 2;
	}
	signal(SIGPIPE, SIG_IGN);
	return settings.workers ? supervise() : 2;
}
