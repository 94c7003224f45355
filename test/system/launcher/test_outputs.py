#!/usr/bin/python3
"""Output files: what stands at their place, disks that are full, limits on their size."""

import os
import resource
import stat
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import launching  # noqa: E402
from launching import EXIT_SIMULATOR, EXIT_USAGE, runs  # noqa: E402

# Every option that writes a file, and with what in front of its path.
OUTPUTS = [("--pcap", ""), ("--report", ""), ("--tlp-log", ""), ("--lookup-log", ""), ("--fst", ""), ("--record-unit", "doorbell=")]
FULL = "/dev/full"


class OutputTest(launching.LauncherTest):
    def write(self, option, path, status=0, prefix="", **more):
        """A run with some traffic and one output."""
        command = f"ibv_rc_pingpong -g 0 -c -n 50 -p {runs.free_port()}"
        result = self.execute([runs.RNICSIM, "run", "--quiet", option, prefix + path, command, command + " localhost"],
                              env=self.environment, **more)
        self.assertEqual(result.status, status, str(result))
        return result


class Full(OutputTest):
    def test_full_disk_is_an_error_that_says_so(self):
        def full(option, prefix):
            result = self.write(option, FULL, EXIT_USAGE, prefix)
            self.assertRegex(result.errors, rf"rnicsim: {FULL}: cannot write .*: No space left on device", str(result))
            self.assertTrue(stat.S_ISCHR(os.stat(FULL).st_mode))

        self.each_of(OUTPUTS, full)

    def test_limit_on_the_size_of_files(self):
        """The memory of the hosts is a file, too: nothing can run, and it is said why."""
        result = self.write("--pcap", os.path.join(self.folder, "run.pcap"), EXIT_SIMULATOR,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
        self.assertIn("nothing can run: this machine lacks", result.errors, str(result))
        self.assertIn("File too large", result.errors, str(result))
        shown = os.path.join(self.folder, "shown.yaml")
        with open(shown, "w", encoding="utf-8") as stream:
            process = self.launch("config", "show", stdout=stream,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512)))
            status, _, errors = self.end_of(process)
        self.assertEqual(status, EXIT_USAGE, errors)
        self.assertIn("standard output: File too large", errors)

    def test_standard_output(self):
        with open(FULL, "w", encoding="ascii") as full:
            for words in (["--version"], ["config", "show"], ["--help"], ["doctor"]):
                result = self.execute_to(full, words)
                self.assertEqual(result.status, EXIT_USAGE, str(result))
                self.assertIn("standard output: No space left on device", result.errors, str(result))
            result = self.execute_to(full, ["run", "--quiet", "echo text", "true"])
            self.assertEqual(result.status, EXIT_USAGE, str(result))
            self.assertIn("standard output: No space left on device", result.errors, str(result))

    def execute_to(self, stream, words):
        process = self.launch(*words, stdout=stream)
        status, _, errors = self.end_of(process)
        return runs.Finished(words, status, "", errors, self.folder, 0)


class Places(OutputTest):
    def test_folder_that_is_not_there(self):
        def nowhere(option, prefix):
            result = self.write(option, "/no/such/folder/file", EXIT_USAGE, prefix)
            self.assertRegex(result.errors, "rnicsim: /no/such/folder/file: cannot write .*: No such file", str(result))

        self.each_of(OUTPUTS, nowhere)

    def test_device_stays_one(self):
        def device(option, prefix):
            before = os.stat("/dev/null")
            self.write(option, "/dev/null", 0, prefix)
            after = os.stat("/dev/null")
            self.assertEqual((before.st_ino, before.st_mode), (after.st_ino, after.st_mode))

        self.each_of(OUTPUTS, device)

    def test_link_stays_one(self):
        def link(option, prefix):
            target, path = os.path.join(self.folder, "target"), os.path.join(self.folder, "link")
            os.symlink("target", path)
            for _ in range(2):  # there is none, and there is one
                self.write(option, path, 0, prefix)
                self.assertTrue(os.path.islink(path))
                self.assertGreater(os.path.getsize(target), 100)
            self.assertEqual(sorted(os.listdir(self.folder)), ["link", "target"])

        self.each_of(OUTPUTS, link)

    def test_fifo_stays_one_and_gets_what_a_file_gets(self):
        def fifo(option, prefix):
            path, plain = os.path.join(self.folder, "fifo"), os.path.join(self.folder, "plain")
            os.mkfifo(path)
            command = f"ibv_rc_pingpong -g 0 -c -n 50 -p {runs.free_port()}"
            process = self.launch("run", "--quiet", option, prefix + path, command, command + " localhost")
            with open(path, "rb") as reader:
                content = reader.read()
            status, _, errors = self.end_of(process)
            self.assertEqual(status, 0, errors)
            self.assertTrue(stat.S_ISFIFO(os.stat(path).st_mode))
            self.write(option, plain, 0, prefix)
            if option in ("--pcap", "--lookup-log", "--record-unit"):
                with open(plain, "rb") as stream:
                    self.assertEqual(stream.read(), content)
            else:
                self.assertGreater(len(content), os.path.getsize(plain) // 2)

        self.each_of(OUTPUTS, fifo)

    def test_file_that_is_read_only(self):
        if os.geteuid() == 0:
            self.skipTest("root may write to anything")
        path = os.path.join(self.folder, "output")
        with open(path, "w", encoding="ascii") as stream:
            stream.write("old")
        os.chmod(path, 0o400)
        for option, prefix in OUTPUTS:
            with self.subTest(option=option):
                result = self.write(option, path, EXIT_USAGE, prefix)
                self.assertIn("Permission denied", result.errors, str(result))
                with open(path, encoding="ascii") as stream:
                    self.assertEqual(stream.read(), "old")


if __name__ == "__main__":
    runs.main()
