#!/usr/bin/python3
"""rdma-core's own conformance suite, from Debian's python3-pyverbs, on a simulated NIC.

Both sides of each of its tests run in one process, so its packets go through the NIC's loopback. The tests in
rdma_core/must_pass.txt must pass; others may fail or be skipped, which most are for want of a feature, but must not
crash or hang. `test_pyverbs.py --list` prints what becomes of each."""

import gzip
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import runs  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGED = "/usr/share/doc/rdma-core/tests"
SEEDS = range(1, 9) if runs.LONG else (1,)


def unpack(folder):
    """The suite as a package `tests` in the folder; Debian ships its larger files compressed."""
    target = os.path.join(folder, "tests")
    os.mkdir(target)
    for name in os.listdir(PACKAGED):
        source = os.path.join(PACKAGED, name)
        if name.endswith(".gz"):
            with gzip.open(source) as packed, open(os.path.join(target, name[:-3]), "wb") as out:
                shutil.copyfileobj(packed, out)
        elif os.path.isfile(source):
            shutil.copy(source, target)


def must_pass():
    with open(os.path.join(HERE, "rdma_core", "must_pass.txt"), encoding="utf-8") as stream:
        return [line.split("#")[0].strip() for line in stream if line.split("#")[0].strip()]


def read_outcomes(path):
    """test -> (outcome, detail); a test without end has the outcome "none"."""
    outcomes, current = {}, None
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            word, detail = line.rstrip("\n").split("\t", 1)
            if word == "start":
                current = detail
            outcomes[current] = ("none", "did not end") if word == "start" else (word, detail)
    return outcomes


class SuiteRun(runs.SystemTest):
    def run_suite(self, seed):
        unpack(self.folder)
        path = os.path.join(self.folder, "outcomes")
        script = os.path.join(HERE, "rdma_core", "run_suite.py")
        result = self.run_hosts(f"cd {self.folder} && /usr/bin/python3 {script} {self.folder} {path} {seed}",
                                capture=False)
        return result, read_outcomes(path)

    def list_outcomes(self):
        """Not a test: what --list does."""
        _, outcomes = self.run_suite(1)
        for name, (word, detail) in sorted(outcomes.items()):
            print(word, name, detail if word != "ok" else "")


class Suite(SuiteRun):
    def test_what_must_pass_passes(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                result, outcomes = self.run_suite(seed)
                wrong = {name: outcomes.get(name, ("none", "was not run")) for name in must_pass()}
                wrong = {name: outcome for name, outcome in wrong.items() if outcome[0] != "ok"}
                self.assertEqual(wrong, {}, str(result))
                self.assertNotIn("none", [word for word, _ in outcomes.values()])
                shutil.rmtree(os.path.join(self.folder, "tests"))

    def test_the_list_names_each_test_once(self):
        self.assertEqual(sorted(set(must_pass())), must_pass())


if __name__ == "__main__":
    if not os.path.isdir(PACKAGED):
        print(f"no {PACKAGED}: python3-pyverbs is not installed")
        sys.exit(77)
    if sys.argv[1:] == ["--list"]:
        sys.argv[1:] = ["SuiteRun.list_outcomes"]
    runs.main()
