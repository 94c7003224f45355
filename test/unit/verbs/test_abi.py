"""The library exports the symbols and versions of the distribution's, as far as anybody needs them."""

import glob
import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.path.join(os.environ["RN_BUILD_DIR"], "lib", "libibverbs.so.1")


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True,
                          text=True).stdout


def exported(path):
    """{symbol with version: type} of what @path defines."""
    found = {}
    for line in readelf("--dyn-syms", path).splitlines():
        field = line.split()
        if len(field) < 8 or field[4] not in ("GLOBAL", "WEAK") or field[6] == "UND":
            continue
        if field[6] != "ABS" and "@" in field[7]:
            found[field[7]] = field[3]
    return found


def listed():
    with open(os.path.join(HERE, "abi.txt"), encoding="ascii") as file:
        return dict(line.split() for line in file if not line.startswith("#"))


class Abi(unittest.TestCase):
    def test_exports_are_exactly_the_list(self):
        self.assertEqual(exported(LIBRARY), listed())

    def test_counts_are_those_of_the_interface(self):
        versions = [name.split("@@")[1] for name in listed()]
        self.assertEqual(versions.count("IBVERBS_PRIVATE_34"), 62)
        self.assertEqual(len(versions) - 62, 75)

    def test_list_agrees_with_the_distributions_library(self):
        theirs = glob.glob("/usr/lib/*/libibverbs.so.1")
        if not theirs:
            self.skipTest("the distribution's library is not installed")
        have = exported(theirs[0])
        for name, kind in listed().items():
            self.assertEqual(have.get(name), kind, name)

    def test_soname_and_nodelete(self):
        dynamic = readelf("-d", LIBRARY)
        self.assertRegex(dynamic, r"SONAME.*\[libibverbs\.so\.1\]")
        self.assertRegex(dynamic, r"FLAGS_1.*NODELETE")

    def test_programs_symbols_are_all_there(self):
        names = set(exported(LIBRARY))
        for program in ("/usr/bin/ib_write_bw", "/usr/bin/ib_send_lat", "/usr/bin/ibv_devinfo",
                        "/usr/bin/ibv_rc_pingpong"):
            if not os.path.exists(program):
                continue
            for line in readelf("--dyn-syms", program).splitlines():
                match = re.search(r"UND (\S+)@(IBVERBS_\S+)", line)
                if match:
                    self.assertIn(f"{match[1]}@@{match[2]}", names, program)


class Loading(unittest.TestCase):
    """Without a simulator programs say what they say on a machine without NIC."""

    def setUp(self):
        if os.path.exists("/sys/class/infiniband_verbs"):
            self.skipTest("this machine has RDMA devices")

    def run_both(self, command):
        env = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "RNICSIM_SOCKET")}
        with_ours = dict(env, LD_LIBRARY_PATH=os.path.dirname(LIBRARY))
        return [subprocess.run(command, env=e, capture_output=True, text=True, timeout=60)
                for e in (with_ours, env)]

    def assert_same(self, *command):
        if not os.path.exists(command[0]):
            self.skipTest(command[0] + " is not installed")
        ours, theirs = self.run_both(command)
        self.assertEqual((ours.returncode, ours.stdout, ours.stderr),
                         (theirs.returncode, theirs.stdout, theirs.stderr))

    def test_ibv_devices(self):
        self.assert_same("/usr/bin/ibv_devices")

    def test_ibv_devinfo(self):
        self.assert_same("/usr/bin/ibv_devinfo", "-v")

    def test_ibv_rc_pingpong(self):
        self.assert_same("/usr/bin/ibv_rc_pingpong")

    def test_perftest(self):
        self.assert_same("/usr/bin/ib_write_bw")
        self.assert_same("/usr/bin/ib_send_lat", "--version")

    def test_pyverbs(self):
        code = ("import pyverbs.device, pyverbs.qp, pyverbs.cq, pyverbs.mr\n"
                "try: pyverbs.device.get_device_list()\n"
                "except Exception as e: print(e)\n")
        self.assert_same("/usr/bin/python3", "-c", code)

    def test_load_and_unload_again_and_again(self):
        code = ("import ctypes, _ctypes\n"
                f"for i in range(3): _ctypes.dlclose(ctypes.CDLL({LIBRARY!r})._handle)\n")
        subprocess.run(["/usr/bin/python3", "-c", code], check=True, timeout=60)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
