"""What the launcher's tests share: runs with a run folder of their own, and looks at what they leave."""

import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import runs  # noqa: E402
import serving  # noqa: E402

EXIT_USAGE, EXIT_SIMULATOR = 2, 70
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
WITHOUT = runs.program("without")
END_S = 60  # of a run that has been told to end, on a loaded machine


class LauncherTest(runs.SystemTest):
    def setUp(self):
        super().setUp()
        self.runtime = os.path.join(self.test_folder, "runtime")
        os.mkdir(self.runtime)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.runtime}
        self.markers = 0

    def marker(self):
        """A number of seconds to sleep by which the sleeping process is found again."""
        self.markers += 1
        return f"{10000 + os.getpid() % 50000}.{id(self) % 10000:04}{self.markers:02}"

    def launch(self, *words, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": self.environment, **options}
        return self.begin([runs.RNICSIM, *words], **options)

    def wait_for_process(self, marker, count=1):
        def there():
            found = [pid for pid in os.listdir("/proc") if pid.isdigit() and runs.command_line(pid) == f"sleep {marker} "]
            return len(found) >= count
        serving.wait_until(there, f"{count} processes sleep {marker}", END_S)

    def wait_for_simulator(self, process):
        serving.wait_until(lambda: serving.simulator_of(process), "there is a simulator", END_S)
        return serving.simulator_of(process)

    def end_of(self, process, limit_s=END_S):
        """(status, stdout, stderr) of a launcher that is about to end."""
        try:
            output, errors = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            runs.kill_group(process)
            self.fail(f"no end within {limit_s} s: {process.args} {process.communicate()}")
        return process.returncode, output or "", errors or ""

    def status_of(self, process, limit_s=END_S):
        """The status alone: what it prints is not read."""
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            runs.kill_group(process)
            return self.fail(f"no end within {limit_s} s: {process.args}")

    def run_folders(self):
        top = os.path.join(self.runtime, "rnicsim")
        return sorted(name for name in os.listdir(top) if not name.startswith(".")) if os.path.isdir(top) else []

    def wait_for_gone(self, pid):
        serving.wait_until(lambda: serving.name_of(pid) != "rnicsim-sim", "the simulator has ended", END_S)
