#!/usr/bin/python3
"""Hand-made faults of the RTL under real programs: it is the RTL that works in rtl, and lockstep finds what differs.

With --table the programs' verdict on every fault is printed: what found it, after how many cycles of the unit's clock."""

import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import runs  # noqa: E402
import test_rtl  # noqa: E402

RNICSIM = os.path.join(runs.BUILD, "bin", "rnicsim-faults")
DIVERGED = 71
# cases of rc_errors in which a key does not fit
REFUSED = ("write_other_pd", "write_no_rights", "write_beyond", "write_other_variant")
SWAPPED_PAYLOAD_FRAME = 21  # of pte_cache: an access of 1 KiB or more gets the other page of two
WRONG_DATA = r"byte \d+ is 0x|wrote (outside|behind)"  # what rc_verify says of it
SWAPPED_FRAME = 7  # of pte_cache: two bytes of the frame number change places
SWAPPED_ARM = 2  # of doorbell
FORGOTTEN_RESET = 30  # of pte_cache: an assertion sees it at the first invalidation
# No wake for an answer, for a register read, and one that comes a cycle late. The first sleeps only when most sleeps have been
# probed, which lockstep alone sees for certain.
SLEEPERS = {"pte_cache": ((35, ("lockstep",)),), "doorbell": ((47, ("rtl", "lockstep")), (48, ("rtl", "lockstep")))}
PROGRAMS = {name: [command, command + " localhost"] for name, command in {
    "pingpong": "ibv_rc_pingpong -g 0 -c -e -n 30 -p {port}",
    "write_bw lists": "ib_write_bw -F -l 15 -n 900 -p {port}",
    "send_lat inline": "ib_send_lat -F -s 200 -I 220 -n 50 -p {port}",
    "read_bw": "ib_read_bw -F -n 100 -q 4 -s 65536 -p {port}",
    "refused": runs.program("rc_errors") + " -p {port} -t 15 -c {case}",
    "rc_verify": runs.program("rc_verify") + " -p {port} -n 1",
}.items()}
# In the geometry stress: evictions, few registers, an interval.
STRESS_PROGRAMS = ("pingpong", "write_bw lists", "read_bw", "rc_verify")
# The PTE cache's answers wait for their readers, and doorbells for the scheduler.
SHORT_FIFOS = ["hosts.*.nic.nic.pte_fifo_depth=1", "hosts.*.nic.nic.ring_fifo_depth=1"]
# Without these the table would say too little; at least so many of all faults are to be found by programs.
LEAST_PART = 0.8


def faults_of(unit):
    """Numbers of the hand-made faults of a unit."""
    listed = subprocess.run([os.path.join(runs.ROOT, "tools", "cosim", "seed_faults"), "--numbers",
                             os.path.join(runs.ROOT, "test", "cosim", unit, "faults.txt")], capture_output=True, text=True, check=True)
    return [int(number) for number in listed.stdout.split()]


