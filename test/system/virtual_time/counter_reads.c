/*
 * Reads the processor's counter in every way that code can be written, and uses signals that the rewriting of such
 * reads needs as well. The first argument says which; each prints "NAME: as it should be" or what was otherwise.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>

#define CYCLES_OF_TWO 125 /* 2 reads at 25 ns, 2.5 GHz */

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			printf("line %d: not so: %s\n", __LINE__, #cond);                          \
			fflush(stdout);                                                            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

typedef uint64_t read_call(void);

static char **arguments;

static void check_reads(read_call *read_counter)
{
	const uint64_t first = read_counter();

	read_counter();
	CHECK(read_counter() - first == CYCLES_OF_TWO);
}

/* --- where a read stands --- */

static uint64_t read_inline(void)
{
	return __rdtsc();
}

static uint64_t read_processor(void)
{
	unsigned processor;

	return __rdtscp(&processor);
}

uint64_t read_at_target(void);
__asm__(".pushsection .text\n.type read_at_target,@function\nread_at_target:\n"
	"	mov $3,%ecx\n"
	"	rdtsc\n"
	"1:	dec %ecx\n"
	"	jnz 1b\n"
	"	shl $32,%rdx\n	or %rdx,%rax\n	ret\n"
	".size read_at_target,.-read_at_target\n.popsection\n");

/* No symbol but a local label, no unwind table. */
uint64_t read_beyond_call(void);
__asm__(".pushsection .text\n.Lread_bare:\n	rdtsc\n	shl $32,%rdx\n	or %rdx,%rax\n	ret\n"
	".type read_beyond_call,@function\nread_beyond_call:\n"
	"	call .Lread_bare\n	ret\n"
	".size read_beyond_call,.-read_beyond_call\n.popsection\n");

static void in_line(void)
{
	check_reads(read_inline);
}

static void processor(void)
{
	check_reads(read_processor);
}

static void target(void)
{
	check_reads(read_at_target);
	check_reads(read_beyond_call);
}

/* Vector registers, flags and the red zone are as they were, also when the clock ran out of its quantum. */
static void registers(void)
{
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t in = i * 0x9e3779b97f4a7c15u, out;
		uint8_t carry;

		__asm__ volatile(
			"movq %2,%%xmm0\n movq %2,%%xmm15\n mov %2,%%r11\n mov %2,-128(%%rsp)\n"
			"stc\n rdtsc\n setc %1\n"
			"movq %%xmm15,%0\n movq %%xmm0,%%rax\n and %%rax,%0\n and %%r11,%0\n and -128(%%rsp),%0"
			: "=&r"(out), "=&r"(carry)
			: "r"(in)
			: "rax", "rdx", "r11", "xmm0", "xmm15", "memory", "cc");
		CHECK(out == in && carry);
	}
}

static void library(void)
{
	void *handle = dlopen(arguments[0], RTLD_NOW);
	read_call *call;
	const uint64_t *first, before = __rdtsc();
	uint64_t again;

	CHECK(handle);
	*(void **)&call = dlsym(handle, "counter_library_read");
	first = dlsym(handle, "counter_library_first");
	CHECK(call && first);
	check_reads(call);
	CHECK(*first < before);
	/* At the same place once more, with its own bytes. */
	dlclose(handle);
	handle = dlopen(arguments[0], RTLD_NOW);
	*(void **)&call = dlsym(handle, "counter_library_read");
	check_reads(call);
	again = __rdtsc();
	CHECK(again > before);
}

/* --- code that is made while the program runs --- */

#define CODE_BYTES 4096

static const uint8_t read_code[] = {0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0, 0xc3};

static read_call *call_at(const uint8_t *memory)
{
	read_call *call;

	memcpy(&call, &memory, sizeof(call));
	return call;
}

