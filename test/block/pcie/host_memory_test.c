/*
 * Host memory: addresses, aborts, the order in which a program sees the bytes of a write.
 */
#include <check.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "pcie/host_memory.h"

#define ARENA_BYTES 65536u

START_TEST(arenas_have_their_own_addresses_and_numbers_are_reused)
{
	struct rn_host_memory *memory = rn_host_memory_new();
	uint8_t *a = calloc(1, ARENA_BYTES);
	uint8_t *b = calloc(1, ARENA_BYTES);
	uint8_t out[4];

	ck_assert_int_eq(rn_host_memory_add(memory, a, ARENA_BYTES), 0);
	ck_assert_int_eq(rn_host_memory_add(memory, b, ARENA_BYTES), 1);
	ck_assert(rn_host_memory_write(memory, rn_pa(1, 100), "abcd", 4));
	ck_assert_mem_eq(b + 100, "abcd", 4);
	ck_assert_uint_eq(a[100], 0);
	ck_assert(rn_host_memory_read(memory, rn_pa(1, 100), out, 4));
	ck_assert_mem_eq(out, "abcd", 4);
	ck_assert_ptr_eq(rn_host_memory_at(memory, rn_pa(1, 5), 7), b + 5);
	rn_host_memory_remove(memory, 0);
	ck_assert(!rn_host_memory_read(memory, rn_pa(0, 0), out, 4));
	ck_assert_int_eq(rn_host_memory_add(memory, a, ARENA_BYTES), 0);
	rn_host_memory_free(memory);
	free(a);
	free(b);
}
END_TEST

START_TEST(what_is_not_there_aborts_and_reads_as_zeroes)
{
	static const uint64_t offsets[] = {ARENA_BYTES - 63, ARENA_BYTES, (UINT64_C(1) << 48) - 1,
					   (UINT64_C(1) << 48) - 64};
	struct rn_host_memory *memory = rn_host_memory_new();
	uint8_t *bytes = malloc(ARENA_BYTES);
	uint8_t out[64];

	memset(bytes, 0x55, ARENA_BYTES);
	rn_host_memory_add(memory, bytes, ARENA_BYTES);
	for (unsigned i = 0; i < 4; i++) {
		memset(out, 0xff, 64);
		ck_assert(!rn_host_memory_read(memory, offsets[i], out, 64));
		for (unsigned n = 0; n < 64; n++)
			ck_assert_uint_eq(out[n], 0);
		ck_assert(!rn_host_memory_write(memory, offsets[i], out, 64));
		ck_assert_ptr_null(rn_host_memory_at(memory, offsets[i], 64));
	}
	for (uint64_t arena = 1; arena < 65536; arena = arena * 2 + 1)
		ck_assert(!rn_host_memory_write(memory, arena << 48, out, 64));
	ck_assert(!rn_host_memory_write(memory, UINT64_MAX, out, 64));
	ck_assert(rn_host_memory_read(memory, ARENA_BYTES - 64, out, 64));
	ck_assert_uint_eq(bytes[ARENA_BYTES - 1], 0x55);
	rn_host_memory_free(memory);
	free(bytes);
}
END_TEST

START_TEST(there_are_as_many_arenas_as_promised)
{
	struct rn_host_memory *memory = rn_host_memory_new();
	uint8_t byte = 0;

	for (int i = 0; i < RN_ARENAS_MAX; i++)
		ck_assert_int_eq(rn_host_memory_add(memory, &byte, 1), i);
	ck_assert_int_eq(rn_host_memory_add(memory, &byte, 1), -1);
	ck_assert_int_eq(rn_host_memory_add_process(memory, getpid()), -1);
	rn_host_memory_remove(memory, 4711);
	ck_assert_int_eq(rn_host_memory_add_process(memory, getpid()), 4711);
	rn_host_memory_free(memory);
}
END_TEST

/* All sizes and alignments, also over page ends: exactly these bytes change. */
START_TEST(writes_change_their_bytes_and_no_others)
{
	struct rn_host_memory *memory = rn_host_memory_new();
	static uint8_t bytes[1024], from[512];

	for (unsigned i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i | 1);
	int mapped = rn_host_memory_add(memory, bytes, sizeof(bytes));
	int process = rn_host_memory_add_process(memory, getpid());

	for (unsigned len = 1; len <= 300; len += len < 140 ? 1 : 13) {
		for (unsigned offset = 100; offset < 170; offset++) {
			for (int fallback = 0; fallback < 2; fallback++) {
				uint64_t pa = fallback ? rn_pa(process, (uintptr_t)bytes + offset)
						       : rn_pa(mapped, offset);

				memset(bytes, 0, sizeof(bytes));
				ck_assert(rn_host_memory_write(memory, pa, from, len));
				ck_assert_mem_eq(bytes + offset, from, len);
				ck_assert_uint_eq(bytes[offset - 1], 0);
				ck_assert_uint_eq(bytes[offset + len], 0);
			}
		}
	}
	rn_host_memory_free(memory);
}
END_TEST

