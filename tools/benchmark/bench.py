#!/usr/bin/python3
"""Runs the benchmarks of a build folder and prints what tools/bench promises. See tools/bench --help."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import objects
import virtual

MTU = 4096
MIB = 1 << 20
# The line of ib_write_bw's table: bytes, iterations, peak, average in MiB/s, messages.
WRITE_BW_LINE = re.compile(r"^\s*(\d+)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s*$", re.M)
# name: (message bytes, messages, messages of a short run)
PROGRAMS = {"write_bw_64k": (65536, 5000, 500), "write_bw_64": (64, 50000, 2000)}
VIRTUAL_TIME = "virtual_time"
OBJECTS = "objects"
RUN_TIMEOUT_S = 600
# The doorbell unit and the PTE cache as C blocks, as RTL, as both in lockstep.
MODES = ("model", "rtl", "lockstep")


class BenchError(Exception):
    """A run that failed or whose results do not hold."""


def run(command, **kwargs):
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False, **kwargs)
    if done.returncode:
        raise BenchError(f"{command[0]} ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def check(name, result):
    """The ICRC of every frame was computed and fits, and both ends hold the same bytes."""
    if not result["icrc_computed"] == result["icrc_verified"] == result["frames"]:
        raise BenchError(f"{name}: {result['frames']} frames, but {result['icrc_computed']} ICRCs computed and "
                         f"{result['icrc_verified']} verified")
    if len(set(result["payload_hash"])) != 1:
        raise BenchError(f"{name}: the payload differs: {result['payload_hash']}")
    return result


def scripted(build, packets, mode):
    out = run([os.path.join(build, "bin", "scripted_bench"), "--packets", str(packets)], env={**os.environ, "RN_UNIT_MODE": mode})
    return check("scripted", json.loads(out))


def program(build, host, folder, size, messages, peer):
    """ib_write_bw with the hash of its memory region written to folder/host."""
    preload = os.path.join(build, "lib", "bench_hash.so")
    return (f"sh -c 'LD_PRELOAD={preload}:$LD_PRELOAD RN_BENCH_HASH={folder}/{host} "
            f"exec ib_write_bw -s {size} -n {messages} {peer}'")


def payload_hash(folder):
    """[what the sender sent, what the receiver got]; the receiver's buffer held something else before."""
    with open(os.path.join(folder, "1"), encoding="ascii") as stream:
        _, sent, other = stream.read().split()
    with open(os.path.join(folder, "0"), encoding="ascii") as stream:
        _, _, received = stream.read().split()
    if sent == other:
        raise BenchError("the sender's buffer has twice the same bytes: a hash would prove nothing")
    return [sent, received]


