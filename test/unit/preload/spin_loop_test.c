/* Loops carried out on a copy of the registers, against what the processor makes of the same instructions. */
#include <stdbool.h>
#include <string.h>

#include "preload/spin_loop.h"
#include "run_suite.h"

#define CARRY_TO_OVERFLOW 0x8d5

static volatile uint64_t word;
static greg_t regs[NGREG];

static unsigned read_plainly(uintptr_t ip, uint8_t *code, unsigned bytes)
{
	memcpy(code, (const void *)ip, bytes);
	return bytes;
}

/* Room behind the code: the decoder may look at 15 bytes. */
static enum rn_loop_end run(const void *code, size_t bytes, uintptr_t *at)
{
	static uint8_t memory[64];

	memset(memory, 0x0f, sizeof(memory)); /* 0f 0f: no instruction that is carried out */
	memcpy(memory, code, bytes);
	*at = (uintptr_t)memory;
	regs[REG_RIP] = (greg_t)*at;
	return rn_loop_run(regs, read_plainly);
}

#define RUN(code, at) run(code, sizeof(code) - 1, at)

static void clear(void)
{
	memset(regs, 0, sizeof(regs));
	word = 0;
	regs[REG_RDI] = (greg_t)(uintptr_t)&word;
}

START_TEST(a_loop_that_waits_for_a_byte_is_the_same_until_it_comes)
{
	static const char code[] = "\x38\x07\x75\xfc"; /* cmp %al,(%rdi); jne */
	uintptr_t at;

	regs[REG_RAX] = 7;
	/* The flags of the first comparison are those of all. */
	ck_assert_int_eq(RUN(code, &at), RN_LOOP_CHANGED);
	ck_assert_int_eq(RUN(code, &at), RN_LOOP_SAME);
	word = 7;
	ck_assert_int_eq(RUN(code, &at), RN_LOOP_LEFT);
	ck_assert_uint_eq((uintptr_t)regs[REG_RIP], at + 4);
	ck_assert(regs[REG_EFL] & 0x40);
}
END_TEST

START_TEST(loads_extend_as_their_instruction_says)
{
	uintptr_t at;

	word = 0x80;
	regs[REG_RAX] = regs[REG_RCX] = regs[REG_RDX] = -1;
	/* movzbl (%rdi),%eax; movsbq (%rdi),%rcx; mov (%rdi),%dl */
	ck_assert_int_eq(RUN("\x0f\xb6\x07\x48\x0f\xbe\x0f\x8a\x17", &at), RN_LOOP_LEFT);
	ck_assert_uint_eq((uintptr_t)regs[REG_RIP], at + 9);
	ck_assert_uint_eq((uint64_t)regs[REG_RAX], 0x80);
	ck_assert_uint_eq((uint64_t)regs[REG_RCX], UINT64_MAX - 0x7f);
	ck_assert_uint_eq((uint64_t)regs[REG_RDX], UINT64_MAX - 0x7f);
}
END_TEST

START_TEST(addresses_have_base_index_and_distance)
{
	uintptr_t at;

	word = UINT64_C(0x1122334455667788);
	regs[REG_RSI] = 2;
	/* movzwl -1(%rdi,%rsi,2),%eax; lea 5(%rdi,%rsi,8),%rcx */
	ck_assert_int_eq(RUN("\x0f\xb7\x44\x77\xff\x48\x8d\x4c\xf7\x05", &at), RN_LOOP_LEFT);
	ck_assert_uint_eq((uintptr_t)regs[REG_RIP], at + 10);
	ck_assert_uint_eq((uint64_t)regs[REG_RAX], 0x4455);
	ck_assert_uint_eq((uint64_t)regs[REG_RCX], (uintptr_t)&word + 21);
}
END_TEST

START_TEST(a_loop_that_counts_has_changed)
{
	uintptr_t at;

	/* add $1,%rcx; cmpb $0,(%rdi); je */
	ck_assert_int_eq(RUN("\x48\x83\xc1\x01\x80\x3f\x00\x74\xf7", &at), RN_LOOP_CHANGED);
	ck_assert_uint_eq((uint64_t)regs[REG_RCX], 1);
	ck_assert_uint_eq((uintptr_t)regs[REG_RIP], at);
}
END_TEST

