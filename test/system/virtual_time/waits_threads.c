/* Waits of threads for one another. */
#include <errno.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <threads.h>

#include "waits.h"

/* --- locks: a thread holds one for 100 ms --- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;

static void *hold_mutex(void *arg)
{
	pthread_mutex_lock(arg);
	sleep_ms(100);
	pthread_mutex_unlock(arg);
	return NULL;
}

static void run_timed_mutex(void)
{
	struct timespec soon;
	pthread_t id = start(hold_mutex, &mutex);

	sleep_ms(10);
	soon = in_ms(CLOCK_REALTIME, 20);
	say("timed out", pthread_mutex_timedlock(&mutex, &soon) == ETIMEDOUT);
	soon = in_ms(CLOCK_MONOTONIC, 20);
	say("timed out", pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &soon) == ETIMEDOUT);
	soon = in_ms(CLOCK_REALTIME, 1000);
	say("taken", pthread_mutex_timedlock(&mutex, &soon));
	pthread_mutex_unlock(&mutex);
	pthread_join(id, NULL);
}

static void run_try_mutex(void)
{
	pthread_t id = start(hold_mutex, &mutex);

	sleep_ms(10);
	while (pthread_mutex_trylock(&mutex))
		;
	say("taken", 0);
	pthread_mutex_unlock(&mutex);
	pthread_join(id, NULL);
}

static void run_kinds_of_mutex(void)
{
	pthread_mutexattr_t attribute;
	pthread_mutex_t checked;
	pthread_t id;

	pthread_mutexattr_init(&attribute);
	pthread_mutexattr_settype(&attribute, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&checked, &attribute);
	id = start(hold_mutex, &checked);
	sleep_ms(10);
	say("taken", pthread_mutex_lock(&checked));
	say("own", pthread_mutex_lock(&checked) == EDEADLK);
	pthread_mutex_unlock(&checked);
	pthread_join(id, NULL);
}

static bool stop;

/* Gives the lock back and takes it again at once: the other one has its turn all the same. */
static void *hog(void *arg)
{
	for (;;) {
		bool is_over;

		pthread_mutex_lock(arg);
		sleep_ms(10);
		is_over = stop;
		pthread_mutex_unlock(arg);
		if (is_over)
			return NULL;
	}
}

static void run_hog(void)
{
	pthread_t id = start(hog, &mutex);

	sleep_ms(5);
	pthread_mutex_lock(&mutex);
	stop = true;
	pthread_mutex_unlock(&mutex);
	say("had a turn", 1);
	pthread_join(id, NULL);
}

static void *set_stop(void *arg)
{
	sleep_ms(100);
	pthread_mutex_lock(arg);
	stop = true;
	pthread_mutex_unlock(arg);
	return NULL;
}

/* Polls a variable under a lock. */
static void run_poll_under_lock(void)
{
	pthread_t id = start(set_stop, &mutex);
	bool seen = false;

	while (!seen) {
		pthread_mutex_lock(&mutex);
		seen = stop;
		pthread_mutex_unlock(&mutex);
	}
	pthread_join(id, NULL);
}

static void *hold_rwlock(void *arg)
{
	(void)arg;
	pthread_rwlock_wrlock(&rwlock);
	sleep_ms(100);
	pthread_rwlock_unlock(&rwlock);
	pthread_rwlock_rdlock(&rwlock);
	sleep_ms(100);
	pthread_rwlock_unlock(&rwlock);
	return NULL;
}

static void run_rwlock(void)
{
	pthread_t id = start(hold_rwlock, NULL);
	struct timespec soon;

	sleep_ms(10);
	soon = in_ms(CLOCK_REALTIME, 20);
	say("timed out", pthread_rwlock_timedrdlock(&rwlock, &soon) == ETIMEDOUT);
	say("read", pthread_rwlock_rdlock(&rwlock));
	pthread_rwlock_unlock(&rwlock);
	sleep_ms(10);
	soon = in_ms(CLOCK_MONOTONIC, 20);
	say("timed out", pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &soon) == ETIMEDOUT);
	say("written", pthread_rwlock_wrlock(&rwlock));
	pthread_rwlock_unlock(&rwlock);
	pthread_join(id, NULL);
}

static void *hold_spin(void *arg)
{
	(void)arg;
	pthread_spin_lock(&spin);
	sleep_ms(100);
	pthread_spin_unlock(&spin);
	return NULL;
}

static void run_spin(void)
{
	pthread_t id;

	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	id = start(hold_spin, NULL);
	sleep_ms(10);
	say("taken", pthread_spin_lock(&spin));
	pthread_spin_unlock(&spin);
	pthread_join(id, NULL);
}

/* --- meetings --- */

static pthread_barrier_t barrier;
static sem_t semaphore;

