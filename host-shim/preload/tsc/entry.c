/*
 * From a trampoline into C: all registers, flags and the state of vector units survive. Without a wait nothing but
 * general registers is touched on the way; before one the processor saves the rest.
 */
#include <cpuid.h>
#include <stdint.h>

#include "preload/tsc/counter.h"

#define FXSAVE_BYTES 512
#define HAS_XSAVE (1u << 27) /* CPUID 1, ecx: the system has enabled it */

/* Of the processor's extended state; 0: it has fxsave only. */
uint64_t rn_tsc_state_bytes __attribute__((visibility("hidden")));

void rn_tsc_entry_init(void)
{
	uint32_t a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & HAS_XSAVE) ||
	    !__get_cpuid_count(0xd, 0, &a, &b, &c, &d))
		return;
	rn_tsc_state_bytes = b;
}

/*
 * The flags are put back by hand: popf would bring a trap flag back that has been taken away meanwhile. rax and rdx
 * are the program's to lose.
 */
__asm__(".pushsection .text\n"
	".globl rn_tsc_entry\n"
	".hidden rn_tsc_entry\n"
	".type rn_tsc_entry,@function\n"
	"rn_tsc_entry:\n"
	"	pushfq\n"
	"	push %rcx\n"
	"	push %rsi\n"
	"	push %rdi\n"
	"	push %r8\n"
	"	push %r9\n"
	"	push %r10\n"
	"	push %r11\n"
	"	push %rbp\n"
	"	mov %rsp,%rbp\n"
	"	and $-64,%rsp\n"
	"	cld\n"
	"	call rn_tsc_read_quickly\n"
	"	test %rdx,%rdx\n"
	"	jnz 3f\n"
	"	mov rn_tsc_state_bytes(%rip),%rcx\n"
	"	test %rcx,%rcx\n"
	"	jz 1f\n"
	"	sub %rcx,%rsp\n"
	"	and $-64,%rsp\n"
	"	xor %eax,%eax\n" /* the header of the state must be zero */
	"	lea 512(%rsp),%rdi\n"
	"	mov $8,%ecx\n"
	"	rep stosq\n"
	"	mov $-1,%eax\n"
	"	mov $-1,%edx\n"
	"	xsave64 (%rsp)\n"
	"	call rn_tsc_read\n"
	"	mov %rax,%rcx\n"
	"	mov $-1,%eax\n"
	"	mov $-1,%edx\n"
	"	xrstor64 (%rsp)\n"
	"	mov %rcx,%rax\n"
	"	jmp 3f\n"
	"1:	sub $512,%rsp\n"
	"	fxsave64 (%rsp)\n"
	"	call rn_tsc_read\n"
	"	fxrstor64 (%rsp)\n"
	"3:	mov %rbp,%rsp\n"
	"	mov %rax,-8(%rsp)\n"
	"	mov 64(%rsp),%rax\n"
	"	test $0x400,%eax\n"
	"	jz 4f\n"
	"	std\n"
	"4:	mov %eax,%edx\n"
	"	shr $11,%edx\n"
	"	and $1,%edx\n"
	"	mov %al,%ah\n"
	"	add $0x7f,%dl\n" /* overflow, if it was there */
	"	sahf\n"		 /* the others */
	"	mov -8(%rsp),%eax\n"
	"	mov -4(%rsp),%edx\n"
	"	pop %rbp\n"
	"	pop %r11\n"
	"	pop %r10\n"
	"	pop %r9\n"
	"	pop %r8\n"
	"	pop %rdi\n"
	"	pop %rsi\n"
	"	pop %rcx\n"
	"	lea 8(%rsp),%rsp\n"
	"	ret\n"
	".size rn_tsc_entry,.-rn_tsc_entry\n"
	".popsection\n");
