/*
 * Invariant CRC of RoCEv2 (IBA volume 1, 7.8.1 and annex A17).
 */
#ifndef RN_WIRE_ICRC_H
#define RN_WIRE_ICRC_H

#include <stdint.h>

/**
 * ICRC over @ip_bytes of IP, UDP and transport headers at @ip (the IP header first; variant fields are
 * masked here, @ip is not changed), then @payload_bytes of payload and @pad zero bytes. At most 128 header bytes.
 * Returns the value that is stored little-endian behind the pad.
 */
uint32_t rn_icrc(const uint8_t *ip, uint32_t ip_bytes, const uint8_t *payload,
		 uint32_t payload_bytes, uint32_t pad);

#endif
