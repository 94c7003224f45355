/*
 * The link's way up: takes what the NIC wants to send, in the order that PCIe allows and credits
 * permit.
 */
#ifndef RN_PCIE_ENDPOINT_H
#define RN_PCIE_ENDPOINT_H

#include <stdint.h>

struct rn_endpoint;
struct rn_root_complex;

/** Built by the root complex @rc, from its env. */
struct rn_endpoint *rn_endpoint_new(struct rn_root_complex *rc);
void rn_endpoint_free(struct rn_endpoint *endpoint);

/** The root complex has moved its oldest waiting read on: its header credit is usable at @at_ps. */
void rn_endpoint_give_nonposted(struct rn_endpoint *endpoint, uint64_t at_ps);

#endif
