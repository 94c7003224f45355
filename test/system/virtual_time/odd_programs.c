/*
 * Programs that treat signals and other programs in ways that could get in the way of a trapped time stamp counter.
 * The first argument says which; each prints what it saw and returns 0 when that is as without virtual time.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			printf("line %d: not so: %s\n", __LINE__, #cond);                          \
			fflush(stdout);                                                            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

extern char **environ;

static volatile uint8_t *page;
static volatile sig_atomic_t faults, others;
static volatile uint64_t counter_in_handler;
static sigjmp_buf back;
static int is_virtual; /* environment: VIRTUAL=1 */

static uint64_t counter(void)
{
	return __builtin_ia32_rdtsc();
}

/* It goes on; in virtual time two reads at 25 ns are 125 cycles of 2.5 GHz. */
static void check_counter(void)
{
	const uint64_t first = counter();
	const uint64_t second = counter();
	const uint64_t third = counter();

	CHECK(second > first && third > second);
	CHECK(!is_virtual || third - first == 125);
}

static void repair(int signo, siginfo_t *info, void *context)
{
	(void)context;
	CHECK(signo == SIGSEGV);
	CHECK(info->si_addr == (void *)(uintptr_t)page);
	counter_in_handler = counter();
	CHECK(mprotect((void *)(uintptr_t)page, 4096, PROT_READ | PROT_WRITE) == 0);
	faults++;
}

static void repair_simply(int signo)
{
	CHECK(signo == SIGSEGV);
	CHECK(mprotect((void *)(uintptr_t)page, 4096, PROT_READ | PROT_WRITE) == 0);
	faults++;
}

static void leave(int signo)
{
	(void)signo;
	faults++;
	siglongjmp(back, 1);
}

static void fault(void)
{
	CHECK(mprotect((void *)(uintptr_t)page, 4096, PROT_NONE) == 0);
	*page = 1;
	CHECK(*page == 1);
}

static void get_page(void)
{
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
}

/* As UCX and MPI libraries do it: install, keep the old one, ask for it again. */
static void own_handler(void)
{
	struct sigaction action = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO | SA_RESTART},
			 old;

	check_counter();
	CHECK(sigaction(SIGSEGV, &action, &old) == 0);
	CHECK(old.sa_handler == SIG_DFL);
	check_counter();
	fault();
	CHECK(faults == 1 && counter_in_handler);
	check_counter();
	CHECK(sigaction(SIGSEGV, NULL, &old) == 0);
	CHECK(old.sa_sigaction == repair && old.sa_flags & SA_SIGINFO);
	fault();
	CHECK(faults == 2);
	CHECK(signal(SIGSEGV, repair_simply) == (void (*)(int))(uintptr_t)repair);
	fault();
	CHECK(faults == 3);
	CHECK(signal(SIGSEGV, SIG_DFL) == repair_simply);
	check_counter();
}

static void leaving_handler(void)
{
	struct sigaction action = {.sa_handler = leave};

	CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
	for (volatile int i = 0; i < 3; i++) {
		if (!sigsetjmp(back, 1)) {
			CHECK(mprotect((void *)(uintptr_t)page, 4096, PROT_NONE) == 0);
			*page = 1;
			CHECK(!"reached");
		}
		check_counter();
	}
	CHECK(faults == 3);
}

static void stack_overflow_handler(void)
{
	static char alternative[65536];
	stack_t stack = {.ss_sp = alternative, .ss_size = sizeof(alternative)};
	struct sigaction action = {.sa_handler = leave, .sa_flags = SA_ONSTACK};
	stack_t seen;

	CHECK(sigaltstack(&stack, NULL) == 0);
	CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
	check_counter();
	CHECK(sigaltstack(NULL, &seen) == 0 && seen.ss_sp == alternative);
	if (!sigsetjmp(back, 1))
		fault();
	CHECK(faults == 1);
	check_counter();
}

static void on_other(int signo)
{
	(void)signo;
	check_counter();
	others++;
}

static void *blocked_thread(void *arg)
{
	(void)arg;
	check_counter();
	return NULL;
}

