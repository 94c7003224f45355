"""Runs `rnicsim` for the system tests: one place for its command line, its report and its limits.

Every wait has a limit; a run that exceeds it is killed with all its programs and fails."""

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tools", "wire"))
import check_capture  # noqa: E402
import roce  # noqa: E402

BUILD = os.environ.get("RN_BUILD_DIR", os.path.join(ROOT, "build", "release"))
RNICSIM = os.path.join(BUILD, "bin", "rnicsim")
PROGRAMS = os.path.join(BUILD, "bin", "test")
TRACES = os.path.join(ROOT, "traces")
NOBODY = 65534
LONG = os.environ.get("RN_LONG") == "1"
SANITIZED = os.environ.get("RN_SANITIZED") == "1"
# Units that are RTL in every run, as of rnicsim run --unit; the tests' own options come behind and win.
UNIT = os.environ.get("RN_UNIT")
if SANITIZED:
    # A shell has no sanitizer and loads our preload library, which has, first; and programs that are killed leak.
    os.environ.setdefault("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0")
# A sanitizer build is several times slower.
TIMEOUT_S = int(os.environ.get("RN_RUN_TIMEOUT", "240" if SANITIZED else "90"))
# Programs mostly wait (perftest sleeps a second in each run), so more runs than processors.
WIDTH = min(8, (os.cpu_count() or 1) + 2)


def mac(host):
    return f"02:00:00:00:00:{host + 1:02x}"


def gid(host):
    return f"::ffff:10.0.0.{host + 1}"


def program(name):
    """Path of a test program of ours."""
    return os.path.join(PROGRAMS, name)


def free_port():
    """A TCP port that nobody uses now: runs side by side must not meet on the machine's real ports."""
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
        probe.bind(("::", 0))
        return probe.getsockname()[1]


def fault(action, frame_class, host, transmission=1, **address):
    """Options that make one frame on the wire fare as told; frame_class as in model/fabric/fault.h."""
    rule = {"action": action, "class": frame_class, "host": host, "transmission": transmission, **address}
    return ["--set", "faults=[{" + ", ".join(f"{key}: {value}" for key, value in rule.items()) + "}]"]


def ordinary_user():
    """The start of a command that runs as an ordinary user; nothing where that is not possible or not needed."""
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return []
    return [] if subprocess.run([*user, "test", "-x", RNICSIM], check=False).returncode else user


def sanitizer_runtime():
    path = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=False).stdout.strip()
    return os.path.realpath(path)


def wrapped(command):
    """A program without sanitizer that loads our sanitized library needs the sanitizer's runtime first."""
    if not SANITIZED:
        return command
    return f'export LD_PRELOAD="{sanitizer_runtime()}${{LD_PRELOAD:+:$LD_PRELOAD}}"; {command}'


class Finished:
    """What a run left behind."""

    def __init__(self, arguments, status, output, errors, folder, seconds):
        self.arguments, self.status, self.output, self.errors = arguments, status, output, errors
        self.folder, self.seconds = folder, seconds
        self.pcap = os.path.join(folder, "run.pcap")
        self.report_path = os.path.join(folder, "run.json")

    @property
    def text(self):
        return self.output + self.errors

    @property
    def report(self):
        with open(self.report_path, encoding="utf-8") as stream:
            return json.load(stream)

    def __str__(self):
        command = " ".join(f"'{a}'" if " " in a else a for a in self.arguments)
        return (f"\n$ {command}\nexit status {self.status} after {self.seconds:.1f} s\n--- output\n{self.output[-6000:]}"
                f"\n--- errors\n{self.errors[-6000:]}")


def port_counters(report, host):
    """(frames sent, bytes sent without FCS) of a host's port as the report has them.

    mlx5's port_xmit_data counts units of four bytes; tx_bytes counts bytes."""
    counters = report["result"]["hosts"][host]["nic"]["counters"]
    sent = counters["tx_bytes"] if "tx_bytes" in counters else counters["port_xmit_data"] * 4
    return counters["tx_packets"] if "tx_packets" in counters else counters["port_xmit_packets"], sent


