/*
 * Packets against the captures of a real Soft-RoCE peer: every genuine RoCEv2 frame decodes with a right ICRC and
 * encodes back to the same bytes.
 */
#define _DEFAULT_SOURCE /* pcap.h wants u_int */
#include <check.h>
#include <dirent.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_suite.h"
#include "wire/opcode.h"
#include "wire/packet.h"

struct tally {
	unsigned roce;	  /* frames to port 4791 */
	unsigned bad;	  /* with an ICRC that does not fit */
	unsigned unknown; /* opcodes outside the table */
	unsigned skipped; /* other traffic */
	unsigned ipv6;
};

static struct rn_buffers *buffers;
static struct rn_packets *packets;

static void setup(void)
{
	buffers = rn_buffers_new();
	packets = rn_packets_new(buffers);
}

static void teardown(void)
{
	ck_assert_uint_eq(rn_packets_in_use(packets), 0);
	ck_assert_uint_eq(rn_buffers_in_use(buffers), 0);
	rn_packets_free(packets);
	rn_buffers_free(buffers);
}

static void check_frame(const char *path, const uint8_t *frame, uint32_t bytes, struct tally *tally)
{
	uint8_t again[RN_PACKET_MAX_BYTES];
	enum rn_packet_parse result;
	uint32_t idx;

	result = rn_packet_decode(packets, frame, bytes, &idx);
	if (result == RN_PARSE_NOT_ROCE || result == RN_PARSE_TRUNCATED) {
		tally->skipped++;
		return;
	}
	tally->roce++;
	if (result == RN_PARSE_BAD_OPCODE) {
		tally->unknown++;
		return;
	}
	if (result == RN_PARSE_BAD_ICRC) {
		tally->bad++;
		ck_assert_uint_eq(rn_packet_at(packets, idx)->corrupt, 1);
		rn_packet_put(packets, idx);
		return;
	}
	ck_assert_int_eq(result, RN_PARSE_OK);
	tally->ipv6 += rn_packet_at(packets, idx)->ipv6;
	/* The CRC is computed afresh, not copied. */
	rn_packet_at(packets, idx)->icrc_known = 0;
	ck_assert_msg(rn_packet_encode(packets, idx, again) == bytes &&
			      memcmp(again, frame, bytes) == 0,
		      "%s: frame encodes differently", path);
	ck_assert_uint_eq(rn_packet_frame_bytes(rn_packet_at(packets, idx)), bytes);
	rn_packet_put(packets, idx);
}

static void check_file(const char *path, struct tally *tally)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *pcap = pcap_open_offline(path, error);
	struct pcap_pkthdr *header;
	const u_char *frame;

	ck_assert_msg(pcap != NULL, "%s: %s", path, error);
	while (pcap_next_ex(pcap, &header, &frame) == 1)
		check_frame(path, frame, header->caplen, tally);
	pcap_close(pcap);
}

static void check_folder(const char *name, struct tally *tally)
{
	char path[1024];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/traces/%s", RN_SOURCE_DIR, name);
	dir = opendir(path);
	ck_assert_msg(dir != NULL, "%s", path);
	while ((entry = readdir(dir))) {
		if (!strstr(entry->d_name, ".pcap") || strstr(entry->d_name, "corrupt") ||
		    strstr(entry->d_name, "trunc"))
			continue;
		snprintf(path, sizeof(path), "%s/traces/%s/%s", RN_SOURCE_DIR, name, entry->d_name);
		check_file(path, tally);
	}
	closedir(dir);
}

START_TEST(genuine_frames_decode_and_encode_to_the_same_bytes)
{
	static const char *const folders[] = {"rocev2_tools", "rocev2_verbs", "rocev2_loss",
					      "rocev2_jumbo"};
	struct tally tally = {0};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		check_folder(folders[i], &tally);
	ck_assert_uint_gt(tally.roce, 1700);
	ck_assert_uint_gt(tally.ipv6, 20);
	ck_assert_uint_eq(tally.bad, 0);
	/* ATOMIC WRITE (opcode 0x1d) of vt_rc_atomic_write alone. */
	ck_assert_uint_le(tally.unknown, 8);
}
END_TEST

