#!/usr/bin/python3
"""Every program with something going wrong: a frame dropped or damaged, a program killed, the simulator killed,
a wrong option."""

import os
import re
import signal
import subprocess
import time

import runs

# program, what its data frames are called
PROGRAMS = [
    ("ibv_rc_pingpong -g 0 -c -m 1024 -s 4096 -n 20", "request_middle"),
    ("ibv_rc_pingpong -g 1 -c -e -m 1024 -s 4096 -n 20", "request_first"),
    ("ib_send_bw -F -m 1024 -s 4096 -n 20", "request_last"),
    ("ib_send_lat -F -s 64 -n 20", "request_only"),
    ("ib_write_bw -F -m 1024 -s 4096 -n 20", "request_middle"),
    ("ib_write_lat -F -s 64 -n 20", "request_only"),
    ("ib_read_bw -F -m 1024 -s 4096 -n 20", "read_response_middle"),
    ("ib_read_lat -F -s 64 -n 20", "read_request"),
]


FRAME_CLASSES = ("request_first", "request_middle", "request_last", "request_only", "ack", "read_request",
                 "read_response_first", "read_response_middle", "read_response_last", "read_response_only")


def sender(frame_class):
    """The host that sends such frames: read responses come from the server, host 0, requests from the client."""
    return 0 if "response" in frame_class else 1


class Loss(runs.SystemTest):
    def shaken(self, program, *fault):
        result = self.run_pair(program + " -p {port}", options=runs.fault(*fault))
        done = [rule["done"] for rule in result.report["result"]["faults"]]
        self.assertEqual(done, [1], f"the fault did not happen{result}")
        return result, self.check_wire(result, "--loss")

    def test_one_frame_dropped(self):
        def dropped(program, frame_class):
            _, totals = self.shaken(program, "drop", frame_class, sender(frame_class))
            self.assertGreater(totals["retransmitted"], 0)

        self.each_of(PROGRAMS, dropped)

    def test_one_ack_dropped(self):
        # reads are answered with data, not with an ACK
        self.each_of([program for program, _ in PROGRAMS if "read" not in program],
                     lambda program: self.shaken(program, "drop", "ack", 0))

    def test_one_frame_damaged(self):
        def damaged(program, frame_class):
            _, totals = self.shaken(program, "corrupt", frame_class, sender(frame_class))
            self.assertGreater(totals["retransmitted"], 0)

        self.each_of(runs.some(PROGRAMS, 4), damaged)

    def test_one_frame_twice(self):
        self.each_of(runs.some(PROGRAMS, 4), lambda program, frame_class: self.shaken(
            program, "duplicate", frame_class, sender(frame_class)))

    def test_data_survives_drops_everywhere(self):
        program = f"{runs.program('rc_verify')} -n 2 -s 0,64,4096,20000"

        def survives(frame_class, host):
            result, totals = self.shaken(program, "drop", frame_class, host)
            self.assert_output(result, "all data right", 2)
            if frame_class != "ack":
                self.assertGreater(totals["retransmitted"], 0, str(result))

        self.each_of([(frame_class, host) for host in (0, 1) for frame_class in FRAME_CLASSES], survives)


