/*
 * The frame of one unit: what it samples at the fifos in a cycle, how it evaluates the RTL, and what it does with the
 * outputs. Shared by the files of this folder.
 */
#ifndef RN_SYSTEMC_COSIM_FRAME_H
#define RN_SYSTEMC_COSIM_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "nic/msg/env.h"
#include "nic/unit.h"
#include "sim/block.h"
#include "sim/fifo.h"
#include "sim/stats.h"
#include "systemc/cosim/rtl.h"

#define RN_COSIM_TOKENS 512 /* of the PTE cache's DMA reads: two times 256 miss registers */
#define RN_COSIM_HISTORY 32 /* transactions shown before a difference */
#define RN_COSIM_EVENTS 32  /* fields of a unit's events at most */

/* A message at a port, as in hardware: words, and the bytes beside it. Its buffer index is 0. */
struct rn_cosim_message {
	uint32_t words[RN_RTL_MSG_WORDS];
	uint32_t side_bytes;
	uint8_t side[RN_RTL_SIDE_BYTES];
};

struct rn_cosim_port {
	const struct rn_rtl_port *is;
	const struct rn_rtl_port_pins *pins;
	struct rn_fifo *fifo;
	/* Of the present cycle: what the fifo shows. */
	bool valid;	/* input: an entry is visible */
	bool has_space; /* output */
	uint16_t level; /* entries visible, where the RTL asks for it */
	struct rn_cosim_message in;
	/* What the RTL does. */
	bool rtl_valid; /* output */
	bool rtl_ready; /* input: it takes what is valid */
	struct rn_cosim_message rtl_out;
	/* What the C block has done. */
	uint64_t head_before, tail_before;
	bool is_waiting; /* the C block waits for space there; in cycles in which that can be seen */
	uint32_t taken, pushed;
	struct rn_cosim_message model_out;
};

/* A pop or push, for the history. */
struct rn_cosim_transaction {
	uint64_t cycle;
	uint8_t port; /* RN_RTL_PORTS: none */
	struct rn_cosim_message message;
};

/* What an input or output showed when the RTL went to sleep. */
struct rn_cosim_seen {
	bool valid, has_space;
	uint16_t level;
	uint64_t head;
};

/* From an evaluation in which idle_o was 1 to the next. */
struct rn_cosim_sleep {
	bool is_asleep;
	bool is_wrong; /* it should not have slept */
	uint64_t since_cycle;
	uint64_t due_cycle; /* UINT64_MAX: never */
	uint64_t stall;
	struct rn_cosim_seen seen[RN_RTL_PORTS];
	/* rtl: how often it slept, and the instance that is clocked in its place to see whether it may. */
	uint64_t count;
	void *probe;
	struct rn_rtl_pins probe_pins;
	uint8_t *image;
	size_t image_bytes;
};

struct rn_cosim_window;
struct rn_cosim_recorder;
struct rn_cosim;

struct rn_cosim_unit {
	struct rn_cosim *cosim;
	struct rn_cosim_unit *next;
	enum rn_unit_mode mode;
	const struct rn_rtl_boundary *boundary;
	struct rn_nic_env env;
	char *name;
	struct rn_cosim_port port[RN_RTL_PORTS];
	uint32_t buffer_of[RN_COSIM_TOKENS]; /* of the PTE cache's reads, by token */
	uint32_t line_bytes;		     /* beside the answer to such a read */

	/* RTL; kind NULL: none. */
	const struct rn_rtl_kind *kind;
	struct rn_rtl_options rtl_options;
	void *rtl;
	struct rn_rtl_pins pins;
	uint32_t constant[RN_RTL_MSG_WORDS];
	uint64_t evaluations;
	struct rn_cosim_window *window;
	struct rn_cosim_sleep sleep;

	struct rn_block
		block; /* rtl: in the C block's place; lockstep: for cycles in which that does not tick */
	const struct rn_counter_desc *descs;
	size_t counters;
	uint64_t *count;		   /* rtl: the counters themselves */
	uint8_t event_of[RN_COSIM_EVENTS]; /* field of the events by counter */
	uint8_t tried_of[RN_RTL_PORTS];	   /* field that says "looked at, and full"; NO_FIELD */
	uint8_t busy_field;
	uint64_t busy_before; /* of the C block, in this cycle */
	uint8_t differing;    /* port at which model and RTL differ; RN_RTL_PORTS: elsewhere */
	FILE *lookup_log;
	uint64_t lookup_sets[2]; /* of the PTE cache's MPT and MTT, for the log */
	uint32_t lookup_ways;	 /* of the MTT */

	/* The C block, in lockstep and when recorded. */
	struct rn_block *model;
	void (*model_tick)(void *self, uint64_t cycle);
	void *model_self;
	const uint64_t *model_count;
	uint64_t model_sum[RN_COSIM_EVENTS], rtl_sum[RN_COSIM_EVENTS];
	uint64_t last_cycle; /* of the C block's ticks that was looked at */

	struct rn_cosim_recorder *recorder;
	struct rn_cosim_transaction history[RN_COSIM_HISTORY];
	uint64_t transactions;
};

#define RN_COSIM_NO_FIELD UINT8_MAX

/** Value of the RTL's events field @field in this cycle. */
uint64_t rn_cosim_event(const struct rn_cosim_unit *unit, uint8_t field);

/** What the fifos show in this cycle, without touching them. */
void rn_cosim_sample(struct rn_cosim_unit *unit);

/** Drive the RTL and take its outputs, without a note for the window. */
void rn_cosim_settle(struct rn_cosim_unit *unit, uint64_t cycle);

/** Cycles after which the RTL wants to be evaluated again: 1 when it is not idle; UINT64_MAX: never. */
uint64_t rn_cosim_wake_cycles(const struct rn_cosim_unit *unit);

/** Evaluate @cycle's combinational part: the RTL's outputs are in the ports afterwards. */
void rn_cosim_evaluate(struct rn_cosim_unit *unit, uint64_t cycle);

/** The clock's edge that ends the cycle, and when the RTL is to be evaluated next. */
void rn_cosim_clock(struct rn_cosim_unit *unit);

/** Note what went through the ports in this cycle. */
void rn_cosim_note(struct rn_cosim_unit *unit, uint64_t cycle, uint8_t port,
		   const struct rn_cosim_message *message);

/** The message that an entry of @port's fifo is. */
void rn_cosim_pack(struct rn_cosim_unit *unit, struct rn_cosim_port *port, const void *entry,
		   struct rn_cosim_message *message);

/** Stand in the C block's place. */
void rn_cosim_start_rtl(struct rn_cosim_unit *unit);

/** Look on at the C block @block; in lockstep, evaluate the RTL beside it. */
void rn_cosim_start_watch(struct rn_cosim_unit *unit, struct rn_block *block);

/** Stop the simulation: print what is known under @headline, write the waveform. */
void rn_cosim_fail(struct rn_cosim_unit *unit, uint64_t cycle, const char *headline);

/** Drive all inputs of @pins for one cycle. */
void rn_cosim_drive(const struct rn_cosim_unit *unit, const struct rn_rtl_pins *pins,
		    const struct rn_cosim_port *ports, uint64_t cycle);

/** Two clocks in reset. */
void rn_cosim_reset(const struct rn_rtl_kind *kind, void *rtl, const struct rn_rtl_pins *pins,
		    const struct rn_cosim_unit *unit);

#endif
