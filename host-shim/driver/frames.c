/*
 * Frame arena of a process; see frames.h. The memfd is sealed against shrinking, growing and
 * further seals before anybody else sees it: a client that holds the descriptor cannot make the
 * simulator's mapping fault.
 */
#include "driver/frames.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/mem.h"
#include "base/rng.h"

/* Sixteenths of the arena a class gets. */
static const uint8_t class_share[RN_FRAME_CLASSES] = {1, 1, 1, 1, 2, 1, 1, 2, 6};

/* Freed slots that wait before the oldest is used again, while there are fresh ones. */
#define QUARANTINE_SLOTS 256

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		const uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static void init_class(struct rn_frame_class *class, unsigned idx, uint64_t first, uint64_t frames,
		       struct rn_rng *rng)
{
	class->first = first;
	class->slots = frames / ((1u << idx) + 1);
	class->offset = rn_rng_below(rng, class->slots);
	do {
		class->step = 1 + rn_rng_below(rng, class->slots);
	} while (greatest_common_divisor(class->step, class->slots) != 1);
	class->live = rn_calloc(class->slots, sizeof(*class->live));
}

static int make_memory(struct rn_frames *frames, uint64_t bytes)
{
	frames->fd = memfd_create("rnicsim-frames", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (frames->fd < 0)
		return errno;
	if (ftruncate(frames->fd, (off_t)bytes) ||
	    fcntl(frames->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return errno;
	frames->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			    frames->fd, 0);
	return frames->base == MAP_FAILED ? errno : 0;
}

int rn_frames_init(struct rn_frames *frames, uint64_t bytes, uint64_t seed, const char *name)
{
	RN_ASSERT(bytes && bytes % (UINT64_C(64) << 20) == 0);
	*frames = (struct rn_frames){.fd = -1, .base = MAP_FAILED, .bytes = bytes};

	const int error = make_memory(frames, bytes);

	if (error) {
		rn_frames_fini(frames);
		return error;
	}

	const uint64_t share = bytes / RN_FRAME_BYTES / 16;
	uint64_t first = 0;
	struct rn_rng rng;

	rn_rng_init(&rng, seed, name);
	for (unsigned idx = 0; idx < RN_FRAME_CLASSES; idx++) {
		init_class(&frames->class[idx], idx, first, share * class_share[idx], &rng);
		first += share * class_share[idx];
	}
	return 0;
}

void rn_frames_fini(struct rn_frames *frames)
{
	for (unsigned idx = 0; idx < RN_FRAME_CLASSES; idx++) {
		free(frames->class[idx].live);
		free(frames->class[idx].freed);
	}
	if (frames->base != MAP_FAILED)
		munmap(frames->base, frames->bytes);
	if (frames->fd >= 0)
		close(frames->fd);
	*frames = (struct rn_frames){.fd = -1, .base = MAP_FAILED};
}

static bool get_slot(struct rn_frame_class *class, uint64_t *slot)
{
	const uint64_t waiting = class->freed_tail - class->freed_head;
	const bool has_fresh = class->fresh < class->slots;

	if (waiting > QUARANTINE_SLOTS || (waiting && !has_fresh)) {
		*slot = class->freed[class->freed_head++ % class->freed_entries];
		return true;
	}
	if (!has_fresh)
		return false;
	*slot = (class->offset + class->fresh++ * class->step) % class->slots;
	return true;
}

static void put_slot(struct rn_frame_class *class, uint32_t slot)
{
	const uint64_t waiting = class->freed_tail - class->freed_head;

	if (waiting == class->freed_entries) {
		const uint32_t entries = class->freed_entries ? class->freed_entries * 2 : 64;
		uint32_t *ring = rn_calloc(entries, sizeof(*ring));

		for (uint64_t n = 0; n < waiting; n++)
			ring[n] = class->freed[(class->freed_head + n) % class->freed_entries];
		free(class->freed);
		class->freed = ring;
		class->freed_entries = entries;
		class->freed_head = 0;
		class->freed_tail = waiting;
	}
	class->freed[class->freed_tail++ % class->freed_entries] = slot;
}

bool rn_frames_get(struct rn_frames *frames, uint32_t pages, uint64_t *first)
{
	RN_ASSERT(pages >= 1 && pages <= RN_FRAME_RUN_MAX);
	for (unsigned idx = rn_log2_ceil(pages); idx < RN_FRAME_CLASSES; idx++) {
		struct rn_frame_class *class = &frames->class[idx];
		uint64_t slot;

		if (!get_slot(class, &slot))
			continue;
		class->live[slot] = (uint16_t)pages;
		frames->used += pages;
		*first = class->first + slot * ((1u << idx) + 1);
		return true;
	}
	return false;
}

void rn_frames_put(struct rn_frames *frames, uint64_t first, uint32_t pages)
{
	unsigned idx = RN_FRAME_CLASSES - 1;

	while (first < frames->class[idx].first)
		idx--;

	struct rn_frame_class *class = &frames->class[idx];
	const uint64_t slot = (first - class->first) / ((1u << idx) + 1);

	RN_ASSERT(class->live[slot] >= pages);
	/* A failure leaves the contents, which only the same process can see. */
	(void)fallocate(frames->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)(first * RN_FRAME_BYTES), (off_t)pages * RN_FRAME_BYTES);
	frames->used -= pages;
	class->live[slot] = (uint16_t)(class->live[slot] - pages);
	if (!class->live[slot])
		put_slot(class, (uint32_t)slot);
}
