#!/usr/bin/python3
"""Latency of one small WRITE or READ against the recurrence over its stages (recurrence.py), parameter by parameter."""

import os
import unittest
from concurrent.futures import ThreadPoolExecutor

import config
import recurrence

LONG = bool(os.environ.get("RN_LONG"))
# (how, bytes): a WRITE by BlueFlame with its payload inline; a WRITE, a READ with WQE and payload in memory.
KINDS = (("blueflame", 8), ("write", 64))
READ = ("read", 512)
# Clocks of one period: a time that moves by whole cycles moves everything behind it by as much.
ALIGNED = ("hosts.*.nic.nic.core_hz=500000000", "hosts.*.nic.mac.clock_hz=500000000")
PERIOD_PS = 2000

# How often the way of a WRITE by (BlueFlame, doorbell) takes each time, on the requester and on the responder. What is
# not here is not on the way.
USES = {
    ("doorbell.decode_latency_cycles", 0): (1, 1),
    ("wqe_fetch.decode_latency_cycles", 0): (1, 1),
    ("context_cache.hit_cycles", 0): (3, 4),  # wqe_fetch, tx, cqe; tx once more when the line was given back
    ("context_cache.hit_cycles", 1): (1, 1),  # rx
    ("pte_cache.mpt_cycles", 0): (1, 3),  # CQE; WQE, payload
    ("pte_cache.mtt_cycles", 0): (1, 3),
    ("pte_cache.mpt_cycles", 1): (2, 2),  # check of the RETH, translation of the write
    ("pte_cache.mtt_cycles", 1): (1, 1),
    ("dma.issue_latency_cycles", 0): (1, 3),
    ("dma.response_latency_cycles", 0): (0, 2),
    ("dma.response_latency_cycles", 1): (1, 1),
    ("transport.turn_cycles", 0): (1, 1),
    ("transport.tx_pipeline_cycles", 0): (1, 1),
    ("transport.tx_pipeline_cycles", 1): (1, 1),
    ("transport.rx_pipeline_cycles", 0): (1, 1),
    ("transport.rx_pipeline_cycles", 1): (1, 1),
    ("transport.ack_generation_cycles", 1): (1, 1),
    ("transport.ack_delay_ps", 1): (1, 1),
    ("transport.completion_cycles", 0): (1, 1),
    ("mac.tx_latency_cycles", 0): (1, 1),
    ("mac.tx_latency_cycles", 1): (1, 1),
    ("mac.rx_latency_cycles", 0): (1, 1),
    ("mac.rx_latency_cycles", 1): (1, 1),
    ("root_complex.mmio_latency_ps", 0): (1, 1),
    ("root_complex.read_latency_ps", 0): (0, 2),
    ("root_complex.write_latency_ps", 0): (1, 1),
    ("pcie.propagation_ps", 0): (2, 6),
    ("fabric.link_delay_ps", None): (2, 2),
}
# Another way, which the recurrence does not describe.
LEFT_OUT = {"fabric.switched"}
# Doubled or halved instead of one more.
POWERS_OF_TWO = {"pcie.mps_bytes", "pcie.mrrs_bytes", "pcie.rcb_bytes", "pte_cache.mtt_line_entries"}


def order(messages=3):
    return " ".join(["0,0,0"] * messages)


OPTIONS = {"blueflame": ("--blueflame", "--inline"), "write": (), "read": ("--op", "read")}
# Where the payload goes to memory, by the TLP log: stage, host, DMA channel.
PLACES = {"blueflame": ("remote_first_bit", "1", "rx"), "write": ("remote_first_bit", "1", "rx"),
          "read": ("data_first_bit", "0", "read_data")}
# Stages of the recurrence that nothing in the simulator writes down.
UNSEEN = {"ack_first_bit", "remote_visible"}


def measure(settings, how, size, phase_ps=0):
    """The stamps of the third of three messages, far apart, and PCIe's word for when the payload went to memory."""
    result = config.run(settings, "--bytes", size, "--order", order(), "--timeline", "--phase-ps", phase_ps,
                        *OPTIONS[how], logs=("tlp",))
    message = result["messages"][-1]
    stamps = message["stamps"]
    stage, *place = PLACES[how]
    for line in result["tlp"]:
        first_bit, _, host, direction, kind, _, _, _, channel = line.split(",")[:9]
        if [host, channel] == place and (direction, kind) == ("up", "MWr") and int(first_bit) > message["post_ps"]:
            stamps[stage] = int(first_bit)
            break
    return message["post_ps"], stamps