/* A blocked SIGSEGV would be the end at the next read of the counter. */
static void masks(void)
{
	sigset_t all, old, seen;
	pthread_t thread;

	sigfillset(&all);
	CHECK(sigprocmask(SIG_BLOCK, &all, &old) == 0);
	check_counter();
	CHECK(sigprocmask(SIG_BLOCK, NULL, &seen) == 0 && sigismember(&seen, SIGTERM) == 1);
	CHECK(pthread_create(&thread, NULL, blocked_thread, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(sigprocmask(SIG_SETMASK, &old, NULL) == 0);
	CHECK(pthread_sigmask(SIG_SETMASK, &all, &old) == 0);
	check_counter();
	CHECK(pthread_sigmask(SIG_SETMASK, &old, NULL) == 0);
}

/* The same for what is blocked while another signal's handler runs. */
static void handler_mask(void)
{
	struct sigaction action = {.sa_handler = on_other};

	sigfillset(&action.sa_mask);
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	CHECK(raise(SIGUSR1) == 0 && others == 1);
	check_counter();
}

static void full_mask_handler(void)
{
	struct sigaction action = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};

	sigfillset(&action.sa_mask);
	CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
	check_counter();
	fault();
	CHECK(faults == 1);
	check_counter();
}

static void crash(void)
{
	check_counter();
	fault();
}

static void crash_after_default(void)
{
	signal(SIGSEGV, repair_simply);
	fault();
	signal(SIGSEGV, SIG_DFL);
	fault();
}

static void raised(void)
{
	check_counter();
	raise(SIGSEGV);
	CHECK(!"still alive");
}

static void run_in_child(const char *program, void (*run)(const char *))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		run(program);
		_exit(99);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static char *const *arguments(const char *program, const char *how)
{
	static char first[4096], second[32];
	static char *const list[] = {first, second, NULL};

	snprintf(first, sizeof(first), "%s", program);
	snprintf(second, sizeof(second), "%s", how);
	return list;
}

static void by_execve(const char *program)
{
	execve(program, arguments(program, "execve"), environ);
}

static void by_execl(const char *program)
{
	execl(program, program, "execl", (char *)NULL);
}

static void by_execvp(const char *program)
{
	execvp(program, arguments(program, "execvp"));
}

static void by_spawn(const char *program)
{
	int status;
	pid_t pid;

	CHECK(posix_spawn(&pid, program, NULL, NULL, arguments(program, "posix_spawn"), environ) ==
	      0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void by_shell(const char *program)
{
	char command[4200];

	snprintf(command, sizeof(command), "exec '%s' system", program);
	CHECK(system(command) == 0);
}

static void by_popen(const char *program)
{
	char command[4200], line[80] = "";
	FILE *stream;

	snprintf(command, sizeof(command), "exec '%s' popen", program);
	stream = popen(command, "r");
	CHECK(stream && fgets(line, sizeof(line), stream));
	CHECK(pclose(stream) == 0);
	printf("%s", line);
}

/* A program that is not attached, started in every way; this one's counter is trapped before and after. */
static void start_others(const char *program)
{
	check_counter();
	run_in_child(program, by_execve);
	run_in_child(program, by_execl);
	run_in_child(program, by_execvp);
	by_spawn(program);
	by_shell(program);
	by_popen(program);
	check_counter();
	/* Failed attempts do not leave the counter free. */
	CHECK(execl("/nonexistent", "nonexistent", (char *)NULL) < 0 && errno == ENOENT);
	check_counter();
}

/* --- where it may run --- */

static unsigned processors; /* environment: PROCESSORS, how many this program may use */

static unsigned count_all_ways(void)
{
	cpu_set_t set, other;

	CHECK(sched_getaffinity(0, sizeof(set), &set) == 0);
	CHECK(sched_getaffinity((pid_t)syscall(SYS_gettid), sizeof(other), &other) == 0);
	CHECK(CPU_EQUAL(&set, &other));
	CHECK(pthread_getaffinity_np(pthread_self(), sizeof(other), &other) == 0);
	CHECK(CPU_EQUAL(&set, &other));
	CPU_ZERO(&other);
	CHECK(syscall(SYS_sched_getaffinity, 0, sizeof(other), &other) > 0);
	CHECK(CPU_EQUAL(&set, &other));
	return (unsigned)CPU_COUNT(&set);
}

static void *count_in_thread(void *count)
{
	*(unsigned *)count = count_all_ways();
	return NULL;
}

static unsigned count_of_thread(const pthread_attr_t *attr)
{
	unsigned count = 0;
	pthread_t id;

	CHECK(pthread_create(&id, attr, count_in_thread, &count) == 0);
	CHECK(pthread_join(id, NULL) == 0);
	return count;
}

/* Of what it may use, the first only. */
static cpu_set_t first_only(void)
{
	cpu_set_t set, first;
	unsigned n = 0;

	CHECK(sched_getaffinity(0, sizeof(set), &set) == 0);
	while (!CPU_ISSET(n, &set))
		n++;
	CPU_ZERO(&first);
	CPU_SET(n, &first);
	return first;
}

static void see_processors(void)
{
	cpu_set_t all, none, first = first_only();
	pthread_attr_t attr;

	processors = (unsigned)atoi(getenv("PROCESSORS"));
	CPU_ZERO(&none);
	CHECK(sched_getaffinity(0, sizeof(all), &all) == 0);
	CHECK(count_all_ways() == processors && count_of_thread(NULL) == processors);
	CHECK(sched_setaffinity(0, sizeof(none), &none) < 0 && errno == EINVAL);
	CHECK(count_all_ways() == processors);
	pthread_attr_init(&attr);
	CHECK(pthread_attr_setaffinity_np(&attr, sizeof(first), &first) == 0);
	CHECK(count_of_thread(&attr) == 1 && count_of_thread(NULL) == processors);
	CHECK(sched_setaffinity(0, sizeof(first), &first) == 0);
	CHECK(count_all_ways() == 1 && count_of_thread(NULL) == 1);
	CHECK(system("test $(nproc) = 1") == 0);
	CHECK(pthread_setaffinity_np(pthread_self(), sizeof(all), &all) == 0);
	CHECK(count_all_ways() == processors && count_of_thread(NULL) == processors);
	CHECK(system("test $(nproc) = $PROCESSORS") == 0);
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{"own_handler", own_handler},
	{"leaving_handler", leaving_handler},
	{"stack_handler", stack_overflow_handler},
	{"masks", masks},
	{"handler_mask", handler_mask},
	{"full_mask_handler", full_mask_handler},
	{"crash", crash},
	{"crash_after_default", crash_after_default},
	{"raised", raised},
	{"processors", see_processors},
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	is_virtual = getenv("VIRTUAL") != NULL;
	get_page();
	if (argc == 3 && !strcmp(argv[1], "start_others")) {
		start_others(argv[2]);
	} else {
		unsigned at = 0;

		while (at < sizeof(modes) / sizeof(modes[0]) &&
		       (argc < 2 || strcmp(argv[1], modes[at].name)))
			at++;
		CHECK(at < sizeof(modes) / sizeof(modes[0]));
		modes[at].run();
	}
	printf("%s: as it should be\n", argv[1]);
	return 0;
}
