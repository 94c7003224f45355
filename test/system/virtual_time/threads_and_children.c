/*
 * What a program can do with time beside verbs: three threads that take turns, a timed wait, an alarm, sleeps, a
 * child, a shell. It prints when each thing happened; in virtual time every figure repeats.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 3
#define ROUNDS 5

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned turn;
static volatile sig_atomic_t alarms;

static double now_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void say(const char *what, int value)
{
	printf("%s %d at %.9f\n", what, value, now_s());
	fflush(stdout);
}

static void *take_turns(void *arg)
{
	const unsigned me = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		while (turn != me)
			pthread_cond_wait(&changed, &lock);
		say("turn of thread", (int)me);
		turn = (turn + 1) % THREADS;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
		usleep(100 * (me + 1));
	}
	return NULL;
}

static void run_threads(void)
{
	pthread_t thread[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, take_turns, (void *)i);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	say("joined", THREADS);
}

static void wait_in_vain(void)
{
	pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	struct timespec until;
	int error = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 2;
	pthread_mutex_lock(&lock);
	while (!error)
		error = pthread_cond_timedwait(&never, &lock, &until);
	pthread_mutex_unlock(&lock);
	say("waited in vain: error", error);
}

static void on_alarm(int signo)
{
	(void)signo;
	alarms++;
}

static void sleep_until_alarm(void)
{
	unsigned left;

	signal(SIGALRM, on_alarm);
	alarm(3);
	left = sleep(100);
	say("alarm, seconds left to sleep:", (int)left);
}

static void have_child(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		sleep(1);
		say("child", 1);
		_exit(3);
	}
	waitpid(pid, &status, 0);
	say("child's status", WEXITSTATUS(status));
}

int main(void)
{
	run_threads();
	wait_in_vain();
	sleep_until_alarm();
	have_child();
	say("shell's status", WEXITSTATUS(system("sleep 2; date +%s; exit 4")));
	srand((unsigned)(time(NULL) * getpid()));
	say("random", rand());
	return alarms == 1 ? 0 : 1;
}
