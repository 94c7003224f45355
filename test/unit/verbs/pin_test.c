/* Pinning against a fake driver: every hazard of exchanging memory under a running program. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_sim.h"
#include "run_suite.h"
#include "verbs/conn.h"
#include "verbs/maps.h"
#include "verbs/pin.h"
#include "verbs/touch.h"

#define PAGE RN_PAGE_BYTES

static struct rn_conn *conn;
static struct rn_maps_arena arena;
static const struct fake_sim_options defaults;

static void start_with(const struct fake_sim_options *options)
{
	fake_sim_start(options);
	conn = rn_conn_get();
	ck_assert_ptr_nonnull(conn);
	ck_assert(rn_maps_identify(conn->arena_fd, &arena));
}

static void start(void)
{
	start_with(&defaults);
}

static void stop(void)
{
	rn_conn_put(conn);
	fake_sim_stop();
}

static int pin(const void *addr, size_t bytes)
{
	return rn_pin_range(conn->pin, addr, bytes, RN_PIN_WRITE);
}

static void unpin(const void *addr, size_t bytes)
{
	rn_unpin_range(conn->pin, addr, bytes);
}

static void fill(uint8_t *buf, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		buf[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

static bool is_filled(const uint8_t *buf, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		if (buf[i] != (uint8_t)(i * 7 + i / 251 + seed))
			return false;
	return true;
}

static uint8_t *map_pages(size_t pages)
{
	uint8_t *base = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(base, MAP_FAILED);
	return base;
}

static enum rn_mem_kind kind_of(const void *addr)
{
	const uint64_t va = (uint64_t)(uintptr_t)addr & ~(uint64_t)(PAGE - 1);
	uint8_t kind;

	ck_assert(rn_maps_classify(va, 1, &arena, &kind, NULL, NULL));
	return (enum rn_mem_kind)kind;
}

/* Both sides see what the other writes, at both ends of the buffer. */
static void assert_shared(uint8_t *buf, size_t bytes)
{
	for (unsigned i = 0; i < 2; i++) {
		uint8_t *at = i ? buf + bytes - 1 : buf;
		const uint8_t old = *at;

		*at = (uint8_t)(old + 1);
		ck_assert_uint_eq(fake_sim_peek(at), (uint8_t)(old + 1));
		fake_sim_poke(at, (uint8_t)(old + 2));
		ck_assert_uint_eq(*(volatile uint8_t *)at, (uint8_t)(old + 2));
		*at = old;
	}
}

START_TEST(pinned_heap_keeps_its_contents_and_is_shared_with_the_nic)
{
	const size_t bytes = 100000;
	uint8_t *before = malloc(64), *buf = malloc(bytes), *after = malloc(64);

	memset(before, 1, 64);
	memset(after, 2, 64);
	fill(buf, bytes, 3);
	ck_assert_int_eq(pin(buf, bytes), 0);
	ck_assert_int_eq(kind_of(buf), RN_MEM_ARENA);
	ck_assert(is_filled(buf, bytes, 3));
	ck_assert_uint_eq(before[63], 1);
	ck_assert_uint_eq(after[0], 2);
	assert_shared(buf, bytes);
	unpin(buf, bytes);
	ck_assert_int_eq(kind_of(buf), RN_MEM_PRIVATE);
	ck_assert(is_filled(buf, bytes, 3));
	ck_assert_uint_eq(fake_sim_pinned_pages(), 0);
	free(before);
	free(buf);
	free(after);
	malloc_trim(0);
	free(malloc(bytes));
}
END_TEST

static uint8_t in_bss[3 * PAGE];
static uint8_t in_data[3 * PAGE] = {1, 2, 3};

START_TEST(bss_and_data_are_exchanged)
{
	fill(in_bss, sizeof(in_bss), 1);
	fill(in_data, sizeof(in_data), 2);
	ck_assert_int_eq(pin(in_bss, sizeof(in_bss)), 0);
	ck_assert_int_eq(pin(in_data, sizeof(in_data)), 0);
	ck_assert_int_eq(kind_of(in_bss + PAGE), RN_MEM_ARENA);
	ck_assert_int_eq(kind_of(in_data + PAGE), RN_MEM_ARENA);
	assert_shared(in_bss, sizeof(in_bss));
	assert_shared(in_data, sizeof(in_data));
	unpin(in_bss, sizeof(in_bss));
	unpin(in_data, sizeof(in_data));
	ck_assert(is_filled(in_bss, sizeof(in_bss), 1));
	ck_assert(is_filled(in_data, sizeof(in_data), 2));
}
END_TEST

