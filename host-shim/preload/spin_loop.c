#include "preload/spin_loop.h"

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <string.h>

#define STEPS_MAX 64
#define OPERANDS_MAX 3

/* Of the flags: those that instructions set, and those that lahf shows. */
#define FLAGS_SET 0x8d5
#define FLAGS_LAHF 0xd5
#define FLAG_OVERFLOW 0x800

struct step {
	greg_t *regs;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	uint64_t next; /* address behind it */
	bool has_failed;
};

/* --- registers, memory --- */

/* In the order of the processor's numbers. */
static const int place[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
			    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

/* NULL: no general register, or the second byte of one. */
static greg_t *find(struct step *step, ZydisRegister name)
{
	const ZydisRegisterClass class = ZydisRegisterGetClass(name);
	const bool is_general = class == ZYDIS_REGCLASS_GPR8 || class == ZYDIS_REGCLASS_GPR16 ||
				class == ZYDIS_REGCLASS_GPR32 || class == ZYDIS_REGCLASS_GPR64;

	if (!is_general || (name >= ZYDIS_REGISTER_AH && name <= ZYDIS_REGISTER_BH)) {
		step->has_failed = true;
		return NULL;
	}
	name = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name);
	return &step->regs[place[ZydisRegisterGetId(name)]];
}

static uint64_t named(struct step *step, ZydisRegister name)
{
	const greg_t *found;

	if (name == ZYDIS_REGISTER_NONE)
		return 0;
	if (name == ZYDIS_REGISTER_RIP)
		return step->next;
	found = find(step, name);
	return found ? (uint64_t)*found : 0;
}

static uint64_t address(struct step *step, const ZydisDecodedOperand *operand)
{
	const ZydisDecodedOperandMem *mem = &operand->mem;

	if (step->insn.address_width != 64 ||
	    (mem->type == ZYDIS_MEMOP_TYPE_MEM && mem->segment != ZYDIS_REGISTER_DS &&
	     mem->segment != ZYDIS_REGISTER_SS))
		step->has_failed = true;
	return named(step, mem->base) + named(step, mem->index) * mem->scale +
	       (uint64_t)(mem->disp.has_displacement ? mem->disp.value : 0);
}

static uint64_t load(uint64_t at, unsigned bits)
{
	switch (bits) {
	case 8:
		return *(const volatile uint8_t *)(uintptr_t)at;
	case 16:
		return *(const volatile uint16_t *)(uintptr_t)at;
	case 32:
		return *(const volatile uint32_t *)(uintptr_t)at;
	default:
		return *(const volatile uint64_t *)(uintptr_t)at;
	}
}

static uint64_t low(uint64_t value, unsigned bits)
{
	return bits >= 64 ? value : value & ((UINT64_C(1) << bits) - 1);
}

static uint64_t signed_low(uint64_t value, unsigned bits)
{
	const unsigned unused = bits >= 64 ? 0 : 64 - bits;

	return (uint64_t)((int64_t)(value << unused) >> unused);
}

static uint64_t value_of(struct step *step, unsigned n)
{
	const ZydisDecodedOperand *operand = &step->operand[n];
	uint64_t value = 0;

	if (operand->size != 8 && operand->size != 16 && operand->size != 32 && operand->size != 64)
		step->has_failed = true;
	switch (operand->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		value = named(step, operand->reg.value);
		break;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		value = address(step, operand);
		if (!step->has_failed)
			value = load(value, operand->size);
		break;
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		return (uint64_t)operand->imm.value.s;
	default:
		step->has_failed = true;
	}
	return low(value, operand->size);
}

/* Nothing is stored into memory. */
static void set(struct step *step, unsigned n, uint64_t value)
{
	const ZydisDecodedOperand *operand = &step->operand[n];
	greg_t *to = NULL;

	if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER)
		to = find(step, operand->reg.value);
	if (!to || step->has_failed)
		step->has_failed = true;
	else if (operand->size >= 32)
		*to = (greg_t)low(value, operand->size);
	else
		*to = (greg_t)(((uint64_t)*to & ~low(UINT64_MAX, operand->size)) |
			       low(value, operand->size));
}

/* --- arithmetic: the processor's own --- */

#define COMPUTE(operation, type)                                                                   \
	do {                                                                                       \
		type left_ = (type)a;                                                              \
                                                                                                   \
		__asm__(operation " %2,%0\n\tlahf\n\tseto %%al"                                    \
			: "+q"(left_), "=&a"(seen)                                                 \
			: "q"((type)b)                                                             \
			: "cc");                                                                   \
		a = left_;                                                                         \
	} while (0)

#define COMPUTE_SIZED(operation)                                                                   \
	do {                                                                                       \
		if (bits == 8)                                                                     \
			COMPUTE(operation "b", uint8_t);                                           \
		else if (bits == 16)                                                               \
			COMPUTE(operation "w", uint16_t);                                          \
		else if (bits == 32)                                                               \
			COMPUTE(operation "l", uint32_t);                                          \
		else                                                                               \
			COMPUTE(operation "q", uint64_t);                                          \
	} while (0)

