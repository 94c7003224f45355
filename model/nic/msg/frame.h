/*
 * transport <-> MAC <-> fabric: frames by index into the packet pool (wire/packet.h).
 */
#ifndef RN_NIC_MSG_FRAME_H
#define RN_NIC_MSG_FRAME_H

#include <stdint.h>

struct rn_frame {
	uint32_t packet; /* rn_packets index; the reference passes on */
	uint32_t bytes;	 /* Ethernet frame without preamble and FCS */
};

#endif
