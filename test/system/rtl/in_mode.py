#!/usr/bin/python3
"""Runs a test with every unit that has RTL in another mode.

usage: in_mode.py [--long] rtl|lockstep COMMAND...     --long: only with RN_LONG=1, else skipped"""

import os
import sys


def main():
    arguments = sys.argv[1:]
    if arguments[0] == "--long":
        arguments.pop(0)
        if os.environ.get("RN_LONG") != "1":
            print("runs with tools/check --long")
            return 77
    mode, *command = arguments
    os.environ["RN_UNIT_MODE"] = mode
    # Verilated blocks are several times slower than C; Check's limit of each test is for the latter.
    os.environ.setdefault("CK_TIMEOUT_MULTIPLIER", "20")
    os.environ["RN_UNIT"] = f"doorbell={mode},pte_cache={mode}"
    os.execv(command[0], command)
    return 1


if __name__ == "__main__":
    sys.exit(main())
