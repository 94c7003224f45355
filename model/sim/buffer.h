/*
 * Pool of payload buffers. A DMA read's completion data is copied once, by the root
 * complex, into a buffer; from there it travels by reference through NIC, wire and peer
 * NIC. Messages between blocks carry the index, never a pointer. Reference counted.
 *
 * The pool is storage of the simulator, not modelled hardware: finite hardware buffers are
 * modelled by the blocks that own them (parameters), and the pool grows as needed. Identity
 * and order never come from an index.
 */
#ifndef RN_SIM_BUFFER_H
#define RN_SIM_BUFFER_H

#include <stdint.h>

#define RN_BUFFER_BYTES 4096
#define RN_BUFFER_NONE UINT32_MAX

struct rn_buffers;

struct rn_buffers *rn_buffers_new(void);
void rn_buffers_free(struct rn_buffers *pool);

/** A buffer of RN_BUFFER_BYTES with one reference and undefined contents. */
uint32_t rn_buffer_get(struct rn_buffers *pool);
void rn_buffer_hold(struct rn_buffers *pool, uint32_t idx);
/** Drop a reference; RN_BUFFER_NONE is ignored. */
void rn_buffer_put(struct rn_buffers *pool, uint32_t idx);
/** Its bytes; valid while a reference is held; stable when the pool grows. */
uint8_t *rn_buffer_data(struct rn_buffers *pool, uint32_t idx);
/** Buffers with a reference now (leak checks). */
uint32_t rn_buffers_in_use(const struct rn_buffers *pool);

#endif
