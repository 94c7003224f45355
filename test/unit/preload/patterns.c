#include "unit/preload/patterns.h"

#define WHOLE (((uint64_t)PATTERN_HIGH << 32) | PATTERN_LOW)

/* A function of assembly, with unwind tables as compilers write them; the next one follows at once. */
#define FUNCTION(name, body)                                                                       \
	uint64_t name(uint64_t argument);                                                          \
	__asm__(".pushsection .text.patterns,\"ax\",@progbits\n"                                   \
		".globl " #name "\n.hidden " #name "\n.type " #name ",@function\n" #name ":\n"     \
		".cfi_startproc\n" body "\n.cfi_endproc\n.size " #name ",.-" #name "\n"            \
		".popsection\n");

#define JOIN "shl $32,%rdx\n or %rdx,%rax\n"

FUNCTION(read_plainly, "rdtsc\n" JOIN "ret")
FUNCTION(read_short, "rdtsc\n mov %eax,%eax\n nop\n" JOIN "ret")
FUNCTION(read_long, "rdtsc\n movabs $0x310f310f310f310f,%rcx\n" JOIN "ret")
FUNCTION(read_processor, "mov $7,%ecx\n rdtscp\n add %ecx,%eax\n" JOIN "ret")
FUNCTION(read_before_load, "rdtsc\n mov pattern_constant(%rip),%rcx\n" JOIN "add %rcx,%rax\n ret")
FUNCTION(read_before_store_of_constant, "rdtsc\n movl $0x1234,pattern_cell(%rip)\n" JOIN
					"mov pattern_cell(%rip),%ecx\n add %rcx,%rax\n ret")
FUNCTION(read_before_call,
	 "sub $8,%rsp\n lea 1f(%rip),%rdi\n rdtsc\n call pattern_callee\n1: add $8,%rsp\n ret")
FUNCTION(pattern_callee, JOIN "cmp %rdi,(%rsp)\n jne 1f\n add $1,%rax\n1: ret")
FUNCTION(read_before_branch, "cmp $5,%rdi\n rdtsc\n je 1f\n xor %eax,%eax\n nop\n1: " JOIN "ret")
FUNCTION(read_before_jump, "rdtsc\n .byte 0xe9\n .long 1f-.-4\n nop\n nop\n1: " JOIN "ret")
FUNCTION(read_in_red_zone, "mov %rdi,-8(%rsp)\n mov %rdi,-128(%rsp)\n rdtsc\n" JOIN
			   "add -8(%rsp),%rax\n add -128(%rsp),%rax\n ret")
FUNCTION(read_amid_flags, "stc\n rdtsc\n mov $0,%ecx\n adc $0,%ecx\n" JOIN "add %rcx,%rax\n ret")
/* What must not be replaced together with what follows. */
FUNCTION(read_at_target, "mov $3,%ecx\n rdtsc\n1: dec %ecx\n jnz 1b\n" JOIN "ret")
FUNCTION(read_at_end, "rdtsc\n ret")
FUNCTION(read_behind_end, "rdtsc\n" JOIN "ret")
FUNCTION(read_before_loop, "mov $1,%ecx\n rdtsc\n loop 1f\n nop\n nop\n1: " JOIN "ret")
FUNCTION(read_before_indirect_call,
	 "sub $8,%rsp\n lea pattern_plus(%rip),%rcx\n rdtsc\n call *%rcx\n nop\n add $8,%rsp\n ret")
FUNCTION(pattern_plus, JOIN "add $1,%rax\n ret")
FUNCTION(read_twice, "rdtsc\n rdtsc\n nop\n" JOIN "ret")
FUNCTION(
	read_at_switch,
	"lea pattern_table(%rip),%rcx\n movslq (%rcx,%rdi,4),%rdx\n add %rcx,%rdx\n jmp *%rdx\n"
	"1: rdtsc\n2: mov %eax,%eax\n nop\n nop\n mov $3,%eax\n ret\n"
	".pushsection .rodata\n .align 4\npattern_table: .long 1b-pattern_table,2b-pattern_table\n.popsection")
FUNCTION(read_with_cold_part,
	 "test %rdi,%rdi\n jne pattern_cold\n rdtsc\npattern_warm: nop\n nop\n nop\n" JOIN "ret")
FUNCTION(read_near_neighbour, "rdtsc\npattern_near: nop\n nop\n nop\n" JOIN "ret")
FUNCTION(pattern_neighbour, "mov $4,%eax\n xor %edx,%edx\n jmp pattern_near")
FUNCTION(read_nothing, "mov $0x310f,%eax\n ret")
__asm__(".pushsection .text.unlikely.patterns,\"ax\",@progbits\n.type pattern_cold,@function\n"
	"pattern_cold:\n.cfi_startproc\n mov $2,%eax\n xor %edx,%edx\n jmp pattern_warm\n"
	".cfi_endproc\n.size pattern_cold,.-pattern_cold\n.popsection\n"
	".pushsection .data\n.globl pattern_constant,pattern_cell\n.hidden pattern_constant,pattern_cell\n"
	"pattern_constant: .quad 9\npattern_cell: .quad 0\n.popsection\n");
uint64_t pattern_neighbour(uint64_t argument);

const struct pattern patterns[] = {
	{"plainly", read_plainly, 0, WHOLE, 1, 1},
	{"short", read_short, 0, WHOLE, 1, 1},
	{"long", read_long, 0, WHOLE, 1, 1},
	{"processor", read_processor, 0, WHOLE, 1, 1},
	{"before a load", read_before_load, 0, WHOLE + 9, 1, 1},
	{"before a store of a constant", read_before_store_of_constant, 0, WHOLE + 0x1234, 1, 1},
	{"before a call", read_before_call, 0, WHOLE + 1, 1, 1},
	{"before a branch taken", read_before_branch, 5, WHOLE, 1, 1},
	{"before a branch not taken", read_before_branch, 4, (uint64_t)PATTERN_HIGH << 32, 1, 1},
	{"before a jump", read_before_jump, 0, WHOLE, 1, 1},
	{"in the red zone", read_in_red_zone, 3, WHOLE + 6, 1, 1},
	{"amid flags", read_amid_flags, 0, WHOLE + 1, 1, 1},
	{"at a target", read_at_target, 0, WHOLE, 0, 1},
	{"at the end", read_at_end, 0, PATTERN_LOW, 0, 1},
	{"behind the end", read_behind_end, 0, WHOLE, 1, 1},
	{"before a loop", read_before_loop, 0, WHOLE, 0, 1},
	{"before an indirect call", read_before_indirect_call, 0, WHOLE + 1, 0, 1},
	{"twice", read_twice, 0, WHOLE, 0, 2},
	{"at a switch", read_at_switch, 0, 3, 0, 1},
	{"behind a switch", read_at_switch, 1, 3, 0, 1},
	{"with a cold part", read_with_cold_part, 0, WHOLE, 0, 1},
	{"from a cold part", read_with_cold_part, 1, 2, 0, 1},
	{"near a neighbour", read_near_neighbour, 0, WHOLE, 0, 1},
	{"from a neighbour", pattern_neighbour, 0, 4, 0, 0},
	{"nothing", read_nothing, 0, 0x310f, 0, 0},
};
const unsigned pattern_count = sizeof(patterns) / sizeof(patterns[0]);