def write_bw(build, name, size, messages, mode):
    with tempfile.TemporaryDirectory(prefix="rnicsim-bench-") as folder:
        report_path = os.path.join(folder, "report.json")
        out = run([os.path.join(build, "bin", "rnicsim"), "run", "--free-run", "--raw", "--quiet", "--report", report_path,
                   "--set", "fabric.check_icrc=true", "--unit", f"doorbell={mode},pte_cache={mode}",
                   program(build, 0, folder, size, messages, ""),
                   program(build, 1, folder, size, messages, "localhost")])
        with open(report_path, encoding="utf-8") as stream:
            report = json.load(stream)
        hashes = payload_hash(folder)
    line = WRITE_BW_LINE.search(out)
    if not line:
        raise BenchError(f"{name}: no result in what ib_write_bw printed:\n{out}")
    # In free-run the program's own clock is the wall clock: how long the transfer took, without set-up.
    wall_s = size * messages / (float(line.group(4)) * MIB)
    ports = [port["counters"] for port in report["result"]["fabric"].values()]
    packets = messages * max(1, -(-size // MTU))
    simulated_s = report["result"]["measured"]["active_ps"] / 1e12
    cpu_s = report["run"]["cpu_s"]
    return check(name, {
        "data_packets": packets,
        "message_bytes": size,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "simulated_s": simulated_s,
        "packets_per_wall_s": packets / wall_s,
        "packets_per_cpu_s": packets / cpu_s,
        "cpu_us_per_packet": cpu_s * 1e6 / packets,
        "slow_down": wall_s / simulated_s,
        "simulated_gbps": packets * min(size, MTU) * 8 / 1e9 / simulated_s,
        "wakes_per_packet": report["run"]["wakes"] / packets,
        "peak_memory_bytes": report["run"]["peak_memory_bytes"],
        "frames": sum(port["frames"] for port in ports),
        "icrc_computed": sum(port["icrc_computed"] for port in ports),
        "icrc_verified": sum(port["icrc_verified"] for port in ports),
        "payload_hash": hashes,
    })


def measure(args, name, mode):
    if name == "scripted":
        return scripted(args.build, 5000 if args.short else args.packets, mode)
    size, messages, few = PROGRAMS[name]
    return write_bw(args.build, name, size, few if args.short else messages, mode)


def print_modes(results, modes):
    """Packets a CPU second by mode, and what the model's are a multiple of."""
    print(f"\n{'per CPU s':14}" + "".join(f"{mode:>12}" for mode in MODES) + "   doorbell and pte_cache as")
    for name, model in results.items():
        rates = [model["packets_per_cpu_s"]] + [modes[name][mode]["packets_per_cpu_s"] for mode in MODES[1:]]
        print(f"{name:14}" + "".join(f"{rate:>12.0f}" for rate in rates) +
              "   1 : " + " : ".join(f"{rates[0] / rate:.2f}" for rate in rates[1:]))


def print_table(results):
    print(f"{'':14}{'packets/s':>10}{'per CPU s':>11}{'CPU us':>8}{'slow-down':>11}{'simulated':>12}{'memory':>9}"
          "  ICRCs computed = verified = frames")
    print(f"{'':14}{'(wall)':>10}{'':>11}{'/packet':>8}{'(wall/sim)':>11}{'Gb/s':>12}{'MiB':>9}")
    for name, r in results.items():
        print(f"{name:14}{r['packets_per_wall_s']:>10.0f}{r['packets_per_cpu_s']:>11.0f}{r['cpu_us_per_packet']:>8.2f}"
              f"{r['slow_down']:>11.1f}{r['simulated_gbps']:>12.2f}{r['peak_memory_bytes'] / MIB:>9.1f}"
              f"  {r['icrc_verified']}, payload {r['payload_hash'][0]} at both ends")
    print("CPU time is the simulator's. Of ib_write_bw's runs it contains set-up and waiting; their packets/s are by\n"
          "the program's own clock, with two polling programs beside the simulator.")


def main():
    names = ["scripted", *PROGRAMS, VIRTUAL_TIME, OBJECTS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--packets", type=int, default=400000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", action="append", choices=names)
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    results, modes = {}, {}
    try:
        for name in args.only or names:
            if name == VIRTUAL_TIME:
                results[name] = virtual.measure(args.build, args.short, 1 if args.short else args.repeat)
                continue
            if name == OBJECTS:
                results[name] = objects.measure(args.build, args.short)
                continue
            best = {}
            for mode in MODES:
                runs = [measure(args, name, mode) for _ in range(1 if args.short else args.repeat)]
                best[mode] = min(runs, key=lambda result: result["cpu_us_per_packet"])
            results[name] = best.pop("model")
            modes[name] = best
    except (BenchError, RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        print(f"tools/bench: {error}", file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps({**results, "modes": modes}, indent=2))
        return 0
    virtual_time = results.pop(VIRTUAL_TIME, None)
    many = results.pop(OBJECTS, None)
    if results:
        print_table(results)
        print_modes(results, modes)
    if virtual_time:
        virtual.print_result(virtual_time)
    if many:
        objects.print_result(many)
    return 0


if __name__ == "__main__":
    sys.exit(main())
