/*
 * Stripped, and without unwind tables: what begins where is known from calls alone. A table that holds the bytes of the
 * instruction stands in the midst of the code.
 */
#include <stdint.h>

__attribute__((visibility("default"))) uint64_t bare_read(void);
__attribute__((visibility("default"))) const uint8_t *bare_table(void);

__asm__(".pushsection .text\n"
	"bare_hidden:\n rdtsc\n shl $32,%rdx\n or %rdx,%rax\n ret\n"
	".align 16\n"
	"bare_bytes: .byte 0x0f,0x31,0x0f,0x31\n"
	".align 16\n"
	".popsection\n");

uint64_t bare_read(void)
{
	uint64_t value;

	__asm__ volatile("sub $128,%%rsp\n call bare_hidden\n add $128,%%rsp"
			 : "=a"(value)
			 :
			 : "rdx", "cc", "memory");
	return value;
}

const uint8_t *bare_table(void)
{
	const uint8_t *at;

	__asm__("lea bare_bytes(%%rip),%0" : "=r"(at));
	return at;
}
