#!/usr/bin/python3
"""Machines that lack something: doctor says so, and a run works with a stated loss or refuses clearly."""

import json
import os
import resource
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import runs  # noqa: E402

WITHOUT = runs.program("without")
EXIT_MISSING, EXIT_SIMULATOR = 1, 70
SAME = "another run gives the same"
LACKS = "rnicsim: this machine lacks "
REACH = "process_vm_readv=ENOSYS,process_vm_writev=ENOSYS"

# What is taken away, the row of doctor that finds out, and whether nothing runs without it.
TAKEN = [
    ("personality=EPERM", "fixed_addresses", False),
    ("personality=ENOSYS", "fixed_addresses", False),
    ("personality=0", "fixed_addresses", False),
    (REACH, "process_memory", False),
    ("process_vm_readv=EPERM,process_vm_writev=EPERM", "process_memory", False),
    ("ptrace=EPERM", "ptrace", False),
    ("memfd_create=ENOSYS", "sealed_memory", True),
    ("memfd_create=EPERM", "sealed_memory", True),
    ("tsc=0", "counter_trap", False),
    ("tsc=EPERM", "counter_trap", False),
    ("sigtrap=EPERM", "single_step", False),
    ("sigtrap=0", "single_step", False),
    ("pidfd_open=ENOSYS", "process_watch", True),
    ("socket=EACCES", "loopback", True),
    ("mlock=EPERM", "locked_memory", False),
]


def no_shared_memory():
    """A command in front of another for which /dev/shm cannot be written to; None where namespaces are refused."""
    namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    inside = 'mount -t tmpfs -o ro none /dev/shm && exec "$0" "$@"'
    command = [*namespace, "sh", "-c", inside]
    works = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    return command if works else None


class MachineTest(runs.SystemTest):
    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.test_folder}

    def doctor(self, *prefix, options=("--json",), **more):
        return self.execute([*prefix, runs.RNICSIM, "doctor", *options], timeout=60, env=self.environment, **more)

    def rows(self, result):
        return {row["key"]: row for row in json.loads(result.output)["facilities"]}

    def pingpong(self, *prefix, status=0, options=(), **more):
        """A pair on a machine to which the prefix has been done."""
        command = f"ibv_rc_pingpong -g 0 -c -n 50 -p {runs.free_port()}"
        arguments = self.arguments(command, command + " localhost", options=options)
        result = self.execute([*prefix, *arguments], env=self.environment, **more)
        self.assertEqual(result.status, status, str(result))
        if status == 0:
            self.assert_output(result, r"^50 iters in ", 2)
        return result


class Doctor(MachineTest):
    def test_each_row_notices_what_is_taken_away(self):
        here = self.rows(self.doctor())

        def taken(what, key, is_needed):
            result = self.doctor(WITHOUT, what)
            self.assertEqual(result.status, EXIT_MISSING if is_needed else 0, str(result))
            rows = self.rows(result)
            self.assertFalse(rows[key]["works"], str(result))
            self.assertNotEqual(rows[key]["detail"], "", str(result))
            self.assertEqual(json.loads(result.output)["can_run"], not is_needed, str(result))
            # What has nothing to do with it is found as before.
            for other in ("descriptors", "address_space", "run_folder", "shared_memory", "processors"):
                if what != "socket=EACCES" or other != "run_folder":
                    self.assertEqual(rows[other]["works"], here[other]["works"], f"{other}{result}")

        self.each_of(TAKEN, taken)

    def test_brief_is_a_line_and_nothing_where_all_is_there(self):
        rows = self.rows(self.doctor())
        result = self.doctor(options=["--brief"])
        lacking = [row for row in rows.values() if not row["works"]]
        self.assertEqual(len(result.output.splitlines()), 1 if lacking else 0, str(result))
        result = self.doctor(WITHOUT, "ptrace=EPERM", options=["--brief"])
        self.assertEqual(len(result.output.splitlines()), 1, str(result))
        self.assertIn("tracing (ptrace: Operation not permitted)", result.output, str(result))
        result = self.doctor(WITHOUT, "memfd_create=ENOSYS", options=["--brief"])
        self.assertEqual(result.status, EXIT_MISSING, str(result))
        self.assertIn("nothing can run: this machine lacks sealed memory files", result.output, str(result))

    def test_says_what_is_lost(self):
        result = self.doctor(WITHOUT, "personality=EPERM", options=[])
        self.assertRegex(result.output, r"no +fixed addresses: personality.*not permitted\n +without it: programs have other addresses")

    def test_limits(self):
        def limited(which, value):
            return lambda: resource.setrlimit(which, (value, value))

        for which, value, key in ((resource.RLIMIT_NOFILE, 20, "descriptors"), (resource.RLIMIT_AS, 8 << 30, "address_space"),
                                  (resource.RLIMIT_FSIZE, 1 << 20, "temporary_space")):
            if runs.SANITIZED and which == resource.RLIMIT_AS:
                continue  # the sanitizer reserves more than that for itself
            with self.subTest(key=key):
                result = self.doctor(preexec_fn=limited(which, value))
                self.assertFalse(self.rows(result)[key]["works"], str(result))
        if os.geteuid() != 0:  # root may lock as much as it likes
            result = self.doctor(preexec_fn=limited(resource.RLIMIT_MEMLOCK, 4096))
            self.assertFalse(self.rows(result)["locked_memory"]["works"], str(result))

    def test_temporary_folder_that_is_not_there(self):
        self.environment["TMPDIR"] = "/no/such/folder"
        self.assertFalse(self.rows(self.doctor())["temporary_space"]["works"])

    def test_one_processor(self):
        result = self.doctor("taskset", "-c", str(min(os.sched_getaffinity(0))))
        self.assertFalse(self.rows(result)["processors"]["works"], str(result))
        self.assertIn("1 to be used", self.rows(result)["processors"]["detail"], str(result))


