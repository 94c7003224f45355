/*
 * Cookies are (generation, index + 1); a slot's generation changes when its object goes.
 */
#include "verbs/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void rn_registry_init(struct rn_registry *registry)
{
	memset(registry, 0, sizeof(*registry));
	pthread_mutex_init(&registry->lock, NULL);
}

void rn_registry_fini(struct rn_registry *registry)
{
	for (uint32_t i = 0; i < RN_QPN_LEAF; i++)
		free(registry->qp[i]);
	free(registry->slot);
	pthread_mutex_destroy(&registry->lock);
}

static int grow(struct rn_registry *registry)
{
	const uint32_t count = registry->count ? registry->count * 2 : 64;
	struct rn_registry_slot *slot = realloc(registry->slot, count * sizeof(*slot));

	if (!slot)
		return ENOMEM;
	for (uint32_t i = registry->count; i < count; i++) {
		slot[i] = (struct rn_registry_slot){.next_free = registry->free};
		registry->free = i + 1;
	}
	registry->slot = slot;
	registry->count = count;
	return 0;
}

uint64_t rn_registry_add(struct rn_registry *registry, void *object)
{
	struct rn_registry_slot *slot;
	uint64_t cookie = 0;

	pthread_mutex_lock(&registry->lock);
	if (registry->free || grow(registry) == 0) {
		const uint32_t index = registry->free;

		slot = &registry->slot[index - 1];
		registry->free = slot->next_free;
		slot->object = object;
		cookie = (uint64_t)slot->generation << 32 | index;
	}
	pthread_mutex_unlock(&registry->lock);
	return cookie;
}

/* The slot of a cookie, or NULL when its object is gone. */
static struct rn_registry_slot *find(struct rn_registry *registry, uint64_t cookie)
{
	const uint32_t index = (uint32_t)cookie;
	struct rn_registry_slot *slot;

	if (index == 0 || index > registry->count)
		return NULL;
	slot = &registry->slot[index - 1];
	return slot->object && slot->generation == cookie >> 32 ? slot : NULL;
}

void rn_registry_remove(struct rn_registry *registry, uint64_t cookie)
{
	struct rn_registry_slot *slot;

	pthread_mutex_lock(&registry->lock);
	slot = find(registry, cookie);
	if (slot) {
		slot->object = NULL;
		slot->generation++;
		slot->next_free = registry->free;
		registry->free = (uint32_t)cookie;
	}
	pthread_mutex_unlock(&registry->lock);
}

void *rn_registry_use(struct rn_registry *registry, uint64_t cookie, void (*use)(void *object))
{
	struct rn_registry_slot *slot;
	void *object = NULL;

	pthread_mutex_lock(&registry->lock);
	slot = find(registry, cookie);
	if (slot) {
		object = slot->object;
		use(object);
	}
	pthread_mutex_unlock(&registry->lock);
	return object;
}

int rn_registry_set_qp(struct rn_registry *registry, uint32_t qpn, void *qp)
{
	void ***leaf = &registry->qp[(qpn >> 12) & (RN_QPN_LEAF - 1)];
	int error = 0;

	pthread_mutex_lock(&registry->lock);
	if (!*leaf) {
		void **fresh = calloc(RN_QPN_LEAF, sizeof(*fresh));

		__atomic_store_n(leaf, fresh, __ATOMIC_RELEASE);
	}
	if (*leaf)
		__atomic_store_n(&(*leaf)[qpn & (RN_QPN_LEAF - 1)], qp, __ATOMIC_RELEASE);
	else
		error = ENOMEM;
	pthread_mutex_unlock(&registry->lock);
	return error;
}
