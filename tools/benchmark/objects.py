"""What objects cost, and whether that grows with their number: a ratio says so on any machine, however loaded."""

import json
import os
import subprocess

LIMIT_S = 1800
# kind: how many; (few of a short run, few, many)
KINDS = {"pd": (200, 1000, 16000), "cq": (200, 1000, 16000), "qp": (200, 1000, 16000), "mr": (200, 1000, 100000)}


def one(build, kind, count):
    program = os.path.join(build, "bin", "test", "many_objects")
    command = [os.path.join(build, "bin", "rnicsim"), "run", "--free-run", "--raw", "--quiet", f"'{program}' {kind} {count}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{kind} {count} ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def measure(build, short):
    """Lines of many_objects: a few of each kind, and many unless it shall be short."""
    return [one(build, kind, count) for kind, (least, few, many) in KINDS.items()
            for count in ((least,) if short else (few, many))]


def print_result(rows):
    print(f"\n{'objects':10}{'number':>8}{'make us':>10}{'end us':>10}   CPU us of the program: make, first and last eighth; end")
    for row in rows:
        print(f"{row['kind']:10}{row['count']:>8}{row['make_us']:>10.1f}{row['end_us']:>10.1f}   "
              f"{row['make_cpu_first_us']:.1f} {row['make_cpu_last_us']:.1f}; {row['end_cpu_first_us']:.1f} {row['end_cpu_last_us']:.1f}")