static void *meet(void *arg)
{
	const unsigned me = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < 3; i++) {
		sleep_ms(10 * (me + 1));
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void run_barrier(void)
{
	pthread_t id[3];

	pthread_barrier_init(&barrier, NULL, 4);
	for (uintptr_t i = 0; i < 3; i++)
		id[i] = start(meet, (void *)i);
	for (unsigned i = 0; i < 3; i++) {
		pthread_barrier_wait(&barrier);
		say("met", (long)i);
	}
	for (unsigned i = 0; i < 3; i++)
		pthread_join(id[i], NULL);
	pthread_barrier_destroy(&barrier);
}

static void *post(void *arg)
{
	sleep_ms(100);
	sem_post(arg);
	return NULL;
}

static void run_semaphore(void)
{
	struct timespec soon;
	pthread_t id;

	sem_init(&semaphore, 0, 0);
	id = start(post, &semaphore);
	soon = in_ms(CLOCK_MONOTONIC, 20);
	say("timed out", sem_clockwait(&semaphore, CLOCK_MONOTONIC, &soon) && errno == ETIMEDOUT);
	soon = in_ms(CLOCK_REALTIME, 20);
	say("timed out", sem_timedwait(&semaphore, &soon) && errno == ETIMEDOUT);
	while (sem_trywait(&semaphore))
		;
	pthread_join(id, NULL);
}

/* A condition's clock is its attribute's; a deadline of the other clock is far off or long over. */
static void run_condition_clock(void)
{
	pthread_condattr_t attribute;
	pthread_cond_t steady, real = PTHREAD_COND_INITIALIZER;
	struct timespec soon;

	pthread_condattr_init(&attribute);
	pthread_condattr_setclock(&attribute, CLOCK_MONOTONIC);
	pthread_cond_init(&steady, &attribute);
	pthread_mutex_lock(&mutex);
	soon = in_ms(CLOCK_MONOTONIC, 20);
	say("steady", pthread_cond_timedwait(&steady, &mutex, &soon) == ETIMEDOUT);
	say("long over", pthread_cond_timedwait(&real, &mutex, &soon) == ETIMEDOUT);
	soon = in_ms(CLOCK_REALTIME, 20);
	say("real", pthread_cond_timedwait(&real, &mutex, &soon) == ETIMEDOUT);
	soon = in_ms(CLOCK_MONOTONIC, 20);
	say("told", pthread_cond_clockwait(&real, &mutex, CLOCK_MONOTONIC, &soon) == ETIMEDOUT);
	soon = (struct timespec){1, 0};
	say("long over", pthread_cond_timedwait(&steady, &mutex, &soon) == ETIMEDOUT);
	pthread_mutex_unlock(&mutex);
}

/* --- ends --- */

static void *sleep_100(void *arg)
{
	sleep_ms(100);
	return arg;
}

static void run_join(void)
{
	pthread_t id = start(sleep_100, NULL);
	struct timespec soon = in_ms(CLOCK_REALTIME, 20);

	say("timed out", pthread_timedjoin_np(id, NULL, &soon) == ETIMEDOUT);
	soon = in_ms(CLOCK_MONOTONIC, 20);
	say("timed out", pthread_clockjoin_np(id, NULL, CLOCK_MONOTONIC, &soon) == ETIMEDOUT);
	while (pthread_tryjoin_np(id, NULL))
		;
}

static void unlock(void *arg)
{
	pthread_mutex_unlock(arg);
}

static void *wait_for_ever(void *arg)
{
	static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&mutex);
	pthread_cleanup_push(unlock, &mutex);
	for (;;)
		pthread_cond_wait(&never, &mutex);
	pthread_cleanup_pop(0);
	return arg;
}

static void run_cancel(void)
{
	void *(*const function[])(void *) = {wait_for_ever, sleep_100};

	for (unsigned i = 0; i < 2; i++) {
		pthread_t id = start(function[i], NULL);
		void *result;

		sleep_ms(10);
		pthread_cancel(id);
		pthread_join(id, &result);
		say("cancelled", result == PTHREAD_CANCELED);
	}
	say("free", pthread_mutex_trylock(&mutex));
}

static void initialise(void)
{
	sleep_ms(100);
	say("initialised", 1);
}

static void *need(void *arg)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, initialise);
	return arg;
}

static void run_once(void)
{
	pthread_t id = start(need, NULL);

	need(NULL);
	say("there", 1);
	pthread_join(id, NULL);
}

static mtx_t c11_mutex;
static cnd_t c11_condition;

static int signal_c11(void *arg)
{
	struct timespec time = {0, 100 * MS};

	(void)arg;
	thrd_sleep(&time, NULL);
	mtx_lock(&c11_mutex);
	cnd_signal(&c11_condition);
	thrd_sleep(&time, NULL);
	mtx_unlock(&c11_mutex);
	return 7;
}

