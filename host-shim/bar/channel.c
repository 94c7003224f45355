/*
 * Ring of posted MMIO writes between a process and the simulator.
 *
 * The wake-up follows Dekker's pattern: the producer publishes its entry and then looks at `asleep`, the
 * simulator sets `asleep` and then looks at `tail`, each with a full fence between, so one of them sees the
 * other. Indexes run freely in 64 bits.
 */
#include "bar/channel.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

bool rn_channel_post(struct rn_channel *channel, uint64_t at_ps, uint32_t page, uint32_t offset,
		     const void *data, uint32_t len)
{
	const uint64_t tail = atomic_load_explicit(&channel->tail, memory_order_relaxed);
	const uint64_t head = atomic_load_explicit(&channel->head, memory_order_acquire);
	struct rn_channel_entry *entry = &channel->entry[tail % RN_CHANNEL_ENTRIES];

	if (tail - head >= RN_CHANNEL_ENTRIES)
		return false;
	if (len > sizeof(entry->data))
		len = sizeof(entry->data);
	entry->page = page;
	entry->offset = offset;
	entry->len = len;
	entry->at_ps = at_ps;
	memcpy(entry->data, data, len);
	atomic_store_explicit(&channel->tail, tail + 1, memory_order_release);
	return true;
}

void rn_channel_kick(struct rn_channel *channel, int wake_fd)
{
	const uint64_t one = 1;

	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&channel->asleep, memory_order_relaxed))
		return;
	while (write(wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

enum rn_channel_take rn_channel_take(struct rn_channel *channel, uint64_t *head,
				     struct rn_channel_entry *entry)
{
	const uint64_t tail = atomic_load_explicit(&channel->tail, memory_order_acquire);

	if (tail == *head)
		return RN_CHANNEL_EMPTY;
	if (tail - *head > RN_CHANNEL_ENTRIES)
		return RN_CHANNEL_CORRUPT;
	memcpy(entry, &channel->entry[*head % RN_CHANNEL_ENTRIES],
	       offsetof(struct rn_channel_entry, pad));
	*head += 1;
	atomic_store_explicit(&channel->head, *head, memory_order_release);
	return RN_CHANNEL_TAKEN;
}
