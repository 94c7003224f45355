#!/usr/bin/python3
"""The rnicsim command: help, mistakes, exit statuses, reports, runs side by side, as a user, serve and exec."""

import os
import pty
import signal
import subprocess
import time

import runs
import serving

PINGPONG = "ibv_rc_pingpong -g 0 -c -n 20 -p {port}"
CONFIG = os.path.join(runs.ROOT, "configs", "nic", "generic-100g.yaml")


class Help(runs.SystemTest):
    def test_help_and_version_everywhere(self):
        for words in ((), ("run",), ("serve",), ("exec",), ("config",), ("config", "check"), ("config", "show")):
            with self.subTest(words=words):
                result = self.execute([runs.RNICSIM, *words, "--help"], timeout=10)
                self.assertEqual((result.status, result.errors), (0, ""), str(result))
                self.assertIn("Usage", result.output, str(result))
        result = self.execute([runs.RNICSIM, "--version"], timeout=10)
        self.assertRegex(result.output, r"^rnicsim \d+\.\d+\.\d+", str(result))
        self.assertEqual(result.status, 0)

    def test_mistakes_on_the_command_line(self):
        for arguments in ((), ("nonsense",), ("run",), ("run", "--nonsense", "true"), ("run", "--pcap"),
                          ("exec",), ("config",), ("config", "nonsense")):
            with self.subTest(arguments=arguments):
                result = self.execute([runs.RNICSIM, *arguments], timeout=10)
                self.assertNotEqual(result.status, 0, str(result))
                self.assertNotEqual(result.errors, "", str(result))

    def test_wrong_option_is_named(self):
        result = self.execute([runs.RNICSIM, "run", "--nonsense", "true"], timeout=10)
        self.assertIn("nonsense", result.errors, str(result))


class Config(runs.SystemTest):
    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return path

    def test_missing_file(self):
        for words in (("run", "-c", "none.yaml", "true"), ("config", "check", "none.yaml")):
            result = self.execute([runs.RNICSIM, *words], timeout=10)
            self.assertNotEqual(result.status, 0, str(result))
            self.assertIn("none.yaml", result.errors, str(result))

    def test_shipped_scenarios_are_legal(self):
        folder = os.path.join(runs.ROOT, "configs", "scenarios")
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            with self.subTest(path=path):
                result = self.execute([runs.RNICSIM, "config", "check", path], timeout=10)
                self.assertEqual(result.status, 0, str(result))

    def test_unknown_key_has_its_place(self):
        path = self.write("bad.yaml", "fabric:\n  no_such_key: 5\n")
        result = self.execute([runs.RNICSIM, "run", "-c", path, "true"], timeout=10)
        self.assertNotEqual(result.status, 0, str(result))
        self.assertRegex(result.errors, r"bad\.yaml:2:\d+: .*no_such_key", str(result))

    def test_all_mistakes_are_told_at_once(self):
        path = self.write("bad.yaml", "fabric:\n  no_such_key: 5\nneither: 3\n")
        result = self.execute([runs.RNICSIM, "config", "check", path], timeout=10)
        self.assertNotEqual(result.status, 0, str(result))
        self.assertIn("no_such_key", result.errors, str(result))
        self.assertRegex(result.errors, r"bad\.yaml:3:\d+: .*neither", str(result))

    def test_broken_yaml(self):
        path = self.write("bad.yaml", "fabric: [1, 2\n")
        result = self.execute([runs.RNICSIM, "config", "check", path], timeout=10)
        self.assertNotEqual(result.status, 0, str(result))
        self.assertIn("bad.yaml:", result.errors, str(result))

    def test_unknown_key_by_set(self):
        result = self.execute([runs.RNICSIM, "run", "--set", "fabric.no_such_key=5", "true"], timeout=10)
        self.assertNotEqual(result.status, 0, str(result))
        self.assertIn("no_such_key", result.errors, str(result))

    def test_what_show_prints_is_a_configuration(self):
        shown = self.execute([runs.RNICSIM, "config", "show"], timeout=10)
        self.assertEqual(shown.status, 0, str(shown))
        path = self.write("shown.yaml", shown.output)
        again = self.execute([runs.RNICSIM, "config", "show", path], timeout=10)
        self.assertEqual(again.status, 0, str(again))
        # The comments tell where each value comes from.
        values = [[line.split("#")[0].rstrip() for line in text.splitlines()] for text in (shown.output, again.output)]
        self.assertEqual(*values)
        self.run_pair(PINGPONG, options=["-c", path])


