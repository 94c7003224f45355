/* Pause frames: their bytes, their times, and the headroom that a link needs. */
#include <check.h>
#include <string.h>

#include "base/bits.h"
#include "run_suite.h"
#include "wire/pause.h"

START_TEST(a_pause_frame_is_what_802_1qbb_says)
{
	static const uint8_t mac[6] = {2, 3, 4, 5, 6, 7};
	struct rn_buffers *buffers = rn_buffers_new();
	struct rn_packets *packets = rn_packets_new(buffers);
	uint32_t idx = rn_pause_new(packets, mac, 0x1234);
	uint8_t expected[60] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 2,	  3,	4,
				5,    6,    7,	  0x88, 0x08, 0x01, 0x01, 0x00, 0x08,
				0x00, 0x00, 0x00, 0x00, 0,    0,    0x12, 0x34};
	uint8_t frame[RN_PACKET_MAX_BYTES];

	ck_assert_uint_eq(rn_packet_frame_bytes(rn_packet_at(packets, idx)), 60);
	ck_assert_uint_eq(rn_packet_encode(packets, idx, frame), 60);
	ck_assert_mem_eq(frame, expected, 60);
	rn_packet_put(packets, idx);
	rn_packets_free(packets);
	rn_buffers_free(buffers);
}
END_TEST

START_TEST(a_quantum_is_512_bit_times)
{
	static const uint64_t mbps[] = {10, 100000, 400000, 1000000};

	for (unsigned i = 0; i < RN_ARRAY_LEN(mbps); i++) {
		struct rn_cable cable = {.bps = mbps[i] * 1000000};

		ck_assert_uint_eq(rn_pause_ps(&cable, 0), 0);
		ck_assert_uint_eq(rn_pause_ps(&cable, 1), 512000000 / mbps[i]);
		ck_assert_uint_eq(rn_pause_ps(&cable, 65535),
				  UINT64_C(65535) * 512000000 / mbps[i]);
	}
}
END_TEST

/* Every picosecond of cable and reaction is a byte and a fraction; the frames stay. */
START_TEST(headroom_grows_with_cable_rate_and_reaction)
{
	struct rn_cable cable = {.bps = 100000000000};
	uint64_t frames = 2 * 4404 + 4424 + 84 + 1;

	ck_assert_uint_eq(rn_headroom_bytes(&cable), frames);
	cable.delay_ps = 10000000; /* 2 km */
	ck_assert_uint_eq(rn_headroom_bytes(&cable), frames + 250000);
	cable.reaction_ps = 80;
	ck_assert_uint_eq(rn_headroom_bytes(&cable), frames + 250001);
	cable.bps *= 4;
	ck_assert_uint_eq(rn_headroom_bytes(&cable), frames + 4 * 250001);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("pause");

	tcase_add_test(tcase, a_pause_frame_is_what_802_1qbb_says);
	tcase_add_test(tcase, a_quantum_is_512_bit_times);
	tcase_add_test(tcase, headroom_grows_with_cable_rate_and_reaction);
	return run_suite(tcase, "pause");
}
