/*
 * A few messages on their way into one fifo, so that an operation never stops half way because a
 * fifo is full: it puts all it has to say here, and the next one starts when the box is empty.
 */
#ifndef RN_NIC_TRANSPORT_OUTBOX_H
#define RN_NIC_TRANSPORT_OUTBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "sim/fifo.h"

#define RN_OUTBOX_MESSAGES 8
#define RN_OUTBOX_MESSAGE_BYTES 32

struct rn_outbox {
	struct rn_fifo *fifo;
	uint32_t count;
	uint8_t message[RN_OUTBOX_MESSAGES][RN_OUTBOX_MESSAGE_BYTES];
};

/** @fifo's entries are at most RN_OUTBOX_MESSAGE_BYTES. */
static inline void rn_outbox_init(struct rn_outbox *box, struct rn_fifo *fifo)
{
	RN_ASSERT(fifo->entry_bytes <= RN_OUTBOX_MESSAGE_BYTES);
	box->fifo = fifo;
	box->count = 0;
}

/** Put a message in; the box has room (its owner starts operations on an empty box only). */
static inline void rn_outbox_put(struct rn_outbox *box, const void *message)
{
	RN_ASSERT(box->count < RN_OUTBOX_MESSAGES);
	memcpy(box->message[box->count++], message, box->fifo->entry_bytes);
}

/** Push what the fifo takes in this cycle, oldest first. True when the box is empty. */
static inline bool rn_outbox_send(struct rn_outbox *box)
{
	uint32_t sent = 0;

	while (sent < box->count && rn_fifo_can_push(box->fifo))
		rn_fifo_push(box->fifo, box->message[sent++]);
	box->count -= sent;
	if (sent && box->count)
		memmove(box->message[0], box->message[sent],
			(size_t)box->count * RN_OUTBOX_MESSAGE_BYTES);
	return !box->count;
}

#endif
