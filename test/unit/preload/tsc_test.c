/*
 * The finder and the patcher, on this very program and on a library without symbols.
 */
#include <check.h>
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "preload/tsc/find.h"
#include "preload/tsc/patch.h"
#include "preload/tsc/sites.h"
#include "run_suite.h"
#include "unit/preload/patterns.h"

extern volatile unsigned calls;
volatile unsigned calls;
static volatile unsigned signals;

/* The counter of these tests; flags and other registers stay. */
void counter_entry(void);
__asm__(".pushsection .text\n"
	"counter_entry:\n"
	"	pushfq\n"
	"	incl calls(%rip)\n"
	"	popfq\n"
	"	mov $0x11223344,%eax\n"
	"	mov $0x55667788,%edx\n"
	"	ret\n"
	".popsection\n");

static void on_illegal(int signo, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint8_t bytes = rn_tsc_sites_bytes((uintptr_t)regs[REG_RIP]);

	(void)info;
	if (!bytes)
		_exit(signo);
	signals++;
	regs[REG_RAX] = PATTERN_LOW;
	regs[REG_RDX] = PATTERN_HIGH;
	if (bytes == 3)
		regs[REG_RCX] = 0;
	regs[REG_RIP] += bytes;
}

static void catch_illegal(void)
{
	const struct sigaction action = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO};

	sigaction(SIGILL, &action, NULL);
}

static struct rn_map map_of(const void *at, struct rn_maps *maps)
{
	struct rn_map map;

	ck_assert(rn_maps_read(maps));
	while (rn_maps_next(maps, &map))
		if ((uintptr_t)at >= map.start && (uintptr_t)at < map.end)
			return map;
	ck_abort_msg("not mapped");
}

static void find_in(const struct rn_map *map, struct rn_tsc_found *found)
{
	struct rn_elf elf;

	ck_assert(rn_elf_open(&elf, map));
	ck_assert(rn_tsc_find(map->start, map->end, &elf, found));
	rn_elf_close(&elf);
}

static void rewrite(const struct rn_map *map, const struct rn_tsc_found *found, bool jumps)
{
	struct rn_tsc_arena arena;

	ck_assert(rn_tsc_arena_make(&arena, map->start, map->end, found->sites, counter_entry));
	ck_assert(rn_tsc_open_code(map->start, map->end, map->prot));
	for (size_t i = 0; i < found->sites; i++) {
		const uint8_t *trampoline =
			jumps ? rn_tsc_trampoline(&arena, &found->site[i]) : NULL;

		ck_assert(rn_tsc_sites_add(found->site[i].at, found->site[i].bytes));
		rn_tsc_write_ud2(&found->site[i]);
		if (trampoline)
			rn_tsc_write_jump(&found->site[i], trampoline);
	}
	rn_tsc_close_code(map->start, map->end, map->prot);
	rn_tsc_arena_seal(&arena);
}

static const struct rn_tsc_site *site_in(const struct rn_tsc_found *found,
					 const struct pattern *pattern)
{
	const uintptr_t start = (uintptr_t)pattern->run;

	for (size_t i = 0; i < found->sites; i++)
		if (found->site[i].function == start)
			return &found->site[i];
	return NULL;
}

static void run_patterns(bool jumps)
{
	struct rn_tsc_found found;
	struct rn_maps maps;
	const struct rn_map map = map_of((const void *)(uintptr_t)patterns[0].run, &maps);

	find_in(&map, &found);
	ck_assert_uint_eq(found.undecided, 0);
	rewrite(&map, &found, jumps);
	catch_illegal();
	for (unsigned i = 0; i < pattern_count; i++) {
		const struct pattern *pattern = &patterns[i];
		const uint64_t result = pattern->run(pattern->argument);

		ck_assert_msg(result == pattern->result, "%s: %#lx instead of %#lx", pattern->name,
			      (unsigned long)result, (unsigned long)pattern->result);
	}
	rn_tsc_found_fini(&found);
	rn_maps_fini(&maps);
}