static uint8_t *map_code(int prot)
{
	uint8_t *memory = mmap(NULL, CODE_BYTES, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	return memory;
}

static void generated(void)
{
	uint8_t *memory = map_code(PROT_READ | PROT_WRITE | PROT_EXEC);

	for (unsigned i = 0; i < 3; i++) {
		memset(memory, 0x90, 64 * (i + 1));
		memcpy(memory + 64 * i, read_code, sizeof(read_code));
		check_reads(call_at(memory));
	}
	CHECK(!memcmp(memory + 128 + 2, read_code + 2, sizeof(read_code) - 2));
	munmap(memory, CODE_BYTES);
}

static void protected(void)
{
	uint8_t *memory = map_code(PROT_READ | PROT_WRITE);

	for (unsigned i = 0; i < 3; i++) {
		CHECK(!mprotect(memory, CODE_BYTES, PROT_READ | PROT_WRITE));
		CHECK(i == 0 || !memcmp(memory, read_code, sizeof(read_code)));
		memcpy(memory, read_code, sizeof(read_code));
		CHECK(!mprotect(memory, CODE_BYTES, PROT_READ | PROT_EXEC));
		check_reads(call_at(memory));
	}
}

/* Written through another mapping than it is executed by. */
static void dual(void)
{
	const int fd = memfd_create("code", 0);
	uint8_t *memory, *code;

	CHECK(fd >= 0 && !ftruncate(fd, CODE_BYTES));
	memory = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	CHECK(memory != MAP_FAILED && code != MAP_FAILED);
	memcpy(memory, read_code, sizeof(read_code));
	CHECK(call_at(code)() != 0);
}

/* A library with bytes in its code of which nobody can tell. */
static void undecoded(void)
{
	CHECK(dlopen(arguments[0], RTLD_NOW));
}

/* --- who reads --- */

static void *in_thread(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	CHECK(!pthread_sigmask(SIG_BLOCK, &all, NULL));
	for (unsigned i = 0; i < 100; i++) {
		read_inline();
		read_at_target();
	}
	return arg;
}

static void threads(void)
{
	pthread_t id[4];

	for (unsigned i = 0; i < 4; i++)
		CHECK(!pthread_create(&id[i], NULL, in_thread, NULL));
	for (unsigned i = 0; i < 4; i++)
		CHECK(!pthread_join(id[i], NULL));
	check_reads(read_inline);
}

static volatile sig_atomic_t handled;

static void read_in_handler(int signo)
{
	check_reads(read_inline);
	check_reads(read_at_target);
	handled = signo;
}

static void handler(void)
{
	struct sigaction action = {.sa_handler = read_in_handler};

	sigfillset(&action.sa_mask);
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	raise(SIGUSR1);
	CHECK(handled == SIGUSR1);
	CHECK(!sigaction(SIGUSR1, NULL, &action));
	CHECK(sigismember(&action.sa_mask, SIGILL) == 1 &&
	      sigismember(&action.sa_mask, SIGSEGV) == 1);
}

static void child(void)
{
	int status;
	const pid_t pid = fork();

	if (!pid) {
		check_reads(read_inline);
		check_reads(read_at_target);
		_exit(7);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
	check_reads(read_inline);
}

static void another(void)
{
	fflush(stdout);
	execl("/proc/self/exe", "counter_reads", "in_line", (char *)NULL);
	CHECK(0);
}

/* --- signals of its own --- */

static sigjmp_buf back;
static siginfo_t seen;

static void jump_back(int signo, siginfo_t *info, void *context)
{
	(void)context;
	seen = *info;
	handled = signo;
	siglongjmp(back, 1);
}

static void skip_two(int signo, siginfo_t *info, void *context)
{
	seen = *info;
	handled = signo;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

extern const uint8_t own_illegal[];

__attribute__((noinline, noclone)) static void run_illegal(void)
{
	__asm__ volatile(".globl own_illegal\nown_illegal: ud2" ::: "memory");
}

static void illegal(void)
{
	const struct sigaction action = {.sa_sigaction = skip_two, .sa_flags = SA_SIGINFO};
	struct sigaction old;

	CHECK(!sigaction(SIGILL, &action, NULL));
	check_reads(read_at_target);
	CHECK(!handled);
	run_illegal();
	CHECK(handled == SIGILL && seen.si_addr == own_illegal);
	check_reads(read_at_target);
	CHECK(!sigaction(SIGILL, NULL, &old));
	CHECK(old.sa_sigaction == skip_two && (old.sa_flags & SA_SIGINFO));
	CHECK(signal(SIGILL, SIG_DFL) != SIG_ERR);
	check_reads(read_at_target);
}

static void segment(void)
{
	const struct sigaction action = {.sa_sigaction = jump_back, .sa_flags = SA_SIGINFO};
	volatile uint8_t *const nowhere = (uint8_t *)0x123000;

	CHECK(!sigaction(SIGSEGV, &action, NULL));
	if (!sigsetjmp(back, 1))
		*nowhere = 1;
	CHECK(handled == SIGSEGV && seen.si_addr == (const void *)nowhere);
	check_reads(read_inline);
}

/* The system is asked for all four in every way; who is asked says what the program wants. */
static void own(void)
{
	static const int signals[] = {SIGSEGV, SIGILL, SIGTRAP, SIGURG};
	sigset_t set, old;

	for (unsigned i = 0; i < 4; i++) {
		struct sigaction action = {.sa_sigaction = jump_back, .sa_flags = SA_SIGINFO}, was;

		handled = 0;
		CHECK(!sigaction(signals[i], &action, NULL));
		CHECK(!sigaction(signals[i], NULL, &was) && was.sa_sigaction == jump_back);
		if (!sigsetjmp(back, 1))
			raise(signals[i]);
		CHECK(handled == signals[i]);
		CHECK(signal(signals[i], SIG_IGN) != SIG_ERR);
		raise(signals[i]);
		CHECK(signal(signals[i], SIG_DFL) == SIG_IGN);
	}
	sigfillset(&set);
	CHECK(!sigprocmask(SIG_SETMASK, &set, NULL));
	check_reads(read_at_target);
	CHECK(!sigprocmask(SIG_BLOCK, NULL, &old));
	for (unsigned i = 0; i < 4; i++)
		CHECK(sigismember(&old, signals[i]) == 1);
	CHECK(!sigprocmask(SIG_UNBLOCK, &set, NULL));
	CHECK(!syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 8));
	check_reads(read_at_target);
	CHECK(!syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &set, &old, 8));
	CHECK(sigismember(&old, SIGILL) == 1);
}

/* Blocked and sent, they wait for the program. */
static void pending(void)
{
	sigset_t set, waiting;
	int signo = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGURG);
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
	raise(SIGURG);
	CHECK(!sigpending(&waiting) && sigismember(&waiting, SIGURG) == 1);
	CHECK(!sigwait(&set, &signo) && signo == SIGURG);
	CHECK(signal(SIGURG, read_in_handler) != SIG_ERR);
	raise(SIGURG);
	CHECK(!handled);
	CHECK(!sigprocmask(SIG_UNBLOCK, &set, NULL));
	CHECK(handled == SIGURG);
}

