/* What the report names as the limiter. The active time is 1 ms; shares are made by hand. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "unit/report/fixture.h"
#include "report_nic.h"
#include "run_suite.h"

#define ACTIVE_PS UINT64_C(1000000000)
#define CYCLES (ACTIVE_PS / 2000) /* of the core, in the active time */

static struct rn_limiter limiter_of(struct fixture *fixture)
{
	struct rn_report_nic *nics = rn_report_nics(&fixture->outcome);
	static struct rn_report_nic kept[FIXTURE_HOSTS_MAX];
	struct rn_limiter limiter;

	for (unsigned i = 0; i < fixture->scenario.hosts; i++)
		kept[i] = nics[i];
	free(nics);
	limiter = rn_report_limiter(kept, fixture->scenario.hosts);
	return limiter;
}

static void check_limiter(struct fixture *fixture, const char *name, const char *where,
			  double share)
{
	struct rn_limiter limiter = limiter_of(fixture);

	ck_assert_str_eq(limiter.name, name);
	ck_assert_str_eq(limiter.where, where);
	ck_assert_double_eq_tol(limiter.share, share, 1e-9);
}

static struct fixture *busy_nic(void)
{
	struct fixture *fixture = fixture_new(2);

	fixture_set_active(fixture, 0, ACTIVE_PS);
	return fixture;
}

START_TEST(without_traffic_the_nic_is_idle)
{
	struct fixture *fixture = fixture_new(2);
	struct rn_limiter limiter;

	fixture_set(fixture, "host0.nic0.pcie_up", "busy_ps", ACTIVE_PS);
	limiter = limiter_of(fixture);
	ck_assert_str_eq(limiter.name, "idle");
	ck_assert_int_eq(limiter.kind, RN_LIMIT_IDLE);
	fixture_free(fixture);
}
END_TEST

START_TEST(with_nothing_used_up_it_is_latency)
{
	struct fixture *fixture = busy_nic();
	struct rn_limiter limiter = limiter_of(fixture);

	ck_assert_str_eq(limiter.name, "latency");
	ck_assert_int_eq(limiter.kind, RN_LIMIT_LATENCY);
	fixture_free(fixture);
}
END_TEST

/* Each counter alone makes its resource the limiter at 90 % of the active time, and not below. */
static const struct {
	const char *instance, *counter;
	const char *name, *where;
	double per_ps; /* what it counts up in a picosecond in which its resource is busy */
} serial[] = {
	{"host0.nic0.mac", "tx_busy_ps", "ethernet_line", "mac.tx", 1},
	/* 4 frames stand there already; at 12.5 bytes a nanosecond. */
	{"host0.nic0.mac", "rx_bytes_phy", "ethernet_line", "mac.rx", 0.0125},
	{"host0.nic0.pcie_up", "busy_ps", "pcie_up", "pcie_up", 1},
	{"host0.nic0.pcie_down", "busy_ps", "pcie_down", "pcie_down", 1},
	{"host0.root_complex", "read_bytes", "memory_bandwidth", "root_complex.read", 0.05},
	{"host0.root_complex", "write_bytes", "memory_bandwidth", "root_complex.write", 0.05},
	{"host0.root_complex", "reads", "root_complex_reads", "root_complex", 64.0 / 300000},
	{"host0.nic0.doorbell", "sq_doorbells", "block:doorbell", "doorbell.take", 0.0005},
	{"host0.nic0.sched", "grants", "block:sched", "sched.grant", 0.0005},
	{"host0.nic0.wqe_fetch", "sq_wqes", "block:wqe_fetch", "wqe_fetch.send", 0.0005},
	{"host0.nic0.wqe_fetch", "rq_wqes", "block:wqe_fetch", "wqe_fetch.receive", 0.0005},
	{"host0.nic0.transport", "turns", "block:transport_tx", "transport.tx.engine", 0.0005},
	{"host0.nic0.transport", "tx_write_packets", "block:transport_tx", "transport.tx.packet",
	 0.0005},
	{"host0.nic0.transport", "tx_read_response_packets", "block:transport_tx",
	 "transport.tx.reply", 0.0005},
	{"host0.nic0.transport", "rx_write_packets", "block:transport_rx", "transport.rx.packet",
	 0.0005},
	{"host0.nic0.transport", "out_of_sequence", "block:transport_rx", "transport.rx.packet",
	 0.0005},
	{"host0.nic0.cqe", "cqes", "block:cqe", "cqe.write", 0.0005},
	{"host0.nic0.eq", "interrupts", "block:eq", "eq.event", 0.0005},
};

