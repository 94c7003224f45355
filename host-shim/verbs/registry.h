/*
 * Objects of a connection by number: cookies that come back with events, and QPs by QPN. A cookie of an
 * object that is gone finds nothing.
 */
#ifndef RN_VERBS_REGISTRY_H
#define RN_VERBS_REGISTRY_H

#include <pthread.h>
#include <stdint.h>

#define RN_QPN_LEAF 4096u

struct rn_registry_slot {
	void *object; /* NULL: free */
	uint32_t generation;
	uint32_t next_free; /* index + 1 */
};

struct rn_registry {
	pthread_mutex_t lock;
	struct rn_registry_slot *slot;
	uint32_t count;
	uint32_t free;		/* index + 1, 0 none */
	void **qp[RN_QPN_LEAF]; /* by the QPN's upper and lower 12 bits */
};

void rn_registry_init(struct rn_registry *registry);
void rn_registry_fini(struct rn_registry *registry);

/** A cookie for @object; 0 when memory is short. */
uint64_t rn_registry_add(struct rn_registry *registry, void *object);
void rn_registry_remove(struct rn_registry *registry, uint64_t cookie);

/**
 * Look @cookie up and, under the registry's lock, call @use on its object (count an event that the destroyer
 * then waits for). Returns the object or NULL.
 */
void *rn_registry_use(struct rn_registry *registry, uint64_t cookie, void (*use)(void *object));

/** Bind a QPN (24 bits) to a QP, or to NULL. 0 or ENOMEM. */
int rn_registry_set_qp(struct rn_registry *registry, uint32_t qpn, void *qp);

/** The QP of a QPN. The caller holds the lock of a CQ of that QP, so it cannot vanish meanwhile. */
static inline void *rn_registry_qp(const struct rn_registry *registry, uint32_t qpn)
{
	void **leaf =
		__atomic_load_n(&registry->qp[(qpn >> 12) & (RN_QPN_LEAF - 1)], __ATOMIC_ACQUIRE);

	return leaf ? __atomic_load_n(&leaf[qpn & (RN_QPN_LEAF - 1)], __ATOMIC_ACQUIRE) : NULL;
}

#endif
