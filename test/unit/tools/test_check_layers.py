#!/usr/bin/python3
"""tools/check_layers finds each kind of forbidden include."""

import os
import subprocess
import tempfile
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))


def complaints(files):
    """What check_layers says about a tree of {path: text}."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as stream:
                stream.write(text)
        run = subprocess.run([os.path.join(ROOT, "tools", "check_layers"), root], capture_output=True, text=True, check=False)
        return run.returncode, run.stdout


class Layers(unittest.TestCase):
    def expect(self, files, text):
        code, output = complaints(files)
        self.assertEqual((code, text in output), (1, True), output)

    def test_legal_includes_pass(self):
        code, output = complaints({
            "model/base/bits.h": "#include <stdint.h>\nint a;\n",
            "model/sim/fifo.h": '#include "base/bits.h"\nint b;\n',
            "model/nic/msg/dma.h": '#include "sim/fifo.h"\nint c;\n',
            "model/nic/dma/dma.h": '#include "nic/msg/dma.h"\nint d;\n',
            "model/nic/dma/dma.c": '#include "nic/dma/dma.h"\n/* #include "nic/sched/sched.h" */\n',
            "host-shim/driver/driver.c": '#include "sim/fifo.h"\n',
        })
        self.assertEqual(code, 0, output)

    def test_upward_include(self):
        self.expect({"model/base/a.h": '#include "sim/b.h"\nint a;\n', "model/sim/b.h": "int b;\n"},
                    "model/base/a.h:1: base may not include sim")

    def test_block_includes_block(self):
        self.expect({"model/nic/dma/dma.c": '#include "nic/sched/sched.h"\n', "model/nic/sched/sched.h": "int s;\n"},
                    "nic/dma may not include nic/sched")

    def test_client_side_includes_the_model(self):
        self.expect({"host-shim/verbs/qp.c": '#include "sim/fifo.h"\n', "model/sim/fifo.h": "int f;\n"},
                    "verbs may not include sim")

    def test_dots(self):
        self.expect({"model/sim/a.c": '#include "../base/b.h"\n'}, "no ../")

    def test_path_without_layer(self):
        self.expect({"model/sim/a.c": '#include "fifo.h"\n'}, "starts at its layer")

    def test_missing_header(self):
        self.expect({"model/sim/a.c": '#include "base/none.h"\n'}, "no such file")

    def test_circle(self):
        self.expect({"model/sim/a.h": '#include "sim/b.h"\nint a;\n', "model/sim/b.h": '#include "sim/a.h"\nint b;\n'},
                    "circle")

    def test_umbrella(self):
        self.expect({"model/sim/all.h": '#ifndef A\n#define A\n#include "sim/a.h"\n#include "sim/b.h"\n#endif\n',
                     "model/sim/a.h": "int a;\n", "model/sim/b.h": "int b;\n"}, "umbrella")


if __name__ == "__main__":
    unittest.main()
