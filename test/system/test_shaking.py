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


class Loss(runs.SystemTest):
    def shaken(self, program, options):
        result = self.run_pair(program + " -p {port}", options=options)
        return result, self.check_wire(result, "--loss")

    def test_one_frame_dropped(self):
        for program, frame_class in PROGRAMS:
            # read responses come from the server, host 0; requests from the client, host 1
            host = 0 if "response" in frame_class else 1
            with self.subTest(program=program, frame_class=frame_class):
                _, totals = self.shaken(program, runs.fault("drop", frame_class, host))
                self.assertGreater(totals["retransmitted"], 0)

    def test_one_ack_dropped(self):
        for program in ("ibv_rc_pingpong -g 0 -c -m 1024 -s 4096 -n 20", "ib_write_bw -F -s 4096 -n 20"):
            with self.subTest(program=program):
                self.shaken(program, runs.fault("drop", "ack", 0))

    def test_one_frame_damaged(self):
        for program, frame_class in PROGRAMS[:1] + PROGRAMS[4:5]:
            with self.subTest(program=program):
                result, totals = self.shaken(program, runs.fault("corrupt", frame_class, 1))
                self.assertGreater(totals["retransmitted"], 0, str(result))

    def test_one_frame_twice(self):
        for program, frame_class in PROGRAMS[:1] + PROGRAMS[4:5]:
            with self.subTest(program=program):
                self.shaken(program, runs.fault("duplicate", frame_class, 1))

    def test_data_survives_drops_everywhere(self):
        program = f"{runs.program('rc_verify')} -p {{port}} -n 2 -s 0,64,4096,20000"
        for frame_class in ("request_first", "request_middle", "request_last", "request_only", "ack", "read_request",
                            "read_response_first", "read_response_middle", "read_response_last", "read_response_only"):
            for host in (0, 1):
                with self.subTest(frame_class=frame_class, host=host):
                    result, totals = self.shaken(program, runs.fault("drop", frame_class, host))
                    self.assert_output(result, "all data right", 2)
                    if frame_class != "ack":
                        self.assertGreater(totals["retransmitted"], 0, str(result))


class Killed(runs.SystemTest):
    def test_a_killed_program_leaves_the_others_alone(self):
        ports = [runs.free_port() for _ in range(3)]
        endless = f"ibv_rc_pingpong -g 0 -n 5000000 -p {ports[0]}"
        after, beside = (f"ibv_rc_pingpong -g 0 -c -n 3000 -p {port}" for port in ports[1:])
        # host 0 serves again after its first program was killed; the client tries until it listens
        result = self.run_hosts(f"timeout -s KILL 4 {endless}; {after}", f"timeout -s KILL 2 {endless} localhost; true",
                                f"timeout 60 sh -c 'until {after} localhost; do sleep 0.2; done' 2>/dev/null",
                                beside, beside + " localhost", capture=False)
        self.assertEqual(len(re.findall(r"^3000 iters in ", result.output, re.M)), 4, str(result))
        self.assert_no_leftovers(f"-p {ports[0]}")

    def test_each_program_killed_and_its_host_usable_again(self):
        for program, _ in PROGRAMS:
            with self.subTest(program=program):
                port = runs.free_port()
                endless = re.sub(r"-n \d+", "-n 5000000", program) + f" -p {port}"
                result = self.run_hosts(f"timeout -s KILL 8 {endless}; ibv_devinfo",
                                        f"timeout -s KILL 2 {endless} localhost; ibv_devinfo", capture=False, status=0)
                self.assert_output(result, "PORT_ACTIVE", 2)
                self.assert_no_leftovers(f"-p {port}")

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


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as stream:
            direct = [int(word) for word in stream.read().split()]
    except OSError:
        return []
    return direct + [grandchild for child in direct for grandchild in children_of(child)]


def simulators_below(pid):
    """Processes below the launcher that run the rnicsim binary."""
    found = []
    for child in children_of(pid):
        try:
            if os.path.realpath(os.readlink(f"/proc/{child}/exe")) == os.path.realpath(runs.RNICSIM):
                found.append(child)
        except OSError:
            pass
    return found


def programs_running(marker):
    return any(runs.command_line(pid).startswith("ibv_rc_pingpong") and marker in runs.command_line(pid)
               for pid in os.listdir("/proc") if pid.isdigit())


class Mistakes(runs.SystemTest):
    def test_wrong_option_of_each_program(self):
        for program, _ in PROGRAMS:
            with self.subTest(program=program):
                name = program.split()[0]
                result = self.run_hosts(f"{name} --no-such-option", "true", capture=False, status=None)
                self.assertNotEqual(result.status, 0, str(result))

    def test_client_without_server(self):
        for program, _ in PROGRAMS:
            with self.subTest(program=program):
                result = self.run_hosts("true", f"timeout 20 {program} -p {{port}} localhost", status=None, capture=False)
                self.assertNotEqual(result.status, 0, str(result))

    def test_sides_that_disagree(self):
        result = self.run_hosts("timeout 20 ib_write_bw -F -n 20 -p {port}", "timeout 20 ib_read_bw -F -n 20 -p {port} localhost",
                                status=None, capture=False)
        self.assertIsInstance(result.status, int)


if __name__ == "__main__":
    runs.main()
