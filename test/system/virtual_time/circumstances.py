"""Runs the same commands in virtual time under circumstances that must not show: a loaded machine, one processor,
another working directory, another user, the tree in another place. What must be the same is collected in an Outcome."""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import runs  # noqa: E402
from runs import roce  # noqa: E402

NAMES = ("plain", "both processors loaded", "one processor", "another directory", "another user", "another place")
HARD = ("four busy processes a processor",)  # for the long form
NOBODY = 65534
# What perftest says when the processor's counter and the clock do not fit together.
CALIBRATION_COMPLAINTS = r"r\^2|Conflicting CPU frequency|measured timestamp frequency|Can't produce a report"
RUN_TIMEOUT_S = int(os.environ.get("RN_RUN_TIMEOUT", "300"))


class Unavailable(Exception):
    """This machine or this user cannot make the circumstance; the text says why."""


def as_nobody(*arguments):
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *arguments]


class Place:
    """How a run is started: what stands before the command line, where, and whose rnicsim it is."""

    def __init__(self, name):
        self.name = name
        self.before = []
        self.directory = None
        self.build = runs.BUILD

    def in_build(self, text):
        """Test programs of ours are named by their path: it moves with the tree."""
        return text.replace(runs.BUILD, self.build)


@contextlib.contextmanager
def load(count):
    """Keeps processors busy with so many processes, at the priority that the simulator has itself."""
    busy = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.send_signal(signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def moved_tree():
    """A copy of what a run needs, at a path of another length."""
    top = tempfile.mkdtemp(prefix="rnicsim-moved-to-a-place-with-a-longer-name-")
    os.chmod(top, 0o755)
    try:
        for name in ("bin", "lib"):
            shutil.copytree(os.path.join(runs.BUILD, name), os.path.join(top, "installed", name), symlinks=True,
                            ignore=shutil.ignore_patterns("*.a"))
        shutil.copytree(os.path.join(runs.ROOT, "configs"), os.path.join(top, "installed", "configs"))
        yield os.path.join(top, "installed")
    finally:
        shutil.rmtree(top, ignore_errors=True)


def first_processor():
    return str(min(os.sched_getaffinity(0)))


def need_other_user():
    if os.geteuid() != 0:
        raise Unavailable("only root may start a run as another user")
    if not shutil.which("setpriv"):
        raise Unavailable("no setpriv (util-linux)")
    probe = subprocess.run(as_nobody(runs.RNICSIM, "--version"), capture_output=True, text=True, check=False)
    if probe.returncode:
        raise Unavailable(f"user {NOBODY} cannot read {runs.BUILD}: {probe.stderr.strip()}")


@contextlib.contextmanager
def circumstance(name):
    """A Place for one of NAMES; raises Unavailable."""
    place = Place(name)
    with contextlib.ExitStack() as stack:
        if name == "both processors loaded":
            stack.enter_context(load(os.cpu_count()))
        elif name == HARD[0]:
            stack.enter_context(load(4 * os.cpu_count()))
        elif name == "one processor":
            place.before = ["taskset", "-c", first_processor()]
        elif name == "another directory":
            place.directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="a directory with spaces "))
        elif name == "another user":
            need_other_user()
            place.before = as_nobody("env", "HOME=/nonexistent", "USER=nobody", "LOGNAME=nobody", "EXTRA=" + "x" * 100)
        elif name == "another place":
            place.build = stack.enter_context(moved_tree())
        yield place


def of_host(text, host):
    """Lines of a host's programs in their order. How lines of different hosts mingle is the terminal's affair."""
    mark = f"[host{host}] "
    return [line[len(mark):] for line in text.splitlines() if line.startswith(mark)]


class Outcome:
    """What a run must repeat, and what to say when it does not."""

    def __init__(self, place, finished, hosts):
        self.place = place
        with open(finished.pcap, "rb") as stream:
            self.frames = hashlib.sha256(stream.read()).hexdigest()
        self.virtual = finished.report["run"]["virtual_time"]
        self.result = finished.report["result"]
        self.output = {f"host {host} {stream}": of_host(text, host) for host in range(hosts)
                       for stream, text in (("stdout", finished.output), ("stderr", finished.errors))}
        self.parsed = [(time_ns, data.hex()) for time_ns, data, _ in roce.read_pcap(finished.pcap)]

    def differences(self, other):
        """One line for each thing that is not the same."""
        found = []
        for key, lines in self.output.items():
            if lines != other.output[key]:
                found.append(f"{key}: {first_difference(lines, other.output[key])}")
        mine, others = (json.dumps(one.result, sort_keys=True, indent=0).splitlines() for one in (self, other))
        if mine != others:
            found.append(f"result: {first_difference(mine, others)}")
        if self.frames != other.frames:
            found.append(f"capture: {first_difference(self.parsed, other.parsed)}")
        return found


def first_difference(mine, others):
    for number, (one, another) in enumerate(zip(mine, others)):
        if one != another:
            return f"item {number} of {len(mine)} and {len(others)}: {one!r:.300} / {another!r:.300}"
    return f"{len(mine)} and {len(others)} items"


class RepeatTest(runs.SystemTest):
    """A test case that runs commands in virtual time."""

    def run_virtual(self, *commands, options=(), place=None, status=0, timeout=RUN_TIMEOUT_S, capture=True):
        place = place or Place("plain")
        folder = tempfile.mkdtemp(dir=self.test_folder)
        os.chmod(folder, 0o777)
        arguments = self.arguments(*[place.in_build(command) for command in commands], raw=False, folder=folder, capture=capture,
                                   options=["--virtual-time", "--quiet", *options])
        arguments[0] = place.in_build(arguments[0])
        result = self.execute([*place.before, *arguments], timeout, folder=folder, cwd=place.directory or folder)
        if status is not None:
            self.assertEqual(result.status, status, f"{place.name}{result}")
        self.assertNotRegex(result.text, CALIBRATION_COMPLAINTS)
        return result

    def outcome(self, commands, place, options=()):
        result = self.run_virtual(*commands, options=options, place=place)
        outcome = Outcome(place.name, result, len(commands))
        shutil.rmtree(result.folder, ignore_errors=True)
        return outcome

    def assert_repeats(self, commands, names=NAMES, options=()):
        """The outcome is the same under all these circumstances; the first is what the others are compared with."""
        first, complaints, missing = None, [], []
        for name in names:
            try:
                with circumstance(name) as place:
                    outcome = self.outcome(commands, place, options)
            except Unavailable as reason:
                missing.append(f"{name}: {reason}")
                continue
            if not outcome.virtual["deterministic"]:
                complaints.append(f"{name}: not deterministic: {outcome.virtual}")
            first = first or outcome
            complaints += [f"{first.place} / {name}: {text}" for text in first.differences(outcome)]
        self.assertEqual(complaints, [], "\n".join([" | ".join(commands), *complaints]))
        return missing


def main():
    if runs.SANITIZED:
        print("not tried with sanitizers: their runtimes read clocks and install handlers of SIGSEGV of their own")
        sys.exit(77)
    runs.main()