START_TEST(a_serial_resource_limits_from_90_percent_on)
{
	double all = (double)ACTIVE_PS * serial[_i].per_ps;
	bool is_line_in = !strcmp(serial[_i].counter, "rx_bytes_phy");
	uint64_t value = (uint64_t)(0.91 * all + 0.5) - (is_line_in ? 4 * 20 : 0);
	struct fixture *fixture = busy_nic();

	fixture_set(fixture, serial[_i].instance, serial[_i].counter, value);
	check_limiter(fixture, serial[_i].name, serial[_i].where,
		      ((double)value + (is_line_in ? 4 * 20 : 0)) / all);
	fixture_set(fixture, serial[_i].instance, serial[_i].counter, (uint64_t)(0.89 * all));
	ck_assert_str_eq(limiter_of(fixture).name, "latency");
	fixture_free(fixture);
}
END_TEST

START_TEST(the_threshold_is_sharp)
{
	struct fixture *fixture = busy_nic();

	fixture_set(fixture, "host0.nic0.pcie_up", "busy_ps", ACTIVE_PS / 10 * 9);
	check_limiter(fixture, "pcie_up", "pcie_up", 0.9);
	fixture_set(fixture, "host0.nic0.pcie_up", "busy_ps", ACTIVE_PS / 10 * 9 - 1);
	ck_assert_str_eq(limiter_of(fixture).name, "latency");
	fixture_free(fixture);
}
END_TEST

START_TEST(a_longer_initiation_interval_makes_its_stage_the_limiter)
{
	struct fixture *fixture = busy_nic();

	fixture_set(fixture, "host0.nic0.transport", "tx_send_packets", CYCLES / 20);
	fixture_set(fixture, "host0.nic0.transport", "tx_write_packets", CYCLES / 20);
	ck_assert_str_eq(limiter_of(fixture).name, "latency");
	fixture->host[0].nic.transport.tx_packet_cycles = 10;
	check_limiter(fixture, "block:transport_tx", "transport.tx.packet", 1);
	fixture->host[0].nic.transport.tx_packet_cycles = 8;
	ck_assert_str_eq(limiter_of(fixture).name, "latency");
	fixture_free(fixture);
}
END_TEST

START_TEST(a_block_that_is_busy_limits_under_its_name)
{
	struct fixture *fixture = busy_nic();
	struct rn_block *block = fixture_block(fixture, "host0.nic0.context_cache");

	block->busy_cycles = CYCLES / 100 * 95;
	check_limiter(fixture, "block:context_cache", "context_cache", 0.95);
	block->busy_cycles = CYCLES * 3; /* it worked before there was traffic, too */
	check_limiter(fixture, "block:context_cache", "context_cache", 1);
	fixture_free(fixture);
}
END_TEST

START_TEST(control_verbs_and_ports_are_no_blocks_that_limit)
{
	static const char *const names[] = {"host0.nic0.cmd",	  "host0.nic0.mac_tx",
					    "host0.nic0.pcie_up", "host0.root_complex",
					    "host1.nic0.dma",	  "host0.nic00.dma"};
	struct fixture *fixture = busy_nic();

	for (unsigned i = 0; i < RN_ARRAY_LEN(names); i++) {
		struct rn_block *block = fixture_block(fixture, names[i]);

		block->busy_cycles = CYCLES;
		block->stall_ps[RN_STALL_CREDIT] = ACTIVE_PS;
		block->stall_ps[RN_STALL_BUFFER] = ACTIVE_PS;
	}
	ck_assert_str_eq(limiter_of(fixture).name, "latency");
	fixture_free(fixture);
}
END_TEST

