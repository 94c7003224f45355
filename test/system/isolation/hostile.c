/*
 * The acts, chosen by chance, in workers that are killed and started again now and then, until enough have been played.
 * Exits with 1 when a worker found the simulator silent, or when no act comes to its end any more, else with 0.
 */
#include <getopt.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hostile.h"

#define WORKERS_MAX 16u
#define PATIENCE_S 120 /* between two ends of acts, on a busy machine and with sanitizers */

static const struct {
	const char *name;
	act *play;
	uint32_t weight;
	bool of_time; /* needs a run in virtual time */
} acts[] = {
	{"half_messages", act_half_messages, 4, false},
	{"wrong_attach", act_wrong_attach, 2, false},
	{"garbage_requests", act_garbage_requests, 4, false},
	{"unread_answers", act_unread_answers, 1, false},
	{"descriptors", act_descriptors, 1, false},
	{"many_connections", act_many_connections, 1, false},
	{"shared_memory", act_shared_memory, 3, false},
	{"scribbled_channel", act_scribbled_channel, 4, false},
	{"doorbells", act_doorbells, 4, false},
	{"rewritten_entries", act_rewritten_entries, 2, false},
	{"ring_flood", act_ring_flood, 1, false},
	{"objects", act_objects, 6, false},
	{"foreign_handles", act_foreign_handles, 3, false},
	{"absurd_sizes", act_absurd_sizes, 3, false},
	{"pin_flood", act_pin_flood, 1, false},
	{"work_requests", act_work_requests, 6, false},
	{"rewritten_work", act_rewritten_work, 3, false},
	{"time_noise", act_time_noise, 3, true},
	{"time_states", act_time_states, 4, true},
	{"time_spawns", act_time_spawns, 3, true},
	{"time_again", act_time_again, 4, true},
	{"time_orders", act_time_orders, 4, true},
	{"time_flood", act_time_flood, 1, true},
	{"time_inherited", act_time_inherited, 2, true},
	{"time_leaves", act_time_leaves, 3, true},
	{"time_clocks", act_time_clocks, 2, true},
};

enum { ACTS = sizeof(acts) / sizeof(acts[0]) };

static const char usage[] =
	"Usage: hostile [-s SEED] [-n ACTS] [-w WORKERS] [-T] [-a ACT] [-L]\n"
	"Abuses the simulator of RNICSIM_SOCKET as a client of host RNICSIM_HOST until ACTS acts have\n"
	"been played in all (default 200).\n"
	"  -T  acts about time, in place of those about the driver\n"
	"  -a ACT  this act only      -L  list the acts\n";

static struct settings {
	uint64_t seed;
	unsigned workers;
	uint32_t acts;
	bool of_time;
	const char *only;
	uint32_t host;
} settings = {.seed = 1, .workers = 2, .acts = 200};

static _Atomic uint32_t *tallies; /* shared by the workers */

