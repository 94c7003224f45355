#!/usr/bin/python3
"""After any change of sources, ports or geometry one build makes a program that runs what was asked for."""

import os
import re
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", "..", ".."))
RTL = os.path.join(ROOT, "rtl", "doorbell")
SMALL = "MaxQps=16 FifoEntries=4"


def our_sources():
    with open(os.path.join(RTL, "sources.cmake"), encoding="ascii") as stream:
        return [os.path.join(RTL, name) for name in re.findall(r"(rn_\w+\.sv)", stream.read())]


def wrapper(reverse, extra="", width=None):
    """A module around rn_doorbell with its ports, in another order; @width: of the port cq_ring_o, in bits."""
    with open(os.path.join(RTL, "rn_doorbell.sv"), encoding="ascii") as stream:
        head = re.search(r"module rn_doorbell #\((.*?)\n\) \((.*?)\n\);", stream.read(), re.DOTALL)
    ports = [line.strip().rstrip(",") for line in re.sub(r"//[^\n]*", "", head[2]).splitlines() if line.strip()]
    if reverse:
        ports.reverse()
    names = [port.split()[-1] for port in ports]
    wires = [f".{name}({name})" for name in names]
    if width:
        ports = [f"output logic [{width - 1}:0] cq_ring_o" if port.endswith(" cq_ring_o") else port for port in ports]
    params = re.findall(r"parameter int unsigned (\w+)", head[1])
    declared = re.sub(r"//[^\n]*", "", head[1])
    return (f"module my_doorbell #({declared}) (\n  " + ",\n  ".join(ports) + "\n);\n" + extra +
            "  rn_doorbell #(" + ", ".join(f".{name}({name})" for name in params) + ") u_theirs (\n    " +
            ",\n    ".join(wires) + "\n  );\nendmodule\n")


class OneBuild(unittest.TestCase):
    """One build folder, in which one change follows the other."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="rnicsim-build-")
        self.addCleanup(self.folder.cleanup)
        self.build = os.path.join(self.folder.name, "build")
        self.own = os.path.join(self.folder.name, "my_doorbell.sv")
        self.asked = None

    def write(self, name, text):
        with open(os.path.join(self.folder.name, name), "w", encoding="ascii") as stream:
            stream.write(text)

    def run_command(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}\n{done.stderr}")

    def probe(self, top, params, is_own):
        """Configure where something else is asked for, build once, run."""
        asked = [f"-DTOP={top}", f"-DPARAMS={params}", "-DSOURCES=" + ";".join(our_sources() + [self.own] * is_own)]
        if asked != self.asked:
            self.run_command("cmake", "-G", "Ninja", "-S", os.path.join(HERE, "project"), "-B", self.build, f"-DRN_ROOT={ROOT}",
                             "-DRN_PYTHON=/usr/bin/python3", *asked)
            self.asked = asked
        self.run_command("cmake", "--build", self.build)
        return subprocess.run([os.path.join(self.build, "probe")], capture_output=True, text=True, check=False, timeout=60)

    def check(self, top, cycles, params=SMALL, is_own=True):
        done = self.probe(top, params, is_own)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)
        self.assertRegex(done.stdout[-2000:], rf"^{top} [0-9a-f]{{12}}: 0x43494e52 after {cycles} cycles$")
        return done.stdout.split()[1]

    def test_what_was_asked_for_runs(self):
        ours = self.check("rn_doorbell", 8, is_own=False)
        # geometry
        self.assertEqual(self.check("rn_doorbell", 3, SMALL + " ReadLatencyCycles=3", is_own=False), ours)
        # an own implementation, and its ports in another order
        self.write("my_doorbell.sv", wrapper(reverse=False))
        own = self.check("my_doorbell", 8)
        self.write("my_doorbell.sv", wrapper(reverse=True))
        self.assertNotEqual(own, ours)
        self.assertNotEqual(self.check("my_doorbell", 8), own)
        # a file that it includes from beside itself
        self.write("my_doorbell.sv", '`include "mine.svh"\n' + wrapper(reverse=True).replace(
            ".ReadLatencyCycles(ReadLatencyCycles)", ".ReadLatencyCycles(`MINE)"))
        self.write("mine.svh", "`define MINE 5\n")
        self.check("my_doorbell", 5)
        self.write("mine.svh", "`define MINE 6\n")
        self.check("my_doorbell", 6)
        # a port of another width, one that Verilator holds in as many bytes
        self.write("my_doorbell.sv", wrapper(reverse=False, width=110))
        done = self.probe("my_doorbell", SMALL, True)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("RTL my_doorbell: port cq_ring_o is 110 bits wide, the unit's boundary has 112", done.stderr)


if __name__ == "__main__":
    unittest.main()
