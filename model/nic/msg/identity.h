/*
 * Who the port is: written by the command unit on CMD_INIT_HCA, before any packet is sent; read by
 * transport and MAC.
 */
#ifndef RN_NIC_MSG_IDENTITY_H
#define RN_NIC_MSG_IDENTITY_H

#include <stdint.h>

struct rn_nic_identity {
	uint8_t smac[6];
	uint8_t reserved[2];
	uint8_t gid[16][16]; /* an IPv4-mapped one sends IPv4; all zero: empty */
};

#endif