START_TEST(stores_calls_and_vectors_are_left_alone)
{
	static const struct {
		const char *code;
		size_t bytes;
	} kinds[] = {
		{"\x88\x07", 2},			 /* mov %al,(%rdi) */
		{"\x83\x07\x01", 3},			 /* addl $1,(%rdi) */
		{"\xf0\x83\x07\x01", 4},		 /* lock */
		{"\xe8\x00\x00\x00\x00", 5},		 /* call */
		{"\x66\x0f\x6f\x07", 4},		 /* movdqa */
		{"\x64\x8b\x04\x25\x00\x00\x00\x00", 8}, /* mov %fs:0,%eax */
		{"\x86\xc4", 2},			 /* xchg %al,%ah */
		{"\xe3\xfe", 2},			 /* jrcxz */
	};

	for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
		greg_t before[NGREG];
		uintptr_t at;

		memcpy(before, regs, sizeof(regs));
		ck_assert_int_eq(run(kinds[n].code, kinds[n].bytes, &at), RN_LOOP_LEFT);
		before[REG_RIP] = (greg_t)at;
		ck_assert_mem_eq(before, regs, sizeof(regs));
		ck_assert_uint_eq(word, 0);
	}
}
END_TEST

#define FLAGS_OF(operation)                                                                        \
	do {                                                                                       \
		__asm__ volatile(operation " %2,%1\n\tlahf\n\tseto %%al"                           \
				 : "=&a"(seen), "+q"(left)                                         \
				 : "q"(right)                                                      \
				 : "cc");                                                          \
		expected = (greg_t)((seen >> 8 & 0xd5) | (seen & 1 ? 0x800 : 0));                  \
	} while (0)

static uint64_t next_random(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

START_TEST(flags_are_the_processors)
{
	for (unsigned n = 0; n < 20000; n++) {
		uint32_t left = (uint32_t)(next_random() >> n % 40),
			 right = (uint32_t)next_random();
		uint64_t seen = 0;
		greg_t expected;
		uintptr_t at;

		if (n % 3 == 0)
			right = left;
		regs[REG_RAX] = left;
		regs[REG_RCX] = right;
		switch (n % 4) {
		case 0:
			RUN("\x39\xc8", &at); /* cmp %ecx,%eax */
			FLAGS_OF("cmpl");
			break;
		case 1:
			RUN("\x01\xc8", &at);
			FLAGS_OF("addl");
			break;
		case 2:
			RUN("\x29\xc8", &at);
			FLAGS_OF("subl");
			break;
		default:
			RUN("\x31\xc8", &at);
			FLAGS_OF("xorl");
		}
		ck_assert_uint_eq((uint64_t)regs[REG_RAX], left);
		ck_assert_int_eq(regs[REG_EFL] & CARRY_TO_OVERFLOW, expected);
	}
}
END_TEST

/* The condition of each jcc, from flags that are set by hand: SDM volume 1, appendix B. */
START_TEST(all_conditions_jump_when_they_hold)
{
	for (unsigned condition = 0; condition < 16; condition++)
		for (unsigned bits = 0; bits < 32; bits++) {
			const bool c = bits & 1, p = bits & 2, z = bits & 4, s = bits & 8,
				   o = bits & 16;
			const bool table[8] = {o, c, z, c || z, s, p, s != o, z || s != o};
			char code[] = {(char)(0x70 | condition), 0x10, 0x0f};
			uintptr_t at;

			regs[REG_EFL] = c | p << 2 | z << 6 | s << 7 | o << 11;
			ck_assert_int_eq(run(code, 2, &at), RN_LOOP_LEFT);
			ck_assert_uint_eq((uintptr_t)regs[REG_RIP],
					  at + (table[condition / 2] != (condition % 2 == 1) ? 18
											     : 2));
		}
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("spin_loop");

	tcase_add_checked_fixture(tc, clear, NULL);
	tcase_add_test(tc, a_loop_that_waits_for_a_byte_is_the_same_until_it_comes);
	tcase_add_test(tc, loads_extend_as_their_instruction_says);
	tcase_add_test(tc, addresses_have_base_index_and_distance);
	tcase_add_test(tc, a_loop_that_counts_has_changed);
	tcase_add_test(tc, stores_calls_and_vectors_are_left_alone);
	tcase_add_test(tc, flags_are_the_processors);
	tcase_add_test(tc, all_conditions_jump_when_they_hold);
	return run_suite(tc, "spin_loop");
}
