#!/usr/bin/python3
"""Reads of the processor's counter give virtual time wherever they stand: by rewriting, by the trap, and by rewriting on a
machine that accepts the trap and does not have it. A run whose reads nobody may have seen does not claim to repeat."""

from circumstances import Outcome, Place, RepeatTest, main, runs

PROGRAM = runs.program("counter_reads")
LIBRARY = runs.program("libcounter_library.so")
BARE = runs.program("librn_tsc_bare.so")
MODES = ("in_line", "processor", "target", "registers", f"library {LIBRARY}", "generated", "protected", "threads", "handler", "child",
         "another", "illegal", "segment", "own", "pending")
CRASHES = {"crash_illegal": 132, "crash_segment": 139, "crash_handled": 133}  # what a shell says of SIGILL, SIGSEGV, SIGTRAP
TOOLS = [f"ib_{verb}_{kind} -F -n 20{size}" for verb in ("write", "send", "read") for kind, size in (("lat", ""), ("bw", " -s 4096"))]


def without(what):
    """A machine on which a system call answers an error; 0: it pretends to have worked (test/system/machine/without.c)."""
    place = Place(f"without {what}")
    place.before = [runs.program("without"), what]
    return place


def without_trap(error="0"):
    return without(f"tsc={error}")


def counter_records(report):
    return report["run"]["virtual_time"]["counter"]


def record_of_trap():
    """Whether the trap works on this machine: what a process of a run has tried."""
    probe = Counter("run_in_time")
    probe.setUp()
    try:
        result = probe.run_in_time("true")
        return all(record["trap_works"] for record in counter_records(result.report))
    finally:
        probe.doCleanups()


class Counter(RepeatTest):
    trap_works = None

    def run_in_time(self, *commands, **options):
        options.setdefault("capture", False)
        return self.run_virtual(*commands, **options)

    def assert_all_seen(self, virtual):
        self.assertEqual((virtual["unseen_reads"], virtual["random_addresses"]), (0, 0), str(virtual))
        self.assertFalse(any(record["may_be_unseen"] for record in virtual["counter"]), str(virtual))

    def ways(self):
        """(name, options, place) of each way in which reads are caught, or should be."""
        yield "rewriting", ["--tsc", "rewrite"], None
        yield "whatever there is", [], None
        yield "a trap that is pretended", [], without_trap()
        yield "a trap that is refused", ["--tsc", "auto"], without_trap("EPERM")
        if self.needs_trap(skip=False):
            yield "the trap", ["--tsc", "trap"], None

    def needs_trap(self, skip=True):
        if Counter.trap_works is None:
            Counter.trap_works = record_of_trap()
        if skip and not Counter.trap_works:
            self.skipTest("the trap of the counter does not work on this machine: the system accepts it, reads go on")
        return Counter.trap_works


class Reads(Counter):
    def test_each_read_is_virtual_in_each_way(self):
        for name, options, place in self.ways():
            with self.subTest(way=name):
                result = self.run_in_time("; ".join(f"{PROGRAM} {mode}" for mode in MODES), options=options, place=place)
                expected = [f"[host0] {'in_line' if mode == 'another' else mode.split()[0]}: as it should be" for mode in MODES]
                self.assertEqual(result.output.splitlines(), expected, str(result))
                self.assert_all_seen(result.report["run"]["virtual_time"])
                self.check_records(name, counter_records(result.report))

    def check_records(self, way, records):
        self.assertGreaterEqual(len(records), len(MODES))
        rewritten = sum(record["jumps"] + record["ud2"] for record in records)
        traps = sum(record["traps"] for record in records)
        if way == "the trap":
            self.assertEqual(rewritten, 0, records)
            self.assertGreater(traps, 100, records)
            return
        self.assertGreater(sum(record["jumps"] for record in records), 0, records)
        self.assertGreater(sum(record["ud2"] for record in records), 0, records)
        if way != "whatever there is":
            self.assertEqual(traps, 0, records)
            self.assertFalse(any(record["trap"] for record in records), records)

    def test_a_program_with_a_handler_of_single_steps_computes(self):
        result = self.run_in_time(f"{PROGRAM} compute")
        self.assert_output(result, r"^\[host0\] compute: as it should be$")

    def test_crashes_end_as_they_would(self):
        for mode, status in CRASHES.items():
            with self.subTest(mode=mode):
                result = self.run_in_time(f"exec {PROGRAM} {mode}", status=None)
                self.assertEqual(result.status, status, str(result))