static const struct {
	const char *block;
	enum rn_stall stall;
	const char *name, *where;
} waits[] = {
	{"host0.nic0.dma", RN_STALL_TAG, "dma_tags", "dma"},
	{"host0.nic0.dma", RN_STALL_CREDIT, "pcie_credits", "dma"},
	{"host0.nic0.dma", RN_STALL_BUFFER, "buffers:dma", "dma"},
	{"host0.nic0.pte_cache", RN_STALL_MISS, "pte_misses", "pte_cache"},
	{"host0.nic0.pte_cache", RN_STALL_TAG, "pte_misses", "pte_cache"},
	{"host0.nic0.context_cache", RN_STALL_MISS, "context_misses", "context_cache"},
	{"host0.nic0.context_cache", RN_STALL_TAG, "context_misses", "context_cache"},
	{"host0.nic0.transport.tx", RN_STALL_BUFFER, "buffers:transport_tx", "transport.tx"},
	{"host0.nic0.transport.tx", RN_STALL_CREDIT, "window:transport_tx", "transport.tx"},
	{"host0.nic0.transport.rx", RN_STALL_MISS, "lookups:transport_rx", "transport.rx"},
	{"host0.nic0.cqe", RN_STALL_TAG, "slots:cqe", "cqe"},
};

START_TEST(a_wait_limits_from_half_the_time_on)
{
	struct fixture *fixture = busy_nic();
	struct rn_block *block = fixture_block(fixture, waits[_i].block);

	block->stall_ps[waits[_i].stall] = ACTIVE_PS / 2;
	check_limiter(fixture, waits[_i].name, waits[_i].where, 0.5);
	block->stall_ps[waits[_i].stall]--;
	ck_assert_str_eq(limiter_of(fixture).name, "latency");
	fixture_free(fixture);
}
END_TEST

START_TEST(back_pressure_and_locks_are_no_limits)
{
	struct fixture *fixture = busy_nic();
	struct rn_block *block = fixture_block(fixture, "host0.nic0.transport.tx");

	block->stall_ps[RN_STALL_OUTPUT] = ACTIVE_PS;
	block->stall_ps[RN_STALL_LOCK] = ACTIVE_PS;
	ck_assert_str_eq(limiter_of(fixture).name, "latency");
	fixture_free(fixture);
}
END_TEST

START_TEST(credits_are_waited_for_at_the_link)
{
	struct fixture *fixture = busy_nic();

	fixture_set(fixture, "host0.nic0.pcie_up", "credit_stall_ps", ACTIVE_PS / 4 * 3);
	check_limiter(fixture, "pcie_credits", "pcie_up", 0.75);
	fixture_free(fixture);
}
END_TEST

START_TEST(credits_limit_a_link_that_is_never_without_work)
{
	struct fixture *fixture = busy_nic();

	fixture_set(fixture, "host0.nic0.pcie_up", "credit_stall_ps", ACTIVE_PS / 10 * 3);
	fixture_set(fixture, "host0.nic0.pcie_up", "busy_ps", ACTIVE_PS / 10 * 6);
	check_limiter(fixture, "pcie_credits", "pcie_up", 0.3);
	fixture_set(fixture, "host0.nic0.pcie_up", "busy_ps", ACTIVE_PS / 10 * 6 - 1);
	ck_assert_str_eq(limiter_of(fixture).name, "latency");
	fixture_set(fixture, "host0.nic0.pcie_up", "busy_ps", ACTIVE_PS / 10 * 9);
	check_limiter(fixture, "pcie_up", "pcie_up", 0.9);
	fixture_free(fixture);
}
END_TEST

