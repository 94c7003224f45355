/*
 * From the bytes of a WQE to struct rn_wqe. Pure functions; nothing in @data can do more than make
 * a WQE malformed.
 */
#ifndef RN_NIC_WQE_FETCH_DECODE_H
#define RN_NIC_WQE_FETCH_DECODE_H

#include <stdint.h>

#include "nic/msg/work.h"

/**
 * WQEBBs of the send WQE whose ctrl segment is at @data; 0 when the segment does not belong to a WQE of
 * @qpn at index @idx or its length is none that a WQE can have.
 */
unsigned rn_wqe_send_wqebbs(const uint8_t *data, uint32_t qpn, uint16_t idx);

/**
 * Decode the send WQE of @wqebbs blocks at @data into @wqe (opcode, sizes, segments; valid 0 when malformed).
 * @wqebbs 0: only the ctrl segment is looked at, and the WQE is malformed. wqe_idx and inline_buf are the
 * caller's. Returns the inline data (total_bytes of it), NULL when there is none.
 */
const uint8_t *rn_wqe_decode_send(const uint8_t *data, unsigned wqebbs, struct rn_wqe *wqe);

/** Decode a receive WQE of at most @max_sge data segments at @data. wqe_idx is the caller's. */
void rn_wqe_decode_recv(const uint8_t *data, unsigned max_sge, struct rn_wqe *wqe);

/** A WQE without effect: NOP, no data. */
void rn_wqe_make_nop(struct rn_wqe *wqe);

#endif