START_TEST(damaged_frame_has_a_bad_icrc)
{
	char path[1024];
	struct tally tally = {0};

	snprintf(path, sizeof(path), "%s/traces/rocev2_loss/corrupt_payload.server.pcap",
		 RN_SOURCE_DIR);
	check_file(path, &tally);
	ck_assert_uint_eq(tally.bad, 1);
}
END_TEST

static uint32_t small_send(void)
{
	uint32_t idx = rn_packet_get(packets);
	struct rn_packet *packet = rn_packet_at(packets, idx);

	packet->opcode = RN_BTH_SEND_ONLY;
	packet->sgid[10] = packet->sgid[11] = packet->dgid[10] = packet->dgid[11] = 0xff;
	packet->hop_limit = 64;
	packet->udp_sport = 0xc123;
	packet->dqpn = 0x123456;
	packet->psn = 0xabcdef;
	packet->payload_buf = rn_buffer_get(buffers);
	packet->payload_bytes = 13;
	packet->pad = 3;
	memset(rn_buffer_data(buffers, packet->payload_buf), 0x5a, 13);
	return idx;
}

START_TEST(every_single_bit_error_behind_the_ip_header_is_found)
{
	uint8_t frame[RN_PACKET_MAX_BYTES];
	uint32_t idx = small_send(), got;
	uint32_t bytes = rn_packet_encode(packets, idx, frame);

	rn_packet_put(packets, idx);
	for (uint32_t bit = 42 * 8; bit < bytes * 8; bit++) {
		enum rn_packet_parse result;

		if (bit / 8 == 46) /* FECN, BECN and reserved bits are not covered */
			continue;
		frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
		result = rn_packet_decode(packets, frame, bytes, &got);
		ck_assert_int_ne(result, RN_PARSE_OK);
		if (got != RN_PACKET_NONE)
			rn_packet_put(packets, got);
		frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}
END_TEST

START_TEST(every_truncation_is_refused)
{
	uint8_t frame[RN_PACKET_MAX_BYTES];
	uint32_t idx = small_send(), got;
	uint32_t bytes = rn_packet_encode(packets, idx, frame);

	rn_packet_put(packets, idx);
	for (uint32_t kept = 0; kept < bytes; kept++) {
		ck_assert_int_ne(rn_packet_decode(packets, frame, kept, &got), RN_PARSE_OK);
		ck_assert_uint_eq(got, RN_PACKET_NONE);
	}
}
END_TEST

START_TEST(corrupt_packet_is_written_with_a_wrong_icrc)
{
	uint8_t frame[RN_PACKET_MAX_BYTES];
	uint32_t idx = small_send(), got;
	uint32_t bytes;

	rn_packet_at(packets, idx)->corrupt = 1;
	bytes = rn_packet_encode(packets, idx, frame);
	rn_packet_put(packets, idx);
	ck_assert_int_eq(rn_packet_decode(packets, frame, bytes, &got), RN_PARSE_BAD_ICRC);
	rn_packet_put(packets, got);
}
END_TEST

START_TEST(clone_shares_the_payload)
{
	uint32_t idx = small_send();
	uint32_t copy = rn_packet_clone(packets, idx);

	ck_assert_uint_eq(rn_packet_at(packets, copy)->payload_buf,
			  rn_packet_at(packets, idx)->payload_buf);
	rn_packet_put(packets, idx);
	ck_assert_uint_eq(rn_buffers_in_use(buffers), 1);
	rn_packet_put(packets, copy);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("packet");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, genuine_frames_decode_and_encode_to_the_same_bytes);
	tcase_add_test(tcase, damaged_frame_has_a_bad_icrc);
	tcase_add_test(tcase, every_single_bit_error_behind_the_ip_header_is_found);
	tcase_add_test(tcase, every_truncation_is_refused);
	tcase_add_test(tcase, corrupt_packet_is_written_with_a_wrong_icrc);
	tcase_add_test(tcase, clone_shares_the_payload);
	return run_suite(tcase, "packet");
}