START_TEST(each_site_is_found_and_windows_stop_at_what_may_be_entered)
{
	struct rn_tsc_found found;
	struct rn_maps maps;
	const struct rn_map map = map_of((const void *)(uintptr_t)patterns[0].run, &maps);

	find_in(&map, &found);
	for (unsigned i = 0; i < pattern_count; i++) {
		const struct rn_tsc_site *site = site_in(&found, &patterns[i]);

		ck_assert_msg(!site == !patterns[i].count, "%s", patterns[i].name);
		if (site)
			ck_assert_msg(!site->window == !patterns[i].is_jump, "%s: %u",
				      patterns[i].name, site->window);
	}
	rn_tsc_found_fini(&found);
	rn_maps_fini(&maps);
}
END_TEST

START_TEST(rewritten_code_computes_what_it_did)
{
	run_patterns(true);
	ck_assert_uint_ge(calls, 10);
	ck_assert_uint_ge(signals, 7);
}
END_TEST

START_TEST(code_rewritten_by_signals_alone_computes_what_it_did)
{
	run_patterns(false);
	ck_assert_uint_eq(calls, 0);
}
END_TEST

START_TEST(called_code_without_symbols_is_found_and_a_table_is_not_changed)
{
	static const uint8_t bytes[] = {0x0f, 0x31, 0x0f, 0x31};
	void *library = dlopen(RN_TSC_BARE, RTLD_NOW);
	uint64_t (*bare_read)(void);
	const uint8_t *(*bare_table)(void);
	struct rn_tsc_found found;
	struct rn_maps maps;
	struct rn_map map;

	ck_assert_msg(library != NULL, "%s", dlerror());
	*(void **)&bare_read = dlsym(library, "bare_read");
	*(void **)&bare_table = dlsym(library, "bare_table");
	map = map_of((const void *)(uintptr_t)bare_read, &maps);
	find_in(&map, &found);
	ck_assert_uint_eq(found.sites, 1);
	ck_assert_uint_eq(found.undecided, 2);
	rewrite(&map, &found, true);
	catch_illegal();
	ck_assert_uint_eq(bare_read(), ((uint64_t)PATTERN_HIGH << 32) | PATTERN_LOW);
	ck_assert_mem_eq(bare_table(), bytes, sizeof(bytes));
	rn_tsc_found_fini(&found);
	rn_maps_fini(&maps);
}
END_TEST

START_TEST(generated_code_is_decoded_from_its_beginning)
{
	/* rdtsc; shl $32,%rdx; or %rdx,%rax; ret; then a constant that looks like one */
	static const uint8_t code[] = {0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48,
				       0x09, 0xd0, 0xc3, 0x0f, 0x31, 0x0f, 0x31};
	uint8_t *memory =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rn_tsc_found found;

	memcpy(memory, code, sizeof(code));
	ck_assert(rn_tsc_find((uintptr_t)memory, (uintptr_t)memory + 4096, NULL, &found));
	ck_assert_uint_eq(found.sites, 1);
	ck_assert_uint_eq(found.site[0].at, (uintptr_t)memory);
	ck_assert_uint_eq(found.site[0].window, 6);
	ck_assert_uint_eq(found.undecided, 2);
	rn_tsc_found_fini(&found);
}
END_TEST

START_TEST(a_thousand_sites_are_known_and_nothing_else_is)
{
	for (uintptr_t at = 0x1000; at < 0x1000 + 3000; at += 3)
		ck_assert(rn_tsc_sites_add(at, at & 1 ? 2 : 3));
	for (uintptr_t at = 0x1000; at < 0x1000 + 3000; at++)
		ck_assert_uint_eq(rn_tsc_sites_bytes(at), (at - 0x1000) % 3 ? 0 : at & 1 ? 2 : 3);
	ck_assert_uint_eq(rn_tsc_sites_bytes(0xfff), 0);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("tsc");

	tcase_add_test(tcase, each_site_is_found_and_windows_stop_at_what_may_be_entered);
	tcase_add_test(tcase, rewritten_code_computes_what_it_did);
	tcase_add_test(tcase, code_rewritten_by_signals_alone_computes_what_it_did);
	tcase_add_test(tcase, called_code_without_symbols_is_found_and_a_table_is_not_changed);
	tcase_add_test(tcase, generated_code_is_decoded_from_its_beginning);
	tcase_add_test(tcase, a_thousand_sites_are_known_and_nothing_else_is);
	return run_suite(tcase, "tsc");
}
