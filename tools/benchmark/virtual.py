"""What virtual time costs: wall seconds of ib_write_lat, packets a wall second of ib_write_bw against free-run, and what it
takes to hand the baton over (a grant) where two programs do nothing but wait for each other.

The program's clock is the simulated one then, so rates come from two runs of different length: what is the same in both
(start, set-up, calibration of the program's clock) cancels."""

import json
import os
import resource
import subprocess
import tempfile
import time

MTU = 4096
LIMIT_S = 600
# Below that, what two runs differ by is the machine's noise.
TOO_SHORT_S = 0.1


# name: (program, iterations of the two runs, of the short ones)
WAITING = {
    "pingpong": ("ibv_rc_pingpong -n", (1000, 5000), (50, 150)),
    "write_lat": ("ib_write_lat -F -n", (1000, 5000), (50, 150)),
}


def cpu_s():
    """Processor time of everything that this process has started and that has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_pair(build, command, virtual, before=()):
    """(wall seconds, CPU seconds, grants) of a run of a pair of programs; in virtual time it must not have been judged
    unrepeatable."""
    with tempfile.TemporaryDirectory(prefix="rnicsim-bench-") as folder:
        report_path = os.path.join(folder, "report.json")
        arguments = [*before, os.path.join(build, "bin", "rnicsim"), "run", "--quiet", "--report", report_path,
                     "--virtual-time" if virtual else "--free-run", command, f"{command} localhost"]
        started, cpu_before_s = time.monotonic(), cpu_s()
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        seconds, used_s = time.monotonic() - started, cpu_s() - cpu_before_s
        if done.returncode:
            raise RuntimeError(f"{command} ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
        with open(report_path, encoding="utf-8") as stream:
            run = json.load(stream)["run"]
    if virtual and not run["virtual_time"]["deterministic"]:
        raise RuntimeError(f"{command}: not deterministic: {run['virtual_time']}")
    return seconds, used_s, run["virtual_time"]["grants"] if virtual else 0


def wall_s(build, command, virtual):
    """Wall seconds of such a run."""
    return run_pair(build, command, virtual)[0]


def waiting(build, short, repeat, name, before):
    """What an iteration and a grant cost; the least of some runs each."""
    program, long_counts, short_counts = WAITING[name]
    few, many = short_counts if short else long_counts
    least = {}
    for _ in range(repeat):
        for count in (few, many):
            found = run_pair(build, f"{program} {count}", True, before)
            least[count] = [min(pair) for pair in zip(found, least.get(count, found))]
    wall, cpu, grants = (least[many][n] - least[few][n] for n in range(3))
    tells = not short and wall > TOO_SHORT_S
    return {
        "grants_per_iteration": grants / (many - few),
        "iterations_per_wall_s": (many - few) / wall if tells else None,
        "grants_per_wall_s": grants / wall if tells else None,
        "cpu_us_per_grant": cpu * 1e6 / grants if tells else None,
    }


def places():
    """How many processors: what stands before the command."""
    allowed = sorted(os.sched_getaffinity(0))
    found = {"1": ["taskset", "-c", str(allowed[0])]}
    if len(allowed) > 1:
        found["2"] = ["taskset", "-c", ",".join(map(str, allowed[:2]))]
    return found


def latency(build, repeat, iterations):
    """ib_write_lat: (wall seconds, of which before the first iterations), the quickest of some runs each."""
    whole = min(wall_s(build, f"ib_write_lat -F -n {iterations}", True) for _ in range(repeat))
    return whole, min(wall_s(build, "ib_write_lat -F -n 5", True) for _ in range(repeat))


def rates(build, repeat, messages, size=65536):
    """
    ib_write_bw: {virtual: data packets a wall second, None where the runs are too short to tell}. The modes take turns, so
    that both see the same machine.
    """
    few = messages // 10
    least = {}
    for _ in range(repeat):
        for virtual in (True, False):
            for count in (few, messages):
                seconds = wall_s(build, f"ib_write_bw -F -s {size} -n {count}", virtual)
                least[virtual, count] = min(seconds, least.get((virtual, count), seconds))
    packets = (messages - few) * -(-size // MTU)
    seconds = {virtual: least[virtual, messages] - least[virtual, few] for virtual in (True, False)}
    return {virtual: packets / lasted if lasted > TOO_SHORT_S else None for virtual, lasted in seconds.items()}


def run_counter(build, way, kind, count):
    """(wall seconds of so many reads of the processor's counter, what the process said)"""
    with tempfile.TemporaryDirectory(prefix="rnicsim-bench-") as folder:
        report_path = os.path.join(folder, "report.json")
        program = os.path.join(build, "bin", "read_counter")
        arguments = [os.path.join(build, "bin", "rnicsim"), "run", "--quiet", "--report", report_path, "--tsc", way,
                     f"exec {program} {kind} {count}"]
        started = time.monotonic()
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        seconds = time.monotonic() - started
        if done.returncode:
            raise RuntimeError(f"{program} ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
        with open(report_path, encoding="utf-8") as stream:
            return seconds, json.load(stream)["run"]["virtual_time"]["counter"][-1]


def counter_reads(build, short, repeat):
    """Wall microseconds of one read: by a jump, by ud2, and by the trap where it works (None elsewhere)."""
    costs = {}
    for name, way, kind, count in (("jump", "rewrite", "jump", 4000000), ("ud2", "rewrite", "ud2", 200000),
                                   ("trap", "trap", "ud2", 200000)):
        count //= 10 if short else 1
        few = count // 10
        if name == "trap" and not run_counter(build, way, kind, few)[1]["trap_works"]:
            costs[name] = None
            continue
        whole, start = (min(run_counter(build, way, kind, reads)[0] for _ in range(repeat)) for reads in (count, few))
        costs[name] = None if short else 1e6 * (whole - start) / (count - few)
    return costs


def measure(build, short, repeat):
    iterations, messages = (100, 500) if short else (1000, 10000)
    whole, start = latency(build, repeat, iterations)
    rate = rates(build, repeat, messages)
    if short:
        rate = dict.fromkeys(rate)  # it works; how fast so few messages cannot tell
    return {
        "counter_read_us": counter_reads(build, short, repeat),
        "write_lat_iterations": iterations,
        "write_lat_wall_s": whole,
        "write_lat_start_wall_s": start,
        "write_bw_packets_per_wall_s": rate[True],
        "write_bw_free_run_packets_per_wall_s": rate[False],
        "write_bw_ratio": rate[True] / rate[False] if all(rate.values()) else None,
        "waiting": {name: {processors: waiting(build, short, repeat, name, before) for processors, before in places().items()}
                    for name in WAITING},
    }


def print_result(result):
    print(f"\nvirtual time    ib_write_lat -n {result['write_lat_iterations']}: {result['write_lat_wall_s']:.2f} s of wall time, "
          f"of which {result['write_lat_start_wall_s']:.2f} s start and calibration")
    costs = [f"{name} {cost:.3f} us" for name, cost in result["counter_read_us"].items() if cost is not None]
    if costs:
        print(f"                a read of the processor's counter: {', '.join(costs)}")
    for name, of_processors in result["waiting"].items():
        for processors, row in of_processors.items():
            cost = "" if row["cpu_us_per_grant"] is None else (
                f", {row['iterations_per_wall_s']:.0f} iterations and {row['grants_per_wall_s']:.0f} grants a wall second, "
                f"{row['cpu_us_per_grant']:.1f} us of CPU a grant")
            print(f"                {name} on {processors}: {row['grants_per_iteration']:.2f} grants an iteration{cost}")
    if result["write_bw_ratio"] is None:
        print("                ib_write_bw: the runs are too short to compare")
        return
    print(f"                ib_write_bw -s 65536: {result['write_bw_packets_per_wall_s']:.0f} packets a wall second, "
          f"{result['write_bw_ratio']:.2f} of free-run's {result['write_bw_free_run_packets_per_wall_s']:.0f}")
