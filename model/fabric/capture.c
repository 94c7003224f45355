/*
 * The capture file. libpcap gives the format; a large stdio buffer makes it fast. Records are held back
 * until time has moved on and sorted by (time, port), so that their order does not depend on the order
 * in which ports ran.
 */
#define _DEFAULT_SOURCE /* pcap.h wants u_int */
#include "fabric/capture.h"

#include <pcap/pcap.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/output.h"

#define MAX_SNAP 262144
#define HOLD_PS 2 /* frames are reported at most this late */
#define PS_PER_NS 1000u
#define PS_PER_S 1000000000000u

struct record {
	uint64_t at_ps;
	uint32_t port;
	uint32_t bytes;
	uint8_t data[RN_PACKET_MAX_BYTES];
};

struct rn_capture {
	struct rn_packets *packets;
	pcap_t *pcap;
	pcap_dumper_t *dumper;
	struct rn_output *output;
	uint32_t snap_bytes;
	uint64_t frames;
	struct record **held; /* sorted; entries from held_count on are spare */
	unsigned held_count, held_room;
};

struct rn_capture *rn_capture_open(const char *path, uint32_t snap_bytes,
				   struct rn_packets *packets, char **error)
{
	struct rn_capture *capture = rn_calloc(1, sizeof(*capture));
	int snap = snap_bytes ? (int)snap_bytes : MAX_SNAP;

	capture->packets = packets;
	capture->snap_bytes = snap_bytes ? snap_bytes : MAX_SNAP;
	capture->output = rn_output_open(path, "a capture", error);
	if (!capture->output) {
		free(capture);
		return NULL;
	}
	capture->pcap =
		pcap_open_dead_with_tstamp_precision(DLT_EN10MB, snap, PCAP_TSTAMP_PRECISION_NANO);
	if (capture->pcap)
		capture->dumper = pcap_dump_fopen(capture->pcap, rn_output_stream(capture->output));
	if (capture->dumper)
		return capture;
	*error = rn_asprintf("%s: libpcap makes no capture of it", path);
	if (capture->pcap)
		pcap_close(capture->pcap);
	rn_output_close(capture->output, NULL);
	free(capture);
	return NULL;
}

static void write_record(struct rn_capture *capture, const struct record *record)
{
	struct pcap_pkthdr header = {
		.ts = {.tv_sec = (time_t)(record->at_ps / PS_PER_S),
		       .tv_usec = (suseconds_t)(record->at_ps % PS_PER_S / PS_PER_NS)},
		.caplen = record->bytes < capture->snap_bytes ? record->bytes : capture->snap_bytes,
		.len = record->bytes,
	};

	pcap_dump((u_char *)capture->dumper, &header, record->data);
	capture->frames++;
}

/* Write what no later frame can precede. */
static void release_before(struct rn_capture *capture, uint64_t at_ps)
{
	unsigned done = 0;
	struct record *record;

	while (done < capture->held_count && capture->held[done]->at_ps < at_ps)
		write_record(capture, capture->held[done++]);
	for (unsigned i = 0; done && i + done < capture->held_room; i++) {
		record = capture->held[i];
		capture->held[i] = capture->held[i + done];
		capture->held[i + done] = record;
	}
	capture->held_count -= done;
}

static struct record *spare_record(struct rn_capture *capture)
{
	if (capture->held_count == capture->held_room) {
		capture->held = rn_reallocarray(capture->held, capture->held_room + 1,
						sizeof(*capture->held));
		capture->held[capture->held_room++] = rn_calloc(1, sizeof(struct record));
	}
	return capture->held[capture->held_count];
}

static bool is_after(const struct record *record, uint64_t at_ps, uint32_t port)
{
	return record->at_ps > at_ps || (record->at_ps == at_ps && record->port > port);
}

void rn_capture_frame(struct rn_capture *capture, uint64_t at_ps, uint32_t port, uint32_t packet)
{
	struct record *record;
	unsigned i;

	release_before(capture, at_ps > HOLD_PS ? at_ps - HOLD_PS : 0);
	record = spare_record(capture);
	record->at_ps = at_ps;
	record->port = port;
	record->bytes = rn_packet_encode(capture->packets, packet, record->data);
	for (i = capture->held_count; i > 0 && is_after(capture->held[i - 1], at_ps, port); i--)
		capture->held[i] = capture->held[i - 1];
	capture->held[i] = record;
	capture->held_count++;
}

uint64_t rn_capture_frames(const struct rn_capture *capture)
{
	return capture->frames + capture->held_count;
}

int rn_capture_close(struct rn_capture *capture, char **message)
{
	int error;

	if (!capture)
		return 0;
	release_before(capture, UINT64_MAX);
	pcap_dump_close(capture->dumper); /* and the stream in it */
	pcap_close(capture->pcap);
	error = rn_output_close(capture->output, message);
	for (unsigned i = 0; i < capture->held_room; i++)
		free(capture->held[i]);
	free(capture->held);
	free(capture);
	return error;
}
