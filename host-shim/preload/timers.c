/*
 * Timers of a process in virtual time: alarm and setitimer(ITIMER_REAL), POSIX timers that send a signal or start a
 * thread, and timerfds (an eventfd that is written when the time has come). A timer fires in whichever thread of the
 * process first gets that far: its signal is sent to that thread.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "preload/waits.h"

#define TIMERS_MAX 64
#define ALARM_TIMER 0 /* the first is alarm's and ITIMER_REAL's */

struct timer {
	bool used;
	bool is_fd;
	int fd, signo;
	pid_t tid; /* 0: any thread */
	union sigval value;
	void (*run)(union sigval value); /* in a thread of its own; NULL: a signal */
	clockid_t clock;
	uint64_t due_ps; /* RN_TIME_NO_LIMIT: not armed */
	uint64_t interval_ps;
	uint64_t overrun;
};

static struct timer timers[TIMERS_MAX] = {
	[ALARM_TIMER] = {.used = true, .signo = SIGALRM, .due_ps = RN_TIME_NO_LIMIT}};
static uint64_t next_ps = RN_TIME_NO_LIMIT;

uint64_t rn_timers_next_ps(void)
{
	return next_ps;
}

static void find_next(void)
{
	next_ps = RN_TIME_NO_LIMIT;
	for (unsigned i = 0; i < TIMERS_MAX; i++)
		if (timers[i].used && timers[i].due_ps < next_ps)
			next_ps = timers[i].due_ps;
}

/* A child has none of its parent's timers. */
void rn_timers_forget(void)
{
	for (unsigned i = 0; i < TIMERS_MAX; i++)
		if (!timers[i].is_fd)
			timers[i].due_ps = RN_TIME_NO_LIMIT;
	find_next();
}

