#!/usr/bin/python3
"""Units as RTL and in lockstep: the same bytes and results as the model's; choosing, recording, waveforms."""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import runs  # noqa: E402

UNITS = ("doorbell", "pte_cache")
ALL = {mode: ",".join(f"{unit}={mode}" for unit in UNITS) for mode in ("model", "rtl", "lockstep")}
PINGPONG = "ibv_rc_pingpong -g 0 -n 50 -p {port}"
VIRTUAL = ["--virtual-time", "--quiet"]
# Programs whose runs in virtual time are compared to the byte.
PROGRAMS = [PINGPONG, "ib_send_lat -F -n 50 -p {port}", "ib_write_bw -F -n 100 -q 4 -s 4096 -p {port}"] + (
    ["ib_read_bw -F -n 100 -s 65536 -p {port}", "ib_send_bw -F -n 300 -s 64 -p {port}", "ib_read_lat -F -n 50 -p {port}",
     "ib_write_lat -F -n 50 -p {port}", "ibv_rc_pingpong -g 0 -n 50 -e -p {port}"] if runs.LONG else [])
# Two NICs under the scripted host, in simulated time alone.
SCRIPTED = [
    "--op write --bytes 4096 --count 200 --qps 4 --depth 8",
    "--op read --bytes 65536 --count 20 --qps 2 --depth 4",
    "--op send --bytes 64 --count 300 --qps 8 --depth 16",
    "--op write --bytes 64 --inline --blueflame --order 0,0,0",
]


def stress_sets():
    """Settings of the stress geometries, as rtl/*/sources.cmake has them."""
    sets = []
    for unit in UNITS:
        with open(os.path.join(runs.ROOT, "rtl", unit, "sources.cmake"), encoding="ascii") as stream:
            row = re.search(r"_PARAMS_stress\s([^)]*)\)", stream.read())[1]
        for name, value in re.findall(r"(\w+)=(\d+)", row):
            key = re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()
            sets.append(f"hosts.*.nic.{unit}.{key}={'true' if key == 'recover' and value == '1' else value}")
    return [one for one in sets if not one.endswith("recover=0")]


def read(path):
    with open(path, "rb") as stream:
        return stream.read()


class SameAsTheModel(runs.SystemTest):
    def virtual(self, command, mode):
        """(frames, result, program output), and the part of the report that tells how it was simulated."""
        result = self.run_hosts(command, command + " localhost", options=[*VIRTUAL, "--unit", ALL[mode]], raw=False, timeout=300)
        report = result.report
        self.assertTrue(report["run"]["virtual_time"]["deterministic"], str(report["run"]) + str(result))
        text = sorted(line for line in result.output.splitlines() if "port" not in line.lower())
        return (read(result.pcap), json.dumps(report["result"], sort_keys=True), text), report["run"]

    def test_programs(self):
        for command in PROGRAMS:
            with self.subTest(command=command):
                expected, run = self.virtual(command, "model")
                self.assertEqual(run["units"], {})
                for mode in ("rtl", "lockstep"):
                    got, run = self.virtual(command, mode)
                    for what, (mine, models) in zip(("capture", "result", "output"), zip(got, expected)):
                        self.assertTrue(mine == models, f"{what} differs in {mode}: {command}")
                    self.check_run(run, mode)

    def check_run(self, run, mode):
        self.assertEqual(set(run["units"]), {f"host{host}.nic0.{unit}" for host in (0, 1) for unit in UNITS})
        for name, unit in run["units"].items():
            self.assertEqual((unit["mode"], unit["geometry"]), (mode, "shipped"), name)
            self.assertGreater(unit["rtl_evaluations"], 0, name)
            self.assertEqual((unit["rtl"], unit["rtl_is"]), ("rn_" + name.rsplit(".", 1)[1], "rnicsim's"), name)
            self.assertRegex(unit["rtl_sources"], "^[0-9a-f]{12}$", name)
            # there is no C block in rtl
            self.assertEqual(unit["model_ticks"] == 0, mode == "rtl", name)

    def scripted(self, options, mode, sets):
        paths = [os.path.join(self.folder, name) for name in ("report.json", "lookup.csv", "tlp.csv")]
        sets = sets + [f"hosts.*.nic.unit.{unit}={mode}" for unit in UNITS]
        result = self.execute([runs.program("scripted_run"), *[word for one in sets for word in ("--set", one)], *options.split(),
                               "--report", paths[0], "--lookup-log", paths[1], "--tlp-log", paths[2]])
        self.assertEqual(result.status, 0, str(result))
        tlps = read(paths[2])
        if "--blueflame" in options:
            # the scripted host writes whatever lies behind the WQE in its last 64 bytes
            tlps = re.sub(rb",mmio,ok,\w+", b"", tlps)
        return json.loads(read(paths[0]))["result"], read(paths[1]), tlps, result.output

    def test_scripted_hosts_to_the_picosecond(self):
        for sets in ([], stress_sets()):
            for options in SCRIPTED:
                with self.subTest(options=options, sets=bool(sets)):
                    expected = self.scripted(options, "model", sets)
                    for mode in ("rtl", "lockstep"):
                        for what, mine, models in zip(("result", "lookups", "TLPs", "output"),
                                                      self.scripted(options, mode, sets), expected):
                            self.assertTrue(mine == models, f"{what} differ in {mode}")