class Run(MachineTest):
    def virtual(self, result):
        return result.report["run"]["virtual_time"]

    def test_without_fixed_addresses_nothing_is_called_repeatable(self):
        for what in ("personality=EPERM", "personality=ENOSYS", "personality=0"):
            with self.subTest(what=what):
                result = self.pingpong(WITHOUT, what)
                virtual = self.virtual(result)
                self.assertFalse(virtual["deterministic"], str(virtual))
                self.assertTrue(virtual["address_randomisation"], str(virtual))
                self.assertIn("fixed addresses (personality", virtual["machine_lacks"])
                self.assertIn(LACKS, result.errors, str(result))
                self.assertNotIn(SAME, result.errors, str(result))

    def test_without_single_stepping_nothing_is_called_repeatable(self):
        virtual = self.virtual(result := self.pingpong(WITHOUT, "sigtrap=EPERM"))
        self.assertFalse(virtual["deterministic"], str(virtual))
        self.assertIn("single-stepping", virtual["machine_lacks"])
        self.assertNotIn(SAME, result.errors, str(result))

    def test_without_reach_into_processes_a_run_says_so_and_works(self):
        result = self.pingpong(WITHOUT, REACH)
        self.assertIn("reading another process's memory (process_vm_readv: Function not implemented)", result.errors)
        self.assertTrue(self.virtual(result)["deterministic"], str(result))

    def test_without_tracing_a_run_is_as_ever(self):
        result = self.pingpong(WITHOUT, "ptrace=EPERM")
        self.assertNotIn("tracing", result.errors, str(result))
        self.assertTrue(self.virtual(result)["deterministic"], str(result))

    def test_without_trap_of_the_counter_a_run_says_so(self):
        for what in ("tsc=0", "tsc=EPERM"):
            with self.subTest(what=what):
                result = self.pingpong(WITHOUT, what)
                self.assertIn("trap of the time stamp counter", result.errors, str(result))

    def test_without_shared_memory_files_it_refuses(self):
        for what, reason in (("memfd_create=ENOSYS", "Function not implemented"), ("memfd_create=EPERM", "Operation not permitted")):
            with self.subTest(what=what):
                result = self.pingpong(WITHOUT, what, status=EXIT_SIMULATOR)
                self.assertIn(f"nothing can run: this machine lacks sealed memory files (memfd_create: {reason})", result.errors)
                self.assertEqual(result.output, "", "no program was started")

    def test_quiet_run_says_nothing(self):
        result = self.pingpong(WITHOUT, REACH, options=["--quiet"])
        self.assertEqual(result.errors, "", str(result))

    def test_few_descriptors(self):
        result = self.pingpong(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        self.assertTrue(self.virtual(result)["deterministic"], str(result))
        result = self.pingpong(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24)), status=EXIT_SIMULATOR)
        self.assertIn("open files (24 in a process: too few)", result.errors, str(result))

    def test_one_processor(self):
        first = self.pingpong()
        with open(first.pcap, "rb") as stream:
            capture = stream.read()
        second = self.pingpong("taskset", "-c", str(min(os.sched_getaffinity(0))))
        with open(second.pcap, "rb") as stream:
            self.assertEqual(stream.read(), capture)
        self.assertTrue(self.virtual(second)["deterministic"], str(second))

    def test_no_shared_memory_folder(self):
        prefix = no_shared_memory()
        if not prefix:
            self.skipTest("no mount namespaces for this user")
        self.assertFalse(self.rows(self.doctor(*prefix))["shared_memory"]["works"])
        self.pingpong(*prefix)


if __name__ == "__main__":
    if not shutil.which("taskset") or not os.access(WITHOUT, os.X_OK):
        print(f"taskset and {WITHOUT} are needed")
        sys.exit(1)
    runs.main()