START_TEST(overlapping_ranges_stay_pinned_until_the_last_goes)
{
	uint8_t *buf = map_pages(16);

	fill(buf, 16 * PAGE, 5);
	ck_assert_int_eq(pin(buf, 10 * PAGE), 0);
	ck_assert_int_eq(pin(buf + 5 * PAGE, 11 * PAGE), 0);
	ck_assert_uint_eq(fake_sim_pinned_pages(), 16);
	unpin(buf, 10 * PAGE);
	ck_assert_uint_eq(fake_sim_pinned_pages(), 11);
	ck_assert_int_eq(kind_of(buf + 4 * PAGE), RN_MEM_PRIVATE);
	ck_assert_int_eq(kind_of(buf + 5 * PAGE), RN_MEM_ARENA);
	assert_shared(buf + 5 * PAGE, 11 * PAGE);
	unpin(buf + 5 * PAGE, 11 * PAGE);
	ck_assert_uint_eq(fake_sim_pinned_pages(), 0);
	ck_assert(is_filled(buf, 16 * PAGE, 5));
}
END_TEST

START_TEST(buffers_in_one_page_keep_it_for_each_other)
{
	uint8_t *page = map_pages(1);

	ck_assert_int_eq(pin(page, 100), 0);
	ck_assert_int_eq(pin(page + 200, 100), 0);
	unpin(page, 100);
	assert_shared(page + 200, 100);
	unpin(page + 200, 100);
	ck_assert_int_eq(kind_of(page), RN_MEM_PRIVATE);
}
END_TEST

START_TEST(a_pinned_block_grows_by_realloc_without_touching_other_frames)
{
	const size_t bytes = 1 << 20;
	uint8_t *buf = malloc(bytes), *other = malloc(bytes), *grown;
	const volatile uintptr_t was = (uintptr_t)buf;

	fill(buf, bytes, 1);
	fill(other, bytes, 2);
	ck_assert_int_eq(pin(buf, bytes), 0);
	ck_assert_int_eq(pin(other, bytes), 0);
	grown = realloc(buf, 4 * bytes);
	ck_assert_ptr_nonnull(grown);
	ck_assert(is_filled(grown, bytes, 1));
	memset(grown + bytes, 0xee, 3 * bytes);
	ck_assert(is_filled(other, bytes, 2));
	unpin((void *)was, bytes);
	unpin(other, bytes);
	ck_assert(is_filled(grown, bytes, 1));
	ck_assert(is_filled(other, bytes, 2));
	free(grown);
	free(other);
}
END_TEST

START_TEST(a_block_in_one_run_grows_by_realloc_too)
{
	const struct fake_sim_options one_run = {.run_pages = 4096};
	const size_t bytes = 1 << 20;
	uint8_t *buf = malloc(bytes), *other = malloc(bytes), *grown;

	stop();
	start_with(&one_run);
	fill(buf, bytes, 1);
	fill(other, bytes, 2);
	ck_assert_int_eq(pin(buf, bytes), 0);
	ck_assert_int_eq(pin(other, bytes), 0);
	grown = realloc(buf, 4 * bytes);
	memset(grown + bytes, 0xee, 3 * bytes);
	ck_assert(is_filled(grown, bytes, 1));
	ck_assert(is_filled(other, bytes, 2));
	free(grown);
	free(other);
}
END_TEST

#define WRITERS 3
#define COUNTERS 64

static _Atomic bool writers_stop;

struct writer {
	volatile uint64_t *counter; /* one in every page */
	uint64_t written;
};

static void *write_counters(void *arg)
{
	struct writer *w = arg;

	while (!writers_stop) {
		for (unsigned i = 0; i < COUNTERS; i++)
			w->counter[i * PAGE / sizeof(uint64_t)]++;
		w->written++;
	}
	return NULL;
}