/*
 * The write is run one instruction at a time (the processor's trap flag), and after each what a
 * program would see is checked: a line has a new byte only when all lines before it are whole,
 * the last byte is new only when all are.
 */
static struct {
	const uint8_t *bytes;
	uint32_t len;
	uint32_t steps;
	uint32_t torn;
	bool is_stepping;
} watch;

static uint32_t first_old(const uint8_t *bytes, uint32_t len)
{
	const uint8_t *found = memchr(bytes, 0, len);

	return found ? (uint32_t)(found - bytes) : len;
}

static void step(int signal, siginfo_t *info, void *context)
{
	ucontext_t *user = context;
	uint32_t whole = first_old(watch.bytes, watch.len);

	(void)signal;
	(void)info;
	if (!watch.is_stepping) {
		user->uc_mcontext.gregs[REG_EFL] &= ~0x100;
		return;
	}
	user->uc_mcontext.gregs[REG_EFL] |= 0x100;
	watch.steps++;
	if (whole == watch.len)
		return;

	/* From the next line on, and in the last byte, nothing may be new. */
	uintptr_t line_end = ((uintptr_t)(watch.bytes + whole) | 63) + 1;

	for (const uint8_t *p = (const uint8_t *)line_end; p < watch.bytes + watch.len; p++)
		watch.torn += *p != 0;
	watch.torn += watch.bytes[watch.len - 1] != 0;
}

START_TEST(lines_are_stored_in_order_and_the_last_byte_last)
{
	static const uint32_t lens[] = {1, 2, 8, 17, 63, 64, 65, 100, 128, 256, 1000, 4096};
	struct rn_host_memory *memory = rn_host_memory_new();
	static _Alignas(64) uint8_t bytes[8192];
	static uint8_t from[4096];
	struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};

	sigaction(SIGTRAP, &action, NULL);
	memset(from, 0x5a, sizeof(from));
	rn_host_memory_add(memory, bytes, sizeof(bytes));
	for (unsigned n = 0; n < sizeof(lens) / sizeof(lens[0]); n++) {
		for (unsigned offset = 0; offset < 64; offset += offset < 4 ? 1 : 12) {
			memset(bytes, 0, sizeof(bytes));
			watch.bytes = bytes + offset;
			watch.len = lens[n];
			watch.steps = 0;
			watch.is_stepping = true;
			raise(SIGTRAP);
			rn_host_memory_write(memory, offset, from, lens[n]);
			watch.is_stepping = false;
			ck_assert_uint_gt(watch.steps, 20);
			ck_assert_uint_eq(watch.torn, 0);
			ck_assert_uint_eq(first_old(watch.bytes, watch.len), watch.len);
		}
	}
	rn_host_memory_free(memory);
}
END_TEST

/* A process that has a page, loses it, and is gone. */
START_TEST(fallback_memory_that_vanished_aborts)
{
	struct rn_host_memory *memory = rn_host_memory_new();
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int go[2], done[2];
	char buf[5000] = "there";

	ck_assert_int_eq(pipe(go) | pipe(done), 0);
	strcpy(page, "child");
	pid_t pid = fork();

	if (!pid) {
		char c;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(go[0], &c, 1) != 1)
			_exit(1);
		munmap(page + 4096, 4096);
		if (write(done[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	int arena = rn_host_memory_add_process(memory, pid);
	uint64_t pa = rn_pa(arena, (uintptr_t)page);

	ck_assert(rn_host_memory_read(memory, pa, buf, 6));
	ck_assert_str_eq(buf, "child");
	ck_assert(rn_host_memory_write(memory, pa + 4000, buf, 200));
	ck_assert_int_eq(write(go[1], "x", 1), 1);
	ck_assert_int_eq(read(done[0], buf, 1), 1);
	ck_assert(!rn_host_memory_write(memory, pa + 4000, buf, 200));
	memset(buf, 1, sizeof(buf));
	ck_assert(!rn_host_memory_read(memory, pa + 4000, buf, 200));
	ck_assert_int_eq(buf[0] | buf[199], 0);
	ck_assert(rn_host_memory_read(memory, pa + 4000, buf, 96));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ck_assert(!rn_host_memory_read(memory, pa, buf, 6));
	rn_host_memory_free(memory);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("host_memory");
	TCase *tcase = tcase_create("host_memory");

	tcase_add_test(tcase, arenas_have_their_own_addresses_and_numbers_are_reused);
	tcase_add_test(tcase, what_is_not_there_aborts_and_reads_as_zeroes);
	tcase_add_test(tcase, there_are_as_many_arenas_as_promised);
	tcase_add_test(tcase, writes_change_their_bytes_and_no_others);
	tcase_add_test(tcase, lines_are_stored_in_order_and_the_last_byte_last);
	tcase_add_test(tcase, fallback_memory_that_vanished_aborts);
	suite_add_tcase(suite, tcase);

	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
