#!/usr/bin/python3
"""What perftest prints in virtual time is the modelled latency and bandwidth.

One way of a latency test (READ: there and back) is what the NICs and links take plus what the host profile charges on
that way: the counter read, the post, the write-combined store of the work request, and seeing the result. The first is
taken from the capture of a run whose calls cost nothing, the second from the profile; a run with the costs must print
the sum. The capture's period must be what is printed, in all runs."""

import re

from circumstances import RepeatTest, main, runs

ITERATIONS = 60
SIZES = [2 << power for power in range(16)]
TOOLS = ("write", "send", "read")
INLINE_BYTES = {"write": 220, "send": 236, "read": 0}  # what perftest asks for by itself
# Before the inline data in the work request: control, remote address, length.
HEADER_BYTES = {"write": 16 + 16 + 4, "send": 16 + 4, "read": 16 + 16 + 16}
FREE = {"post_send_ps": 0, "blueflame_64b_ps": 0, "poll_hit_ps": 0, "memory_poll_ps": 0, "post_recv_ps": 0, "doorbell_ps": 0}
COSTS = {"post_send_ps": 90000, "blueflame_64b_ps": 10000, "poll_hit_ps": 52000, "memory_poll_ps": 50000, "post_recv_ps": 16000,
         "doorbell_ps": 20000}
CLOCK_READ_PS = 25000
# A poll that misses goes on at a multiple of this: so small that the grid does not show.
GRID = {"poll_miss_ps": 1000}
RESOLUTION_US = 0.0101  # perftest prints two digits


def settings(costs):
    return [word for key, value in costs.items()
            for word in ("--set", f"hosts.*.{key}={value}" if "." in key else f"hosts.*.host.cpu.{key}={value}")]


def typical_us(result):
    """t_typical of the client's table."""
    rows = re.findall(r"^\[host1\] +\d+ +\d+ +[\d.]+ +[\d.]+ +([\d.]+) ", result.output, flags=re.M)
    if len(rows) != 1:
        raise AssertionError(f"no table of a latency test{result}")
    return float(rows[0])


def median(values):
    return sorted(values)[len(values) // 2]


def stores(verb, size):
    """64-byte blocks of a work request."""
    inline = size if size <= INLINE_BYTES[verb] else 0
    return -(-(HEADER_BYTES[verb] + inline) // 64) if inline else 1


def host_us(verb, size, costs):
    """What the host profile charges on one way, beside the counter read."""
    sees = costs["memory_poll_ps" if verb == "write" else "poll_hit_ps"]
    return (costs["post_send_ps"] + stores(verb, size) * costs["blueflame_64b_ps"] + sees) / 1e6


class Figures(RepeatTest):
    def latency(self, verb, size=2, costs=None, iterations=ITERATIONS):
        command = f"ib_{verb}_lat -F -n {iterations} -s {size}"
        result = self.run_virtual(command, command + " localhost", options=settings(costs or {}))
        virtual = result.report["run"]["virtual_time"]
        self.assertTrue(virtual["deterministic"], str(virtual) + str(result))
        return result

    def way_us(self, verb, result):
        """Half of the time between a client's message and its next; a READ's is the whole."""
        requests = [frame for frame in self.frames(result) if not frame.is_response]
        client = requests[0].src_mac
        first = [frame.time_ns for frame in requests
                 if frame.src_mac == client and not frame.name.endswith(("_MIDDLE", "_LAST"))]
        self.assertEqual(len(first), ITERATIONS, "messages of the client")
        period = median([later - sooner for sooner, later in zip(first, first[1:])])
        return period / 1000 / (1 if verb == "read" else 2)

    def assert_close(self, printed, expected, what):
        """Within 1 %, or the last digit that perftest prints."""
        self.assertLess(abs(printed - expected), max(0.01 * expected, RESOLUTION_US), f"{what}: {printed} us printed, "
                        f"{expected:.4f} expected")

    def check_size(self, verb, size):
        free, dear = self.latency(verb, size, FREE | GRID), self.latency(verb, size, COSTS | GRID)
        nics = self.way_us(verb, free)
        self.assert_close(typical_us(free), nics, f"{verb} {size}: capture without costs")
        self.assert_close(typical_us(dear), self.way_us(verb, dear), f"{verb} {size}: capture")
        self.assert_close(typical_us(dear), nics + host_us(verb, size, COSTS), f"{verb} {size}: capture and host costs")

    def test_printed_latency_is_the_captures_plus_the_hosts_costs(self):
        for verb in TOOLS:
            for size in runs.some(SIZES, 5):
                with self.subTest(verb=verb, size=size):
                    self.check_size(verb, size)

    def test_printed_latency_with_the_default_profile(self):
        """Polls that miss go on at multiples of 20 ns: the printed figure still is the capture's."""
        for verb in TOOLS:
            with self.subTest(verb=verb):
                result = self.latency(verb, 64)
                self.assert_close(typical_us(result), self.way_us(verb, result), verb)

    def assert_moves(self, verb, changes, by_us, base=None):
        """The printed figure moves by so much, to the last digit."""
        before, after = (typical_us(self.latency(verb, costs=GRID | costs)) for costs in (base or {}, changes))
        self.assertAlmostEqual(after - before, by_us, delta=RESOLUTION_US, msg=f"{verb}: {changes}: {before} to {after} us")

    def test_dearer_counter_read_adds_itself_once_a_way(self):
        for verb in TOOLS:
            with self.subTest(verb=verb):
                self.assert_moves(verb, {"clock_read_ps": CLOCK_READ_PS + 200000}, 0.2)

    def test_frequency_of_the_counter_does_not_show(self):
        for hz in (1000000000, 3333333333):
            with self.subTest(hz=hz):
                self.assert_moves("send", {"tsc_hz": hz}, 0)

    def test_longer_pcie_adds_itself_for_each_crossing(self):
        """The work request goes down, the payload up; a READ also fetches the data from the responder's memory."""
        for verb, crossings in (("write", 2), ("send", 2), ("read", 4)):
            with self.subTest(verb=verb):
                self.assert_moves(verb, {"nic.pcie.propagation_ps": 210000}, crossings * 0.1,
                                  base={"nic.pcie.propagation_ps": 110000})

    def test_slower_memory_adds_itself_once_a_way(self):
        self.assert_moves("write", {"host.root_complex.write_latency_ps": 700000}, 0.5,
                          base={"host.root_complex.write_latency_ps": 200000})

    def test_printed_bandwidth_is_bytes_over_simulated_time(self):
        """From the first frame to the last acknowledgement, as the capture has them."""
        for size, messages in ((64, 5000), (4096, 2000), (65536, 300)):
            with self.subTest(size=size):
                command = f"ib_write_bw -F -s {size} -n {messages}"
                result = self.run_virtual(command, command + " localhost")
                rows = re.findall(rf"^\[host1\] +{size} +{messages} +([\d.]+) +([\d.]+)\s", result.output, flags=re.M)
                self.assertEqual(len(rows), 1, str(result))
                times = [frame.time_ns for frame in self.frames(result)]
                mib_s = size * messages / (times[-1] - times[0]) * 1e9 / (1 << 20)
                self.assertAlmostEqual(float(rows[0][1]) / mib_s, 1, delta=0.01, msg=f"{rows[0]} printed, {mib_s} in the capture")


if __name__ == "__main__":
    main()
