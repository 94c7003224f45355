#!/usr/bin/python3
"""How runs end: by signals, limits, readers that go or stop reading, deaths, and with their clients."""

import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import launching  # noqa: E402
from launching import ENDING, EXIT_SIMULATOR, runs, serving  # noqa: E402

PINGPONG = "ibv_rc_pingpong -g 0 -c -n 50 -p {port}"


class Blocked(launching.LauncherTest):
    """Somebody does not read: the run hears what it is told nevertheless."""

    def begin_blocked(self, *options):
        """A run whose standard output is full, since this test does not read it."""
        marker = self.marker()
        process = self.launch("run", "--free-run", "--quiet", *options, "yes", f"sleep {marker}", stderr=subprocess.DEVNULL)
        self.wait_for_process(marker)
        return process, marker

    def test_signals_while_standard_output_blocks(self):
        for signo in ENDING:
            with self.subTest(signal=signo.name):
                process, marker = self.begin_blocked()
                process.send_signal(signo)
                self.assertEqual(self.status_of(process), 128 + signo)
                self.assert_no_leftovers(f"sleep {marker}")
                self.assertEqual(self.run_folders(), [])

    def test_time_limit_while_standard_output_blocks(self):
        process = self.launch("run", "--free-run", "--quiet", "--timeout", "5", "yes", "sleep 1000", stderr=subprocess.DEVNULL)
        self.assertNotEqual(self.status_of(process), 0)

    def test_what_was_printed_comes_whole_to_a_slow_reader(self):
        process = self.launch("run", "--quiet", "seq 200000", "true", stderr=subprocess.DEVNULL)
        lines = process.stdout.read().split("\n")
        self.assertEqual(process.wait(launching.END_S), 0)
        self.assertEqual(lines, [f"[host0] {n}" for n in range(1, 200001)] + [""])

    def begin_at_fifo(self):
        """A run whose simulator waits for somebody to read its capture."""
        path = os.path.join(self.folder, "fifo")
        if not os.path.exists(path):
            os.mkfifo(path)
        process = self.launch("run", "--pcap", path, "true", "true")
        return process, self.wait_for_simulator(process), path

    def test_signals_while_the_simulator_comes_up(self):
        for signo in ENDING:
            with self.subTest(signal=signo.name):
                process, simulator, _ = self.begin_at_fifo()
                process.send_signal(signo)
                status, _, errors = self.end_of(process)
                self.assertEqual(status, 128 + signo, errors)
                self.assertIn("while the simulator came up", errors)
                self.assertNotIn("another run gives the same", errors)
                self.wait_for_gone(simulator)
                self.assertEqual(self.run_folders(), [])

    def test_time_limit_while_the_simulator_comes_up(self):
        path = os.path.join(self.folder, "fifo")
        os.mkfifo(path)
        process = self.launch("run", "--timeout", "2", "--pcap", path, "true", "true")
        status, _, errors = self.end_of(process)
        self.assertEqual(status, EXIT_SIMULATOR, errors)
        self.assertIn("the time limit was reached", errors)

    def test_killed_launcher_of_a_blocked_simulator(self):
        process, simulator, _ = self.begin_at_fifo()
        process.kill()
        process.wait()
        self.wait_for_gone(simulator)

    def test_reader_of_a_capture_that_stops_reading(self):
        """Once the programs have been ended, the simulator gets a moment for its outputs, and no more."""
        path = os.path.join(self.folder, "fifo")
        os.mkfifo(path)
        port = runs.free_port()
        command = f"ib_write_bw -F -D 1000 -p {port}"
        process = self.launch("run", "--free-run", "--quiet", "--pcap", path, command, command + " localhost")
        with open(path, "rb") as reader:
            reader.read(1 << 20)
            process.send_signal(signal.SIGINT)
            status, _, errors = self.end_of(process)
        self.assertEqual(status, 128 + signal.SIGINT, errors)
        self.assertIn("ended before its outputs are whole", errors)

    def test_capture_through_a_fifo(self):
        path = os.path.join(self.folder, "fifo")
        os.mkfifo(path)
        command = PINGPONG.format(port=runs.free_port())
        process = self.launch("run", "--quiet", "--pcap", path, command, command + " localhost")
        with open(path, "rb") as reader:
            capture = reader.read()
        status, _, errors = self.end_of(process)
        self.assertEqual(status, 0, errors)
        self.assertGreater(len(capture), 100 * 1024)
        self.assertTrue(os.path.exists(path))

    def test_reader_that_goes(self):
        marker = self.marker()
        process = self.launch("run", "--free-run", "--quiet", f"seq 100000; exec sleep {marker}", f"exec sleep {marker}",
                              stderr=subprocess.DEVNULL)
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(self.status_of(process), 128 + signal.SIGPIPE)
        self.assert_no_leftovers(f"sleep {marker}")
        self.assertEqual(self.run_folders(), [])


