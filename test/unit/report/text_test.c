/* The summary for people, as it comes out on stderr. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "unit/report/fixture.h"
#include "run_suite.h"

#define ACTIVE_PS UINT64_C(1000000000)

static char *text_of(struct fixture *fixture)
{
	int keep = dup(STDERR_FILENO);
	FILE *file = tmpfile();
	char *text = rn_calloc(1, 20000);

	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	rn_report_print_text(&fixture->outcome);
	fflush(stderr);
	dup2(keep, STDERR_FILENO);
	close(keep);
	rewind(file);
	ck_assert_uint_gt(fread(text, 1, 19999, file), 0);
	fclose(file);
	return text;
}

static void check_has(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in:\n%s", part, text);
}

static void check_has_not(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) == NULL, "\"%s\" in:\n%s", part, text);
}

static unsigned lines(const char *text)
{
	unsigned count = 0;

	for (; *text; text++)
		count += *text == '\n';
	return count;
}

/* Everything a NIC can have to say. */
static void set_all(struct fixture *fixture, unsigned host)
{
	static const char *const counters[] = {
		"transport.tx_retransmitted_packets",
		"transport.local_ack_timeout_err",
		"transport.packet_seq_err",
		"transport.rnr_nak_retry_err",
		"transport.out_of_sequence",
		"transport.duplicate_request",
		"cqe.cqes",
		"context_cache.qpc_hits",
		"context_cache.cqc_hits",
		"pte_cache.mpt_hits",
		"pte_cache.mtt_hits",
	};

	fixture_set_active(fixture, host, ACTIVE_PS);
	for (unsigned i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		char *instance = rn_asprintf("host%u.nic0.%s", host, counters[i]);
		char *dot = strrchr(instance, '.');

		*dot = 0;
		fixture_set(fixture, instance, dot + 1, 42 + i);
		free(instance);
	}
}

START_TEST(two_lossy_hosts_fit_a_screen)
{
	struct fixture *fixture = fixture_new(2);
	char *text;

	set_all(fixture, 0);
	set_all(fixture, 1);
	fixture_set(fixture, "host1.nic0.mac", "tx_busy_ps", ACTIVE_PS / 1000 * 987);
	fixture->options.warmup_ms = 1;
	fixture->options.record.pcap_path = "run.pcap";
	fixture->options.report_path = "run.json";
	text = text_of(fixture);
	ck_assert_uint_le(lines(text), 30);
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		ck_assert_uint_le(strcspn(line, "\n"), 110);
	check_has(text, "10 pkt, 10.00 kB");
	check_has(text, "80.00 Mb/s / 1.98 Mb/s");
	check_has(text, "limiter: ethernet_line at host1, busy 98.7 % of the active time");
	check_has(text, "ethernet_line 98.7 %");
	check_has(text, "retransmitted");
	check_has(text, "wireshark run.pcap\n");
	check_has(
		text,
		"tshark -r run.pcap --disable-protocol rpcordma --disable-heuristic mellanox_eoib\n");
	check_has(text, "report: run.json\n");
	check_has(text, "77 frames");
	check_has(text, "0.250 s");
	check_has(text, "measured from 1.000 ms");
	free(text);
	fixture_free(fixture);
}
END_TEST

START_TEST(what_did_not_happen_is_not_printed)
{
	struct fixture *fixture = fixture_new(2);
	char *text;

	fixture_set_active(fixture, 0, ACTIVE_PS);
	fixture_set(fixture, "host0.nic0.transport", "out_of_sequence", 0);
	fixture->outcome.measured_from_ps = 0;
	text = text_of(fixture);
	check_has_not(text, "retransmitted");
	check_has_not(text, "out of sequence");
	check_has_not(text, "wireshark");
	check_has_not(text, "report:");
	check_has_not(text, "measured from");
	check_has_not(text, "MTT");
	check_has(text, "limiter: latency");
	free(text);
	fixture_free(fixture);
}
END_TEST

START_TEST(without_traffic_no_limiter_is_named)
{
	struct fixture *fixture = fixture_new(2);
	char *text = text_of(fixture);

	check_has_not(text, "limiter");
	check_has(text, "11.000 ms simulated in 2.00 s; 0 packets sent");
	free(text);
	fixture_free(fixture);
}
END_TEST

START_TEST(an_odd_host_has_a_table_of_its_own_and_many_are_cut_off)
{
	struct fixture *fixture = fixture_new(3);
	char *text = text_of(fixture);

	check_has(text, "host2\n");
	check_has_not(text, "more hosts");
	free(text);
	fixture_free(fixture);
	fixture = fixture_new(12);
	text = text_of(fixture);
	check_has(text, "host7\n");
	check_has_not(text, "host8");
	check_has(text, "and 4 more hosts");
	free(text);
	fixture_free(fixture);
}
END_TEST

START_TEST(a_path_that_a_shell_would_split_is_quoted)
{
	struct fixture *fixture = fixture_new(2);
	char *text;

	fixture->options.record.pcap_path = "my run.pcap";
	text = text_of(fixture);
	check_has(text, "wireshark 'my run.pcap'\n");
	free(text);
	fixture_free(fixture);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("text");

	tcase_add_test(tcase, two_lossy_hosts_fit_a_screen);
	tcase_add_test(tcase, what_did_not_happen_is_not_printed);
	tcase_add_test(tcase, without_traffic_no_limiter_is_named);
	tcase_add_test(tcase, an_odd_host_has_a_table_of_its_own_and_many_are_cut_off);
	tcase_add_test(tcase, a_path_that_a_shell_would_split_is_quoted);
	return run_suite(tcase, "report text");
}