static uint64_t compute(struct step *step, uint64_t a, uint64_t b, unsigned bits)
{
	uint64_t seen = 0;
	greg_t *flags = &step->regs[REG_EFL];

	switch (step->insn.mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
		COMPUTE_SIZED("add");
		break;
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_SUB:
		COMPUTE_SIZED("sub");
		break;
	case ZYDIS_MNEMONIC_OR:
		COMPUTE_SIZED("or");
		break;
	case ZYDIS_MNEMONIC_XOR:
		COMPUTE_SIZED("xor");
		break;
	default:
		COMPUTE_SIZED("and");
	}
	if (!step->has_failed)
		*flags = (*flags & ~(greg_t)FLAGS_SET) | (greg_t)(seen >> 8 & FLAGS_LAHF) |
			 (seen & 1 ? FLAG_OVERFLOW : 0);
	return a;
}

static bool is_taken(greg_t flags, unsigned condition)
{
	const bool carry = flags & 1, parity = flags & 4, zero = flags & 0x40, sign = flags & 0x80;
	const bool overflow = flags & FLAG_OVERFLOW;
	const bool holds[] = {overflow,
			      carry,
			      zero,
			      carry || zero,
			      sign,
			      parity,
			      sign != overflow,
			      zero || sign != overflow};

	return holds[condition >> 1 & 7] != (condition & 1);
}

/* --- one instruction --- */

static void calculate(struct step *step)
{
	const bool keeps = step->insn.mnemonic == ZYDIS_MNEMONIC_CMP ||
			   step->insn.mnemonic == ZYDIS_MNEMONIC_TEST;
	const uint64_t b = value_of(step, 1), a = value_of(step, 0);
	uint64_t result;

	if (!keeps && step->operand[0].type != ZYDIS_OPERAND_TYPE_REGISTER)
		step->has_failed = true;
	result = compute(step, a, b, step->operand[0].size);
	if (!keeps)
		set(step, 0, result);
}

static void jump(struct step *step, bool is_going)
{
	if (step->operand[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
	    !step->operand[0].imm.is_relative)
		step->has_failed = true;
	else if (is_going)
		step->next += (uint64_t)step->operand[0].imm.value.s;
}

static void execute(struct step *step)
{
	switch (step->insn.mnemonic) {
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_PAUSE:
	case ZYDIS_MNEMONIC_ENDBR64:
	case ZYDIS_MNEMONIC_LFENCE:
		break;
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
		set(step, 0, value_of(step, 1));
		break;
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
		set(step, 0, signed_low(value_of(step, 1), step->operand[1].size));
		break;
	case ZYDIS_MNEMONIC_LEA:
		set(step, 0, address(step, &step->operand[1]));
		break;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_TEST:
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_XOR:
		calculate(step);
		break;
	case ZYDIS_MNEMONIC_JMP:
		jump(step, true);
		break;
	default:
		if (step->insn.meta.category == ZYDIS_CATEGORY_COND_BR &&
		    ((step->insn.opcode & 0xf0) == 0x70 || (step->insn.opcode & 0xf0) == 0x80))
			jump(step, is_taken(step->regs[REG_EFL], step->insn.opcode & 0xf));
		else
			step->has_failed = true;
	}
}

static bool run_one(greg_t *regs, unsigned (*read)(uintptr_t ip, uint8_t *code, unsigned bytes))
{
	struct step step = {.regs = regs};
	uint8_t code[ZYDIS_MAX_INSTRUCTION_LENGTH];
	const uintptr_t ip = (uintptr_t)regs[REG_RIP];
	const unsigned bytes = read(ip, code, sizeof(code));
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(
		    ZydisDecoderDecodeFull(&decoder, code, bytes, &step.insn, step.operand)) ||
	    (step.insn.attributes & ZYDIS_ATTRIB_HAS_LOCK))
		return false;
	step.next = ip + step.insn.length;
	execute(&step);
	if (!step.has_failed)
		regs[REG_RIP] = (greg_t)step.next;
	return !step.has_failed;
}

enum rn_loop_end rn_loop_run(greg_t *regs,
			     unsigned (*read)(uintptr_t ip, uint8_t *code, unsigned bytes))
{
	greg_t from[RN_LOOP_REGISTERS];
	const greg_t flags = regs[REG_EFL];

	memcpy(from, regs, sizeof(from));
	for (unsigned n = 0; n < STEPS_MAX && run_one(regs, read); n++)
		if (regs[REG_RIP] == from[REG_RIP])
			return !memcmp(from, regs, sizeof(from)) && regs[REG_EFL] == flags
				       ? RN_LOOP_SAME
				       : RN_LOOP_CHANGED;
	return RN_LOOP_LEFT;
}
