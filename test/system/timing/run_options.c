#include "run_options.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hw/gen/rnic_hw.h"

#define GAP_PS 4000000

static void fail(const char *what)
{
	fprintf(stderr, "scripted_run: %s\n", what);
	exit(1);
}

enum {
	OPT_SET = 256,
	OPT_OP,
	OPT_BYTES,
	OPT_COUNT,
	OPT_WARM,
	OPT_DEPTH,
	OPT_SIGNAL_EVERY,
	OPT_QPS,
	OPT_KEYS,
	OPT_PAGES,
	OPT_RD_ATOMIC,
	OPT_MTU,
	OPT_INLINE,
	OPT_BLUEFLAME,
	OPT_ORDER,
	OPT_GAP,
	OPT_PHASE,
	OPT_REPORT,
	OPT_TIMELINE,
	OPT_LOOKUP_LOG,
	OPT_TLP_LOG,
};

static const struct argp_option argp_options[] = {
	{"set", OPT_SET, "KEY=VALUE", 0, "a setting of the configuration, as of rnicsim", 0},
	{"op", OPT_OP, "write|read|send", 0, "operation", 0},
	{"bytes", OPT_BYTES, "N", 0, "of a message", 0},
	{"count", OPT_COUNT, "N", 0, "messages of each QP that are measured", 0},
	{"warm", OPT_WARM, "N", 0, "messages before statistics are cleared", 0},
	{"depth", OPT_DEPTH, "N", 0, "messages posted and not completed, of each QP", 0},
	{"signal-every", OPT_SIGNAL_EVERY, "N", 0, "a completion every N messages", 0},
	{"qps", OPT_QPS, "N", 0, "connections from host 0 to host 1", 0},
	{"keys", OPT_KEYS, "N", 0, "with --order: MRs on either side", 0},
	{"pages", OPT_PAGES, "N", 0, "with --order: pages of each MR", 0},
	{"rd-atomic", OPT_RD_ATOMIC, "N", 0, "READs outstanding of a QP", 0},
	{"mtu", OPT_MTU, "BYTES", 0, "path MTU", 0},
	{"inline", OPT_INLINE, NULL, 0, "payload in the WQE", 0},
	{"blueflame", OPT_BLUEFLAME, NULL, 0, "WQE in the doorbell", 0},
	{"order", OPT_ORDER, "QP,KEY,PAGE ...", 0, "one message at a time, in this order", 0},
	{"gap-ps", OPT_GAP, "PS", 0, "with --order: quiet after each completion", 0},
	{"phase-ps", OPT_PHASE, "PS", 0, "with --order: post this long after a whole us", 0},
	{"report", OPT_REPORT, "FILE", 0, "the report, as of rnicsim", 0},
	{"timeline", OPT_TIMELINE, NULL, 0, "stamps", 0},
	{"lookup-log", OPT_LOOKUP_LOG, "FILE", 0, "as of rnicsim", 0},
	{"tlp-log", OPT_TLP_LOG, "FILE", 0, "as of rnicsim", 0},
	{0},
};

static uint8_t opcode_of(const char *name)
{
	if (strcmp(name, "write") == 0)
		return RN_WQE_RDMA_WRITE;
	if (strcmp(name, "read") == 0)
		return RN_WQE_RDMA_READ;
	if (strcmp(name, "send") == 0)
		return RN_WQE_SEND;
	fail("no such operation");
	return 0;
}

static uint64_t number(const char *text)
{
	char *end;
	const uint64_t value = strtoull(text, &end, 10);

	if (!*text || *end)
		fail("not a number");
	return value;
}

static bool set_number(struct options *options, int key, const char *arg)
{
	switch (key) {
	case OPT_BYTES:
		options->bytes = (uint32_t)number(arg);
		return true;
	case OPT_COUNT:
		options->count = number(arg);
		return true;
	case OPT_WARM:
		options->warm = number(arg);
		return true;
	case OPT_DEPTH:
		options->depth = (uint32_t)number(arg);
		return true;
	case OPT_SIGNAL_EVERY:
		options->signal_every = (uint32_t)number(arg);
		return true;
	case OPT_QPS:
		options->qps = (uint32_t)number(arg);
		return true;
	case OPT_KEYS:
		options->keys = (uint32_t)number(arg);
		return true;
	case OPT_PAGES:
		options->pages = (uint32_t)number(arg);
		return true;
	case OPT_RD_ATOMIC:
		options->rd_atomic = (uint32_t)number(arg);
		return true;
	case OPT_MTU:
		options->mtu_bytes = (uint32_t)number(arg);
		return true;
	case OPT_GAP:
		options->gap_ps = number(arg);
		return true;
	case OPT_PHASE:
		options->phase_ps = number(arg);
		return true;
	default:
		return false;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;

	if (set_number(options, key, arg))
		return 0;
	switch (key) {
	case OPT_SET:
		if (options->sets == RUN_MAX_SETS)
			fail("too many settings");
		options->set[options->sets++] = arg;
		return 0;
	case OPT_OP:
		options->opcode = opcode_of(arg);
		return 0;
	case OPT_INLINE:
		options->is_inline = true;
		return 0;
	case OPT_BLUEFLAME:
		options->blueflame = true;
		return 0;
	case OPT_ORDER:
		options->order = arg;
		return 0;
	case OPT_REPORT:
		options->report = arg;
		return 0;
	case OPT_TIMELINE:
		options->timeline = true;
		return 0;
	case OPT_LOOKUP_LOG:
		options->lookup_log = arg;
		return 0;
	case OPT_TLP_LOG:
		options->tlp_log = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void options_parse(struct options *options, int argc, char **argv)
{
	static const struct argp argp = {.options = argp_options, .parser = parse};

	*options = (struct options){
		.opcode = RN_WQE_RDMA_WRITE,
		.bytes = 4096,
		.count = 100,
		.depth = 16,
		.signal_every = 1,
		.qps = 1,
		.keys = 1,
		.pages = 1,
		.rd_atomic = 16,
		.mtu_bytes = 4096,
		.gap_ps = GAP_PS,
	};
	argp_parse(&argp, argc, argv, 0, NULL, options);
	if (!options->qps || !options->depth || !options->keys || !options->pages ||
	    !options->bytes || options->bytes > RUN_PAGE_BYTES * 256)
		fail("a number is out of range");
}
