#include "wire/pause.h"

#include <string.h>

#include "base/bits.h"

#define ETHERTYPE_MAC_CONTROL 0x8808
#define OPCODE_PRIORITY_PAUSE 0x0101

/* The address that bridges do not pass on. */
static const uint8_t control_mac[6] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};

uint32_t rn_pause_new(struct rn_packets *packets, const uint8_t smac[6], uint32_t quanta)
{
	uint32_t idx = rn_packet_get(packets);
	struct rn_packet *packet = rn_packet_at(packets, idx);

	memcpy(packet->dmac, control_mac, 6);
	memcpy(packet->smac, smac, 6);
	packet->is_pause = 1;
	packet->pause_quanta = (uint16_t)quanta;
	return idx;
}

uint32_t rn_pause_encode(const struct rn_packet *packet, uint8_t *to)
{
	memset(to, 0, RN_LINE_MIN_FRAME_BYTES);
	memcpy(to, packet->dmac, 6);
	memcpy(to + 6, packet->smac, 6);
	rn_put_be16(to + 12, ETHERTYPE_MAC_CONTROL);
	rn_put_be16(to + 14, OPCODE_PRIORITY_PAUSE);
	/* Which of the eight times hold. */
	rn_put_be16(to + 16, 1u << RN_PAUSE_PRIORITY);
	rn_put_be16(to + 18 + 2 * RN_PAUSE_PRIORITY, packet->pause_quanta);
	return RN_LINE_MIN_FRAME_BYTES;
}
