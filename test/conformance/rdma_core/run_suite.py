#!/usr/bin/python3
"""Runs rdma-core's own tests (pyverbs) and writes what became of each, as it happens.

Usage: run_suite.py SUITE OUTCOMES SEED [TEST...]

SUITE is the folder above rdma-core's tests/, OUTCOMES a file that gets a line for each test: its name when it
starts, then ok, skipped, failure or error and the reason. The tests draw sizes, PSNs and GIDs by chance: each
starts from the seed and its own name, so that what it does depends on nothing else."""

import os
import random
import sys
import unittest

suite, outcomes_path, seed = sys.argv[1:4]
names = sys.argv[4:]
sys.argv[1:] = ["--dev", "rnicsim0"]
sys.path[:0] = [os.path.join(suite, "tests"), suite, os.path.dirname(os.path.abspath(__file__))]

from args_parser import parser  # noqa: E402  pylint: disable=import-error,wrong-import-position

parser.parse_args()


class Outcomes(unittest.TestResult):
    """Writes each outcome at once: a crash must not hide what went before."""

    def __init__(self):
        super().__init__()
        self.stream = open(outcomes_path, "w", encoding="utf-8")  # pylint: disable=consider-using-with

    def note(self, word, detail=""):
        self.stream.write(f"{word}\t{detail}\n")
        self.stream.flush()

    def startTest(self, test):
        super().startTest(test)
        random.seed(f"{seed} {test.id()}")
        self.note("start", test.id())

    def addSuccess(self, test):
        self.note("ok")

    def addSkip(self, test, reason):
        self.note("skipped", reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note("failure", repr(self.failures[-1][1]))

    def addError(self, test, err):
        super().addError(test, err)
        self.note("error", repr(self.errors[-1][1]))


loader = unittest.TestLoader()
if names:
    tests = loader.loadTestsFromNames(names)
else:
    tests = unittest.TestSuite([loader.discover(os.path.join(suite, "tests"), top_level_dir=suite),
                                loader.loadTestsFromName("rc_tests")])
tests.run(Outcomes())
