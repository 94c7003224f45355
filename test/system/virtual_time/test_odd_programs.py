#!/usr/bin/python3
"""Programs that are hard on virtual time: long waits, tests of a fixed duration, early ends, exec, programs that cannot be
attached, and handlers of the signal by which the processor's counter is trapped."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from circumstances import RepeatTest, load, main, runs
import serving

SEGV = 139  # what a shell says of a program that SIGSEGV has ended
# Wall seconds for something that takes simulated seconds: starting programs on a loaded machine, no more.
SOON_S = 30


class Odd(RepeatTest):
    def timed(self, *commands, **options):
        """(result, wall seconds)"""
        started = time.monotonic()
        result = self.run_virtual(*commands, **options)
        return result, time.monotonic() - started

    def assert_deterministic(self, result):
        virtual = result.report["run"]["virtual_time"]
        self.assertTrue(virtual["deterministic"], str(virtual) + str(result))

    def odd(self, mode, *arguments, status=0):
        command = " ".join(["VIRTUAL=1 exec", runs.program("odd_programs"), mode, *arguments])
        result = self.run_virtual(command, status=None, capture=False)
        self.assertEqual(result.status, status, str(result))
        if status == 0:
            self.assert_output(result, rf"^\[host0\] {mode}: as it should be$")
        return result


class LongWaits(Odd):
    def test_a_thousand_seconds_of_sleep_on_both_hosts(self):
        result, wall_s = self.timed("sleep 1000; date +%s", "sleep 999; sleep 1; date +%s", capture=False)
        self.assertLess(wall_s, SOON_S, str(result))
        self.assert_output(result, r"^\[host[01]\] 1700001000$", times=2)
        self.assert_deterministic(result)

    def test_retries_of_seconds(self):
        """Four acknowledge timeouts of 1.07 s, each at most four times as long (IBA: up to 4 x), polling and by events."""
        for option in ("", " -e"):
            with self.subTest(option=option):
                command = runs.program("verbs_retry") + option
                result, wall_s = self.timed(command, command + " localhost")
                self.assertLess(wall_s, SOON_S, str(result))
                found = re.search(r"^\[host1\] transport retry counter exceeded after (\d+) us$", result.output, flags=re.M)
                self.assertTrue(found, str(result))
                self.assertGreaterEqual(int(found[1]), 4 * 1073741)
                self.assertLessEqual(int(found[1]), 4 * 4 * 1073741 + 1000)
                self.assert_deterministic(result)

    def test_test_of_fixed_duration_sees_that_duration(self):
        """At 1 Gb/s two seconds are 61,000 frames: the wall time is theirs, not the seconds'."""
        slow = ["--set", "fabric.link_mbps=1000"]
        command = "ib_send_bw -F -D 2 -s 65536"
        first, _ = self.timed(command, command + " localhost", options=slow, capture=False)
        rows = re.findall(r"^\[host1\] +65536 +(\d+) +([\d.]+) +([\d.]+)\s", first.output, flags=re.M)
        self.assertEqual(len(rows), 1, str(first))
        # 4096 of the 4096 + 58 + 24 bytes that a frame takes on the line
        self.assertAlmostEqual(float(rows[0][2]) * (1 << 20) * 8 / 1e9, 4096 / 4178, delta=0.015, msg=str(first))
        self.assertGreater(first.report["run"]["simulated_s"], 2)
        self.assert_deterministic(first)
        with load(2):
            again, _ = self.timed(command, command + " localhost", options=slow, capture=False)
        self.assert_deterministic(again)
        self.assertEqual(first.report["result"], again.report["result"])
        self.assertEqual(sorted(first.output.splitlines()), sorted(again.output.splitlines()))


