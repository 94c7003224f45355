/*
 * Physical frames of one process: a sealed, sparse memfd, mapped here, out of which runs of frames
 * are handed out in a seeded order. Behind every run lies a gap that is never handed out, so two
 * runs are never contiguous in the file: a program's mremap() cannot grow one mapping over another
 * frame, and nothing works by accident because frames happen to follow each other.
 */
#ifndef RN_DRIVER_FRAMES_H
#define RN_DRIVER_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#define RN_FRAME_BYTES 4096u
#define RN_FRAME_CLASSES 9
#define RN_FRAME_RUN_MAX 256u /* pages of the largest run: 1 << (RN_FRAME_CLASSES - 1) */

/* Runs of up to 1 << class frames lie in slots of one frame more. */
struct rn_frame_class {
	uint64_t first; /* frame number of slot 0 */
	uint64_t slots;
	uint64_t step, offset; /* slot of the n-th fresh one: (offset + n * step) mod slots */
	uint64_t fresh;	       /* slots taken for the first time so far */
	uint16_t *live;	       /* frames in use, per slot */
	uint32_t *freed;       /* ring of slots to be reused, oldest first */
	uint64_t freed_head, freed_tail;
	uint32_t freed_entries;
};

struct rn_frames {
	int fd; /* the memfd */
	uint8_t *base;
	uint64_t bytes;
	uint64_t used; /* frames handed out */
	struct rn_frame_class class[RN_FRAME_CLASSES];
};

/** Make the memfd of @bytes (a multiple of 64 MiB) and map it. 0 or an errno. */
int rn_frames_init(struct rn_frames *frames, uint64_t bytes, uint64_t seed, const char *name);
void rn_frames_fini(struct rn_frames *frames);

/** A run of @pages (1 .. RN_FRAME_RUN_MAX) frames; false when the arena is used up. */
bool rn_frames_get(struct rn_frames *frames, uint32_t pages, uint64_t *first);

/** Give back @pages frames of one run, from @first, in any pieces. Their memory goes back to the system. */
void rn_frames_put(struct rn_frames *frames, uint64_t first, uint32_t pages);

#endif
