#include "preload/tsc/flow.h"

#include <Zydis/Zydis.h>

#include "preload/tsc/raw.h"

/* --- one instruction --- */

static bool names_memory_by_distance(const ZydisDecodedInstruction *decoded)
{
	return (decoded->attributes & ZYDIS_ATTRIB_HAS_MODRM) && decoded->raw.modrm.mod == 0 &&
	       decoded->raw.modrm.rm == 5;
}

/* loop, jrcxz and xbegin have no longer form, or leave their address behind. */
static enum rn_insn_kind relative_kind(const ZydisDecodedInstruction *decoded)
{
	const uint8_t opcode = decoded->opcode;

	if (decoded->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE)
		return RN_INSN_FIXED;
	if (decoded->mnemonic == ZYDIS_MNEMONIC_JMP)
		return RN_INSN_JUMP;
	if (decoded->mnemonic == ZYDIS_MNEMONIC_CALL)
		return RN_INSN_CALL;
	if (decoded->meta.category == ZYDIS_CATEGORY_COND_BR &&
	    ((decoded->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (opcode & 0xf0) == 0x70) ||
	     (decoded->opcode_map == ZYDIS_OPCODE_MAP_0F && (opcode & 0xf0) == 0x80)))
		return RN_INSN_BRANCH;
	return RN_INSN_FIXED;
}

static enum rn_insn_kind absolute_kind(const ZydisDecodedInstruction *decoded)
{
	switch (decoded->meta.category) {
	case ZYDIS_CATEGORY_UNCOND_BR:
		return RN_INSN_INDIRECT;
	case ZYDIS_CATEGORY_RET:
		return decoded->mnemonic == ZYDIS_MNEMONIC_RET ? RN_INSN_RETURN : RN_INSN_FIXED;
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSTEM:
	case ZYDIS_CATEGORY_CET:
	case ZYDIS_CATEGORY_COND_BR:
		return RN_INSN_FIXED;
	default:
		break;
	}
	if (names_memory_by_distance(decoded))
		return decoded->address_width == 64 ? RN_INSN_RIP : RN_INSN_FIXED;
	switch (decoded->mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_ENDBR64:
		return RN_INSN_FIXED;
	default:
		return RN_INSN_PLAIN;
	}
}

static bool ends_flow(const ZydisDecodedInstruction *decoded)
{
	switch (decoded->mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
		return true;
	default:
		return decoded->meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
		       decoded->meta.category == ZYDIS_CATEGORY_RET;
	}
}

/* A jump through a fixed cell is a call of another function at a function's end; others may be a switch. */
static bool is_table_jump(const ZydisDecodedInstruction *decoded)
{
	return decoded->meta.category == ZYDIS_CATEGORY_UNCOND_BR &&
	       !decoded->raw.imm[0].is_relative && !names_memory_by_distance(decoded);
}

static const ZydisDecoder *decoder(void)
{
	static ZydisDecoder made;
	static bool is_made;

	if (!is_made)
		ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	is_made = true;
	return &made;
}

static bool decode(const uint8_t *code, size_t bytes, ZydisDecodedInstruction *decoded)
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder(), NULL, code, bytes, decoded));
}

static void fill(const ZydisDecodedInstruction *decoded, struct rn_insn *insn)
{
	const bool is_relative = decoded->raw.imm[0].is_relative;

	insn->bytes = decoded->length;
	insn->counter = decoded->mnemonic == ZYDIS_MNEMONIC_RDTSC ||
					decoded->mnemonic == ZYDIS_MNEMONIC_RDTSCP
				? decoded->length
				: 0;
	insn->ends = ends_flow(decoded);
	insn->is_filler = decoded->mnemonic == ZYDIS_MNEMONIC_NOP ||
			  decoded->mnemonic == ZYDIS_MNEMONIC_ENDBR64;
	insn->kind = is_relative ? relative_kind(decoded) : absolute_kind(decoded);
	insn->condition = decoded->opcode & 0x0f;
	if (is_relative) {
		insn->at = decoded->raw.imm[0].offset;
		insn->distance = decoded->raw.imm[0].value.s;
	} else if (insn->kind == RN_INSN_RIP || names_memory_by_distance(decoded)) {
		insn->at = decoded->raw.disp.offset;
		insn->distance = decoded->raw.disp.value;
	}
}

void rn_insn_decode(const uint8_t *code, size_t bytes, struct rn_insn *insn)
{
	ZydisDecodedInstruction decoded;

	*insn = (struct rn_insn){0};
	if (decode(code, bytes, &decoded))
		fill(&decoded, insn);
}

/* --- flow --- */

bool rn_flow_init(struct rn_flow *flow, const uint8_t *code, size_t bytes)
{
	*flow = (struct rn_flow){.code = code, .bytes = bytes};
	flow->marks = rn_raw_alloc(bytes);
	/* Each byte is marked a target once at most. */
	flow->todo = rn_raw_alloc((bytes + 1) * sizeof(*flow->todo));
	if (flow->marks && flow->todo)
		return true;
	rn_flow_fini(flow);
	return false;
}

void rn_flow_fini(struct rn_flow *flow)
{
	rn_raw_free(flow->marks, flow->bytes);
	rn_raw_free(flow->todo, (flow->bytes + 1) * sizeof(*flow->todo));
	flow->marks = NULL;
	flow->todo = NULL;
}

static void add_target(struct rn_flow *flow, size_t from, int64_t distance)
{
	const uint64_t to = from + (uint64_t)distance;

	if (to >= flow->bytes || (flow->marks[to] & RN_FLOW_TARGET))
		return;
	flow->marks[to] |= RN_FLOW_TARGET;
	if (!(flow->marks[to] & RN_FLOW_LENGTH))
		flow->todo[flow->todos++] = (uint32_t)to;
}

/* One run of instructions without a jump that leaves it. */
static void follow_run(struct rn_flow *flow, size_t offset)
{
	ZydisDecodedInstruction decoded;

	while (offset < flow->bytes && !(flow->marks[offset] & RN_FLOW_LENGTH)) {
		if (!decode(flow->code + offset, flow->bytes - offset, &decoded)) {
			flow->is_broken = true;
			return;
		}
		flow->marks[offset] |= decoded.length;
		offset += decoded.length;
		flow->is_indirect |= is_table_jump(&decoded);
		if (decoded.raw.imm[0].is_relative &&
		    (flow->follows_calls || decoded.mnemonic != ZYDIS_MNEMONIC_CALL))
			add_target(flow, offset, decoded.raw.imm[0].value.s);
		if (ends_flow(&decoded))
			return;
	}
}

void rn_flow_follow(struct rn_flow *flow, size_t offset)
{
	follow_run(flow, offset);
	while (flow->todos)
		follow_run(flow, flow->todo[--flow->todos]);
}

void rn_flow_sweep(struct rn_flow *flow)
{
	size_t offset = 0;

	while (offset < flow->bytes) {
		if (!(flow->marks[offset] & RN_FLOW_LENGTH))
			rn_flow_follow(flow, offset);
		offset += flow->marks[offset] & RN_FLOW_LENGTH
				  ? flow->marks[offset] & RN_FLOW_LENGTH
				  : 1;
	}
}
