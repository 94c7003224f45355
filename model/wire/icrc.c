/*
 * ICRC: CRC-32 over eight bytes of ones, the headers with their variant fields as ones (IPv4: TOS,
 * TTL, checksum; IPv6: traffic class, flow label, hop limit; UDP checksum; BTH byte 4) and the payload.
 */
#include "wire/icrc.h"

#include <isa-l/crc.h>
#include <stdbool.h>
#include <string.h>

#include "base/assert.h"

#define LEAD_BYTES 8
#define HEADER_MAX 128
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define UDP_BYTES 8

static void mask_ipv4(uint8_t *ip)
{
	ip[1] = 0xff;
	ip[8] = 0xff;
	ip[10] = 0xff;
	ip[11] = 0xff;
}

static void mask_ipv6(uint8_t *ip)
{
	ip[0] |= 0x0f;
	ip[1] = 0xff;
	ip[2] = 0xff;
	ip[3] = 0xff;
	ip[7] = 0xff;
}

uint32_t rn_icrc(const uint8_t *ip, uint32_t ip_bytes, const uint8_t *payload,
		 uint32_t payload_bytes, uint32_t pad)
{
	static const uint8_t zeroes[4];
	uint8_t masked[LEAD_BYTES + HEADER_MAX];
	uint8_t *head = masked + LEAD_BYTES;
	bool ipv6 = ip[0] >> 4 == 6;
	uint8_t *udp = head + (ipv6 ? IPV6_BYTES : IPV4_BYTES);
	uint32_t crc;

	RN_ASSERT(ip_bytes <= HEADER_MAX && pad < sizeof(zeroes));
	memset(masked, 0xff, LEAD_BYTES);
	memcpy(head, ip, ip_bytes);
	if (ipv6)
		mask_ipv6(head);
	else
		mask_ipv4(head);
	udp[6] = 0xff;
	udp[7] = 0xff;
	udp[UDP_BYTES + 4] = 0xff;
	crc = crc32_gzip_refl(0, masked, LEAD_BYTES + ip_bytes);
	if (payload_bytes)
		crc = crc32_gzip_refl(crc, payload, payload_bytes);
	if (pad)
		crc = crc32_gzip_refl(crc, zeroes, pad);
	return crc;
}
