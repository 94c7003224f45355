#!/usr/bin/python3
"""Builds a target that is not part of the whole build, because few runs need it, then runs a command.

Usage: build_and_run.py [--long-only] TARGET COMMAND...

The build folder is RN_BUILD_DIR. --long-only: without RN_LONG the test is skipped (exit status 77)."""

import os
import subprocess
import sys


def main():
    words = sys.argv[1:]
    if words[0] == "--long-only":
        words = words[1:]
        if os.environ.get("RN_LONG", "0") in ("", "0"):
            print("only in the long form (RN_LONG=1)")
            return 77
    build = subprocess.run(["cmake", "--build", os.environ["RN_BUILD_DIR"], "--target", words[0]],
                           capture_output=True, text=True)
    if build.returncode:
        print(build.stdout + build.stderr)
        return 1
    return subprocess.run(words[1:]).returncode


if __name__ == "__main__":
    sys.exit(main())
