#!/usr/bin/python3
"""perftest as Debian ships it. Names the group on the command line: bw or lat (default: both)."""

import re
import sys

import runs

KINDS = {"ib_send_bw": "send", "ib_send_lat": "send", "ib_write_bw": "write", "ib_write_lat": "write",
         "ib_read_bw": "read", "ib_read_lat": "read"}
BW = ("ib_send_bw", "ib_write_bw", "ib_read_bw")
LAT = ("ib_send_lat", "ib_write_lat", "ib_read_lat")

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
        for word in ("Couldn't", "Failed", "Problems", "Alarm", "timed out"):
            self.assertNotIn(word, result.text, str(result))

    def all_sizes(self, tool):
        iterations = 50 if runs.LONG else 5
        result = self.run_pair(f"{tool} -F -p {{port}} -a -n {iterations}", capture=False)
        sizes = {int(row[0]) for row in ROW.findall(result.output)}
        self.assertEqual(sizes, {2 ** n for n in range(1, 24)}, str(result))
        self.assert_not_alarmed(result)


class Bandwidth(Perftest):
    def test_plain(self):
        for tool in BW:
            with self.subTest(tool=tool):
                self.perftest(tool, "", 65536, 50)

    def test_all_sizes(self):
        for tool in BW:
            with self.subTest(tool=tool):
                self.all_sizes(tool)

    def test_eight_queue_pairs(self):
        for tool in BW:
            with self.subTest(tool=tool):
                _, totals = self.perftest(tool, "-q 8", 4096, 40, queue_pairs=8)
                self.assertEqual(len([c for c in totals["connections"] if c["requests"]]), 8)
                sports = {port for c in totals["connections"] for port in c["sport"]}
                self.assertGreater(len(sports), 1, "one UDP source port for all queue pairs")

    def test_both_ways(self):
        for tool in BW:
            with self.subTest(tool=tool):
                self.perftest(tool, "-b", 8192, 50, both_ways=True)

    def test_events(self):
        for tool in BW:
            with self.subTest(tool=tool):
                self.perftest(tool, "-e", 16384, 50)

    def test_post_list(self):
        for tool in BW:
            with self.subTest(tool=tool):
                self.perftest(tool, "-l 16", 2048, 64)

    def test_mtu(self):
        for mtu in (256, 512, 1024, 2048, 4096):
            for tool in BW if runs.LONG else BW[mtu.bit_length() % 3:][:1]:
                with self.subTest(tool=tool, mtu=mtu):
                    self.perftest(tool, "", 10000, 20, mtu=mtu)

    def test_inline(self):
        for tool in ("ib_send_bw", "ib_write_bw"):
            for inline in (0, 64):
                with self.subTest(tool=tool, inline=inline):
                    self.perftest(tool, f"-I {inline}", 32, 100)

    def test_sizes(self):
        for tool in BW:
            for size in (1, 2, 63, 1023, 1024, 1025, 1048576):
                if runs.LONG or size in (1, 1025):
                    with self.subTest(tool=tool, size=size):
                        self.perftest(tool, "", size, 10, mtu=1024)

    def test_combined(self):
        for tool in BW if runs.LONG else ("ib_write_bw",):
            with self.subTest(tool=tool):
                self.perftest(tool, "-b -q 4 -l 4", 3000, 32, queue_pairs=4, both_ways=True)

    def test_ipv6(self):
        self.perftest("ib_write_bw", "-x 1", 4096, 20)

    def test_as_typed(self):
        # the default port: ctest runs nothing else on it at the same time
        result = self.run_hosts("ib_write_bw -n 100", "ib_write_bw -n 100 localhost")
        self.assertTrue(ROW.search(result.output), str(result))


class Latency(Perftest):
    def test_plain(self):
        for tool in LAT:
            with self.subTest(tool=tool):
                self.perftest(tool, "", 2, 200)

    def test_all_sizes(self):
        for tool in LAT:
            with self.subTest(tool=tool):
                self.all_sizes(tool)

    def test_events(self):
        # ib_write_lat has no -e
        for tool in ("ib_send_lat", "ib_read_lat"):
            with self.subTest(tool=tool):
                self.perftest(tool, "-e", 64, 100)

    def test_inline(self):
        for tool in ("ib_send_lat", "ib_write_lat"):
            for inline in (0, 64):
                with self.subTest(tool=tool, inline=inline):
                    self.perftest(tool, f"-I {inline}", 32, 100)

    def test_mtu(self):
        for tool in LAT:
            for mtu in (256, 4096):
                if runs.LONG or mtu == 256:
                    with self.subTest(tool=tool, mtu=mtu):
                        self.perftest(tool, "", 9000, 20, mtu=mtu)


if __name__ == "__main__":
    groups = {"bw": "Bandwidth", "lat": "Latency"}
    sys.argv[1:] = [groups.get(argument, argument) for argument in sys.argv[1:]]
    runs.main()