class Status(runs.SystemTest):
    def test_first_failing_program(self):
        for commands, status in ((("true", "true"), 0), (("true", "exit 4"), 4), (("exit 3", "sleep 1; exit 4"), 3),
                                 (("true", "kill -9 $$"), 137), (("no-such-command-here", "true"), 127)):
            with self.subTest(commands=commands):
                self.run_hosts(*commands, capture=False, status=status)

    def test_raw_output_is_the_programs_own(self):
        result = self.run_hosts("echo one; echo two >&2", capture=False, report=False)
        self.assertIn("one\n", result.output.splitlines(keepends=True), str(result))
        self.assertIn("two\n", result.errors.splitlines(keepends=True), str(result))

    def test_prefix_on_a_terminal(self):
        master, slave = pty.openpty()
        arguments = self.arguments("echo from-the-server", "echo from-the-client", raw=False, capture=False)
        process = self.begin(arguments, stdout=slave, stderr=slave)
        os.close(slave)
        seen = b""
        try:
            while chunk := os.read(master, 4096):
                seen += chunk
        except OSError:
            pass  # the last writer is gone
        os.close(master)
        self.assertEqual(process.wait(runs.TIMEOUT_S), 0)
        text = seen.decode()
        self.assertRegex(text, r"(?m)^\S*host0\S*.*from-the-server", text)
        self.assertRegex(text, r"(?m)^\S*host1\S*.*from-the-client", text)

    def test_report_and_capture_are_there_after_a_failure(self):
        result = self.run_hosts("ibv_devinfo; exit 5", "true", status=5)
        self.assertEqual(sorted(result.report), sorted(set(result.report) | {"result", "run"}))
        self.assertTrue(os.path.exists(result.pcap))

    def test_report_that_cannot_be_written(self):
        result = self.execute([runs.RNICSIM, "run", "--report", "/no/such/folder/report.json", "true"], timeout=20)
        self.assertNotEqual(result.status, 0, str(result))
        self.assertIn("/no/such/folder/report.json", result.errors, str(result))

    def test_from_any_folder(self):
        port = runs.free_port()
        command = PINGPONG.format(port=port)
        result = self.execute(self.arguments(command, command + " localhost"), cwd="/")
        self.assertEqual(result.status, 0, str(result))

    def test_interrupt_ends_the_programs_and_keeps_the_results(self):
        marker = f"31{os.getpid()}"
        process = self.begin(self.arguments(f"sleep {marker}", f"sleep {marker}", options=["--free-run"]), stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 20
        while sum(runs.command_line(pid).startswith(f"sleep {marker}") for pid in os.listdir("/proc") if pid.isdigit()) < 2:
            self.assertLess(time.monotonic(), deadline, "the programs did not start")
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=20)
        self.assertNotEqual(process.returncode, 0, output)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "run.pcap")), output)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "run.json")), output)
        self.assert_no_leftovers(f"sleep {marker}")


class ServeAndExec(runs.SystemTest):
    def setUp(self):
        super().setUp()
        # where serve and exec meet: not with those of the user, nor of another test
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder}

    def test_programs_in_separate_terminals(self):
        server = self.begin([runs.RNICSIM, "serve", "--pcap", os.path.join(self.folder, "run.pcap"),
                             "--report", os.path.join(self.folder, "run.json")], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, env=self.environment)
        self.wait_until_served()
        port = str(runs.free_port())
        command = ["ibv_rc_pingpong", "-g", "0", "-c", "-n", "50", "-p", port]
        other = self.begin([runs.RNICSIM, "exec", "--host", "0", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           env=self.environment)
        serving.wait_for_listener(int(port))
        client = self.execute([runs.RNICSIM, "exec", "--host", "1", *command, "localhost"], env=self.environment)
        self.assertEqual(client.status, 0, str(client))
        output, _ = other.communicate(timeout=runs.TIMEOUT_S)
        self.assertEqual(other.returncode, 0, output)
        failing = self.execute([runs.RNICSIM, "exec", "--host", "1", "sh", "-c", "exit 7"], env=self.environment)
        self.assertEqual(failing.status, 7, str(failing))
        server.send_signal(signal.SIGINT)
        output, _ = server.communicate(timeout=20)
        result = runs.Finished(["serve"], server.returncode, output, "", self.folder, 0)
        self.check_wire(result, "--opcode", "send", "--messages", "100")

    def wait_until_served(self):
        deadline = time.monotonic() + 20
        while self.execute([runs.RNICSIM, "exec", "--host", "0", "true"], timeout=20, env=self.environment).status != 0:
            self.assertLess(time.monotonic(), deadline, "serve does not come up")
            time.sleep(0.05)

    def test_exec_without_serve(self):
        result = self.execute([runs.RNICSIM, "exec", "--host", "0", "true"], timeout=20,
                              env=self.environment)
        self.assertNotEqual(result.status, 0, str(result))
        self.assertIn("no `rnicsim serve` named default", result.errors, str(result))


if __name__ == "__main__":
    runs.main()
