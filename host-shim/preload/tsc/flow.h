/*
 * Instructions that control flow reaches from given starts, by decoding. Marks say for each byte of a piece of code
 * whether an instruction begins there, how long it is and whether a jump leads to it.
 */
#ifndef RN_PRELOAD_TSC_FLOW_H
#define RN_PRELOAD_TSC_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RN_FLOW_LENGTH 0x0f /* bits of a mark: the instruction's bytes, 0: none begins here */
#define RN_FLOW_TARGET 0x10 /* a direct jump or call leads here */

struct rn_flow {
	const uint8_t *code;
	size_t bytes;
	uint8_t *marks; /* one a byte */
	uint32_t *todo; /* offsets from where to go on */
	size_t todos;
	bool follows_calls;
	bool is_broken;	  /* flow came to bytes that are no instruction */
	bool is_indirect; /* a jump goes where a register or a table says */
};

/** For @bytes at @code; false: no memory. */
bool rn_flow_init(struct rn_flow *flow, const uint8_t *code, size_t bytes);
void rn_flow_fini(struct rn_flow *flow);

/** Follow all that is reached from @offset; outside of the piece is not followed. */
void rn_flow_follow(struct rn_flow *flow, size_t offset);

/** Where only tables or exceptions lead: what stands behind the ends of flow, decoded in the order of addresses. */
void rn_flow_sweep(struct rn_flow *flow);

/* What an instruction is, for moving it elsewhere. */
enum rn_insn_kind {
	RN_INSN_BAD,	  /* cannot be decoded */
	RN_INSN_PLAIN,	  /* runs the same anywhere */
	RN_INSN_RIP,	  /* names memory by its distance */
	RN_INSN_JUMP,	  /* jmp with a distance */
	RN_INSN_BRANCH,	  /* jcc with a distance */
	RN_INSN_CALL,	  /* call with a distance */
	RN_INSN_RETURN,	  /* ret */
	RN_INSN_INDIRECT, /* jmp to where a register or memory says */
	RN_INSN_FIXED,	  /* must stay where it is */
};

struct rn_insn {
	enum rn_insn_kind kind;
	uint8_t bytes, counter; /* @counter: 2 for rdtsc, 3 for rdtscp, 0 */
	uint8_t at;		/* of the distance in the instruction */
	uint8_t condition;	/* of a branch: the low half of its opcode */
	bool ends;		/* the next instruction is not its successor */
	bool is_filler;		/* does nothing */
	int64_t distance;	/* from the next instruction's address */
};

/** Decode the instruction at @code, of which @bytes are there. */
void rn_insn_decode(const uint8_t *code, size_t bytes, struct rn_insn *insn);

#endif
