/* See retry.h. */
#include "retry.h"

#include <check.h>
#include <string.h>

#include "wire/line.h"
#include "wire/psn.h"

#define TX_LATENCY_CYCLES 16u
#define CONTEXT_CYCLES 5u /* hit_cycles + 2: a request and its answer */
#define LINK_DELAY_PS 25000u
#define LINE_PS_A_BYTE 200u
#define TIMEOUT_UNIT_PS UINT64_C(4096000)
#define SETTLE_PS (100 * WORLD_US)

const struct retry_reaction RETRY_AT_ONCE = {0, 0, 1, 0};

static const char *const settings[] = {"fabric.link_mbps=40000",
				       "hosts.*.nic.mac.clock_hz=500000000",
				       "hosts.*.nic.transport.context_hold_cycles=0", NULL};

struct rn_scripted_path retry_path(void)
{
	struct rn_scripted_path path = RN_SCRIPTED_PATH;

	path.mtu_bytes = RETRY_MTU;
	path.timeout = 8;
	path.min_rnr_timer = 1;
	path.psn[0] = RETRY_FIRST_PSN;
	path.psn[1] = 0x777;
	return path;
}

/* --- messages --- */

static bool takes_receive(uint8_t opcode)
{
	return opcode == RN_WQE_SEND || opcode == RN_WQE_SEND_IMM ||
	       opcode == RN_WQE_RDMA_WRITE_IMM;
}

static uint8_t *target_of(const struct retry *retry, uint8_t opcode)
{
	return retry->link.buffer[opcode == RN_WQE_RDMA_READ ? 0 : 1].data;
}

static void prepare_data(struct retry *retry, uint8_t opcode, uint32_t bytes, uint64_t seed)
{
	struct world_link *link = &retry->link;

	rn_scripted_fill(link->buffer[opcode != RN_WQE_RDMA_READ ? 0 : 1].data, bytes, seed);
	memset(target_of(retry, opcode), 0xee, link->buffer[0].bytes);
}

static void check_receive(struct retry *retry, uint8_t opcode, uint32_t bytes)
{
	struct rn_scripted_wc wc[2];
	const uint32_t got = rn_scripted_poll(retry->link.cq[1], wc, 2);

	if (!takes_receive(opcode)) {
		ck_assert_uint_eq(got, 0);
		return;
	}
	ck_assert_uint_eq(got, 1);
	ck_assert_uint_eq(wc[0].status, RN_WC_SUCCESS);
	ck_assert_uint_eq(wc[0].byte_len, bytes);
}

static bool is_naked(void *arg)
{
	return world_nic_counter(arg, 1, "out_of_buffer") > 0;
}

/* One message alone, its completions and its data. */
static void transfer(struct retry *retry, uint8_t opcode, uint32_t bytes, bool late_receive)
{
	struct world_link *link = &retry->link;
	const struct rn_scripted_wr wr = world_wr(link, opcode, bytes);
	const uint64_t seed = rn_scripted_now_ps(link->host[0]);
	struct rn_scripted_wc wc;

	prepare_data(retry, opcode, bytes, seed);
	if (takes_receive(opcode) && !late_receive)
		world_post_recv(link, 1, bytes);
	ck_assert_int_eq(rn_scripted_post(link->qp[0], &wr), RN_POST_OK);
	rn_scripted_ring(link->qp[0]);
	if (late_receive) {
		ck_assert(rn_scripted_run_until(link->host[0], is_naked, &retry->world,
						rn_scripted_now_ps(link->host[0]) + SETTLE_PS));
		world_post_recv(link, 1, bytes);
	}
	ck_assert_uint_eq(rn_scripted_wait(link->cq[0], &wc, 1, 2 * RN_SCRIPTED_SECOND_PS), 1);
	ck_assert_uint_eq(wc.status, RN_WC_SUCCESS);
	rn_scripted_run_for(link->host[0], SETTLE_PS);
	ck_assert_uint_eq(rn_scripted_poll(link->cq[0], &wc, 1), 0);
	ck_assert(rn_scripted_holds(target_of(retry, opcode), bytes, seed));
	ck_assert_uint_eq(target_of(retry, opcode)[bytes], 0xee);
	check_receive(retry, opcode, bytes);
}

static void set_reaction(struct retry *retry)
{
	for (unsigned n = 0; n < 2; n++) {
		struct rn_transport_params *params = &retry->world.scenario->host[n].nic.transport;

		params->nak_reaction_cycles = retry->reaction.nak_cycles;
		params->timeout_reaction_cycles = retry->reaction.timeout_cycles;
		params->timeout_factor = retry->reaction.factor;
		params->timeout_floor_log2 = retry->reaction.floor_log2;
	}
}

