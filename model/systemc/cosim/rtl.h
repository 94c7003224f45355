/*
 * A Verilated block as its frame sees it: pins, one evaluation, checkpoints, a waveform. The adapters (C++) make this
 * of the classes that Verilator generates, one kind for each block and listed geometry.
 */
#ifndef RN_SYSTEMC_COSIM_RTL_H
#define RN_SYSTEMC_COSIM_RTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/unit.h"
#include "rtl/gen/rn_msg_bits.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RN_RTL_PORTS 12	      /* at most, of a block */
#define RN_RTL_MSG_WORDS 20   /* of the widest message */
#define RN_RTL_SIDE_BYTES 512 /* the largest line of the MTT */

/* A top-level signal of a Verilated class: 1, 2, 4, 8 bytes or words, by its width. bits 0: there is none. */
struct rn_rtl_pin {
	void *at;
	uint32_t bits;
};

struct rn_rtl_port_pins {
	struct rn_rtl_pin valid, ready, msg;
	struct rn_rtl_pin side;	 /* data beside the message: what a buffer holds */
	struct rn_rtl_pin level; /* entries visible in the fifo before an input */
};

struct rn_rtl_pins {
	struct rn_rtl_pin clk, rst_n, cycle, idle, wake, stall, events, lookup, constant;
	struct rn_rtl_pin drop_valid, drop_number; /* a bit and 64 bits for each way */
	struct rn_rtl_pin mutant;		   /* selects a fault of a mutated netlist */
	struct rn_rtl_port_pins port[RN_RTL_PORTS];
};

/* What a frame has to do at a port beside moving its message. */
enum rn_rtl_role {
	RN_RTL_PLAIN,
	RN_RTL_DMA_REQ,	   /* give the request a buffer */
	RN_RTL_DMA_RSP,	   /* show that buffer's bytes */
	RN_RTL_BLUEFLAME,  /* bytes of the RTL's go to a buffer */
	RN_RTL_MMIO_WRITE, /* show how many are visible */
};

/* A port of a block as the description of the unit has it; ports of an array follow each other. */
struct rn_rtl_port {
	const char *name; /* "req0" */
	bool is_input;
	enum rn_rtl_role role;
	uint32_t idx; /* in its array */
	const struct rn_msg_desc *msg;
};

/* The boundary of a unit, the same for all its kinds. */
struct rn_rtl_boundary {
	enum rn_unit unit;
	const struct rn_rtl_port *port;
	unsigned ports;
	const struct rn_msg_desc *events;
	const struct rn_msg_desc *lookup;   /* NULL: none */
	const struct rn_msg_desc *constant; /* NULL: none */
};

struct rn_rtl_options {
	const char *name;	     /* instance name in messages and waveforms */
	bool has_trace;		     /* a waveform can be written of it */
	const char *const *plusargs; /* "+fault=3", for $value$plusargs */
	int plusargs_count;
	uint32_t seed; /* of what registers hold before their reset */
};

/* Status of a process whose RTL does not have the boundary's ports. */
#define RN_RTL_EXIT_WRONG 2

struct rn_rtl_kind {
	enum rn_unit unit;
	const char *geometry; /* "shipped" */
	const char *params; /* what differs from the parameters' defaults: "mpt_sets=2 mpt_ways=2" */
	const char *top;    /* name of the module */
	bool is_own;	    /* an implementation of the user's */
	const char *digest; /* of its sources, 12 hexadecimal digits */
	/** A block that has seen no clock yet, and its pins. Ports of another width end the process. */
	void *(*make)(const struct rn_rtl_options *options, struct rn_rtl_pins *pins);
	void (*free)(void *block);
	/** Let the pins take effect. */
	void (*eval)(void *block);
	/** Whether an assertion of the RTL has failed. */
	bool (*has_failed)(void *block);
	/** The whole state: written behind each other to *@image (realloc()ed, *@bytes long). */
	void (*save)(void *block, uint8_t **image, size_t *bytes);
	void (*restore)(void *block, const uint8_t *image, size_t bytes);
	/** Waveform of a block made with has_trace. */
	bool (*open_trace)(void *block, const char *path);
	void (*dump)(void *block, uint64_t time_ps);
	void (*close_trace)(void *block);
	/** Line and toggle coverage into @path; nothing when it was built without. */
	void (*write_coverage)(void *block, const char *path);
};

/** All kinds of this program; ends with NULL. Made by the build of the listed geometries. */
extern const struct rn_rtl_kind *const rn_rtl_kinds[];

const struct rn_rtl_boundary *rn_rtl_boundary_of(enum rn_unit unit);

/** Value of a pin of up to 64 bits; set it. */
uint64_t rn_rtl_get(const struct rn_rtl_pin *pin);
void rn_rtl_set(const struct rn_rtl_pin *pin, uint64_t value);

/** Bit @idx of a pin of up to 64 bits; set it. */
bool rn_rtl_get_bit(const struct rn_rtl_pin *pin, uint32_t idx);
void rn_rtl_set_bit(const struct rn_rtl_pin *pin, uint32_t idx, bool value);

/** @bits from @lsb on as words (the rest of the last word is 0), and back. */
void rn_rtl_get_words(const struct rn_rtl_pin *pin, uint32_t lsb, uint32_t bits, uint32_t *words);
void rn_rtl_set_words(const struct rn_rtl_pin *pin, uint32_t lsb, uint32_t bits,
		      const uint32_t *words);

#ifdef __cplusplus
}
#endif

#endif