def children_of(pid):
    """All processes below one, nearest first."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as stream:
            direct = [int(word) for word in stream.read().split()]
    except OSError:
        return []
    return direct + [grandchild for child in direct for grandchild in children_of(child)]


def kill_group(process):
    """Kills a process and all below it: rnicsim gives each program a process group of its own."""
    for pid in [process.pid] + children_of(process.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


TEST_FOLDER = "rnicsim-system-"


def make_test_folder():
    """A folder of this process's own, (path, descriptor that holds it); those that killed tests have left are removed."""
    top = tempfile.gettempdir()
    for name in os.listdir(top):
        path = os.path.join(top, name)
        try:
            if name.startswith(TEST_FOLDER) and os.stat(path).st_uid == os.geteuid() and not is_held(path):
                shutil.rmtree(path, ignore_errors=True)
        except OSError:
            pass  # another has been quicker
    path = tempfile.mkdtemp(prefix=TEST_FOLDER)
    os.chmod(path, 0o755)
    held = os.open(path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    return path, held


def is_held(path):
    """Whether a test lives in the folder; one that is being made is young and not held yet."""
    probe = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return time.time() - os.fstat(probe).st_mtime < 60
    except BlockingIOError:
        return True
    finally:
        os.close(probe)


class SystemTest(unittest.TestCase):
    """A test case with a folder of its own and ways to run the simulator in it."""

    maxDiff = None
    CLOCK = ()  # options: which clock programs read; --free-run where the test kills or waits by the wall clock

    def setUp(self):
        self.folders = threading.local()
        self.test_folder, self.held = make_test_folder()
        self.running = []

    @property
    def folder(self):
        """The test's folder; in each_of() the row's."""
        return getattr(self.folders, "row", self.test_folder)

    def each_of(self, rows, function, width=WIDTH):
        """function(*row) for each row as a sub-test; several side by side, each in a folder of its own."""
        def in_own_folder(row):
            self.folders.row = tempfile.mkdtemp(dir=self.test_folder)
            os.chmod(self.folders.row, 0o755)
            try:
                function(*row)
            finally:
                shutil.rmtree(self.folders.row, ignore_errors=True)

        rows = [row if isinstance(row, tuple) else (row,) for row in rows]
        self.assertTrue(rows, "nothing to test")
        with ThreadPoolExecutor(width) as pool:
            results = [(row, pool.submit(in_own_folder, row)) for row in rows]
            for row, result in results:
                with self.subTest(row=row):
                    result.result()

    def tearDown(self):
        for process in self.running:
            if process.poll() is None:
                kill_group(process)
                process.wait()
        shutil.rmtree(self.test_folder, ignore_errors=True)
        os.close(self.held)

    def begin(self, arguments, **options):
        """Starts a process in a group of its own; it is killed at the latest when the test ends."""
        process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, start_new_session=True, text=True,
                                   cwd=options.pop("cwd", self.folder), errors="replace", **options)
        self.running.append(process)
        return process

    def execute(self, arguments, timeout=None, folder=None, **options):
        """Runs a command to its end."""
        started = time.monotonic()
        process = self.begin(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        try:
            output, errors = process.communicate(timeout=timeout or TIMEOUT_S)
        except subprocess.TimeoutExpired:
            kill_group(process)
            output, errors = process.communicate()
            result = Finished(arguments, "none: killed", output, errors, self.folder, time.monotonic() - started)
            self.fail(f"no end within {timeout or TIMEOUT_S} s{result}")
        return Finished(arguments, process.returncode, output, errors, folder or self.folder, time.monotonic() - started)

    def arguments(self, *commands, options=(), capture=True, report=True, raw=True, folder=None):
        folder = folder or self.folder
        arguments = [RNICSIM, "run", *self.CLOCK, *(["--unit", UNIT] if UNIT else []), *options]
        arguments += ["--raw"] if raw else []
        arguments += ["--pcap", os.path.join(folder, "run.pcap")] if capture else []
        arguments += ["--report", os.path.join(folder, "run.json")] if report else []
        return arguments + [wrapped(command) for command in commands]

    def run_hosts(self, *commands, timeout=None, status=0, **options):
        """rnicsim run with a command for each host; {port} in them is a free TCP port. Checks the exit status."""
        port = free_port()
        commands = [command.replace("{port}", str(port)) for command in commands]
        result = self.execute(self.arguments(*commands, **options), timeout)
        if status is not None:
            self.assertEqual(result.status, status, str(result))
        return result

    def run_pair(self, server, client=None, **options):
        """Two hosts; the client's command is the server's with "localhost" unless given."""
        return self.run_hosts(server, client or server + " localhost", **options)

    def check_wire(self, result, *options, counters=True):
        """The capture is clean, and adds up with the report; returns its totals."""
        parsed = check_capture.parse_options([result.pcap, *([] if LONG else ["--scapy-limit", "100"]), *options])
        totals, errors = check_capture.check(result.pcap, parsed)
        self.assertEqual(errors[:20], [], f"{len(errors)} complaints about the capture{result}")
        if counters and not parsed.allow_cut:
            self.check_counters(result, totals)
        return totals

    def check_counters(self, result, totals):
        """Every port's counters are what the capture says."""
        report = result.report
        for address, seen in totals["ports"].items():
            host = int(address.split(":")[-1], 16) - 1
            self.assertEqual(port_counters(report, host), (seen["frames"], seen["bytes"]), f"port of host {host}{result}")

    def frames(self, result):
        return roce.read_frames(result.pcap)[0]

    def assert_output(self, result, pattern, times=1):
        found = re.findall(pattern, result.output, flags=re.M)
        self.assertGreaterEqual(len(found), times, f"no {pattern!r}{result}")
        return found

    def assert_no_leftovers(self, marker):
        """No process with the marker in its command line lives on; waits a moment for the dying ones."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            alive = [pid for pid in os.listdir("/proc") if pid.isdigit() and marker in command_line(pid)
                     and int(pid) != os.getpid()]
            if not alive:
                return
            time.sleep(0.05)
        self.fail(f"still running: {[command_line(pid) for pid in alive]}")


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            text = stream.read().replace(b"\0", b" ").decode(errors="replace")
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            return "" if stream.read().rsplit(")", 1)[1].split()[0] == "Z" else text
    except OSError:
        return ""


def some(rows, step):
    """Every step-th row of a matrix; all with RN_LONG=1."""
    return rows if LONG else rows[::step]


def main():
    if not os.access(RNICSIM, os.X_OK):
        print(f"{RNICSIM} is not built; RN_BUILD_DIR names the build folder")
        sys.exit(1)
    unittest.main()
