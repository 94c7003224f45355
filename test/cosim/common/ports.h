/*
 * The ports of a block under test, driven cycle by cycle: an input shows its oldest message, an output is ready in
 * just the cycles that the bench says. The C block works on the registered fifos behind them; a Verilated one gets
 * the same values at its pins.
 *
 * A cycle: cosim_in_look() on every input, cosim_out_look() on every output; settle the RTL; bench_run(1);
 * cosim_in_after(), cosim_out_after(); clock the RTL. Then messages are pushed and cosim_out_gate() called
 * for the next cycle.
 */
#ifndef RN_TEST_COSIM_COMMON_PORTS_H
#define RN_TEST_COSIM_COMMON_PORTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "rtl/gen/rn_msg_bits.h"
#include "sim/fifo.h"

#define COSIM_WORDS 20	   /* of the widest message */
#define COSIM_OUT_DEPTH 4u /* of the fifos behind outputs */

struct cosim_in {
	const char *name;
	const struct rn_msg_desc *desc;
	struct rn_fifo *fifo;
	/* In this cycle. */
	bool valid;
	bool is_new; /* not the head of the last cycle */
	bool popped; /* by the C block */
	uint32_t words[COSIM_WORDS];
	/* Private. */
	uint64_t head;
	uint64_t seen;
};

struct cosim_out {
	const char *name;
	const struct rn_msg_desc *desc;
	struct rn_fifo *fifo;
	/* In this cycle. */
	bool ready;
	bool pushed; /* by the C block */
	uint32_t words[COSIM_WORDS];
	uint64_t message[12]; /* as the C block pushed it */
	/* Private. */
	uint64_t tail;
};

void cosim_in_init(struct cosim_in *in, const char *name, const struct rn_msg_desc *desc,
		   struct rn_fifo *fifo);

/** @fifo has depth COSIM_OUT_DEPTH and no consumer. */
void cosim_out_init(struct cosim_out *out, const char *name, const struct rn_msg_desc *desc,
		    struct rn_fifo *fifo);

/** Whether a message can be pushed for the next cycle. */
bool cosim_in_has_space(struct cosim_in *in);

void cosim_in_look(struct cosim_in *in);
void cosim_out_look(struct cosim_out *out);
void cosim_in_after(struct cosim_in *in);
void cosim_out_after(struct cosim_out *out);

/** Whether the output is ready in the next cycle. */
void cosim_out_gate(struct cosim_out *out, bool ready);

/** Field by field, on one line. */
void cosim_print(FILE *file, const struct rn_msg_desc *desc, const uint32_t *words);

#endif
