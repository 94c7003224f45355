#!/usr/bin/python3
"""Programs killed in mid-transfer, programs killed at any time, and the simulator killed under its programs."""

import os
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import runs  # noqa: E402
import serving  # noqa: E402

KILLS = 1000 if runs.LONG else 30
SEED = int(os.environ.get("RN_SEED", "1"))
TIMEOUT_CODE = 14
TIMEOUT_NS = 4096 * 2 ** TIMEOUT_CODE
# A timer runs in the transport; a frame of it leaves the port up to so much later: its data is fetched, others go first.
SLACK_NS = 50_000
EXIT_SIMULATOR = 70
RNR_NAK = 1  # kind of an AETH


def faults_program(mode, options=""):
    return f"{runs.program('rc_faults')} -p {{port}} -t 30 -a {TIMEOUT_CODE} -M {mode} {options}"


class KilledPeer(runs.SystemTest):
    CLOCK = ("--free-run",)

    def survived(self, mode, options, killed_host):
        command = faults_program(mode, options)
        result = self.run_pair(command, status=137, options=["--timeline"])
        failed = re.findall(r"host (\d): .*exit status (\d+)", result.errors)
        self.assertEqual(failed, [(str(killed_host), "137")], str(result))
        self.assert_output(result, "left in order")
        for host in result.report["result"]["hosts"]:
            self.assertEqual({name: count for name, count in host["live"].items() if count}, {}, str(result))
        return result

    def test_responder_killed(self):
        for operation, retries in (("write", 3), ("send", 1), ("read", 0)):
            with self.subTest(operation=operation, retries=retries):
                result = self.survived("responder_dies", f"-o {operation} -r {retries}", 0)
                self.assert_output(result, "error 12")
                self.check_transmissions(result, retries)
                self.check_wire(result, "--loss", "--no-scapy", counters=False)

    def check_transmissions(self, result, retries):
        """The oldest request without an answer goes out retry_cnt + 1 times, one timeout apart."""
        frames = self.frames(result)
        requests = [frame for frame in frames if frame.src_mac == runs.mac(1)]
        last_answer = [frame for frame in frames if frame.src_mac == runs.mac(0)][-1]
        last_answer_ns = last_answer.time_ns
        if last_answer.aeth_kind == RNR_NAK:  # then it waited and sent that one again, and the timer runs from there
            last_answer_ns = min(frame.time_ns for frame in requests
                                 if frame.time_ns > last_answer_ns and frame.psn == last_answer.psn)
        # The first of each burst goes back to what was sent before. A program that is held up posts late, but ahead.
        bursts = [frame for before, frame in zip(requests, requests[1:])
                  if frame.time_ns > last_answer_ns and runs.roce.psn_diff(frame.psn, before.psn) <= 0]
        self.assertEqual(len(bursts), retries, str(result))
        self.assertLessEqual(len({frame.psn for frame in bursts}), 1, f"each time from the same PSN{result}")
        first_packet_ns, error_ns = self.failed_request(result, last_answer_ns)
        # The timer runs from the last progress, or from the request when nothing was under way before it.
        times = [max(last_answer_ns, first_packet_ns)] + [frame.time_ns for frame in bursts] + [error_ns]
        for first, second in zip(times, times[1:]):
            self.assertLess(abs(second - first - TIMEOUT_NS), SLACK_NS, f"{times}{result}")

    def failed_request(self, result, last_answer_ns):
        """When the first packet of the oldest request without an answer was sent, and when it completed."""
        sends = [wqe["at_ps"] for wqe in result.report["result"]["wqes"] if wqe["host"] == 1 and wqe["queue"] == "send"]
        failed = min((wqe for wqe in sends if wqe["cqe"] // 1000 > last_answer_ns + TIMEOUT_NS // 2), key=lambda wqe: wqe["cqe"])
        return failed["first_packet"] // 1000, failed["cqe"] // 1000

    def test_requester_killed(self):
        for operation in ("write", "send", "read"):
            with self.subTest(operation=operation):
                result = self.survived("requester_dies", f"-o {operation}", 1)
                self.assert_output(result, "nothing happened")
                # Nothing is said to the dead for long: what was on its way is answered, and that is all.
                frames = self.frames(result)
                last_request = max(frame.time_ns for frame in frames if frame.src_mac == runs.mac(1))
                self.assertLess(frames[-1].time_ns - last_request, 1_000_000, str(result))


class KilledAtAnyTime(serving.ServingTest):
    """Pairs of programs, killed at random times; nothing of them is left."""

    COMMANDS = [
        "ibv_rc_pingpong -g 0 -c -n 10000000 -p {port}",
        "ibv_rc_pingpong -g 0 -e -n 10000000 -s 65536 -p {port}",
        "ib_write_bw -F -D 60 -p {port}",
        "ib_read_bw -F -D 60 -q 4 -p {port}",
        "ib_send_bw -F -e -n 10000000 -p {port}",
        f"{runs.program('rc_verify')} -n 100000 -p {{port}}",
        f"{runs.program('rc_verify')} -e -n 100000 -p {{port}}",
    ]

    def test_killed_programs_leave_nothing(self):
        random.seed(SEED)
        self.serve()
        self.run_pair_of_programs("ibv_rc_pingpong -g 0 -c -n 20 -p {port}", "20 iters")
        before = self.baseline()
        kills, resident = 0, None
        while kills < KILLS:
            kills += self.kill_some(3)
            if kills % 99 < 6:
                self.assert_back_at(before)
            if resident is None and kills >= KILLS // 3:
                resident = serving.resident_kib(self.simulator)
        self.assert_back_at(before)
        # Tables grow with use and then stay: memory does not grow with the number of the killed.
        self.assertLess(serving.resident_kib(self.simulator), resident + 16 * 1024)
        self.run_pair_of_programs(f"{runs.program('rc_verify')} -p {{port}}", "all data right")
        report = self.end()
        self.assert_nothing_left(report)
        attached = sum(host["driver"]["counters"]["clients_attached"] for host in report["result"]["hosts"])
        self.assertGreater(attached, KILLS // 2, "too few of them came as far as the driver")

    def test_stopped_programs_hold_up_nobody(self):
        self.serve()
        before = self.baseline()
        for words in (command.format(port=runs.free_port()).split() for command in self.COMMANDS[:4]):
            server = self.start(0, *words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            serving.wait_for_listener(int(words[-1]))
            client = self.start(1, *words, "localhost", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.3)
            for process in (server, client):
                os.kill(process.pid, signal.SIGSTOP)
        self.run_pair_of_programs(f"{runs.program('rc_verify')} -p {{port}}", "all data right")
        for process in self.running[1:]:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                process.wait(timeout=10)
        self.assert_back_at(before)
        self.assert_nothing_left(self.end())

    def kill_some(self, pairs):
        """Some pairs at once; both of each are killed, one first. Returns the number of kills."""
        running = []
        for _ in range(pairs):
            words = random.choice(self.COMMANDS).format(port=runs.free_port()).split()
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            pair = [self.start(0, *words, **quiet), None]
            time.sleep(random.uniform(0, 0.15))
            pair[1] = self.start(1, *words, "localhost", **quiet)
            running.append(pair)
        victims = [process for pair in running for process in pair]
        random.shuffle(victims)
        for victim in victims:
            time.sleep(random.uniform(0, 0.1))
            os.kill(victim.pid, signal.SIGKILL)
            victim.wait(timeout=10)
            self.running.remove(victim)
        self.assertIsNone(self.server.poll(), "the simulator has ended")
        return len(victims)


class KilledSimulator(serving.ServingTest):
    SAYINGS = ("get_cq_event fails", "get_async_event fails", "poll_cq fails", "reg_mr fails", "calls fail")

    def begin_run(self, *commands, name="run"):
        """(launcher, its simulator, its report's path) of a run whose programs are under way."""
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        process = self.begin(self.arguments(*commands, folder=folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        serving.wait_until(lambda: serving.simulator_of(process), "there is a simulator")
        return process, serving.simulator_of(process), folder

    def end_run(self, process, limit_s=20):
        try:
            return process.communicate(timeout=limit_s)[0]
        except subprocess.TimeoutExpired:
            runs.kill_group(process)
            self.fail(f"no end within {limit_s} s: {process.communicate()[0]}")

    def wait_for_lines(self, process, text, count):
        """What it has printed when @count lines with @text have come: the programs are as far as that."""
        said = ""
        while sum(text in line for line in said.splitlines()) < count:
            line = process.stdout.readline()
            self.assertNotEqual(line, "", f"it has ended: {said}")
            said += line
        return said

    def wait_for_traffic(self, marker, folder, count=2):
        """So many programs are there, and frames are on the wire: the capture is written in pieces of a megabyte."""
        self.wait_for_programs(marker, count)
        path = os.path.join(folder, "run.pcap")
        serving.wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > 0, "a capture grows", 60)

    def wait_for_programs(self, marker, count):
        def there():
            found = [pid for pid in os.listdir("/proc") if pid.isdigit() and marker in runs.command_line(pid)
                     and not runs.command_line(pid).startswith(("sh ", runs.RNICSIM, "/bin/sh"))]
            return len(found) >= count
        serving.wait_until(there, f"{count} programs with {marker}", 60)

    def test_run_ends_the_programs_and_says_so(self):
        for program in ("ibv_rc_pingpong -g 0 -n 10000000", "ibv_rc_pingpong -g 0 -e -n 10000000", "ib_write_bw -F -D 60",
                        "ib_send_bw -F -e -n 10000000"):
            with self.subTest(program=program):
                marker = f"-p {runs.free_port()}"
                process, simulator, folder = self.begin_run(f"{program} {marker}", f"{program} {marker} localhost", name=marker)
                self.wait_for_traffic(marker, folder)
                os.kill(simulator, signal.SIGKILL)
                output = self.end_run(process)
                self.assertEqual(process.returncode, EXIT_SIMULATOR, output)
                self.assertRegex(output, "the simulator (has )?died")  # the first only where programs live on
                self.assertIn("there is no report", output)
                self.assert_no_leftovers(marker)

    def test_calls_return_errors_in_a_run(self):
        port = runs.free_port()
        # exec: the program itself is to get the signal that ends it, not a shell
        command = "exec " + faults_program("orphan").format(port=port)
        process, simulator, _ = self.begin_run(command, command + " localhost")
        said = self.wait_for_lines(process, "ready", 2)
        os.kill(simulator, signal.SIGKILL)
        output = said + self.end_run(process)
        self.assertEqual(process.returncode, EXIT_SIMULATOR, output)
        for saying in self.SAYINGS:
            self.assertEqual(output.count(saying), 2, f"{saying}: {output}")

    def test_calls_return_errors_under_serve(self):
        """Nobody ends these programs: they notice by themselves."""
        self.serve()
        words = faults_program("orphan").format(port=runs.free_port()).split()
        pair = [self.start(0, *words), self.start(1, *words, "localhost")]
        for process in pair:
            self.assertIn("ready", process.stdout.readline())
        os.kill(self.simulator, signal.SIGKILL)
        for process in pair:
            output = self.end_run(process)
            self.assertEqual(process.returncode, 0, output)
            for saying in self.SAYINGS:
                self.assertEqual(output.count(saying), 1, f"{saying}: {output}")
        output = self.end_run(self.server)
        self.assertEqual(self.server.returncode, EXIT_SIMULATOR, output)
        self.assertRegex(output, "the simulator (has )?died")  # the first only where programs live on

    def test_launcher_killed(self):
        """The simulator ends by itself, and the programs notice."""
        marker = f"-p {runs.free_port()}"
        program = f"exec ibv_rc_pingpong -g 0 -n 10000000 {marker}"
        process, simulator, folder = self.begin_run(program, program + " localhost")
        self.wait_for_traffic(marker, folder)
        process.kill()
        self.end_run(process)
        serving.wait_until(lambda: serving.name_of(simulator) != "rnicsim-sim", "the simulator has ended")
        self.assert_no_leftovers(marker)

    def test_the_other_run_goes_on(self):
        commands = []
        for count in (10000000, 2000):
            program = f"ibv_rc_pingpong -g 0 -c -n {count} -p {runs.free_port()}"
            commands.append((program, program + " localhost"))
        dying, simulator, doomed = self.begin_run(*commands[0], name="dying")
        living, _, folder = self.begin_run(*commands[1], name="living")
        self.wait_for_traffic(commands[0][1], doomed, 1)
        os.kill(simulator, signal.SIGKILL)
        self.assertRegex(self.end_run(dying), "the simulator (has )?died")
        output = self.end_run(living, 60)
        self.assertEqual(living.returncode, 0, output)
        self.assertEqual(len(re.findall("^2000 iters in ", output, re.M)), 2, output)
        self.assertTrue(os.path.exists(os.path.join(folder, "run.json")))

    def test_interrupt_in_mid_transfer_keeps_the_results(self):
        marker = f"-p {runs.free_port()}"
        program = f"ib_write_bw -F -D 60 {marker}"
        process, _, folder = self.begin_run(program, program + " localhost")
        self.wait_for_traffic(marker, folder)
        process.send_signal(signal.SIGINT)
        output = self.end_run(process)
        self.assertEqual(process.returncode, 128 + signal.SIGINT, output)
        self.assert_no_leftovers(marker)
        result = runs.Finished(process.args, process.returncode, output, "", folder, 0)
        self.assertGreater(len(self.frames(result)), 100)
        self.assertEqual([host["live"]["qps"] for host in result.report["result"]["hosts"]], [0, 0])
        # A transfer that ends in the middle has requests without answers, and nothing else is wrong.
        self.check_counters(result, self.check_wire(result, "--no-scapy", "--loss", counters=False))


if __name__ == "__main__":
    runs.main()