class Families(launching.LauncherTest):
    """Processes below the programs."""

    def test_none_outlives_a_run_that_is_ended(self):
        for options in (("--free-run",), ()):
            for wrap in ("timeout 900 sleep {}", "setsid sleep {}", "(setsid sleep {} &) ; exec sleep {}", "sh -c 'sleep {} & wait'"):
                with self.subTest(options=options, wrap=wrap):
                    marker = self.marker()
                    process = self.launch("run", "--quiet", *options, wrap.replace("{}", marker), "cat /dev/zero >/dev/null")
                    self.wait_for_process(marker) if options else self.wait_for_simulator(process)
                    process.send_signal(signal.SIGTERM)
                    status, _, errors = self.end_of(process)
                    self.assertEqual(status, 128 + signal.SIGTERM, errors)
                    self.assert_no_leftovers(f"sleep {marker}")

    def test_none_outlives_a_run_that_is_over(self):
        marker = self.marker()
        result = self.execute(self.arguments(f"(setsid sleep {marker} &); true", f"sleep {marker} & true", capture=False),
                              env=self.environment)
        self.assertEqual(result.status, 0, str(result))
        self.assert_no_leftovers(f"sleep {marker}")

    def test_none_outlives_a_killed_launcher(self):
        marker = self.marker()
        process = self.launch("run", "--free-run", "--quiet", f"timeout 900 sleep {marker}", f"setsid sleep {marker}")
        self.wait_for_process(marker, 2)
        process.kill()
        process.wait()
        self.assert_no_leftovers(f"sleep {marker}")


class Deaths(launching.LauncherTest):
    def test_simulator_killed_while_it_comes_up(self):
        path = os.path.join(self.folder, "fifo")
        os.mkfifo(path)
        process = self.launch("run", "--pcap", path, "true", "true")
        os.kill(self.wait_for_simulator(process), signal.SIGKILL)
        status, _, errors = self.end_of(process)
        self.assertEqual(status, EXIT_SIMULATOR, errors)
        self.assertIn("died while it came up: Killed", errors)

    def test_simulator_ended_by_its_own_sigterm(self):
        """The launcher's blocked signals are not the simulator's."""
        marker = self.marker()
        process = self.launch("run", "--free-run", f"exec sleep {marker}", f"exec sleep {marker}")
        self.wait_for_process(marker, 2)
        os.kill(serving.simulator_of(process), signal.SIGTERM)
        status, _, errors = self.end_of(process)
        self.assertEqual(status, EXIT_SIMULATOR, errors)
        self.assertIn("the simulator has died", errors)
        self.assert_no_leftovers(f"sleep {marker}")

    def test_program_that_cannot_be_started(self):
        result = self.execute([launching.WITHOUT, "vfork=EAGAIN", *self.arguments("true", "true", capture=False)], env=self.environment)
        self.assertEqual(result.status, EXIT_SIMULATOR, str(result))
        self.assertIn("cannot start: true: Resource temporarily unavailable", result.errors, str(result))

    def test_simulator_that_cannot_be_started(self):
        result = self.execute([launching.WITHOUT, "clone=EAGAIN", *self.arguments("true", "true", capture=False)], env=self.environment)
        self.assertEqual(result.status, EXIT_SIMULATOR, str(result))
        self.assertIn("Resource temporarily unavailable", result.errors, str(result))


class Clients(launching.LauncherTest):
    """--end-with: servers that never end."""

    def pair(self, server, *options, status=0):
        port = runs.free_port()
        client = f"ibv_rc_pingpong -g 0 -c -n 50 -p {port} localhost"
        result = self.execute(self.arguments(server.format(port=port), client, options=options), env=self.environment)
        self.assertEqual(result.status, status, str(result))
        return result

    def test_ends_with_the_clients_and_repeats(self):
        results = []
        for name in ("first", "second"):
            result = self.pair("ibv_rc_pingpong -g 0 -c -n 50 -p {port}; while true; do sleep 1; done", "--end-with", "clients")
            with open(result.pcap, "rb") as stream:
                results.append((name, stream.read(), result.report["result"]))
            self.assertTrue(result.report["run"]["virtual_time"]["deterministic"], str(result))
            self.assertNotIn("exit status", result.errors, str(result))
        self.assertEqual(results[0][1:], results[1][1:])

    def test_server_that_says_goodbye_says_it_at_the_same_time(self):
        """Its handler of SIGTERM runs in virtual time."""
        server = "trap 'date +%s.%N; exit 5' TERM; ibv_rc_pingpong -g 0 -c -n 50 -p {port}; while true; do sleep 0.001; done"
        said = []
        for _ in range(2):
            result = self.pair(server, "--end-with", "1")
            self.assertTrue(result.report["run"]["virtual_time"]["deterministic"], str(result))
            said.append(self.assert_output(result, r"^17\d{8}\.\d{9}$"))
        self.assertEqual(said[0], said[1])

    def test_in_free_run(self):
        self.pair("ibv_rc_pingpong -g 0 -c -n 50 -p {port}; sleep 1000", "--end-with", "clients", "--free-run")

    def test_client_that_fails_is_the_status(self):
        result = self.execute(self.arguments("sleep 100000", "exit 6", "true", options=["--end-with", "clients"], capture=False),
                              env=self.environment)
        self.assertEqual(result.status, 6, str(result))

    def test_wrong_hosts(self):
        for hosts, commands in (("servers", 2), ("2", 2), ("1,", 2), ("-1", 2), ("64", 2), ("clients", 1), ("", 2)):
            with self.subTest(hosts=hosts, commands=commands):
                result = self.execute([runs.RNICSIM, "run", "--end-with", hosts, *["true"] * commands], timeout=20)
                self.assertEqual(result.status, launching.EXIT_USAGE, str(result))
                self.assertIn("--end-with", result.errors, str(result))


if __name__ == "__main__":
    runs.main()
