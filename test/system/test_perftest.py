#!/usr/bin/python3
"""perftest as Debian ships it. Names the group on the command line: bw or lat (default: both)."""

import re
import sys

import runs
from runs import LONG, some

KINDS = {"ib_send_bw": "send", "ib_send_lat": "send", "ib_write_bw": "write", "ib_write_lat": "write",
         "ib_read_bw": "read", "ib_read_lat": "read"}
BW = ("ib_send_bw", "ib_write_bw", "ib_read_bw")
LAT = ("ib_send_lat", "ib_write_lat", "ib_read_lat")
# Latency tests spin: with more of them than processors each step waits for the system's scheduler.
WIDTH = 2

# a result line: size, iterations, and at least three numbers
ROW = re.compile(r"^\s*(\d+)\s+(\d+)\s+(\d+\.\d+)\s+(\d+\.\d+)\s+(\d+\.\d+)", re.M)


def messages_on_wire(tool, iterations, queue_pairs=1, both_ways=False):
    """In ping-pong tests both sides send; a read has one side."""
    both = both_ways or tool in ("ib_send_lat", "ib_write_lat")
    return iterations * queue_pairs * (2 if both else 1)


class Perftest(runs.SystemTest):
    def perftest(self, tool, options, size, iterations, queue_pairs=1, both_ways=False, mtu=None):
        command = f"{tool} -F -p {{port}} {options} -s {size} -n {iterations}" + (f" -m {mtu}" if mtu else "")
        result = self.run_pair(command)
        rows = ROW.findall(result.output)
        self.assertTrue(any(int(row[0]) == size for row in rows), f"no result line{result}")
        self.assert_not_alarmed(result)
        messages = messages_on_wire(tool, iterations, queue_pairs, both_ways)
        wanted = ["--opcode", KINDS[tool], "--messages", str(messages), "--size", str(size)]
        totals = self.check_wire(result, *wanted, *(["--mtu", str(mtu)] if mtu else []))
        self.assertEqual(totals["payload_bytes"], messages * size, str(result))
        self.assertEqual(totals["retransmitted"], 0, str(result))
        return result, totals

    def assert_not_alarmed(self, result):
        for word in ("Couldn't", "Failed", "Problems", "Did not get Message", "timed out"):
            self.assertNotIn(word, result.text, str(result))

    def all_sizes(self, tool):
        iterations = 50 if LONG else 5
        result = self.run_pair(f"{tool} -F -p {{port}} -a -n {iterations}", capture=False)
        sizes = {int(row[0]) for row in ROW.findall(result.output)}
        self.assertEqual(sizes, {2 ** n for n in range(1, 24)}, str(result))
        self.assert_not_alarmed(result)


class Bandwidth(Perftest):
    def test_plain(self):
        self.each_of(BW, lambda tool: self.perftest(tool, "", 65536, 50))

    def test_all_sizes(self):
        self.each_of(BW, self.all_sizes)

    def test_eight_queue_pairs(self):
        def eight(tool):
            _, totals = self.perftest(tool, "-q 8", 4096, 40, queue_pairs=8)
            self.assertEqual(len([c for c in totals["connections"] if c["requests"]]), 8)
            sports = {port for c in totals["connections"] for port in c["sport"]}
            self.assertGreater(len(sports), 1, "one UDP source port for all queue pairs")

        self.each_of(BW, eight)

    def test_both_ways(self):
        self.each_of(BW, lambda tool: self.perftest(tool, "-b", 8192, 50, both_ways=True))

    def test_events(self):
        # ib_write_bw has no -e
        self.each_of(("ib_send_bw", "ib_read_bw"), lambda tool: self.perftest(tool, "-e", 16384, 50))

    def test_post_list(self):
        self.each_of(BW, lambda tool: self.perftest(tool, "-l 16", 2048, 64))

    def test_mtu(self):
        rows = [(tool, mtu) for mtu in (256, 512, 1024, 2048, 4096) for tool in BW]
        self.each_of(some(rows, 2), lambda tool, mtu: self.perftest(tool, "", 10000, 20, mtu=mtu))

    def test_inline(self):
        rows = [(tool, inline, size) for tool in ("ib_send_bw", "ib_write_bw")
                for inline, size in ((0, 32), (64, 32), (64, 64), (64, 65), (828, 828), (828, 829))]
        self.each_of(some(rows, 2), lambda tool, inline, size: self.perftest(tool, f"-I {inline}", size, 100))

    def test_more_inline_than_the_device_has(self):
        result = self.run_pair("ib_write_bw -F -p {port} -I 829 -n 5", capture=False, status=None)
        self.assertNotEqual(result.status, 0, str(result))
        self.assertIn("Unable to create QP", result.text, str(result))

    def test_sizes(self):
        rows = [(tool, size) for tool in BW for size in (1, 2, 63, 1023, 1024, 1025, 1048576)]
        self.each_of(some(rows, 3), lambda tool, size: self.perftest(tool, "", size, 10, mtu=1024))

    def test_combined(self):
        def combined(tool):
            self.perftest(tool, "-b -q 4 -l 4", 3000, 32, queue_pairs=4, both_ways=True)

        self.each_of(BW if LONG else ("ib_write_bw",), combined)

    def test_old_posting_interface(self):
        # without ibv_wr_*: ibv_post_send
        self.each_of(BW if LONG else ("ib_read_bw",), lambda tool: self.perftest(tool, "--use_old_post_send", 8192, 20))

    def test_part_id_decides_the_posting_interface(self):
        for part, api in ((4119, "ON"), (4103, "OFF")):
            result = self.run_pair("ib_write_bw -F -p {port} -n 10 -s 8192", capture=False,
                                   options=["--set", f"hosts.*.nic.device.vendor_part_id={part}"])
            self.assert_output(result, rf"ibv_wr\* API +: {api}", 2)

    def test_ipv6(self):
        def ipv6(tool):
            result, _ = self.perftest(tool, "-x 1", 4096, 20)
            self.assertEqual({frame.ipv6 for frame in self.frames(result)}, {True}, str(result))

        self.each_of(BW, ipv6)

    def test_as_typed(self):
        result = self.run_hosts("ib_write_bw", "ib_write_bw localhost")
        self.assertTrue(ROW.search(result.output), str(result))
        self.assert_not_alarmed(result)


class Latency(Perftest):
    def test_plain(self):
        self.each_of(LAT, lambda tool: self.perftest(tool, "", 2, 200), WIDTH)

    def test_all_sizes(self):
        self.each_of(LAT, self.all_sizes, WIDTH)

    def test_events(self):
        # ib_write_lat has no -e
        self.each_of(("ib_send_lat", "ib_read_lat"), lambda tool: self.perftest(tool, "-e", 64, 100), WIDTH)

    def test_inline(self):
        rows = [(tool, inline) for tool in ("ib_send_lat", "ib_write_lat") for inline in (0, 64)]
        self.each_of(rows, lambda tool, inline: self.perftest(tool, f"-I {inline}", 32, 100), WIDTH)

    def test_mtu(self):
        rows = [(tool, mtu) for tool in LAT for mtu in ((256, 512, 1024, 2048, 4096) if LONG else (256, 4096))]
        self.each_of(rows, lambda tool, mtu: self.perftest(tool, "", 9000, 20, mtu=mtu), WIDTH)


if __name__ == "__main__":
    groups = {"bw": "Bandwidth", "lat": "Latency"}
    sys.argv[1:] = [groups.get(argument, argument) for argument in sys.argv[1:]]
    runs.main()