static void fail(int signo)
{
	printf("the program's handler: signal %d\n", signo);
	fflush(stdout);
	_exit(128 + signo);
}

/* Computes for longer than a thread is left alone, with a handler of what single-steps it. */
static void compute(void)
{
	volatile uint64_t sum = 0;

	CHECK(signal(SIGTRAP, fail) != SIG_ERR);
	for (uint64_t i = 0; i < 200000000; i++)
		sum = sum + i;
	CHECK(sum);
}

static void crash_illegal(void)
{
	run_illegal();
}

static void crash_segment(void)
{
	*(volatile uint8_t *)0x123000 = 1;
}

static void crash_handled(void)
{
	const struct sigaction action = {.sa_handler = fail, .sa_flags = (int)SA_RESETHAND};

	CHECK(!sigaction(SIGTRAP, &action, NULL));
	__asm__ volatile("int3");
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{"in_line", in_line},
	{"processor", processor},
	{"target", target},
	{"registers", registers},
	{"library", library},
	{"generated", generated},
	{"protected", protected},
	{"dual", dual},
	{"undecoded", undecoded},
	{"threads", threads},
	{"handler", handler},
	{"child", child},
	{"another", another},
	{"illegal", illegal},
	{"segment", segment},
	{"own", own},
	{"pending", pending},
	{"compute", compute},
	{"crash_illegal", crash_illegal},
	{"crash_segment", crash_segment},
	{"crash_handled", crash_handled},
};

int main(int argc, char **argv)
{
	arguments = argv + 2;
	for (unsigned i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(modes[i].name, argv[1]))
			continue;
		modes[i].run();
		printf("%s: as it should be\n", argv[1]);
		return 0;
	}
	fprintf(stderr, "no such mode\n");
	return 2;
}