START_TEST(writers_lose_nothing_while_pages_are_exchanged)
{
	uint8_t *buf = map_pages(COUNTERS);
	struct writer writer[WRITERS];
	pthread_t thread[WRITERS];

	for (unsigned i = 0; i < WRITERS; i++) {
		writer[i] = (struct writer){.counter = (uint64_t *)(void *)buf + i};
		ck_assert_int_eq(pthread_create(&thread[i], NULL, write_counters, &writer[i]), 0);
	}
	for (unsigned i = 0; i < 60; i++) {
		ck_assert_int_eq(pin(buf, COUNTERS * PAGE), 0);
		unpin(buf, COUNTERS * PAGE);
	}
	writers_stop = true;
	for (unsigned i = 0; i < WRITERS; i++) {
		pthread_join(thread[i], NULL);
		ck_assert_uint_gt(writer[i].written, 0);
		for (unsigned n = 0; n < COUNTERS; n++)
			ck_assert_uint_eq(writer[i].counter[n * PAGE / sizeof(uint64_t)],
					  writer[i].written);
	}
}
END_TEST

static _Atomic uint64_t transfers_wrong, transfers_done;

/* The kernel writes into each page, by a thread with all signals blocked; each byte must arrive. */
static void *receive_bytes(void *arg)
{
	uint8_t *buf = arg;
	sigset_t all;
	int ends[2];

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	ck_assert_int_eq(pipe(ends), 0);
	for (uint8_t value = 1; !writers_stop; value++)
		for (unsigned i = 0; i < COUNTERS; i++) {
			uint8_t *at = buf + i * PAGE + PAGE / 2;

			if (write(ends[1], &value, 1) != 1 || read(ends[0], at, 1) != 1 ||
			    *(volatile uint8_t *)at != value)
				transfers_wrong++;
			transfers_done++;
		}
	return NULL;
}

static void *count_with_signals_blocked(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, _NSIG / 8);
	return write_counters(arg);
}

/* Whatever the kernel offers this user: nothing that a thread writes, or has written for it, is lost. */
static void exchange_under_blocked_threads(void)
{
	uint8_t *buf = map_pages(COUNTERS);
	struct writer writer = {.counter = (uint64_t *)(void *)buf};
	pthread_t counter, receiver;

	writers_stop = false;
	transfers_wrong = transfers_done = 0;
	ck_assert_int_eq(pthread_create(&counter, NULL, count_with_signals_blocked, &writer), 0);
	ck_assert_int_eq(pthread_create(&receiver, NULL, receive_bytes, buf), 0);
	while (!transfers_done)
		sched_yield();
	for (unsigned i = 0; i < 40; i++) {
		ck_assert_int_eq(pin(buf, COUNTERS * PAGE), 0);
		unpin(buf, COUNTERS * PAGE);
	}
	writers_stop = true;
	pthread_join(counter, NULL);
	pthread_join(receiver, NULL);
	ck_assert_uint_eq(transfers_wrong, 0);
	for (unsigned n = 0; n < COUNTERS; n++)
		ck_assert_uint_eq(writer.counter[n * PAGE / sizeof(uint64_t)], writer.written);
}

START_TEST(threads_that_block_all_signals_and_system_calls_lose_nothing)
{
	exchange_under_blocked_threads();
}
END_TEST

/* What container runtimes do: this process and its children get EPERM. */
static void refuse_userfaultfd(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, _IO(0xaa, 0), 1, 0), /* /dev/userfaultfd's */
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
	ck_assert_int_eq(syscall(SYS_userfaultfd, 0), -1);
}

START_TEST(without_userfaultfd_memory_of_a_threaded_program_stays_where_it_is)
{
	uint8_t *buf = map_pages(4);
	struct writer writer = {.counter = (uint64_t *)(void *)map_pages(COUNTERS)};
	pthread_t thread;

	refuse_userfaultfd();
	ck_assert_int_eq(pin(buf, PAGE), 0);
	ck_assert_int_eq(kind_of(buf), RN_MEM_ARENA); /* nobody else is there */
	ck_assert_int_eq(pthread_create(&thread, NULL, write_counters, &writer), 0);
	ck_assert_int_eq(pin(buf + 2 * PAGE, PAGE), 0);
	ck_assert_int_eq(kind_of(buf + 2 * PAGE), RN_MEM_PRIVATE);
	unpin(buf + 2 * PAGE, PAGE);
	unpin(buf, PAGE);
	ck_assert_int_eq(kind_of(buf), RN_MEM_ARENA); /* its last writes must not get lost */
	writers_stop = true;
	pthread_join(thread, NULL);
	exchange_under_blocked_threads();
}
END_TEST

