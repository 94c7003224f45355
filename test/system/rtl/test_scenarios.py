#!/usr/bin/python3
"""What programs seldom do to the units in RTL (scenarios.c): all modes alike, and lockstep finds faults of control.

With --table the verdict on every hand-made fault is printed: which scenario found it, in which cycle."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import runs  # noqa: E402
import test_faults  # noqa: E402
import test_rtl  # noqa: E402

DIVERGED = 71
SHORT = [f"hosts.*.nic.nic.{name}_fifo_depth=1" for name in ("ring", "pte", "work", "ctl", "dma_req", "dma_rsp")]
BURSTS = ["hosts.*.host.root_complex.mmio_queue_entries=4096"]
LATE = ["hosts.*.host.root_complex.read_latency_ps=20000000", "hosts.*.host.root_complex.outstanding_reads=4096",
        "hosts.*.nic.dma.tags=1024", "hosts.*.nic.dma.reassembly_bytes=4194304", "hosts.*.nic.dma.channel_reads=256",
        "hosts.*.nic.dma.translations=256", "hosts.*.nic.dma.channel_requests=64"]


def settings():
    """(scenario, name of the settings, settings): the quick ones first."""
    stress = test_rtl.stress_sets()
    return [("resets", "", []), ("storm", "bursts", BURSTS), ("tables", "", []), ("aborts", "", []),
            ("storm", "short fifos", BURSTS + SHORT), ("storm", "stress", BURSTS + stress + SHORT),
            ("tables", "stress", stress), ("tables", "stress, short fifos", stress + SHORT), ("aborts", "stress", stress),
            ("resets", "stress", stress), ("hoard", "late memory", LATE), ("tables", "short fifos", SHORT)]


# The first of the faults of control in each list; those before are of data and of programs.
FIRST = {"pte_cache": 22, "doorbell": 31}
LEAST = 15


class Scenarios(runs.SystemTest):
    def run_scenario(self, scenario, sets, mode=None, fault=0):
        environment = {**os.environ, "RN_DIVERGENCE_FST": os.path.join(self.folder, f"scenario{fault}.fst")}
        if mode:
            environment["RN_UNIT_MODE"] = mode
        if fault:
            environment["RN_PLUSARG"] = f"+fault={fault}"
        try:
            return subprocess.run([runs.program("rtl_scenarios"), scenario, *sets], capture_output=True, text=True, check=False,
                                  errors="replace", env=environment, timeout=120)
        except subprocess.TimeoutExpired:
            self.fail(f"{scenario} with fault {fault} hangs")

    def test_without_a_fault_all_is_well(self):
        for scenario, name, sets in settings():
            for mode in ("rtl", "lockstep"):
                with self.subTest(scenario=scenario, sets=name, mode=mode):
                    done = self.run_scenario(scenario, sets, mode)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def verdict(self, unit, fault):
        """(scenario, unit, cycle) that found a fault, or None."""
        for scenario, name, sets in settings():
            done = self.run_scenario(scenario, sets + [f"hosts.*.nic.unit.{unit}=lockstep"], fault=fault)
            if done.returncode == DIVERGED:
                self.assertIn(f"unit {unit}", done.stderr)
                return f"{scenario} {name}".strip(), int(re.search(r"core cycle (\d+)", done.stderr)[1])
            self.assertEqual(done.returncode, 0, f"{scenario} {name} fault {fault}: {done.stdout}{done.stderr}")
        return None

    def test_scenarios_find_faults_of_control(self):
        for unit, first in FIRST.items():
            faults = [fault for fault in test_faults.faults_of(unit) if fault >= first or TABLE]
            if not (runs.LONG or TABLE):
                faults = faults[::4]
            verdicts = {}
            self.each_of([(fault,) for fault in faults],
                         lambda fault, unit=unit, verdicts=verdicts: verdicts.update({fault: self.verdict(unit, fault)}), width=2)
            for fault in faults:
                print(f"{unit} fault {fault}: {verdicts[fault] or 'not found'}", file=sys.stderr)
            found = sum(verdicts[fault] is not None for fault in faults if fault >= first)
            self.assertGreaterEqual(found, LEAST if runs.LONG or TABLE else 3, str(verdicts))


TABLE = "--table" in sys.argv

if __name__ == "__main__":
    if TABLE:
        sys.argv.remove("--table")
    runs.main()