class Faults(runs.SystemTest):
    def run_faulty(self, unit, mode, fault, commands, timeout=60, sets=()):
        port = runs.free_port()
        commands = [runs.wrapped(command.replace("{port}", str(port))) for command in commands]
        return self.execute([RNICSIM, "run", "--quiet", "--raw", "--timeout", str(timeout), "--grace", "2",
                             "--unit", f"{unit}={mode}", *[word for one in sets for word in ("--set", one)],
                             *(["--plusarg", f"fault={fault}"] if fault else []), *commands],
                            timeout=timeout + 30)

    def test_without_a_fault_all_is_well(self):
        for mode in ("rtl", "lockstep"):
            result = self.run_faulty("pte_cache", mode, 0, PROGRAMS["pingpong"])
            self.assertEqual(result.status, 0, str(result))

    def test_swapped_frame_number_spoils_the_programs_data(self):
        """Page frames of payload alone, in one host: everything completes, and the data are another page's."""
        commands = [runs.program("rc_verify") + " -n 2 -s 20000 -p {port}" + peer for peer in ("", " localhost")]
        result = self.run_faulty("host1:pte_cache", "rtl", 0, commands)
        self.assertEqual(result.status, 0, str(result))
        result = self.run_faulty("host1:pte_cache", "rtl", SWAPPED_PAYLOAD_FRAME, commands)
        self.assertRegex(result.text, WRONG_DATA, str(result))
        self.assertNotIn(result.status, (0, DIVERGED, 70), str(result))

    def check_divergence(self, result, unit):
        self.assertEqual(result.status, DIVERGED, str(result))
        self.assertRegex(result.errors, rf"co-verification failed: .*unit {unit}, instance host\d\.nic0\.{unit}, "
                         r"geometry shipped, core cycle \d+, simulated time \d+ ps")
        self.assertRegex(result.errors, r"the last \d+ transactions")
        path = os.path.join(self.folder, "rnicsim-divergence.fst")
        self.assertTrue(os.path.exists(path), str(result))
        # two stretches of 4096 evaluated cycles at most
        self.assertLess(os.path.getsize(path), 8 << 20)
        cycle = int(re.search(r"core cycle (\d+)", result.errors)[1])
        first, last = map(int, re.search(r"evaluated cycles (\d+) to (\d+)", result.errors).groups())
        self.assertEqual(last, cycle)
        self.assertLessEqual(first, last)
        if shutil.which("fst2vcd"):
            vcd = subprocess.run(["fst2vcd", path], capture_output=True, text=True, timeout=60, check=True).stdout
            self.assertIn("clk_i", vcd)
            times = [int(line[1:]) for line in vcd.splitlines() if line.startswith("#")]
            at_ps = int(re.search(r"simulated time (\d+) ps", result.errors)[1])
            self.assertTrue(times and times[-1] >= at_ps > times[0], f"{times[:1]} {times[-1:]} {at_ps}")
            self.assertRegex(vcd, r"\$timescale\s+1\s*ps")
            # memories that are deeper than the tools' default
            self.assertRegex(vcd, r"tag_mem\[511\]" if unit == "pte_cache" else r"mem\[63\]")

    def test_lockstep_stops_at_the_first_difference(self):
        result = self.run_faulty("pte_cache", "lockstep", SWAPPED_FRAME, PROGRAMS["pingpong"])
        self.check_divergence(result, "pte_cache")
        self.assertRegex(result.errors, r"\* pa +model 0x[0-9a-f]{16}  rtl 0x[0-9a-f]{16}")
        self.check_divergence(self.run_faulty("doorbell", "lockstep", SWAPPED_ARM, PROGRAMS["pingpong"]), "doorbell")

    def test_a_failed_assertion_is_named_and_ends_the_run(self):
        for mode in ("rtl", "lockstep"):
            result = self.run_faulty("pte_cache", mode, FORGOTTEN_RESET, PROGRAMS["rc_verify"])
            self.check_divergence(result, "pte_cache")
            self.assertIn("co-verification failed: an assertion of the RTL has failed", result.errors)
            self.assertIn("EpochIsDrained", result.text)
            self.assertLess(result.seconds, 30)

    def test_rtl_that_sleeps_is_named_and_ends_the_run(self):
        for unit, faults in SLEEPERS.items():
            for fault, modes in faults:
                for mode in modes:
                    result = self.run_faulty(unit, mode, fault, PROGRAMS["rc_verify"])
                    self.assertEqual(result.status, DIVERGED, f"{unit} {fault} {mode} {result}")
                    self.assertRegex(result.errors, f"co-verification failed: the RTL sleeps.*unit {unit}")
                    self.assertRegex(result.errors, r"asleep: in core cycle \d+ idle_o was 1, with a wake (never|in cycle \d+)")
                    self.assertNotIn("did not come up", result.errors)
                    self.assertLess(result.seconds, 30)

    def programs(self):
        """(name, commands, settings), the quick and telling ones first."""
        for name, commands in PROGRAMS.items():
            for case in REFUSED if name == "refused" else [""]:
                yield f"{name} {case}".strip(), [command.replace("{case}", case) for command in commands], ()
        for name in ("read_bw", "write_bw lists"):
            yield f"{name}, short fifos", PROGRAMS[name], SHORT_FIFOS
        for name in STRESS_PROGRAMS:
            yield f"{name}, stress", PROGRAMS[name], test_rtl.stress_sets()

    def verdict(self, unit, fault):
        """(program, core cycle) that found a fault in lockstep, or None."""
        for name, commands, sets in self.programs():
            result = self.run_faulty(unit, "lockstep", fault, commands, sets=sets)
            if result.status == DIVERGED:
                return name, int(re.search(r"core cycle (\d+)", result.errors)[1])
            self.assertNotIn(result.status, (2, 70, 127), str(result))
        return None

    def test_programs_find_most_faults(self):
        for unit in ("pte_cache", "doorbell"):
            faults = faults_of(unit)
            faults = faults if runs.LONG or TABLE else faults[::6]
            verdicts = {}
            self.each_of([(fault,) for fault in faults],
                         lambda fault, unit=unit, verdicts=verdicts: verdicts.update({fault: self.verdict(unit, fault)}), width=2)
            for fault in faults:
                print(f"{unit} fault {fault}: {verdicts[fault] or 'not found by programs'}", file=sys.stderr)
            found = sum(verdict is not None for verdict in verdicts.values())
            if runs.LONG or TABLE:
                self.assertGreaterEqual(found, LEAST_PART * len(faults), str(verdicts))
            else:
                self.assertGreater(found, 0)


TABLE = "--table" in sys.argv

if __name__ == "__main__":
    if TABLE:
        sys.argv.remove("--table")
    runs.main()