START_TEST(a_closed_descriptor_of_the_library_does_not_hurt)
{
	struct writer writer = {.counter = (uint64_t *)(void *)map_pages(COUNTERS)};
	uint8_t *buf = map_pages(2);
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, write_counters, &writer), 0);
	ck_assert_int_eq(pin(buf, PAGE), 0);
	for (int fd = 3; fd < 64; fd++)
		if (fd != conn->fd && fd != conn->arena_fd)
			close(fd);
	ck_assert_int_eq(pin(buf + PAGE, PAGE), 0);
	assert_shared(buf, PAGE);
	assert_shared(buf + PAGE, PAGE);
	writers_stop = true;
	pthread_join(thread, NULL);
}
END_TEST

/* Exit status of a child that runs @body on its copy of @buf. */
static int in_child(int (*body)(uint8_t *buf), uint8_t *buf)
{
	int status;
	const pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (child == 0)
		_exit(body(buf));
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int scribble(uint8_t *buf)
{
	volatile uint8_t deep[200000]; /* the stack still is the child's own */

	if (!is_filled(buf, 64 * PAGE, 9) || !rn_conn_is_dead(conn))
		return 1;
	if (kind_of(buf) == RN_MEM_ARENA)
		return 2;
	memset(buf, 0xff, 64 * PAGE);
	deep[0] = deep[sizeof(deep) - 1] = 1;
	return deep[0] == 1 ? 0 : 3;
}

START_TEST(after_fork_neither_sees_the_others_writes)
{
	uint8_t *buf = map_pages(64);

	fill(buf, 64 * PAGE, 9);
	ck_assert_int_eq(pin(buf, 64 * PAGE), 0);
	ck_assert_int_eq(in_child(scribble, buf), 0);
	ck_assert(is_filled(buf, 64 * PAGE, 9));
	assert_shared(buf, 64 * PAGE);
	unpin(buf, 64 * PAGE);
	ck_assert_uint_eq(fake_sim_pinned_pages(), 0);
}
END_TEST

static int connect_afresh(uint8_t *buf)
{
	struct rn_conn *mine;

	ck_assert(rn_conn_is_dead(conn));
	mine = rn_conn_get();
	if (!mine || mine == conn)
		return 1;
	conn = mine;
	if (pin(buf, 64 * PAGE))
		return 2;
	fake_sim_poke(buf, 42);
	return buf[0] == 42 ? 0 : 3;
}

START_TEST(a_child_that_connects_afresh_pins_its_own_copy)
{
	uint8_t *buf = map_pages(64);

	fill(buf, 64 * PAGE, 9);
	ck_assert_int_eq(pin(buf, 64 * PAGE), 0);
	ck_assert_int_eq(in_child(connect_afresh, buf), 0);
	ck_assert(is_filled(buf, 64 * PAGE, 9));
	assert_shared(buf, 64 * PAGE);
}
END_TEST

START_TEST(beyond_the_kernels_limit_of_mappings_pages_stay_and_are_reached)
{
	const struct fake_sim_options single = {.run_pages = 1};
	const size_t pages = 20000, filler = 50000;
	uint8_t *buf, *fillers;

	stop();
	start_with(&single);
	buf = map_pages(pages);
	fill(buf, pages * PAGE, 4);
	fillers = map_pages(filler);
	for (size_t i = 0; i < filler; i += 2)
		if (mprotect(fillers + i * PAGE, PAGE, PROT_READ))
			break;
	ck_assert_int_eq(pin(buf, pages * PAGE), 0);
	ck_assert_int_eq(kind_of(buf + (pages - 1) * PAGE), RN_MEM_PRIVATE);
	ck_assert_uint_eq(fake_sim_pinned_pages(), pages);
	ck_assert(is_filled(buf, pages * PAGE, 4));
	assert_shared(buf, pages * PAGE);
	unpin(buf, pages * PAGE);
	ck_assert_uint_eq(fake_sim_pinned_pages(), 0);
	ck_assert(is_filled(buf, pages * PAGE, 4));
}
END_TEST

/* Memory of which every second page is registered: as many mappings as registrations. */
static uint64_t exchanged_pages(size_t count)
{
	uint8_t *buf = map_pages(2 * count);
	uint64_t exchanged = 0;

	for (size_t i = 0; i < count; i++)
		ck_assert_int_eq(pin(buf + 2 * i * PAGE, PAGE), 0);
	for (size_t i = 0; i < count; i++)
		exchanged += kind_of(buf + 2 * i * PAGE) == RN_MEM_ARENA;
	assert_shared(buf + (2 * count - 2) * PAGE, PAGE);
	for (size_t i = 0; i < count; i++)
		unpin(buf + 2 * i * PAGE, PAGE);
	ck_assert_uint_eq(fake_sim_pinned_pages(), 0);
	munmap(buf, 2 * count * PAGE);
	return exchanged;
}

/* Mappings looked at for each registration and its end. */
static uint64_t looked_at(size_t count)
{
	const uint64_t before = rn_maps_looked_at();

	exchanged_pages(count);
	return (rn_maps_looked_at() - before) / count;
}

START_TEST(registering_a_page_costs_the_same_however_many_there_are)
{
	const uint64_t few = looked_at(50), many = looked_at(1500);

	ck_assert_uint_gt(few, 0);
	ck_assert_uint_le(many, few + 1);
}
END_TEST

START_TEST(on_older_kernels_the_address_map_stays_short)
{
	stop();
	rn_maps_allow_query(false);
	start();
	ck_assert(!rn_maps_is_quick());
	ck_assert_uint_eq(exchanged_pages(100), 100);
	ck_assert_uint_lt(exchanged_pages(3000), 2000);
}
END_TEST

/* What is mapped but not there: pages behind the end of a file that is shorter than its mapping. */
static uint8_t *map_short_file(size_t file_pages, size_t pages, int *fd)
{
	uint8_t *base;

	*fd = memfd_create("short", MFD_CLOEXEC);
	ck_assert_int_eq(ftruncate(*fd, (off_t)(file_pages * PAGE)), 0);
	base = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	ck_assert_ptr_ne(base, MAP_FAILED);
	return base;
}

START_TEST(pages_behind_the_end_of_their_file_are_refused)
{
	int fd;
	uint8_t *base;

	rn_touch_allow_populate(_i == 0);
	rn_maps_allow_query(_i == 0);
	base = map_short_file(70, 100, &fd);
	ck_assert_int_eq(pin(base, 100 * PAGE), EFAULT);
	ck_assert_int_eq(pin(base, 71 * PAGE), EFAULT);
	ck_assert_int_eq(rn_pin_range(conn->pin, base, 71 * PAGE, 0), EFAULT);
	ck_assert_int_eq(pin(base + 70 * PAGE, 1), EFAULT);
	ck_assert_uint_eq(fake_sim_pinned_pages(), 0);
	ck_assert_int_eq(pin(base, 70 * PAGE), 0);
	assert_shared(base, 70 * PAGE);
	unpin(base, 70 * PAGE);
}
END_TEST

START_TEST(what_may_not_be_accessed_is_refused)
{
	uint8_t *base = map_pages(8);

	rn_touch_allow_populate(_i == 0);
	rn_maps_allow_query(_i == 0);
	mprotect(base + PAGE, PAGE, PROT_NONE);
	mprotect(base + 3 * PAGE, PAGE, PROT_READ);
	munmap(base + 5 * PAGE, PAGE);
	ck_assert_int_eq(pin(base, 2 * PAGE), EFAULT);
	ck_assert_int_eq(rn_pin_range(conn->pin, base, 2 * PAGE, 0), EFAULT);
	ck_assert_int_eq(pin(base + 2 * PAGE, 2 * PAGE), EFAULT);
	ck_assert_int_eq(pin(base + 4 * PAGE, 2 * PAGE), EFAULT);
	ck_assert_int_eq(rn_pin_range(conn->pin, base + 4 * PAGE, 3 * PAGE, 0), EFAULT);
	ck_assert_uint_eq(fake_sim_pinned_pages(), 0);
	ck_assert_int_eq(rn_pin_range(conn->pin, base + 2 * PAGE, 3 * PAGE, 0), 0);
	rn_unpin_range(conn->pin, base + 2 * PAGE, 3 * PAGE);
	/* Pinned memory that the program has locked since. */
	ck_assert_int_eq(pin(base, PAGE), 0);
	mprotect(base, PAGE, PROT_READ);
	ck_assert_int_eq(pin(base, PAGE), EFAULT);
	ck_assert_int_eq(rn_pin_range(conn->pin, base, PAGE, 0), 0);
}
END_TEST

START_TEST(protection_outlives_pinning_and_so_do_the_bytes)
{
	const int protections[] = {PROT_NONE, PROT_READ};
	uint8_t *buf = map_pages(4);

	fill(buf, 4 * PAGE, 3);
	ck_assert_int_eq(pin(buf, 4 * PAGE), 0);
	ck_assert_int_eq(mprotect(buf + PAGE, PAGE, protections[_i]), 0);
	fake_sim_poke(buf + PAGE + 5, 77); /* the page stays pinned: the NIC's write arrives */
	unpin(buf, 4 * PAGE);
	ck_assert_uint_eq(fake_sim_pinned_pages(), 0);
	ck_assert_int_eq(kind_of(buf + PAGE), _i ? RN_MEM_READ_ONLY : RN_MEM_NO_ACCESS);
	ck_assert_int_eq(mprotect(buf + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	ck_assert_uint_eq(buf[PAGE + 5], 77);
	buf[PAGE + 5] = (uint8_t)((PAGE + 5) * 7 + (PAGE + 5) / 251 + 3);
	ck_assert(is_filled(buf, 4 * PAGE, 3));
}
END_TEST

START_TEST(pages_that_the_program_moves_keep_their_bytes)
{
	uint8_t *buf = map_pages(4), *elsewhere = map_pages(1);

	fill(buf, 4 * PAGE, 3);
	ck_assert_int_eq(pin(buf, 4 * PAGE), 0);
	ck_assert_ptr_eq(mremap(buf + 2 * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
				elsewhere),
			 elsewhere);
	fake_sim_poke(buf + 2 * PAGE + 9, 78); /* the frame moved along */
	ck_assert_uint_eq(elsewhere[9], 78);
	unpin(buf, 4 * PAGE);
	ck_assert_uint_eq(fake_sim_pinned_pages(), 0);
	ck_assert_int_eq(kind_of(elsewhere), RN_MEM_PRIVATE);
	ck_assert_uint_eq(elsewhere[9], 78);
	ck_assert_uint_eq(elsewhere[10],
			  (uint8_t)((2 * PAGE + 10) * 7 + (2 * PAGE + 10) / 251 + 3));
	ck_assert(is_filled(buf, 2 * PAGE, 3));
}
END_TEST

START_TEST(madvise_dontneed_leaves_program_and_nic_with_the_same_bytes)
{
	uint8_t *buf = map_pages(4);

	fill(buf, 4 * PAGE, 1);
	ck_assert_int_eq(pin(buf, 4 * PAGE), 0);
	ck_assert_int_eq(madvise(buf, 4 * PAGE, MADV_DONTNEED), 0);
	ck_assert_uint_eq(buf[PAGE], fake_sim_peek(buf + PAGE));
	assert_shared(buf, 4 * PAGE);
	unpin(buf, 4 * PAGE);
}
END_TEST

START_TEST(stack_memory_is_reached_through_the_process)
{
	uint8_t local[3 * PAGE];

	fill(local, sizeof(local), 1);
	ck_assert_int_eq(pin(local, sizeof(local)), 0);
	ck_assert_int_eq(kind_of(local + PAGE), RN_MEM_OTHER);
	assert_shared(local, sizeof(local));
	unpin(local, sizeof(local));
	ck_assert(is_filled(local, sizeof(local), 1));
	ck_assert_uint_eq(fake_sim_pinned_pages(), 0);
}
END_TEST

static pthread_barrier_t barrier;

static void *lend_stack(void *arg)
{
	uint8_t local[2 * PAGE];

	fill(local, sizeof(local), 6);
	*(uint8_t **)arg = local;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return is_filled(local, sizeof(local), 6) ? NULL : arg;
}

START_TEST(another_threads_stack_is_recognised)
{
	uint8_t *local = NULL;
	pthread_t thread;
	void *result;

	pthread_barrier_init(&barrier, NULL, 2);
	ck_assert_int_eq(pthread_create(&thread, NULL, lend_stack, &local), 0);
	pthread_barrier_wait(&barrier);
	ck_assert_int_eq(kind_of(local), RN_MEM_OTHER);
	ck_assert_int_eq(pin(local, 2 * PAGE), 0);
	assert_shared(local, 2 * PAGE);
	unpin(local, 2 * PAGE);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, &result);
	ck_assert_ptr_null(result);
}
END_TEST

START_TEST(shared_memory_stays_shared)
{
	uint8_t *buf =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_int_eq(pin(buf, 2 * PAGE), 0);
	ck_assert_int_eq(kind_of(buf), RN_MEM_OTHER);
	assert_shared(buf, 2 * PAGE);
	unpin(buf, 2 * PAGE);
	ck_assert_uint_eq(fake_sim_pinned_pages(), 0);
}
END_TEST

START_TEST(memory_may_be_unmapped_before_it_is_unpinned)
{
	uint8_t *buf = map_pages(8), *again;

	ck_assert_int_eq(pin(buf, 8 * PAGE), 0);
	munmap(buf + 2 * PAGE, 6 * PAGE);
	unpin(buf, 8 * PAGE);
	ck_assert_uint_eq(fake_sim_pinned_pages(), 0);
	again = mmap(buf + 2 * PAGE, 6 * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ck_assert_ptr_eq(again, buf + 2 * PAGE);
	ck_assert_int_eq(pin(buf, 8 * PAGE), 0);
	assert_shared(buf, 8 * PAGE);
}
END_TEST

START_TEST(memory_mapped_anew_while_pinned_is_exchanged_by_the_next_pin)
{
	uint8_t *buf = map_pages(4);

	ck_assert_int_eq(pin(buf, 4 * PAGE), 0);
	ck_assert_ptr_eq(mmap(buf, 4 * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 buf);
	fill(buf, 4 * PAGE, 7);
	ck_assert_int_eq(pin(buf, 4 * PAGE), 0);
	ck_assert(is_filled(buf, 4 * PAGE, 7));
	assert_shared(buf, 4 * PAGE);
	unpin(buf, 4 * PAGE);
	assert_shared(buf, 4 * PAGE);
	unpin(buf, 4 * PAGE);
	ck_assert(is_filled(buf, 4 * PAGE, 7));
	ck_assert_uint_eq(fake_sim_pinned_pages(), 0);
}
END_TEST

START_TEST(memory_the_program_cannot_use_is_refused)
{
	uint8_t *buf = map_pages(4);

	mprotect(buf + 2 * PAGE, PAGE, PROT_NONE);
	mprotect(buf + PAGE, PAGE, PROT_READ);
	munmap(buf + 3 * PAGE, PAGE);
	ck_assert_int_eq(pin(buf, 2 * PAGE), EFAULT);
	ck_assert_int_eq(pin(buf + 2 * PAGE, 10), EFAULT);
	ck_assert_int_eq(pin(buf + 3 * PAGE, 10), EFAULT);
	ck_assert_int_eq(pin((void *)-100, 200), EFAULT);
	ck_assert_uint_eq(fake_sim_pinned_pages(), 0);
	ck_assert_int_eq(rn_pin_range(conn->pin, buf + PAGE, PAGE, 0), 0);
	ck_assert_uint_eq(fake_sim_peek(buf + PAGE), 0);
}
END_TEST

START_TEST(a_refusal_in_the_middle_undoes_the_beginning)
{
	const size_t pages = 3000; /* several requests */
	uint8_t *buf = map_pages(pages);

	fill(buf, pages * PAGE, 3);
	munmap(buf + (pages - 1) * PAGE, PAGE);
	ck_assert_int_eq(pin(buf, pages * PAGE), EFAULT);
	ck_assert_uint_eq(fake_sim_pinned_pages(), 0);
	ck_assert_int_eq(kind_of(buf), RN_MEM_PRIVATE);
	ck_assert(is_filled(buf, (pages - 1) * PAGE, 3));
}
END_TEST

static sigjmp_buf jump;
static volatile sig_atomic_t caught;

static void on_fault(int signo)
{
	(void)signo;
	caught++;
	siglongjmp(jump, 1);
}

START_TEST(faults_of_the_program_reach_its_own_handler)
{
	const struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};
	uint8_t *buf = map_pages(2);

	sigaction(SIGSEGV, &action, NULL);
	ck_assert_int_eq(pin(buf, PAGE), 0);
	mprotect(buf + PAGE, PAGE, PROT_NONE);
	for (int i = 1; i <= 3; i++) {
		if (sigsetjmp(jump, 1) == 0)
			*(volatile uint8_t *)(buf + PAGE) = 1;
		ck_assert_int_eq(caught, i);
	}
}
END_TEST

START_TEST(a_fault_without_a_handler_ends_the_program)
{
	const pid_t child = fork();
	int status;

	if (child == 0) {
		const struct sigaction action = {.sa_handler = SIG_DFL};

		sigaction(SIGSEGV, &action, NULL);
		conn = rn_conn_get();
		pin(map_pages(1), PAGE);
		*(volatile uint8_t *)(uintptr_t)getpagesize() = 1;
		_exit(0);
	}
	waitpid(child, &status, 0);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGSEGV);
}
END_TEST

START_TEST(memory_comes_back_when_the_simulator_has_died)
{
	uint8_t *buf = map_pages(40);

	fill(buf, 40 * PAGE, 2);
	ck_assert_int_eq(pin(buf, 40 * PAGE), 0);
	fake_sim_kill();
	unpin(buf, 20 * PAGE);
	ck_assert_int_eq(kind_of(buf), RN_MEM_PRIVATE);
	ck_assert_int_eq(pin(buf, PAGE), EIO);
	ck_assert(is_filled(buf, 40 * PAGE, 2));
}
END_TEST

START_TEST(disconnecting_brings_everything_back)
{
	uint8_t *buf = map_pages(3000);

	fill(buf, 3000 * PAGE, 2);
	ck_assert_int_eq(pin(buf, 3000 * PAGE), 0);
	rn_conn_put(conn);
	ck_assert(is_filled(buf, 3000 * PAGE, 2));
	conn = rn_conn_get();
	ck_assert_int_eq(kind_of(buf), RN_MEM_PRIVATE);
	ck_assert_int_eq(kind_of(buf + 2999 * PAGE), RN_MEM_PRIVATE);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("pin");

	tcase_add_checked_fixture(tc, start, stop);
	tcase_add_test(tc, pinned_heap_keeps_its_contents_and_is_shared_with_the_nic);
	tcase_add_test(tc, bss_and_data_are_exchanged);
	tcase_add_test(tc, overlapping_ranges_stay_pinned_until_the_last_goes);
	tcase_add_test(tc, buffers_in_one_page_keep_it_for_each_other);
	tcase_add_test(tc, a_pinned_block_grows_by_realloc_without_touching_other_frames);
	tcase_add_test(tc, a_block_in_one_run_grows_by_realloc_too);
	tcase_add_test(tc, writers_lose_nothing_while_pages_are_exchanged);
	tcase_add_test(tc, threads_that_block_all_signals_and_system_calls_lose_nothing);
	tcase_add_test(tc, without_userfaultfd_memory_of_a_threaded_program_stays_where_it_is);
	tcase_add_test(tc, a_closed_descriptor_of_the_library_does_not_hurt);
	tcase_add_test(tc, after_fork_neither_sees_the_others_writes);
	tcase_add_test(tc, a_child_that_connects_afresh_pins_its_own_copy);
	tcase_add_test(tc, beyond_the_kernels_limit_of_mappings_pages_stay_and_are_reached);
	if (rn_maps_is_quick())
		tcase_add_test(tc, registering_a_page_costs_the_same_however_many_there_are);
	tcase_add_test(tc, on_older_kernels_the_address_map_stays_short);
	tcase_add_loop_test(tc, pages_behind_the_end_of_their_file_are_refused, 0, 2);
	tcase_add_loop_test(tc, what_may_not_be_accessed_is_refused, 0, 2);
	tcase_add_loop_test(tc, protection_outlives_pinning_and_so_do_the_bytes, 0, 2);
	tcase_add_test(tc, pages_that_the_program_moves_keep_their_bytes);
	tcase_add_test(tc, madvise_dontneed_leaves_program_and_nic_with_the_same_bytes);
	tcase_add_test(tc, stack_memory_is_reached_through_the_process);
	tcase_add_test(tc, another_threads_stack_is_recognised);
	tcase_add_test(tc, shared_memory_stays_shared);
	tcase_add_test(tc, memory_may_be_unmapped_before_it_is_unpinned);
	tcase_add_test(tc, memory_mapped_anew_while_pinned_is_exchanged_by_the_next_pin);
	tcase_add_test(tc, memory_the_program_cannot_use_is_refused);
	tcase_add_test(tc, a_refusal_in_the_middle_undoes_the_beginning);
	tcase_add_test(tc, faults_of_the_program_reach_its_own_handler);
	tcase_add_test(tc, a_fault_without_a_handler_ends_the_program);
	tcase_add_test(tc, memory_comes_back_when_the_simulator_has_died);
	tcase_add_test(tc, disconnecting_brings_everything_back);
	return run_suite(tc, "pin");
}
