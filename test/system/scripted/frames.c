/* See frames.h. */
#include "frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "wire/opcode.h"
#include "wire/psn.h"

#define PCAP_NANO 0xa1b23c4du
#define FILE_HEADER_BYTES 24
#define RECORD_HEADER_BYTES 16

/* The furthest PSN that each host's requests, and READ responses, have come to, by destination QPN. */
struct stream {
	uint32_t host, dqpn;
	bool is_response;
	uint32_t next_psn;
};

struct streams {
	struct stream *stream;
	size_t count;
};

static void fail(const char *path, const char *what)
{
	fprintf(stderr, "%s: %s\n", path, what);
	abort();
}

void *frames_read_file(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "rb");
	char *data = NULL;
	size_t size = 0, got;

	if (!file)
		fail(path, "cannot be read");
	do {
		data = rn_reallocarray(data, size + 65536, 1);
		got = fread(data + size, 1, 65536, file);
		size += got;
	} while (got);
	fclose(file);
	*bytes = size;
	return data;
}

static uint32_t word(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static struct stream *stream_of(struct streams *streams, const struct frame *frame,
				bool is_response)
{
	struct stream *stream;

	for (size_t n = 0; n < streams->count; n++) {
		stream = &streams->stream[n];
		if (stream->host == frame->host && stream->dqpn == frame->packet.dqpn &&
		    stream->is_response == is_response)
			return stream;
	}
	streams->stream =
		rn_reallocarray(streams->stream, streams->count + 1, sizeof(struct stream));
	stream = &streams->stream[streams->count++];
	*stream = (struct stream){.host = frame->host,
				  .dqpn = frame->packet.dqpn,
				  .is_response = is_response,
				  .next_psn = frame->packet.psn};
	return stream;
}

static void mark_again(struct streams *streams, struct frame *frame, uint32_t mtu_bytes)
{
	const uint32_t flags = rn_opcode_info(frame->packet.opcode)->flags;
	struct stream *stream;
	uint32_t psns = 1;

	if (frame->packet.opcode == RN_BTH_ACKNOWLEDGE)
		return;
	if (frame->packet.opcode == RN_BTH_READ_REQUEST && frame->packet.reth_bytes)
		psns = (frame->packet.reth_bytes + mtu_bytes - 1) / mtu_bytes;
	stream = stream_of(streams, frame, flags & RN_OP_RESPONSE);
	frame->is_again = rn_psn_diff(frame->packet.psn, stream->next_psn) < 0;
	if (!frame->is_again)
		stream->next_psn = rn_psn_add(frame->packet.psn, psns);
}

/* MAC control, priority flow control. */
static bool is_pause(const uint8_t *frame)
{
	static const uint8_t types[] = {0x88, 0x08, 0x01, 0x01};

	return memcmp(frame + 12, types, sizeof(types)) == 0;
}

static void decode(struct frames *frames, struct rn_packets *packets, const uint8_t *record,
		   const char *path)
{
	struct frame *frame = &frames->frame[frames->count++];
	uint32_t idx;

	if (rn_packet_decode(packets, record + RECORD_HEADER_BYTES, word(record + 8), &idx) !=
	    RN_PARSE_OK)
		fail(path, "a frame does not decode");
	frame->packet = *rn_packet_at(packets, idx);
	frame->packet.payload_buf = RN_BUFFER_NONE;
	frame->bytes = word(record + 8);
	frame->at_ps = (word(record) * UINT64_C(1000000000) + word(record + 4)) * 1000;
	frame->host = frame->packet.smac[5] - 1u;
	frame->class = rn_fault_class_of(&frame->packet);
	rn_packet_put(packets, idx);
}

void frames_load(struct frames *frames, const char *path, uint32_t mtu_bytes)
{
	struct rn_buffers *buffers = rn_buffers_new();
	struct rn_packets *packets = rn_packets_new(buffers);
	struct streams streams = {0};
	size_t bytes, at = FILE_HEADER_BYTES;
	uint8_t *file = frames_read_file(path, &bytes);

	if (bytes < FILE_HEADER_BYTES || word(file) != PCAP_NANO)
		fail(path, "is no nanosecond capture");
	*frames = (struct frames){
		.frame = rn_calloc(bytes / RECORD_HEADER_BYTES + 1, sizeof(struct frame))};
	for (; at + RECORD_HEADER_BYTES <= bytes; at += RECORD_HEADER_BYTES + word(file + at + 8)) {
		if (is_pause(file + at + RECORD_HEADER_BYTES)) {
			frames->pauses++;
			continue;
		}
		decode(frames, packets, file + at, path);
		mark_again(&streams, &frames->frame[frames->count - 1], mtu_bytes);
	}
	free(streams.stream);
	free(file);
	rn_packets_free(packets);
	rn_buffers_free(buffers);
}

void frames_free(struct frames *frames)
{
	free(frames->frame);
	*frames = (struct frames){0};
}

static bool fits(const struct frame *frame, uint32_t host, enum rn_fault_class class, uint32_t psn)
{
	return frame->host == host && (class == RN_FAULT_ANY || frame->class == class) &&
	       (psn == FRAMES_ANY || frame->packet.psn == psn);
}

const struct frame *frames_find(const struct frames *frames, uint32_t host,
				enum rn_fault_class class, uint32_t psn, unsigned nth)
{
	for (size_t n = 0; n < frames->count; n++)
		if (fits(&frames->frame[n], host, class, psn) && nth-- == 0)
			return &frames->frame[n];
	return NULL;
}

unsigned frames_count(const struct frames *frames, uint32_t host, enum rn_fault_class class)
{
	unsigned count = 0;

	for (size_t n = 0; n < frames->count; n++)
		count += fits(&frames->frame[n], host, class, FRAMES_ANY);
	return count;
}

const struct frame *frames_first_again(const struct frames *frames, uint32_t host)
{
	for (size_t n = 0; n < frames->count; n++) {
		const struct frame *frame = &frames->frame[n];

		if (frame->host == host && frame->is_again &&
		    rn_opcode_info(frame->packet.opcode)->flags & RN_OP_REQUEST)
			return frame;
	}
	return NULL;
}