void retry_start(struct retry *retry, uint8_t opcode, uint32_t packets,
		 const struct rn_scripted_path *path, const struct retry_reaction *reaction)
{
	memset(retry, 0, sizeof(*retry));
	retry->opcode = opcode;
	retry->packets = packets;
	retry->path = *path;
	retry->reaction = *reaction;
	retry->psn = rn_psn_add(path->psn[0], 2 + 2 * packets);
	world_init(&retry->world, 2, settings);
	set_reaction(retry);
	world_start(&retry->world, &(struct world_options){.stamps = true, .capture = true});
	world_connect(&retry->world, (packets + 1) * RETRY_MTU, path, &retry->link);
	for (unsigned n = 0; n < 2; n++) {
		transfer(retry, RN_WQE_RDMA_WRITE, RETRY_MTU, false);
		transfer(retry, opcode, packets * RETRY_MTU, false);
	}
}

unsigned retry_fault(struct retry *retry, enum rn_fault_action action, enum rn_fault_class class,
		     uint32_t host, uint32_t psn_offset, uint64_t delay_ps)
{
	return world_fault_add(&retry->world,
			       &(struct rn_fault){
				       .action = action,
				       .class = class,
				       .host = host,
				       .connection = RN_FAULT_ANY_VALUE,
				       .psn_offset = 2 + 2 * retry->packets + psn_offset,
				       .transmission = 1,
				       .delay_ps = delay_ps,
			       });
}

void retry_transfer(struct retry *retry, bool late_receive)
{
	transfer(retry, retry->opcode, retry->packets * RETRY_MTU, late_receive);
}

void retry_end(struct retry *retry)
{
	struct world *world = &retry->world;
	const struct rn_scripted_qp *qp = retry->link.qp[0];

	/* Of the undisturbed messages, WQE 2 is the WRITE, WQE 3 the message of the case. */
	retry->ack_processed_ps = world_stamp(world, 0, qp, 2, RN_STAMP_ACK, 0);
	retry->grant_to_bit_ps = world_stamp(world, 0, qp, 3, RN_STAMP_FIRST_PACKET, 0) -
				 world_stamp(world, 0, qp, 3, RN_STAMP_SCHED, 0);
	world_end(world);
	frames_load(&retry->frames, world_path(world, "pcap"), RETRY_MTU);
}

void retry_fini(struct retry *retry)
{
	frames_free(&retry->frames);
	world_fini(&retry->world);
}

/* --- the formulas --- */

const struct frame *retry_frame(const struct retry *retry, uint32_t host, enum rn_fault_class class,
				uint32_t psn_offset, unsigned nth)
{
	const struct frame *frame =
		frames_find(&retry->frames, host, class, rn_psn_add(retry->psn, psn_offset), nth);

	ck_assert_ptr_nonnull(frame);
	return frame;
}

/* When the last bit is at the peer's NIC, on an edge of its MAC. */
static uint64_t arrival_ps(const struct frame *frame)
{
	const uint32_t bytes = rn_line_bytes(frame->bytes) - RN_LINE_GAP_BYTES;
	const uint64_t ps = frame->at_ps + (uint64_t)bytes * LINE_PS_A_BYTE + LINK_DELAY_PS;

	return (ps + RETRY_CORE_PS - 1) / RETRY_CORE_PS * RETRY_CORE_PS;
}

uint64_t retry_processed_ps(const struct retry *retry, const struct frame *response)
{
	const struct frame *ack =
		frames_find(&retry->frames, 1, RN_FAULT_ACK,
			    rn_psn_add(retry->path.psn[0], 1 + retry->packets), 0);

	ck_assert_ptr_nonnull(ack);
	return arrival_ps(response) + (retry->ack_processed_ps - arrival_ps(ack));
}

uint64_t retry_expired_from_ps(const struct retry *retry, uint64_t start_ps)
{
	const uint32_t floor_log2 = retry->reaction.floor_log2;
	const uint32_t exponent =
		retry->path.timeout > floor_log2 ? retry->path.timeout : floor_log2;

	return start_ps + retry->reaction.factor * (TIMEOUT_UNIT_PS << exponent) +
	       retry_context_ps();
}

uint64_t retry_expired_ps(const struct retry *retry, const struct frame *request)
{
	return retry_expired_from_ps(retry, request->at_ps - TX_LATENCY_CYCLES * RETRY_CORE_PS);
}

uint64_t retry_resend_ps(const struct retry *retry)
{
	return RETRY_CORE_PS + retry->grant_to_bit_ps;
}

uint64_t retry_context_ps(void)
{
	return CONTEXT_CYCLES * RETRY_CORE_PS;
}

uint64_t retry_reaction_ps(uint32_t cycles)
{
	return cycles ? cycles * RETRY_CORE_PS + retry_context_ps() : 0;
}

void retry_check_time(const char *what, uint64_t at_ps, uint64_t expected_ps)
{
	const int64_t off_ps = (int64_t)(at_ps - expected_ps);

	ck_assert_msg(off_ps >= -(int64_t)RETRY_CORE_PS && off_ps <= (int64_t)RETRY_CORE_PS,
		      "%s: %lld ps off its formula", what, (long long)off_ps);
}