class Killed(runs.SystemTest):
    CLOCK = ("--free-run",)

    def test_a_killed_program_leaves_the_others_alone(self):
        ports = [runs.free_port() for _ in range(3)]
        endless = f"ibv_rc_pingpong -g 0 -n 5000000 -p {ports[0]}"
        after, beside = (f"ibv_rc_pingpong -g 0 -c -n 3000 -p {port}" for port in ports[1:])
        # host 0 serves again after its first program was killed; the client tries until it listens
        result = self.run_hosts(f"timeout -s KILL 3 {endless}; {after}", f"timeout -s KILL 2 {endless} localhost; true",
                                f"timeout 60 sh -c 'until {after} localhost; do sleep 0.2; done' 2>/dev/null",
                                beside, beside + " localhost", capture=False)
        self.assertEqual(len(re.findall(r"^3000 iters in ", result.output, re.M)), 4, str(result))
        self.assert_no_leftovers(f"-p {ports[0]}")

    def test_each_program_killed_and_its_host_usable_again(self):
        # A busy machine may need longer until all are in mid-transfer.
        left = PROGRAMS
        for seconds in (3, 6, 12, 24):
            left = self.kill_in_mid_transfer(left, seconds)
            if not left:
                return
        self.fail(f"no transfer within {seconds} s: {left}")

    def kill_in_mid_transfer(self, programs, seconds):
        """All programs in one run, two hosts for each: the clients are killed after so long, then the servers. Returns
        those that had not begun their transfer."""
        commands, ports = [], [runs.free_port() for _ in programs]
        for (program, _), port in zip(programs, ports):
            endless = re.sub(r"-n \d+", "-n 5000000", program) + f" -p {port}"
            commands += [f"timeout -s KILL {seconds + 1} {endless}; ibv_devinfo",
                         f"timeout -s KILL {seconds} {endless} localhost; ibv_devinfo"]
        result = self.run_hosts(*commands, capture=False)
        self.assert_output(result, "PORT_ACTIVE", len(commands))
        hosts = result.report["result"]["hosts"]
        for number, host in enumerate(hosts):
            self.assertEqual(set(host["live"].values()), {0}, f"host {number}: {host['live']}")
        for port in ports:
            self.assert_no_leftovers(f"-p {port}")
        idle = [host["nic"]["counters"]["tx_packets"] < 20 for host in hosts]
        return [program for at, program in enumerate(programs) if idle[2 * at] or idle[2 * at + 1]]

    def test_simulator_killed(self):
        marker = runs.free_port()
        endless = f"ibv_rc_pingpong -g 0 -n 5000000 -p {marker}"
        process = self.begin(self.arguments(endless, endless + " localhost"), stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 20
        while not (simulators := simulators_below(process.pid)) or not programs_running(f"-p {marker}"):
            self.assertLess(time.monotonic(), deadline, "no simulator process, or no programs")
            time.sleep(0.05)
        for pid in simulators:
            os.kill(pid, signal.SIGKILL)
        output, _ = process.communicate(timeout=30)
        self.assertNotEqual(process.returncode, 0, output)
        self.assert_no_leftovers(f"-p {marker}")


def simulators_below(pid):
    """Processes below the launcher that run the rnicsim binary."""
    found = []
    for child in runs.children_of(pid):
        try:
            if os.path.realpath(os.readlink(f"/proc/{child}/exe")) == os.path.realpath(runs.RNICSIM):
                found.append(child)
        except OSError:
            pass
    return found


def programs_running(marker):
    return any(runs.command_line(pid).startswith("ibv_rc_pingpong") and marker in runs.command_line(pid)
               for pid in os.listdir("/proc") if pid.isdigit())


class Neighbours(runs.SystemTest):
    """Two runs at the same time, on the same ports, of different users where that is possible."""

    def side_by_side(self, program):
        messages = int(re.search(r"-n (\d+)", program).group(1))
        finished, processes = [], []
        for name, user in (("one", ()), ("two", runs.ordinary_user())):
            folder = os.path.join(self.folder, name)
            os.mkdir(folder)
            if user:
                os.chown(folder, runs.NOBODY, runs.NOBODY)
            arguments = [*user, *self.arguments(program, program + " localhost", folder=folder)]
            processes.append((folder, self.begin(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                                 env={**os.environ, "HOME": folder})))
        for folder, process in processes:
            output, errors = process.communicate(timeout=runs.TIMEOUT_S)
            finished.append(runs.Finished(process.args, process.returncode, output, errors, folder, 0))
        for result in finished:
            self.assertEqual(result.status, 0, str(result))
            totals = self.check_wire(result)
            self.assertGreaterEqual(sum(totals["messages"].values()), messages, str(result))

    def test_each_program(self):
        self.each_of([program for program, _ in PROGRAMS], self.side_by_side)


class Mistakes(runs.SystemTest):
    def test_wrong_option_of_each_program(self):
        def wrong(program):
            result = self.run_hosts(f"{program.split()[0]} --no-such-option", "true", capture=False, status=None)
            self.assertIn(result.status, range(1, 100), str(result))
            self.assertIn("no-such-option", result.text, str(result))

        self.each_of([program for program, _ in PROGRAMS], wrong)

    def test_client_without_server(self):
        def alone(program):
            result = self.run_hosts("true", f"timeout 20 {program} -p {{port}} localhost", status=None, capture=False)
            self.assertIn(result.status, range(1, 100), str(result))

        self.each_of([program for program, _ in PROGRAMS], alone)

    def test_missing_configuration_file(self):
        def missing(program):
            result = self.run_hosts(f"{program}", f"{program} localhost", options=["-c", "none.yaml"], status=None)
            self.assertIn(result.status, range(1, 100), str(result))
            self.assertIn("none.yaml", result.errors, str(result))
            self.assertEqual(result.output, "", "the programs ran")

        self.each_of([program for program, _ in PROGRAMS], missing)

    def test_sides_that_disagree(self):
        # whatever perftest makes of it, neither crashes, and the hosts stay usable
        result = self.run_hosts("timeout 20 ib_write_bw -F -n 20 -p {port}; echo $?; ibv_devinfo",
                                "timeout 20 ib_read_bw -F -n 20 -p {port} localhost; echo $?; ibv_devinfo", capture=False)
        self.assert_output(result, "PORT_ACTIVE", 2)
        self.assertEqual(re.findall(r"^(?:134|139)$", result.output, re.M), [], str(result))


if __name__ == "__main__":
    runs.main()