static bool interrupts(int signo, bool *restart)
{
	struct sigaction action;

	if (rn_wait_has_blocked(signo) || sigaction(signo, NULL, &action) ||
	    (!(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_IGN))
		return false;
	*restart = action.sa_flags & SA_RESTART;
	return true;
}

/* To this thread, or to whichever waits for it when this one has it blocked. */
static void send_signal(const struct timer *timer, bool *restart, bool *handled)
{
	siginfo_t info = {.si_signo = timer->signo, .si_code = SI_TIMER};

	info.si_value = timer->value;
	info.si_overrun = (int)timer->overrun;
	if (timer->tid && timer->tid != (pid_t)syscall(SYS_gettid)) {
		syscall(SYS_rt_tgsigqueueinfo, syscall(SYS_getpid), timer->tid, timer->signo,
			&info);
	} else if (timer->tid || !rn_wait_has_blocked(timer->signo)) {
		*handled = interrupts(timer->signo, restart) || *handled;
		syscall(SYS_rt_tgsigqueueinfo, syscall(SYS_getpid), syscall(SYS_gettid),
			timer->signo, &info);
	} else {
		syscall(SYS_rt_sigqueueinfo, syscall(SYS_getpid), timer->signo, &info);
	}
	rn_virtual_act();
}

struct notice {
	void (*run)(union sigval value);
	union sigval value;
};

static void *run_notice(void *arg)
{
	const struct notice notice = *(struct notice *)arg;

	free(arg);
	notice.run(notice.value);
	return NULL;
}

/* Each expiration has a thread of its own. */
static void start_thread(const struct timer *timer)
{
	struct notice *notice = malloc(sizeof(*notice));
	pthread_t id;

	if (!notice)
		return;
	*notice = (struct notice){timer->run, timer->value};
	if (pthread_create(&id, NULL, run_notice, notice))
		free(notice);
	else
		pthread_detach(id);
}

static void advance(struct timer *timer, uint64_t now_ps, uint64_t *expirations)
{
	*expirations = 1;
	if (!timer->interval_ps) {
		timer->due_ps = RN_TIME_NO_LIMIT;
		return;
	}
	*expirations += (now_ps - timer->due_ps) / timer->interval_ps;
	timer->due_ps += *expirations * timer->interval_ps;
}

bool rn_timers_fire(uint64_t now_ps, bool *restart)
{
	bool handled = false;

	for (unsigned i = 0; i < TIMERS_MAX; i++) {
		struct timer *timer = &timers[i];
		uint64_t expirations;

		if (!timer->used || timer->due_ps > now_ps)
			continue;
		advance(timer, now_ps, &expirations);
		find_next();
		if (timer->is_fd) {
			if (syscall(SYS_write, timer->fd, &expirations, sizeof(expirations)) < 0)
				continue;
			rn_virtual_act();
		} else if (timer->run) {
			start_thread(timer);
		} else if (timer->signo) {
			timer->overrun = expirations - 1;
			send_signal(timer, restart, &handled);
		}
	}
	return handled;
}

static uint64_t left_ps(const struct timer *timer)
{
	const uint64_t now_ps = rn_virtual_now_ps();

	if (timer->due_ps == RN_TIME_NO_LIMIT)
		return 0;
	return timer->due_ps > now_ps ? timer->due_ps - now_ps : RN_PS_PER_US;
}

static void arm(struct timer *timer, uint64_t due_ps, uint64_t interval_ps)
{
	timer->due_ps = due_ps;
	timer->interval_ps = interval_ps;
	find_next();
}

RN_EXPORT unsigned alarm(unsigned seconds)
{
	struct timer *timer = &timers[ALARM_TIMER];
	uint64_t old_ps;

	if (!rn_virtual_is_on())
		return RN_REAL(alarm)(seconds);
	old_ps = left_ps(timer);
	arm(timer,
	    seconds ? rn_virtual_after_ps(seconds * (uint64_t)RN_PS_PER_S) : RN_TIME_NO_LIMIT, 0);
	return (unsigned)((old_ps + RN_PS_PER_S - 1) / RN_PS_PER_S);
}

static uint64_t ps_of_timeval(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * RN_PS_PER_S + (uint64_t)time->tv_usec * RN_PS_PER_US;
}

static void put_timeval(uint64_t ps, struct timeval *time)
{
	time->tv_sec = (time_t)(ps / RN_PS_PER_S);
	time->tv_usec = (suseconds_t)(ps % RN_PS_PER_S / RN_PS_PER_US);
}

RN_EXPORT int getitimer(__itimer_which_t which, struct itimerval *value)
{
	const struct timer *timer = &timers[ALARM_TIMER];

	if (!rn_virtual_is_on() || which != ITIMER_REAL)
		return RN_REAL(getitimer)(which, value);
	put_timeval(left_ps(timer), &value->it_value);
	put_timeval(timer->interval_ps, &value->it_interval);
	return 0;
}

RN_EXPORT int setitimer(__itimer_which_t which, const struct itimerval *restrict value,
			struct itimerval *restrict old)
{
	uint64_t ps;

	if (!rn_virtual_is_on() || which != ITIMER_REAL || !value)
		return RN_REAL(setitimer)(which, value, old);
	if (old)
		getitimer(which, old);
	ps = ps_of_timeval(&value->it_value);
	arm(&timers[ALARM_TIMER], ps ? rn_virtual_after_ps(ps) : RN_TIME_NO_LIMIT,
	    ps_of_timeval(&value->it_interval));
	return 0;
}

/* --- POSIX timers and timerfds --- */

static struct timer *new_timer(clockid_t clock)
{
	for (unsigned i = ALARM_TIMER + 1; i < TIMERS_MAX; i++) {
		if (timers[i].used)
			continue;
		timers[i] = (struct timer){
			.used = true, .fd = -1, .clock = clock, .due_ps = RN_TIME_NO_LIMIT};
		return &timers[i];
	}
	errno = EAGAIN;
	return NULL;
}

static void put_itimerspec(const struct timer *timer, struct itimerspec *out)
{
	const uint64_t left = left_ps(timer);

	out->it_value.tv_sec = (time_t)(left / RN_PS_PER_S);
	out->it_value.tv_nsec = (long)(left % RN_PS_PER_S / RN_PS_PER_NS);
	out->it_interval.tv_sec = (time_t)(timer->interval_ps / RN_PS_PER_S);
	out->it_interval.tv_nsec = (long)(timer->interval_ps % RN_PS_PER_S / RN_PS_PER_NS);
}

static uint64_t ns_of(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * RN_NS_PER_S + (uint64_t)time->tv_nsec;
}

static void set_timer(struct timer *timer, bool absolute, const struct itimerspec *value)
{
	const uint64_t base_ns = rn_virtual_clock_ns(timer->clock, 0);
	uint64_t ns = ns_of(&value->it_value), due_ps = RN_TIME_NO_LIMIT;

	if (ns && absolute)
		due_ps = ns > base_ns ? (ns - base_ns) * RN_PS_PER_NS : 0;
	else if (ns)
		due_ps = rn_virtual_after_ps(ns * RN_PS_PER_NS);
	arm(timer, due_ps, ns_of(&value->it_interval) * RN_PS_PER_NS);
}

/* Handles of our timers are addresses in the table; the system's are small numbers or heap addresses. */
static struct timer *of_handle(timer_t handle)
{
	struct timer *timer = (struct timer *)handle;

	return timer > timers && timer < timers + TIMERS_MAX && timer->used ? timer : NULL;
}

static void set_event(struct timer *timer, timer_t handle, const struct sigevent *event)
{
	if (!event) {
		timer->signo = SIGALRM;
		timer->value.sival_ptr = handle;
		return;
	}
	timer->value = event->sigev_value;
	switch (event->sigev_notify) {
	case SIGEV_THREAD:
		timer->run = event->sigev_notify_function;
		break;
	case SIGEV_THREAD_ID:
		timer->tid = event->_sigev_un._tid;
		timer->signo = event->sigev_signo;
		break;
	case SIGEV_SIGNAL:
		timer->signo = event->sigev_signo;
		break;
	default:
		break;
	}
}

/* Processor time is the system's: what a program uses of it takes no virtual time. */
static bool has_timer_clock(clockid_t clock)
{
	return rn_virtual_has_clock(clock) && clock != CLOCK_PROCESS_CPUTIME_ID &&
	       clock != CLOCK_THREAD_CPUTIME_ID;
}

RN_EXPORT int timer_create(clockid_t clock, struct sigevent *restrict event,
			   timer_t *restrict handle)
{
	struct timer *timer;

	if (!rn_virtual_is_on() || !has_timer_clock(clock))
		return RN_REAL(timer_create)(clock, event, handle);
	timer = new_timer(clock);
	if (!timer)
		return -1;
	*handle = (timer_t)timer;
	set_event(timer, *handle, event);
	return 0;
}

RN_EXPORT int timer_settime(timer_t handle, int flags, const struct itimerspec *restrict value,
			    struct itimerspec *restrict old)
{
	struct timer *timer = of_handle(handle);

	if (!timer)
		return RN_REAL(timer_settime)(handle, flags, value, old);
	if (old)
		put_itimerspec(timer, old);
	set_timer(timer, flags & TIMER_ABSTIME, value);
	return 0;
}

RN_EXPORT int timer_gettime(timer_t handle, struct itimerspec *value)
{
	const struct timer *timer = of_handle(handle);

	if (!timer)
		return RN_REAL(timer_gettime)(handle, value);
	put_itimerspec(timer, value);
	return 0;
}

RN_EXPORT int timer_getoverrun(timer_t handle)
{
	const struct timer *timer = of_handle(handle);

	return timer ? (int)timer->overrun : RN_REAL(timer_getoverrun)(handle);
}

RN_EXPORT int timer_delete(timer_t handle)
{
	struct timer *timer = of_handle(handle);

	if (!timer)
		return RN_REAL(timer_delete)(handle);
	timer->used = false;
	find_next();
	return 0;
}

static struct timer *of_fd(int fd)
{
	for (unsigned i = 0; i < TIMERS_MAX; i++)
		if (timers[i].used && timers[i].is_fd && timers[i].fd == fd)
			return &timers[i];
	return NULL;
}

RN_EXPORT int timerfd_create(clockid_t clock, int flags)
{
	struct timer *timer;
	int fd;

	if (!rn_virtual_is_on() || !rn_virtual_has_clock(clock))
		return RN_REAL(timerfd_create)(clock, flags);
	fd = eventfd(0, (flags & TFD_CLOEXEC ? EFD_CLOEXEC : 0) |
				(flags & TFD_NONBLOCK ? EFD_NONBLOCK : 0));
	if (fd < 0)
		return -1;
	/* A closed one leaves its entry behind; its number comes again. */
	timer = of_fd(fd);
	if (!timer)
		timer = new_timer(clock);
	if (!timer) {
		close(fd);
		errno = EMFILE;
		return -1;
	}
	*timer = (struct timer){
		.used = true, .is_fd = true, .fd = fd, .clock = clock, .due_ps = RN_TIME_NO_LIMIT};
	find_next();
	return fd;
}

RN_EXPORT int timerfd_settime(int fd, int flags, const struct itimerspec *value,
			      struct itimerspec *old)
{
	struct timer *timer = of_fd(fd);
	uint64_t count;

	if (!timer)
		return RN_REAL(timerfd_settime)(fd, flags, value, old);
	if (old)
		put_itimerspec(timer, old);
	/* Setting forgets expirations that nobody has read. */
	rn_virtual_enter_native();
	if (RN_REAL(eventfd_write)(fd, 1) == 0)
		(void)!RN_REAL(eventfd_read)(fd, &count);
	rn_virtual_leave_native();
	set_timer(timer, flags & TFD_TIMER_ABSTIME, value);
	return 0;
}

RN_EXPORT int timerfd_gettime(int fd, struct itimerspec *value)
{
	const struct timer *timer = of_fd(fd);

	if (!timer)
		return RN_REAL(timerfd_gettime)(fd, value);
	put_itimerspec(timer, value);
	return 0;
}