START_TEST(of_waits_the_one_furthest_downstream_limits)
{
	struct fixture *fixture = busy_nic();
	struct rn_block *tx = fixture_block(fixture, "host0.nic0.transport.tx");
	struct rn_block *dma = fixture_block(fixture, "host0.nic0.dma");

	tx->stall_ps[RN_STALL_BUFFER] = ACTIVE_PS;
	check_limiter(fixture, "buffers:transport_tx", "transport.tx", 1);
	tx->stall_ps[RN_STALL_MISS] = ACTIVE_PS / 10 * 9;
	check_limiter(fixture, "lookups:transport_tx", "transport.tx", 0.9);
	dma->stall_ps[RN_STALL_TAG] = ACTIVE_PS / 10 * 8;
	check_limiter(fixture, "dma_tags", "dma", 0.8);
	fixture_set(fixture, "host0.nic0.pcie_up", "credit_stall_ps", ACTIVE_PS / 10 * 6);
	check_limiter(fixture, "pcie_credits", "pcie_up", 0.6);
	fixture_free(fixture);
}
END_TEST

START_TEST(a_saturated_resource_comes_before_any_wait)
{
	struct fixture *fixture = busy_nic();
	struct rn_block *dma = fixture_block(fixture, "host0.nic0.dma");

	dma->stall_ps[RN_STALL_TAG] = ACTIVE_PS;
	fixture_set(fixture, "host0.nic0.pcie_down", "busy_ps", ACTIVE_PS / 100 * 92);
	check_limiter(fixture, "pcie_down", "pcie_down", 0.92);
	fixture_free(fixture);
}
END_TEST

START_TEST(of_all_nics_the_busiest_resource_limits)
{
	struct fixture *fixture = busy_nic();
	struct rn_limiter limiter;

	fixture_set_active(fixture, 1, ACTIVE_PS);
	fixture_set(fixture, "host0.nic0.mac", "tx_busy_ps", ACTIVE_PS / 100 * 95);
	fixture_set(fixture, "host1.nic0.pcie_up", "busy_ps", ACTIVE_PS / 100 * 97);
	limiter = limiter_of(fixture);
	ck_assert_str_eq(limiter.name, "pcie_up");
	ck_assert_uint_eq(limiter.idx, 1);
	fixture_set(fixture, "host0.nic0.mac", "tx_busy_ps", ACTIVE_PS / 100 * 98);
	limiter = limiter_of(fixture);
	ck_assert_str_eq(limiter.name, "ethernet_line");
	ck_assert_uint_eq(limiter.idx, 0);
	fixture_free(fixture);
}
END_TEST

START_TEST(a_nic_that_discards_frames_has_the_limiter)
{
	struct fixture *fixture = busy_nic();
	struct rn_limiter limiter;

	fixture_set_active(fixture, 1, ACTIVE_PS);
	fixture_set(fixture, "host0.nic0.mac", "tx_busy_ps", ACTIVE_PS);
	fixture_set(fixture, "host1.nic0.pcie_up", "credit_stall_ps", ACTIVE_PS / 10 * 6);
	ck_assert_str_eq(limiter_of(fixture).name, "ethernet_line");
	fixture_set(fixture, "host1.nic0.mac", "rx_discards_phy", 1);
	limiter = limiter_of(fixture);
	ck_assert_str_eq(limiter.name, "pcie_credits");
	ck_assert_uint_eq(limiter.idx, 1);
	/* It discarded some, but nothing of it is used up. */
	fixture_set(fixture, "host1.nic0.pcie_up", "credit_stall_ps", 0);
	ck_assert_str_eq(limiter_of(fixture).name, "ethernet_line");
	fixture_free(fixture);
}
END_TEST

