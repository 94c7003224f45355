/*
 * What the entries of a NIC's fifos consist of, for waveforms.
 */
#ifndef RN_SYSTEMC_COSIM_FIFO_FIELDS_H
#define RN_SYSTEMC_COSIM_FIFO_FIELDS_H

#include <stddef.h>
#include <stdint.h>

struct rn_fifo_field {
	const char *name;
	uint32_t offset; /* in the C struct */
	uint32_t bytes;
};

struct rn_fifo_message {
	const char *name;
	const struct rn_fifo_field *field;
	unsigned fields;
};

/** Message of the fifo called @fifo ("host0.nic0.dma_req3"); NULL where only its bytes are known. */
const struct rn_fifo_message *rn_fifo_message_find(const char *fifo);

#endif
