#include "cosim/common/ports.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"

static const void *slot_at(const struct rn_fifo *fifo, uint32_t slot)
{
	return fifo->slots + (size_t)slot * fifo->slot_bytes + sizeof(uint64_t);
}

void cosim_in_init(struct cosim_in *in, const char *name, const struct rn_msg_desc *desc,
		   struct rn_fifo *fifo)
{
	RN_ASSERT(desc->words <= COSIM_WORDS);
	*in = (struct cosim_in){
		.name = name,
		.desc = desc,
		.fifo = fifo,
		.seen = UINT64_MAX,
	};
}

void cosim_out_init(struct cosim_out *out, const char *name, const struct rn_msg_desc *desc,
		    struct rn_fifo *fifo)
{
	RN_ASSERT(desc->words <= COSIM_WORDS && desc->bytes <= sizeof(out->message) &&
		  fifo->depth == COSIM_OUT_DEPTH);
	*out = (struct cosim_out){.name = name, .desc = desc, .fifo = fifo};
}

bool cosim_in_has_space(struct cosim_in *in)
{
	return rn_fifo_held(in->fifo, rn_sim_now_ps(in->fifo->sim)) < in->fifo->depth;
}

/* What was pushed up to the last cycle is visible in this one, although the time is still the last one's. */
void cosim_in_look(struct cosim_in *in)
{
	in->head = in->fifo->head;
	in->valid = rn_fifo_occupancy(in->fifo) != 0;
	in->is_new = in->valid && in->head != in->seen;
	if (in->is_new) {
		in->desc->pack(slot_at(in->fifo, in->fifo->head_slot), in->words);
		in->seen = in->head;
	}
}

void cosim_in_after(struct cosim_in *in)
{
	RN_ASSERT(in->fifo->head - in->head <= 1);
	in->popped = in->fifo->head != in->head;
}

void cosim_out_look(struct cosim_out *out)
{
	out->tail = out->fifo->tail;
	out->ready = rn_fifo_occupancy(out->fifo) < out->fifo->depth;
}

void cosim_out_after(struct cosim_out *out)
{
	struct rn_fifo *fifo = out->fifo;

	RN_ASSERT(fifo->tail - out->tail <= 1);
	out->pushed = fifo->tail != out->tail;
	if (!out->pushed)
		return;

	uint32_t slot = fifo->tail_slot ? fifo->tail_slot - 1 : fifo->depth - 1;

	memcpy(out->message, slot_at(fifo, slot), out->desc->bytes);
	out->desc->pack(out->message, out->words);
}

/* Not ready: filled up with messages that nobody reads. Ready: emptied. */
void cosim_out_gate(struct cosim_out *out, bool ready)
{
	static const uint8_t filler[96];

	if (ready) {
		while (rn_fifo_peek(out->fifo))
			rn_fifo_drop(out->fifo);
		return;
	}
	while (rn_fifo_occupancy(out->fifo) < out->fifo->depth)
		rn_fifo_push(out->fifo, filler);
}

void cosim_print(FILE *file, const struct rn_msg_desc *desc, const uint32_t *words)
{
	fprintf(file, "%s", desc->name);
	for (uint32_t i = 0; i < desc->fields; i++) {
		const struct rn_msg_field *field = &desc->field[i];

		if (field->bits <= 64)
			fprintf(file, " %s=0x%" PRIx64, field->name,
				rn_msg_get(words, field->lsb, field->bits));
	}
	fputc('\n', file);
}