class Choosing(runs.SystemTest):
    def refused(self, *options, command="true"):
        result = self.run_hosts(command, status=2, options=options, capture=False, report=False)
        return result.errors

    def show(self, *options, verb="show"):
        result = self.execute([runs.RNICSIM, "config", verb, *options])
        self.assertEqual(result.status, 0, str(result))
        return result.output

    def test_wrong_names_and_values(self):
        self.assertIn("doorbell and pte_cache", self.refused("--unit", "dma=rtl"))
        self.assertIn("model, rtl, lockstep", self.refused("--unit", "pte_cache=verilog"))
        self.assertIn("UNIT=", self.refused("--unit", "pte_cache"))
        self.assertIn("host0", self.refused("--unit", "nic1:pte_cache=rtl"))
        self.assertIn("pte_cache", self.refused("--set", "hosts.*.nic.unit.pte_cach=rtl"))
        self.assertIn("lockstep", self.refused("--set", "hosts.*.nic.unit.pte_cache=both"))

    def test_geometry_that_is_not_there(self):
        errors = self.refused("--unit", "pte_cache=rtl", "--set", "hosts.0.nic.pte_cache.mpt_sets=64")
        for part in ("hosts.0.nic.unit.pte_cache", "shipped", "stress", 'RN_GEOMETRY_PTE_CACHE="MptSets=64"', "cmake"):
            self.assertIn(part, errors)

    def test_one_host_of_two(self):
        result = self.run_pair(PINGPONG, options=["--unit", "host1:pte_cache=lockstep,host0:doorbell=rtl"])
        self.assertEqual({name: unit["mode"] for name, unit in result.report["run"]["units"].items()},
                         {"host1.nic0.pte_cache": "lockstep", "host0.nic0.doorbell": "rtl"})

    def test_show_has_it_and_the_hash_has_not(self):
        shown = self.show("--unit", "host1:pte_cache=lockstep")
        self.assertIn("pte_cache: lockstep", shown)
        self.assertIn("pte_cache: model", shown)
        check = [self.show("--unit", ALL[mode], verb="check") for mode in ALL]
        self.assertEqual(len(set(check)), 1, str(check))
        other = self.show("--set", "hosts.0.nic.pte_cache.mpt_sets=64", verb="check")
        self.assertNotEqual(check[0], other)

    def test_by_configuration_file(self):
        path = os.path.join(self.folder, "mine.yaml")
        with open(path, "w", encoding="ascii") as stream:
            stream.write("hosts:\n  - count: 2\n    nic:\n      unit: {pte_cache: rtl, doorbell: lockstep}\n")
        result = self.run_pair(PINGPONG, options=["-c", path])
        self.assertEqual(result.report["run"]["units"]["host0.nic0.pte_cache"]["mode"], "rtl")
        self.assertEqual(result.report["run"]["units"]["host1.nic0.doorbell"]["mode"], "lockstep")


class Looking(runs.SystemTest):
    @unittest.skipUnless(shutil.which("fst2vcd"), "gtkwave's fst2vcd is not installed")
    def test_waveform_of_all_fifos(self):
        path = os.path.join(self.folder, "all.fst")
        result = self.run_pair("ibv_rc_pingpong -g 0 -n 5 -p {port}", options=["--fst", path])
        vcd = subprocess.run(["fst2vcd", path], capture_output=True, text=True, timeout=60, check=True).stdout
        self.assertIn("module dma_req0", vcd)
        signals = signals_of(vcd)
        fifos = result.report["result"]["hosts"][0]["nic"]["fifos"]
        for name in ("pte_req0", "sq_ring", "dma_rsp1"):
            levels = signals[f"host0.nic0.{name}.occupancy"]
            rises = sum(max(0, later - sooner) for sooner, later in zip(levels, levels[1:]))
            # what enters while something leaves changes nothing
            self.assertGreater(rises, fifos[name]["pushes"] // 2, name)
            self.assertEqual(levels[-1], 0, name)
            self.assertEqual(signals[f"host0.nic0.{name}.valid"][-1], 0, name)
        self.assertEqual(signals["host0.nic0.sq_ring.pi"][-1] & 0xffff, signals["host0.nic0.sq_ring.pi"][-1])

    def test_recordings_replay_into_the_stand_alone_benches(self):
        for unit in UNITS:
            for mode in ("model", "rtl"):
                path = os.path.join(self.folder, f"{unit}.txt")
                self.run_pair(PINGPONG, options=["--record-unit", f"{unit}={path}", "--unit", f"{unit}={mode}"])
                lines = read(path).decode().splitlines()
                self.assertEqual(lines[0], f"unit {unit}")
                self.assertGreater(sum(line.startswith("in ") for line in lines), 50)
                result = self.execute([runs.program(f"cosim_{unit}"), "--geometry", "shipped", "--replay", path])
                self.assertEqual(result.status, 0, str(result))


def signals_of(vcd):
    """Name of every signal -> its values in order of time."""
    names, scope, values = {}, [], {}
    for line in vcd.splitlines():
        words = line.split()
        if line.startswith("$scope"):
            scope.append(words[2])
        elif line.startswith("$upscope"):
            scope.pop()
        elif line.startswith("$var"):
            names[words[3]] = ".".join(scope + [words[4]])
        elif line.startswith("b"):
            values.setdefault(names[words[1]], []).append(int(words[0][1:].replace("x", "0"), 2))
        elif line[:1] in ("0", "1") and line[1:] in names:
            values.setdefault(names[line[1:]], []).append(int(line[0]))
    return values


if __name__ == "__main__":
    runs.main()