class Ends(Odd):
    def test_program_that_ends_early_does_not_hold_up_the_other(self):
        result, wall_s = self.timed("true", "sleep 100; date +%s", capture=False)
        self.assertLess(wall_s, SOON_S, str(result))
        self.assert_output(result, r"^\[host1\] 1700000100$")
        self.assert_deterministic(result)

    def test_server_that_ends_early_is_an_error_to_its_client(self):
        result, wall_s = self.timed("ib_write_lat -F -n 10 --unknown-option", "ib_write_lat -F -n 10 localhost", status=None,
                                    capture=False)
        self.assertLess(wall_s, 2 * SOON_S, str(result))
        self.assertNotEqual(result.status, 0, str(result))
        self.assert_deterministic(result)

    def test_client_killed_by_an_alarm_ends_the_run(self):
        """timeout(1) sends the signal at a virtual moment; its status is the run's."""
        result, wall_s = self.timed("timeout 5 sleep 1000; echo status $? at $(date +%s)", capture=False)
        self.assertLess(wall_s, SOON_S, str(result))
        self.assert_output(result, r"^\[host0\] status 124 at 1700000005$")
        self.assert_deterministic(result)

    def test_killed_run_takes_its_spinning_programs_along(self):
        count = f"1{os.getpid() % 1000000:06d}"
        command = f"ib_write_lat -F -n {count}"
        process = self.begin([runs.RNICSIM, "run", "--quiet", command, f"{command} localhost"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + SOON_S
        while sum(runs.command_line(pid).startswith(command) for pid in os.listdir("/proc") if pid.isdigit()) < 2:
            self.assertLess(time.monotonic(), deadline, "the programs did not start")
            time.sleep(0.05)
        time.sleep(0.5)  # they spin now
        process.kill()
        process.wait()
        self.assert_no_leftovers(command)

    def test_killed_program_is_gone_at_that_time(self):
        killer = "sleep 1000 & sleep 5; kill -9 $!; wait $!; echo $? at $(date +%s); timeout 5 sleep 1000; echo $? at $(date +%s)"
        with load(4):
            result = self.run_virtual(killer, "true", capture=False)
        self.assert_output(result, r"^(\[host0\] )?137 at 1700000005$")
        self.assert_output(result, r"^(\[host0\] )?124 at 1700000010$")
        self.assert_deterministic(result)

    def test_run_ends_with_its_programs_not_with_what_they_leave_behind(self):
        for _ in range(2):
            result = self.run_virtual('(setsid sh -c "sleep 5; echo late" &) ; echo parent', "true", capture=False)
            self.assertLess(result.report["run"]["simulated_s"], 1, str(result))
            self.assert_deterministic(result)

    def test_nics_work_at_the_end_of_simulated_time(self):
        """2^64 ps are 213 days; nobody sleeps longer than to 2^60 ps before that."""
        pingpong = f"ibv_rc_pingpong -g 0 -c -n 50 -p {runs.free_port()}"
        result = self.run_virtual(pingpong, f"sleep 106d; sleep 106d; date +%s; sleep 106d; date +%s; {pingpong} localhost", capture=False)
        self.assert_output(result, r"^(\[host1\] )?1717293822$", 2)
        self.assert_output(result, r"^(\[host\d\] )?50 iters in", 2)
        self.assert_deterministic(result)

    def test_interrupted_run_says_so(self):
        command = f"ib_send_bw -F -n 10000000 -p {runs.free_port()}"
        process = self.begin(self.arguments(command, command + " localhost", capture=False),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        serving.wait_until(lambda: sum(runs.command_line(pid).startswith(command) for pid in os.listdir("/proc") if pid.isdigit()) == 2,
                           "both programs run", 60)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=SOON_S)
        with open(os.path.join(self.folder, "run.json"), encoding="utf-8") as stream:
            virtual = json.load(stream)["run"]["virtual_time"]
        self.assertEqual((virtual["interrupted"], virtual["deterministic"]), (1, False), output)

    def test_background_jobs_of_a_shell(self):
        """A shell's wait blocks all signals but lets them through in sigsuspend()."""
        server = "ib_write_bw -F -p 1000 -n 300 & ib_send_bw -F -p 1001 -n 300; wait"
        client = "ib_write_bw -F -p 1000 -n 300 localhost & ib_send_bw -F -p 1001 -n 300 localhost; wait"
        with load(4):
            seen = {self.run_virtual(server, client, capture=False).report["run"]["simulated_s"] for _ in range(4)}
        self.assertEqual(len(seen), 1, str(seen))

    def test_questions_do_not_cut_a_read_short(self):
        with load(4):
            result = self.run_virtual("dd if=/dev/zero of=/dev/null bs=4M count=100", "true", capture=False)
        self.assertIn("100+0 records in", result.text)

    def test_program_that_is_execed(self):
        for _ in range(2):
            result, _ = self.timed("sleep 3; exec env A=1 sh -c 'exec date +%s'", "exec sh -c 'sleep 1; exec date +%s'",
                                   capture=False)
            self.assert_output(result, r"^\[host0\] 1700000003$")
            self.assert_output(result, r"^\[host1\] 1700000001$")
            self.assert_deterministic(result)


class Unattached(Odd):
    def test_it_runs_as_ever(self):
        result, wall_s = self.timed(runs.program("unattached"), "sleep 5; exec date +%s", capture=False)
        self.assertLess(wall_s, SOON_S, str(result))
        self.assert_output(result, r"^\[host0\] unattached by hand: counter runs, clock of the machine$")
        self.assert_output(result, r"^\[host1\] 1700000005$")

    def test_it_can_be_started_in_every_way(self):
        result = self.odd("start_others", runs.program("unattached"))
        for how in ("execve", "execl", "execvp", "posix_spawn", "system", "popen"):
            self.assert_output(result, rf"^\[host0\] unattached by {how}: counter runs, clock of the machine$")


class Signals(Odd):
    def test_own_handler_of_sigsegv_goes_on_working(self):
        for mode in ("own_handler", "leaving_handler", "stack_handler", "full_mask_handler"):
            with self.subTest(mode=mode):
                self.assert_deterministic(self.odd(mode))

    def test_blocked_sigsegv_does_not_end_a_program_that_reads_the_counter(self):
        for mode in ("masks", "handler_mask"):
            with self.subTest(mode=mode):
                self.assert_deterministic(self.odd(mode))

    def test_real_crash_still_ends_by_sigsegv(self):
        for mode in ("crash", "crash_after_default", "raised"):
            with self.subTest(mode=mode):
                self.odd(mode, status=SEGV)

    @unittest.skipUnless(shutil.which("ucx_perftest"), "needs ucx_perftest (Debian package ucx-utils)")
    def test_ucx_reads_the_counter_and_catches_signals(self):
        """UCX installs a handler of SIGSEGV and measures with rdtsc; here over TCP, between two hosts."""
        options = "-t tag_lat -n 200 -w 10 -s 64"
        transports = "UCX_TLS=tcp UCX_NET_DEVICES=lo UCX_HANDLE_ERRORS=bt"
        result, wall_s = self.timed(f"{transports} ucx_perftest {options}",
                                    f"{transports} ucx_perftest localhost {options}", capture=False)
        self.assertLess(wall_s, 2 * SOON_S, str(result))
        self.assert_output(result, r"Final: +200 +")


class Flags(Odd):
    def test_thread_that_never_calls_is_reported(self):
        result = self.run_virtual("/usr/bin/python3 -c 'x = sum(i * i for i in range(60000000))'", "true", capture=False)
        virtual = result.report["run"]["virtual_time"]
        self.assertFalse(virtual["deterministic"], str(virtual))
        self.assertGreater(virtual["unproved"], 0)


class Processors(Odd):
    """A run keeps to one processor, and its programs must not see that."""

    def where_it_may_run(self, *before):
        result = self.run_virtual(" ".join([*before, "grep Cpus_allowed_list: /proc/self/status"]), capture=False)
        return re.search(r"Cpus_allowed_list:\s*(\S+)$", result.output, flags=re.M)[1]

    def test_programs_see_and_set_those_that_they_have(self):
        count = len(os.sched_getaffinity(0))
        result = self.run_virtual(f"PROCESSORS={count} exec {runs.program('odd_programs')} processors", capture=False)
        self.assert_output(result, r"^\[host0\] processors: as it should be$")
        self.assert_deterministic(result)

    def test_programs_that_do_not_join_have_all_of_them(self):
        """A statically linked program: its processors are those of whoever started the run."""
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("one processor")
        result = self.run_virtual(f"{runs.program('unattached')} processors", capture=False)
        self.assert_output(result, rf"^\[host0\] {len(os.sched_getaffinity(0))} processors$")

    def test_threads_of_a_run_share_one(self):
        self.assertRegex(self.where_it_may_run(), r"^\d+$")

    def test_a_waiting_pair_gets_the_baton_four_times_a_round_trip(self):
        """Two completions a side; a first empty poll that nothing can come before needs no turn."""
        grants = []
        for count in (500, 1500):
            command = f"ibv_rc_pingpong -n {count}"
            result = self.run_virtual(command, command + " localhost", capture=False)
            self.assert_deterministic(result)
            grants.append(result.report["run"]["virtual_time"]["grants"])
        self.assertLess((grants[1] - grants[0]) / 1000, 5, str(grants))


if __name__ == "__main__":
    main()