class Claims(Counter):
    def test_what_was_seen_is_called_repeatable(self):
        result = self.run_in_time(f"exec {PROGRAM} in_line", place=without_trap())
        self.assertTrue(result.report["run"]["virtual_time"]["deterministic"], str(result))

    HIDDEN = (("dual", "generated"), (f"undecoded {BARE}", "undecoded"))

    def test_what_cannot_be_seen_is_not_called_repeatable(self):
        for mode, reason in self.HIDDEN:
            with self.subTest(mode=mode):
                result = self.run_in_time(f"{PROGRAM} {mode}", options=["--tsc", "auto"], place=without_trap())
                self.assert_doubt(result)
                self.assertIn(reason, sum((record["not_rewritten"] for record in counter_records(result.report)), []))

    def test_the_trap_sees_what_rewriting_does_not(self):
        self.needs_trap()
        for mode, _ in self.HIDDEN:
            with self.subTest(mode=mode):
                result = self.run_in_time(f"{PROGRAM} {mode}")
                self.assertTrue(result.report["run"]["virtual_time"]["deterministic"], str(result))

    def test_a_trap_that_does_not_work_is_no_way(self):
        for error in ("0", "EPERM"):
            with self.subTest(error=error):
                result = self.run_in_time("true", options=["--tsc", "trap"], place=without_trap(error))
                self.assert_doubt(result)
                self.assertFalse(any(record["trap_works"] or record["rewrite"] for record in counter_records(result.report)))

    def test_random_addresses_are_seen(self):
        result = self.run_in_time("true", place=without("personality=0"))
        virtual = result.report["run"]["virtual_time"]
        with open("/proc/sys/kernel/randomize_va_space", encoding="ascii") as stream:
            is_random = stream.read().strip() != "0"
        self.assertEqual((virtual["deterministic"], virtual["address_randomisation"]), (not is_random, is_random), str(result))

    def assert_doubt(self, result):
        virtual = result.report["run"]["virtual_time"]
        self.assertFalse(virtual["deterministic"], str(result))
        self.assertGreaterEqual(virtual["unseen_reads"], 1, str(virtual))
        self.assertTrue(any(record["may_be_unseen"] for record in counter_records(result.report)))

    def test_the_summary_says_so(self):
        arguments = [*without_trap().before, runs.RNICSIM, "run", "--tsc", "trap", "true"]
        result = self.execute(arguments, 60)
        self.assertIn("NOT repeatable", result.errors, str(result))
        self.assertIn("a read of the processor's counter may have gone unseen", result.errors)
        self.assertNotIn("another run gives the same", result.errors)

    def test_a_mode_that_there_is_not_is_an_error(self):
        result = self.execute([runs.RNICSIM, "run", "--tsc", "trapped", "true"], 60)
        self.assertEqual(result.status, 2, str(result))
        self.assertIn("--tsc: trapped is none of auto, trap, rewrite", result.errors)


class Equal(Counter):
    def test_figures_captures_and_results_are_the_same_in_each_way(self):
        """Programs that measure with the counter, all six tools; one that asks clocks; UCX over TCP does both."""
        for command in (*TOOLS, "ibv_rc_pingpong -g 0 -n 100"):
            with self.subTest(command=command):
                outcomes = []
                for name, options, place in self.ways():
                    if name in ("whatever there is", "a trap that is refused"):
                        continue
                    result = self.run_virtual(command, command + " localhost", options=options, place=place)
                    outcomes.append(Outcome(name, result, 2))
                    self.assert_all_seen(outcomes[-1].virtual)
                for outcome in outcomes[1:]:
                    self.assertEqual(outcomes[0].differences(outcome), [], command)


if __name__ == "__main__":
    main()
