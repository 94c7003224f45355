#!/usr/bin/python3
"""Programs in virtual time: what they print is the simulated clock's, and it repeats to the byte."""

import json
import os
import re
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import runs  # noqa: E402

VIRTUAL = ["--virtual-time", "--quiet"]
TIMES = 6 if runs.LONG else 2
TOOLS = ["ibv_rc_pingpong -g 0 -n 100 -p {port}", "ibv_rc_pingpong -g 0 -n 100 -e -p {port}"] + [
    f"{tool} -F -n {count} -p {{port}}{options}" for tool, count, options in (
        ("ib_send_lat", 100, ""), ("ib_read_lat", 100, ""), ("ib_write_lat", 50, ""), ("ib_send_bw", 300, " -s 4096"),
        ("ib_write_bw", 300, " -s 4096"), ("ib_read_bw", 300, " -s 4096"), ("ib_write_bw", 300, " -q 8 -s 4096"))]


def typical_us(output):
    """t_typical of the last table that a latency test has printed."""
    rows = re.findall(r"^\[host1\] +(\d+) +(\d+) +([\d.]+) +([\d.]+) +([\d.]+) ", output, flags=re.M)
    return float(rows[-1][4])


def by_host(output):
    """Lines of the hosts one after the other: only their order within a host is the program's."""
    lines = output.splitlines()
    return sorted(lines, key=lambda line: line.split(" ")[0])


class VirtualTime(runs.SystemTest):
    def run_virtual(self, *commands, options=(), **more):
        return self.run_hosts(*commands, options=[*VIRTUAL, *options], raw=False, timeout=300, **more)

    def outcome(self, *commands, options=()):
        """Everything that must repeat."""
        result = self.run_virtual(*commands, options=options)
        with open(result.pcap, "rb") as stream:
            frames = stream.read()
        run = result.report["run"]["virtual_time"]
        self.assertTrue(run["deterministic"], str(run) + str(result))
        # the port in use is the harness's, and in no output
        text = [line for line in by_host(result.output) if "port" not in line.lower()]
        return {"frames": frames, "result": json.dumps(result.report["result"], sort_keys=True), "output": text}

    def assert_repeats(self, *commands, options=()):
        first = self.outcome(*commands, options=options)
        for _ in range(TIMES - 1):
            again = self.outcome(*commands, options=options)
            for what in ("output", "result", "frames"):
                self.assertTrue(first[what] == again[what], f"{what} differs: {commands}\n{first['output']}\n{again['output']}")

    @unittest.skipUnless(runs.LONG, "on a loaded machine threads are misjudged as blocked: docs/virtual-time.md")
    def test_two_runs_give_the_same_bytes(self):
        for command in TOOLS:
            with self.subTest(command=command):
                self.assert_repeats(command, command + " localhost")

    def test_threads_children_and_sleeps_repeat(self):
        self.assert_repeats(runs.program("threads_and_children"), "sleep 3; echo one | cat; date +%s")

    def test_idle_seconds_cost_no_wall_time(self):
        started = time.monotonic()
        result = self.run_virtual("sleep 1000; date +%s", "date +%s", capture=False)
        self.assertLess(time.monotonic() - started, 20, str(result))
        self.assert_output(result, r"^\[host0\] 1700001000$")
        self.assert_output(result, r"^\[host1\] 1700000000$")

    def test_printed_latency_is_the_captures(self):
        command = "ib_send_lat -F -n 100 -s 1024 -p {port}"
        result = self.run_virtual(command, command + " localhost")
        sends = [frame.time_ns for frame in self.frames(result) if not frame.is_response]
        # a client's request, the server's answer, the client's next request: half of it is what is printed
        period = sorted(later - sooner for sooner, later in zip(sends, sends[2:]))[len(sends) // 2]
        self.assertAlmostEqual(typical_us(result.output) / (period / 2000), 1, delta=0.01)

    def test_dearer_clock_adds_what_it_costs(self):
        command = "ib_send_lat -F -n 100 -p {port}"
        cheap, dear = (typical_us(self.run_virtual(command, command + " localhost", options=[
            "--set", f"hosts.*.host.cpu.clock_read_ps={ps}"]).output) for ps in (25000, 425000))
        # each side reads the counter once in an iteration, which is two ways
        self.assertAlmostEqual(dear - cheap, 0.4, delta=0.0201)

    def test_other_counter_frequency_changes_nothing(self):
        command = "ib_send_lat -F -n 100 -p {port}"
        slow, fast = (typical_us(self.run_virtual(command, command + " localhost", options=[
            "--set", f"hosts.*.host.cpu.tsc_hz={hz}"]).output) for hz in (1000000000, 3000000000))
        self.assertAlmostEqual(slow, fast, delta=0.0101)

    def test_slower_memory_shows_in_the_printed_latency(self):
        command = "ib_write_lat -F -n 50 -p {port}"
        near, far = (typical_us(self.run_virtual(command, command + " localhost", options=[
            "--set", f"hosts.*.host.root_complex.write_latency_ps={ps}"]).output) for ps in (200000, 700000))
        self.assertAlmostEqual(far - near, 0.5, delta=0.0201)

    def test_thread_that_never_calls_is_reported(self):
        result = self.run_virtual("/usr/bin/python3 -c 'x = sum(i * i for i in range(20000000))'", "true", capture=False)
        run = result.report["run"]["virtual_time"]
        self.assertFalse(run["deterministic"], str(run))
        self.assertGreater(run["unproved"], 0)


if __name__ == "__main__":
    if not runs.LONG:
        print("virtual time is experimental: its tests run with tools/check --long")
        sys.exit(77)
    runs.main()