void tally(enum tally what)
{
	atomic_fetch_add(&tallies[what], 1);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_chosen(unsigned n)
{
	return settings.only ? !strcmp(settings.only, acts[n].name)
			     : acts[n].of_time == settings.of_time;
}

static unsigned choose(struct rn_rng *rng)
{
	uint32_t total = 0, pick;
	unsigned at = 0;

	for (unsigned n = 0; n < ACTS; n++)
		total += is_chosen(n) ? acts[n].weight : 0;
	pick = below(rng, total);
	while (!is_chosen(at) || pick >= acts[at].weight)
		pick -= is_chosen(at++) ? acts[at - 1].weight : 0;
	return at;
}

/* In the child: never returns. */
static void work(uint64_t seed)
{
	struct rn_rng rng;

	rn_rng_init(&rng, seed, "hostile");
	while (atomic_load(&tallies[TALLY_ACTS]) < settings.acts) {
		acts[choose(&rng)].play(&rng, settings.host);
		tally(TALLY_ACTS);
	}
	exit(0);
}

static pid_t start_worker(uint64_t seed)
{
	const pid_t pid = fork();

	if (pid == 0)
		work(seed);
	return pid;
}

/* Until so many acts have been played; ends the program when none is for long. */
static void wait_for_acts(uint32_t count)
{
	const double end_s = now_s() + PATIENCE_S;

	if (count > settings.acts)
		count = settings.acts;
	while (atomic_load(&tallies[TALLY_ACTS]) < count) {
		if (now_s() > end_s) {
			fprintf(stderr, "hostile: no act has ended within %d s\n", PATIENCE_S);
			exit(1);
		}
		usleep(1000);
	}
}

/* Kill a worker now and then, in whatever it is doing: by their progress, not by the clock. */
static unsigned disturb(struct rn_rng *rng, pid_t *pids)
{
	unsigned killed = 0;
	uint32_t played;

	while ((played = atomic_load(&tallies[TALLY_ACTS])) < settings.acts) {
		const unsigned victim = below(rng, settings.workers);
		int status = 0;

		wait_for_acts(played + 1 + below(rng, 4 * settings.workers));
		usleep(below(rng, 20000));
		if (waitpid(pids[victim], &status, WNOHANG) == 0) {
			kill(pids[victim], SIGKILL);
			waitpid(pids[victim], &status, 0);
			killed++;
		}
		if (WIFEXITED(status) && WEXITSTATUS(status))
			exit(1);
		pids[victim] = start_worker(rn_rng_next(rng));
	}
	return killed;
}

static int supervise(void)
{
	pid_t pids[WORKERS_MAX];
	unsigned killed;
	struct rn_rng rng;
	int failed = 0;

	rn_rng_init(&rng, settings.seed, "supervisor");
	if (settings.of_time)
		give_up_time(&rng, settings.host);
	for (unsigned n = 0; n < settings.workers; n++)
		pids[n] = start_worker(rn_rng_next(&rng));
	killed = disturb(&rng, pids);
	for (unsigned n = 0; n < settings.workers; n++) {
		int status;

		waitpid(pids[n], &status, 0);
		failed |= !WIFEXITED(status) || WEXITSTATUS(status);
	}
	printf("hostile: seed %llu, %u acts, %u workers killed, %u pages, %u turns, %u refused, %u hung up, %s\n",
	       (unsigned long long)settings.seed, tallies[TALLY_ACTS], killed, tallies[TALLY_PAGES],
	       tallies[TALLY_TURNS], tallies[TALLY_REFUSED], tallies[TALLY_HUNG_UP],
	       failed ? "FAILED" : "done");
	return failed;
}

static void list_acts(void)
{
	for (unsigned n = 0; n < ACTS; n++)
		if (is_chosen(n))
			printf("%s\n", acts[n].name);
	exit(0);
}

static bool knows(const char *name)
{
	for (unsigned n = 0; n < ACTS; n++)
		if (!strcmp(name, acts[n].name))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	const char *host = getenv(RN_ENV_HOST);
	bool lists = false;
	int letter;

	settings.host = host ? (uint32_t)strtoul(host, NULL, 10) : 0;
	while ((letter = getopt(argc, argv, "s:w:n:a:TL")) != -1) {
		if (letter == 's')
			settings.seed = strtoull(optarg, NULL, 0);
		else if (letter == 'w')
			settings.workers = (unsigned)strtoul(optarg, NULL, 0) % (WORKERS_MAX + 1);
		else if (letter == 'n')
			settings.acts = (uint32_t)strtoul(optarg, NULL, 0);
		else if (letter == 'a' && knows(optarg))
			settings.only = optarg;
		else if (letter == 'T')
			settings.of_time = true;
		else if (letter == 'L')
			lists = true;
		else
			return fprintf(stderr, "%s", usage), 2;
	}
	if (lists)
		list_acts();
	signal(SIGPIPE, SIG_IGN);
	tallies = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return settings.workers && tallies != MAP_FAILED ? supervise() : 2;
}
