"""A simulator that serves while programs come and go, and what can be seen of it from outside: descriptors, memory,
and the driver's count of live objects in the final report."""

import glob
import json
import os
import signal
import subprocess
import time

import runs

if runs.SANITIZED:
    # A shell has no sanitizer and loads the sanitized preload library first; and programs that are killed leak.
    os.environ.setdefault("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0")

# A second connection to the driver's socket may still be closing when a program has ended.
SETTLE_S = 20


def listening(port):
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(name, encoding="ascii") as stream:
            if any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in stream.readlines()[1:]):
                return True
    return False


def wait_until(condition, what, limit_s=SETTLE_S):
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {limit_s} s: {what}")
        time.sleep(0.01)


def wait_for_listener(port):
    wait_until(lambda: listening(port), f"somebody listens on port {port}", 30)


def children_of(pid):
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path, encoding="ascii") as stream:
                found += [int(word) for word in stream.read().split()]
        except OSError:
            pass
    return found


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as stream:
            return stream.read().strip()
    except OSError:
        return ""


def simulator_of(launcher):
    """Process id of the simulator that a `rnicsim run` or `serve` has started; None while there is none."""
    found = [pid for pid in children_of(launcher.pid) if name_of(pid) == "rnicsim-sim"]
    return found[0] if found else None


def descriptors_of(pid):
    """What the open descriptors are, sorted; a count alone would not say which one leaks."""
    found = []
    for path in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            found.append(os.readlink(path).split(":[")[0])
        except OSError:
            pass
    return sorted(found)


def mappings_of(pid):
    """Shared memory of programs that is still mapped."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as stream:
        return sorted(line.split()[5] for line in stream if "memfd:" in line)


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith("VmRSS"))


def counters_of(report, host):
    return report["result"]["hosts"][host]["nic"]["counters"]


class ServingTest(runs.SystemTest):
    """A test case with one `rnicsim serve`."""

    CLOCK = ("--free-run",)

    def serve(self, *options):
        self.name = f"test{os.getpid()}"
        self.report_path = os.path.join(self.folder, "serve.json")
        self.server = self.begin([runs.RNICSIM, "serve", *self.CLOCK, "--quiet", "--name", self.name, "--report", self.report_path, *options],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.server.stdout.readline()  # it says so when it serves
        self.simulator = simulator_of(self.server)
        self.assertIsNotNone(self.simulator, "the simulator does not come up")

    def start(self, host, *command, **options):
        """A program on a host."""
        if runs.SANITIZED:
            command = ["sh", "-c", runs.wrapped('exec "$0" "$@"'), *command]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **options}
        return self.begin([runs.RNICSIM, "exec", "--name", self.name, "--host", str(host), *command], **options)

    def finish(self, process, status=0, timeout=None):
        """Its output, when it has ended as it should."""
        try:
            output, _ = process.communicate(timeout=timeout or runs.TIMEOUT_S)
        except subprocess.TimeoutExpired:
            runs.kill_group(process)
            output, _ = process.communicate()
            self.fail(f"no end: {process.args}\n{output}")
        if status is not None:
            self.assertEqual(process.returncode, status, f"{process.args}\n{output}")
        self.assertIsNone(self.server.poll(), "the simulator has ended")
        return output

    def run_pair_of_programs(self, command, expected=""):
        """A server on host 0 and a client on host 1 to their end, both with the expected output."""
        port = runs.free_port()
        words = command.replace("{port}", str(port)).split()
        server = self.start(0, *words)
        wait_until(lambda: listening(port) or server.poll() is not None, f"{command} listens", 60)
        client = self.start(1, *words, "localhost")
        outputs = [self.finish(process, status=None) for process in (client, server)]
        told = f"{command}: {client.returncode}, {server.returncode}\n" + "\n".join(outputs)
        self.assertEqual((client.returncode, server.returncode), (0, 0), told)
        for output in outputs:
            self.assertIn(expected, output, told)

    def belongings(self):
        return descriptors_of(self.simulator), mappings_of(self.simulator)

    def baseline(self):
        """What there is without programs: what it is twice in a row."""
        seen = None
        while seen != (now := self.belongings()):
            seen = now
            time.sleep(0.2)
        return seen

    def assert_back_at(self, before):
        """Descriptors and mappings are what they were; the last program's may take a moment."""
        deadline = time.monotonic() + SETTLE_S
        while (now := self.belongings()) != before:
            self.assertIsNone(self.server.poll(), "the simulator has ended")
            if time.monotonic() > deadline:
                self.assertEqual(now, before)
            time.sleep(0.02)

    def end(self):
        """Ends it as Ctrl-C does; its report."""
        self.server.send_signal(signal.SIGINT)
        try:
            output, _ = self.server.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.fail("the simulator does not end")
        self.assertEqual(self.server.returncode, 0, output)
        self.assertNotIn("could not be freed", output)
        with open(self.report_path, encoding="utf-8") as stream:
            return json.load(stream)

    def assert_nothing_left(self, report):
        for host in report["result"]["hosts"]:
            self.assertEqual({name: count for name, count in host["live"].items() if count}, {}, host["name"])