START_TEST(of_equal_waits_of_two_nics_the_longest_limits)
{
	struct fixture *fixture = busy_nic();
	struct rn_limiter limiter;

	fixture_set_active(fixture, 1, ACTIVE_PS);
	fixture_block(fixture, "host0.nic0.dma")->stall_ps[RN_STALL_TAG] = ACTIVE_PS / 10 * 6;
	fixture_block(fixture, "host1.nic0.dma")->stall_ps[RN_STALL_TAG] = ACTIVE_PS / 10 * 7;
	limiter = limiter_of(fixture);
	ck_assert_str_eq(limiter.name, "dma_tags");
	ck_assert_uint_eq(limiter.idx, 1);
	fixture_free(fixture);
}
END_TEST

START_TEST(shares_are_of_the_active_time_and_of_the_window_when_that_is_not_known)
{
	struct fixture *fixture = busy_nic();

	fixture_set(fixture, "host0.nic0.pcie_up", "busy_ps", ACTIVE_PS);
	check_limiter(fixture, "pcie_up", "pcie_up", 1);
	/* From first to last frame there are 2 ms. */
	fixture_set(fixture, "host0.nic0.mac", "active_ps", 0);
	ck_assert_str_eq(limiter_of(fixture).name, "latency");
	fixture_set(fixture, "host0.nic0.pcie_up", "busy_ps", 2 * ACTIVE_PS / 100 * 95);
	check_limiter(fixture, "pcie_up", "pcie_up", 0.95);
	/* The window has 10 ms. */
	fixture_set(fixture, "host0.nic0.mac", "last_frame_ps", 0);
	ck_assert_str_eq(limiter_of(fixture).name, "latency");
	fixture_set(fixture, "host0.nic0.pcie_up", "busy_ps", 10 * ACTIVE_PS / 100 * 95);
	check_limiter(fixture, "pcie_up", "pcie_up", 0.95);
	fixture_free(fixture);
}
END_TEST

START_TEST(open_stalls_are_counted_up_to_the_end)
{
	struct fixture *fixture = busy_nic();
	struct rn_block *dma = fixture_block(fixture, "host0.nic0.dma");

	rn_block_account(dma, 0, RN_STALL_TAG);
	rn_sim_run(rn_system_sim(fixture->outcome.system), ACTIVE_PS / 4 * 3, UINT64_MAX);
	check_limiter(fixture, "dma_tags", "dma", 0.75);
	fixture_free(fixture);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("limiter");

	tcase_add_test(tcase, without_traffic_the_nic_is_idle);
	tcase_add_test(tcase, with_nothing_used_up_it_is_latency);
	tcase_add_loop_test(tcase, a_serial_resource_limits_from_90_percent_on, 0,
			    RN_ARRAY_LEN(serial));
	tcase_add_test(tcase, the_threshold_is_sharp);
	tcase_add_test(tcase, a_longer_initiation_interval_makes_its_stage_the_limiter);
	tcase_add_test(tcase, a_block_that_is_busy_limits_under_its_name);
	tcase_add_test(tcase, control_verbs_and_ports_are_no_blocks_that_limit);
	tcase_add_loop_test(tcase, a_wait_limits_from_half_the_time_on, 0, RN_ARRAY_LEN(waits));
	tcase_add_test(tcase, back_pressure_and_locks_are_no_limits);
	tcase_add_test(tcase, credits_are_waited_for_at_the_link);
	tcase_add_test(tcase, credits_limit_a_link_that_is_never_without_work);
	tcase_add_test(tcase, of_waits_the_one_furthest_downstream_limits);
	tcase_add_test(tcase, a_saturated_resource_comes_before_any_wait);
	tcase_add_test(tcase, of_all_nics_the_busiest_resource_limits);
	tcase_add_test(tcase, a_nic_that_discards_frames_has_the_limiter);
	tcase_add_test(tcase, of_equal_waits_of_two_nics_the_longest_limits);
	tcase_add_test(tcase,
		       shares_are_of_the_active_time_and_of_the_window_when_that_is_not_known);
	tcase_add_test(tcase, open_stalls_are_counted_up_to_the_end);
	return run_suite(tcase, "report limiter");
}
