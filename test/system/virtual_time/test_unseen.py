#!/usr/bin/python3
"""Helpers of a run that cannot be seen: linked statically, making system calls of their own, written in Go, or stopped by a
tracer. They neither stop a run for ever nor let it say that it repeats; and what is seen goes on repeating."""

import os
import shutil
import subprocess
import unittest

from circumstances import RepeatTest, load, main, runs

PAIR = "ibv_rc_pingpong -g 0 -n 100 -p {port}"
FOR_EVER = 1000000  # sleeps of a helper that the run does not wait for
GO_PROGRAM = """package main
import ("fmt"; "os"; "time")
func main() {
	for n := 0; len(os.Args) > 1 || n < 3; n++ { time.Sleep(20 * time.Millisecond) }
	fmt.Println("go ends")
}
"""


class Unseen(RepeatTest):
    def beside(self, helper, *options):
        """A transfer with a helper in the background; the run ends with the transfer."""
        port = str(runs.free_port())
        pair = PAIR.replace("{port}", port)
        result = self.run_virtual(f"{helper} & {pair}", f"{pair} localhost", options=options, capture=False)
        self.assert_output(result, "100 iters", 2)
        return result

    def assert_not_repeatable(self, result, *counts):
        virtual = result.report["run"]["virtual_time"]
        self.assertFalse(virtual["deterministic"], str(result))
        self.assertGreater(sum(virtual[count] for count in counts), 0, str(virtual))
        self.assertNotIn("another run gives the same", result.text)


class Sleepers(Unseen):
    def test_helper_that_wakes_often(self):
        """More often than any limit of one sleep, and for ever: the sum counts."""
        for program in ("static_sleeper", "bare_sleeper"):
            for ms in (100, 5):
                with self.subTest(program=program, ms=ms):
                    result = self.beside(f"{runs.program(program)} {FOR_EVER} {ms}")
                    self.assert_not_repeatable(result, "strangers", "outside")

    def test_helper_that_calls_between_its_sleeps(self):
        """Each sleep is short, and the baton goes back after each."""
        loop = f"while :; do {runs.program('bare_sleeper')} 1 100 >/dev/null; done"
        self.assert_not_repeatable(self.beside(f"sh -c '{loop}'"), "outside", "strangers")

    def test_two_of_them_on_a_loaded_machine(self):
        sleeper = f"{runs.program('static_sleeper')} {FOR_EVER} 50"
        with load(4):
            self.assert_not_repeatable(self.beside(f"{sleeper} & {sleeper}"), "strangers")


class Strangers(Unseen):
    """A program that ran on the wall clock may have printed anything, however short it lived."""

    def test_short_program_that_does_not_join(self):
        program = f"{runs.program('static_sleeper')} 1 1"
        for command in (f"exec {program}", f"{program}; true", f"env -u LD_PRELOAD {runs.program('bare_sleeper')} 1 1; true",
                        f"{runs.program('odd_programs')} start_others {runs.program('static_sleeper')}"):
            with self.subTest(command=command):
                result = self.run_virtual(command, "true", capture=False)
                self.assert_output(result, r"slept \d times")
                self.assert_not_repeatable(result, "strangers")

    def test_program_whose_runtime_makes_system_calls(self):
        result = self.run_virtual(f"{runs.program('noted_sleeper')} 1 1", "true", capture=False)
        self.assert_output(result, "slept 1 times")
        self.assert_not_repeatable(result, "strangers")

    def test_programs_that_join_repeat(self):
        """Children that are killed before or while they run, failed starts: no strangers."""
        for command in ("sleep 1 & kill -9 $!; wait; true", "/nonexistent; true", "env true; (exec sleep 1)",
                        "sh -c 'exec env true'; timeout 1 sleep 5; true"):
            with self.subTest(command=command):
                result = self.run_virtual(command, "true", capture=False)
                self.assertTrue(result.report["run"]["virtual_time"]["deterministic"], str(result))

    @unittest.skipUnless(shutil.which("go"), "needs Go (Debian package golang-go)")
    def test_go(self):
        source = os.path.join(self.test_folder, "program.go")
        with open(source, "w", encoding="ascii") as stream:
            stream.write(GO_PROGRAM)
        program = os.path.join(self.test_folder, "program")
        caches = {**os.environ, "HOME": self.test_folder, "GOCACHE": os.path.join(self.test_folder, "cache"), "GO111MODULE": "off"}
        subprocess.run(["go", "build", "-o", program, source], check=True, env=caches, cwd=self.test_folder)
        result = self.run_virtual(f"{program}; true", "true", capture=False)
        self.assert_output(result, "go ends")
        self.assert_not_repeatable(result, "strangers")
        self.assert_not_repeatable(self.beside(f"{program} for ever"), "strangers")


@unittest.skipUnless(shutil.which("strace"), "needs strace")
class Traced(Unseen):
    def test_traced_program_comes_to_its_end(self):
        port = str(runs.free_port())
        pair = PAIR.replace("{port}", port)
        trace = os.path.join(self.test_folder, "trace")
        result = self.run_virtual(f"strace -f -o {trace} {pair}", f"{pair} localhost", capture=False)
        self.assert_output(result, "100 iters", 2)
        self.assert_not_repeatable(result, "outside")
        with open(trace, encoding="utf-8", errors="replace") as stream:
            self.assertIn("+++ exited with 0 +++", stream.read().splitlines()[-1])


class Order(Unseen):
    def test_who_acts_without_end_does_not_keep_others_from_looking(self):
        """A writer that lets no time pass but its calls', on the host that goes first: the pipe of the other still works."""
        writer = "while :; do echo x; done | head -n 200000 >/dev/null"
        result = self.run_virtual(writer, "for n in 1 2 3 4 5; do echo $n | cat; done; date +%s.%N", capture=False)
        self.assert_output(result, r"^\[host1\] 1700000000\.0", 1)
        self.assertTrue(result.report["run"]["virtual_time"]["deterministic"], str(result))


if __name__ == "__main__":
    main()
