#!/usr/bin/python3
"""Programs as real life builds them: other libraries' hooks, constructors, sanitizers, paths, names, addresses and files.

Each is built here from test/system/programs/small, because how it is built is what matters."""

import os
import re
import shutil
import subprocess
import sys

import runs

SOURCES = os.path.join(runs.ROOT, "test", "system", "programs", "small")
DEVICE = "/sys/class/infiniband/rnicsim0"
EPOCH_S = 1700000000  # configs/host/generic.yaml
REAL_VERBS = "/usr/lib/x86_64-linux-gnu/libibverbs.so.1"


def compiler_has(compiler, sanitizer):
    """Whether the compiler is here with this sanitizer's runtime."""
    if not shutil.which(compiler):
        return False
    return subprocess.run([compiler, f"-fsanitize={sanitizer}", "-x", "c", "-", "-o", "/dev/null"], input="int main(void){return 0;}",
                          text=True, capture_output=True, check=False).returncode == 0


class Programs:
    """The tests; each runs by both clocks."""

    def build(self, name, *flags, compiler="gcc", output=None):
        path = os.path.join(self.folder, output or name)
        done = subprocess.run([compiler, "-g", os.path.join(SOURCES, name + ".c"), "-o", path, *flags, "-libverbs", "-lpthread"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def lines(self, *commands, **options):
        result = self.run_hosts(*commands, capture=False, **options)
        return result, result.output.splitlines()

    def test_threads_that_block_signals_lose_nothing(self):
        result, lines = self.lines(self.build("blocks_signals"))
        self.assertEqual(lines, ["nothing lost"], str(result))

    def test_an_ordinary_users_threads_lose_nothing(self):
        # The kernel keeps nobody from writing for such a user: memory stays where it is.
        program, user = self.build("blocks_signals"), runs.ordinary_user()
        if user:
            os.chown(self.folder, runs.NOBODY, runs.NOBODY)
        environment = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
        result = self.execute([*user, *self.arguments(program, capture=False)], env={**environment, "HOME": self.folder})
        self.assertEqual((result.status, result.output), (0, "nothing lost\n"), str(result))

    def test_hooks_of_mremap_and_munmap(self):
        result, lines = self.lines(self.build("hooks_mremap", "-rdynamic"))
        self.assertEqual(lines, ["registered, 0 unmappings seen"], str(result))

    def test_constructors_of_libraries_are_in_the_run(self):
        self.build("loads_early_lib", "-shared", "-fPIC", output="libearly.so")
        program = self.build("loads_early", f"-L{self.folder}", "-learly", f"-Wl,-rpath,{self.folder}")
        result, lines = self.lines(program, program)
        for number, line in enumerate(sorted(lines, key=lambda text: text[-1])):
            self.assertRegex(line, rf"^\d+ same clock host{number}$", str(result))
            self.assertEqual(line.startswith(f"{EPOCH_S} "), not self.CLOCK, str(result))

    def test_every_way_to_ask_the_hosts_name(self):
        program = self.build("asks_its_name")
        result, lines = self.lines("true", program)
        ways = ("gethostname", "uname", "SYS_uname", "proc", "getaddrinfo", "getnameinfo", "gethostbyname", "gethostbyname_r",
                "gethostbyaddr")
        self.assertEqual([line.split()[:2] for line in lines], [[way, "host1"] for way in ways], str(result))
        self.assert_output(result, r"^getaddrinfo host1 10\.0\.0\.2$")

    def test_a_path_to_the_distributions_libraries_does_not_win(self):
        folder = os.path.dirname(REAL_VERBS)
        program = self.build("lists_devices", f"-Wl,--disable-new-dtags,-rpath,{folder}")
        result, lines = self.lines(program, f"LD_LIBRARY_PATH={folder} {program}")
        self.assertEqual(lines.count("1 devices"), 2, str(result))
        self.assertNotIn("has loaded", result.errors, str(result))

    def test_a_program_that_loads_another_verbs_library_is_told(self):
        program = self.build("lists_devices")
        result, lines = self.lines(f"{program} {REAL_VERBS}")
        self.assertEqual(lines, [f"0 devices by {REAL_VERBS}"], str(result))
        self.assertRegex(result.errors, rf"lists_devices: this program has loaded \S*libibverbs\.so\.1\S*, too", str(result))

    def test_sanitized_programs_run(self):
        if runs.SANITIZED:
            self.skipTest("our own libraries carry a sanitizer")

        def sanitized(compiler, sanitizer):
            if compiler != "gcc" and not compiler_has(compiler, sanitizer):
                print(f"not tried: {compiler} -fsanitize={sanitizer} is not here", file=sys.stderr)
                return
            program = self.build("registers_beside", f"-fsanitize={sanitizer}", compiler=compiler)
            result, lines = self.lines(program)
            self.assertEqual(lines, ["ok"], str(result))
            self.assertNotRegex(result.errors, "Sanitizer|Warning", str(result))

        rows = [(compiler, sanitizer) for compiler in ("gcc", "clang") for sanitizer in ("address", "undefined", "leak", "thread")]
        if not self.CLOCK:
            rows.remove(("clang", "thread"))  # docs/virtual-time.md: its runtime waits by bare system calls
        self.each_of(rows, sanitized)

    def test_a_hosts_own_address_is_one_that_peers_reach(self):
        program, file = self.build("tells_its_address"), os.path.join(self.folder, "address")
        result, lines = self.lines("true", f"{program} server {file}", f"{program} client {file}")
        self.assertEqual(sorted(lines), ["connected to 10.0.0.2", "rnic0 is 10.0.0.2, number 2"], str(result))

    def test_a_device_has_its_files(self):
        result, lines = self.lines(self.build("lists_devices"))
        self.assertEqual(lines, ["1 devices", "/dev/infiniband/uverbs0: character device 231:192", f"{DEVICE}: there"], str(result))

    def test_shells_and_their_children_read_the_files(self):
        checks = [
            (f"cat {DEVICE}/ports/1/gids/0", "0000:0000:0000:0000:0000:ffff:0a00:0002"),
            (f"cat {DEVICE}/ports/1/gid_attrs/types/0", "RoCE v2"),
            (f"cat {DEVICE}/ports/1/gid_attrs/ndevs/1", "rnic0"),
            (f"cat {DEVICE}/ports/1/state", "4: ACTIVE"),
            (f"cat {DEVICE}/ports/1/link_layer", "Ethernet"),
            (f"cat /sys/class/infiniband/*/ports/1/rate", "100 Gb/sec (4X EDR)"),
            (f"cd {DEVICE}/ports && cat 1/pkeys/0 && pwd", f"0xffff {DEVICE}/ports"),
            (f"cd {DEVICE}/ports && /bin/pwd -P", "/sys/devices/pci1000:00/1000:00:00.0/infiniband/rnicsim0/ports"),
            (f"echo {DEVICE}/p*", f"{DEVICE}/ports"),
            ("ls /sys/class/infiniband /sys/class/infiniband_verbs", "/sys/class/infiniband: rnicsim0  /sys/class/infiniband_verbs: "
             "abi_version uverbs0"),
            ("ls /sys/class/net", "lo rnic0"),
            ("ls /dev/infiniband", "uverbs0"),
            ("cat /sys//class/./net/rnic0/address", "02:00:00:00:00:02"),
            ("cat /sys/class/infiniband_verbs/uverbs0/ibdev", "rnicsim0"),
            (f"realpath {DEVICE}/device", "/sys/devices/pci1000:00/1000:00:00.0"),
            (f"readlink {DEVICE}/device", "../../../1000:00:00.0"),
            (f"ls {DEVICE}/device/net", "rnic0"),
            ("stat -c '%F %t:%T' /dev/infiniband/uverbs0", "character special file e7:c0"),
            (f"test -e {DEVICE}/no_such_file; echo $?", "1"),
            ("uname -n", "host1"),
        ]
        script = os.path.join(self.folder, "look.sh")
        with open(script, "w", encoding="utf-8") as stream:
            stream.write("".join(f"({command}) 2>&1 | tr '\\n' ' ' | sed 's/ $//'; echo\n" for command, _ in checks))
        result, lines = self.lines("true", f"sh {script}")
        self.assertEqual(lines, [expected for _, expected in checks], str(result))

    def test_outside_the_tree_nothing_changes(self):
        result, lines = self.lines("ls -d /sys/class/infiniband_nothing /proc/self/status /dev/null 2>/dev/null; true")
        self.assertEqual(lines, ["/dev/null", "/proc/self/status"], str(result))

    def test_the_files_go_with_the_run(self):
        runtime = os.path.join(self.folder, "runtime")
        os.mkdir(runtime)
        result = self.execute(self.arguments(f"cat {DEVICE}/node_type", capture=False, report=False),
                              env={**os.environ, "XDG_RUNTIME_DIR": runtime})
        self.assertEqual(result.output, "1: CA\n", str(result))
        folders = os.path.join(runtime, "rnicsim")  # what begins with a dot is the launcher's own lock
        left = [name for name in os.listdir(folders) if not name.startswith(".")]
        self.assertEqual(left, [])


class InVirtualTime(Programs, runs.SystemTest):
    pass


class InFreeRun(Programs, runs.SystemTest):
    CLOCK = ("--free-run",)


if __name__ == "__main__":
    runs.main()