def expect(cfg, post_ps, how, size):
    if how == "read":
        return recurrence.read(cfg, post_ps, size)
    return recurrence.write(cfg, post_ps, size, how == "blueflame")


def other_value(row):
    """The next legal value of a parameter, or the one before it; None when it has no other, or cannot change alone."""
    if isinstance(row.value, bool):
        return not row.value
    if row.least is None or not isinstance(row.value, int):
        return None
    doubles = row.unit == "sets" or row.name in POWERS_OF_TWO
    for value in (row.value * 2, row.value // 2) if doubles else (row.value + 1, row.value - 1):
        if not row.least <= value <= row.most or value == row.value:
            continue
        if is_timing(row) or config.is_legal([f"{row.path}={value}"]):
            return value
    return None


def is_timing(row):
    return row.unit in ("cycles", "MAC cycles", "ps", "ns")


class Latency(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plain = config.Config()
        cls.aligned = config.Config(ALIGNED)

    def map(self, function, items):
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(zip(items, pool.map(function, items)))

    def compare(self, cfg, how, size, phase_ps=0):
        """None, or the first stage that is not when it should be."""
        try:
            post_ps, stamps = measure(cfg.settings, how, size, phase_ps)
        except RuntimeError as error:
            return f"{cfg.settings}: {error}"
        want = expect(cfg, post_ps, how, size)
        for stage in sorted(stamps, key=want.get):
            if stamps[stage] != want[stage]:
                return (f"{cfg.settings} {how} {size} B: {stage} {stamps[stage] - post_ps} ps after the post, "
                        f"should be {want[stage] - post_ps}")
        missing = set(want) - set(stamps) - UNSEEN
        return f"{cfg.settings}: no stamp {missing}" if missing else None

    def check_all(self, jobs):
        failures = [text for _, text in self.map(lambda job: self.compare(*job), jobs) if text]
        self.assertEqual(failures, [], f"{len(failures)} of {len(jobs)}:\n" + "\n".join(failures[:20]))

    def test_every_stage_is_where_the_recurrence_has_it(self):
        """At many phases of post against the clocks."""
        phases = range(0, 40000, 137 if LONG else 1999)
        self.check_all([(self.plain, *kind, phase) for kind in KINDS + (READ,) for phase in phases])

    def test_other_sizes_and_clocks(self):
        cfgs = [config.Config((f"hosts.0.nic.nic.core_hz={core}", f"hosts.1.nic.mac.clock_hz={mac}"))
                for core, mac in ((500000000, 322265625), (333333333, 156250000), (1234567890, 644531250))]
        kinds = [("blueflame", 1), ("blueflame", 12), ("write", 1), ("write", 256), ("read", 1), ("read", 4096)]
        kinds += [("write", 193), ("read", 64), ("read", 777), ("read", 2048)] if LONG else []
        self.check_all([(cfg, *kind, 777) for cfg in cfgs for kind in kinds])

    def test_one_more_on_every_parameter_of_the_configuration(self):
        jobs = []
        rows = [row for row in self.plain.rows if row.name not in LEFT_OUT and
                (LONG or is_timing(row) or row.host == 0)]
        for row, value in self.map(other_value, rows):
            if value is None:
                self.assertFalse(is_timing(row), row.path)
                continue
            kinds = KINDS + (READ,) if LONG else (KINDS[1], READ) if is_timing(row) else KINDS[1:]
            jobs += [(self.plain.with_value(row, value), *kind) for kind in kinds]
        self.assertGreater(len(jobs), 200)
        self.check_all(jobs)

    def total(self, settings, how, size):
        post_ps, stamps = measure(settings, how, size)
        return stamps["cqe_visible"] - post_ps

    def test_one_period_more_on_a_time_moves_the_total_by_its_uses(self):
        jobs = [(row, kind) for row in self.aligned.rows if is_timing(row) for kind in range(len(KINDS))]
        base = [self.total(ALIGNED, *kind) for kind in KINDS]

        def moved(job):
            row, kind = job
            step = 1 if "cycles" in row.unit else PERIOD_PS
            if row.value + step > row.most:
                return 0
            return self.total(ALIGNED + (f"{row.path}={row.value + step}",), *KINDS[kind]) - base[kind]

        seen = set()
        for (row, kind), by_ps in self.map(moved, jobs):
            uses = USES.get((row.name, row.host), (0, 0))[kind]
            seen.add((row.name, row.host))
            with self.subTest(parameter=row.path, kind=KINDS[kind]):
                self.assertEqual(by_ps, uses * PERIOD_PS)
        self.assertEqual(set(USES) - seen, set())
        self.assertGreater(len(jobs), 150)


if __name__ == "__main__":
    unittest.main()