static void run_c11(void)
{
	struct timespec soon;
	thrd_t id;
	int result;

	mtx_init(&c11_mutex, mtx_timed);
	cnd_init(&c11_condition);
	mtx_lock(&c11_mutex);
	thrd_create(&id, signal_c11, NULL);
	soon = in_ms(CLOCK_REALTIME, 20);
	say("timed out", cnd_timedwait(&c11_condition, &c11_mutex, &soon) == thrd_timedout);
	say("signalled", cnd_wait(&c11_condition, &c11_mutex) == thrd_success);
	mtx_unlock(&c11_mutex);
	thrd_join(id, &result);
	say("result", result);
}

static void *outlive(void *arg)
{
	sleep_ms(100);
	say("outlived", 1);
	return arg;
}

static void run_exit_of_main(void)
{
	pthread_detach(start(outlive, NULL));
	pthread_exit(NULL);
}

/* --- shared with a child --- */

struct shared {
	pthread_mutex_t mutex;
	pthread_cond_t condition;
	pthread_rwlock_t rwlock;
	pthread_barrier_t barrier;
	pthread_spinlock_t spin;
	sem_t semaphore;
	int value;
};

static struct shared *make_shared(void)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t of_mutex;
	pthread_condattr_t of_condition;
	pthread_rwlockattr_t of_rwlock;
	pthread_barrierattr_t of_barrier;

	pthread_mutexattr_init(&of_mutex);
	pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&shared->mutex, &of_mutex);
	pthread_condattr_init(&of_condition);
	pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&shared->condition, &of_condition);
	pthread_rwlockattr_init(&of_rwlock);
	pthread_rwlockattr_setpshared(&of_rwlock, PTHREAD_PROCESS_SHARED);
	pthread_rwlock_init(&shared->rwlock, &of_rwlock);
	pthread_barrierattr_init(&of_barrier);
	pthread_barrierattr_setpshared(&of_barrier, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->barrier, &of_barrier, 2);
	pthread_spin_init(&shared->spin, PTHREAD_PROCESS_SHARED);
	sem_init(&shared->semaphore, 1, 0);
	return shared;
}

static void be_child(struct shared *shared)
{
	pthread_mutex_lock(&shared->mutex);
	pthread_rwlock_wrlock(&shared->rwlock);
	pthread_spin_lock(&shared->spin);
	sleep_ms(100);
	pthread_spin_unlock(&shared->spin);
	sleep_ms(100);
	pthread_rwlock_unlock(&shared->rwlock);
	sleep_ms(100);
	pthread_mutex_unlock(&shared->mutex);
	sleep_ms(100);
	sem_post(&shared->semaphore);
	sleep_ms(100);
	pthread_barrier_wait(&shared->barrier);
	sleep_ms(100);
	pthread_mutex_lock(&shared->mutex);
	shared->value = 1;
	pthread_cond_signal(&shared->condition);
	pthread_mutex_unlock(&shared->mutex);
	_exit(0);
}

static void run_shared(void)
{
	struct shared *shared = make_shared();

	if (fork() == 0)
		be_child(shared);
	sleep_ms(10);
	say("spin", pthread_spin_lock(&shared->spin));
	say("rwlock", pthread_rwlock_rdlock(&shared->rwlock));
	say("mutex", pthread_mutex_lock(&shared->mutex));
	pthread_mutex_unlock(&shared->mutex);
	say("semaphore", sem_wait(&shared->semaphore));
	pthread_barrier_wait(&shared->barrier);
	say("barrier", 0);
	pthread_mutex_lock(&shared->mutex);
	while (!shared->value)
		pthread_cond_wait(&shared->condition, &shared->mutex);
	pthread_mutex_unlock(&shared->mutex);
	say("condition", shared->value);
	wait(NULL);
}

int main(int argc, char **argv)
{
	static const struct mode modes[] = {
		{"timed_mutex", run_timed_mutex},
		{"try_mutex", run_try_mutex},
		{"kinds_of_mutex", run_kinds_of_mutex},
		{"hog", run_hog},
		{"poll_under_lock", run_poll_under_lock},
		{"rwlock", run_rwlock},
		{"spin", run_spin},
		{"barrier", run_barrier},
		{"semaphore", run_semaphore},
		{"condition_clock", run_condition_clock},
		{"join", run_join},
		{"cancel", run_cancel},
		{"once", run_once},
		{"c11", run_c11},
		{"exit_of_main", run_exit_of_main},
		{"shared", run_shared},
	};

	return run_mode(modes, RN_TEST_COUNT(modes), argc, argv);
}
