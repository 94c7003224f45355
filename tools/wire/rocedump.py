#!/usr/bin/python3
"""Decodes RoCEv2 frames and verifies the ICRC, which tshark shows but does not check.

Usage: tools/wire/rocedump.py [-q] FILE.pcap...

One line a frame; -q prints only totals per file. Exit status 1 if a frame has a wrong ICRC or is malformed."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import roce  # noqa: E402


def aeth_text(aeth):
    syndrome, msn = aeth
    value = syndrome & 31
    kind = (syndrome >> 5) & 3
    if kind == roce.AETH_ACK:
        text = "ACK " + ("credit=none" if value == 31 else f"credit={value}")
    elif kind == roce.AETH_RNR:
        text = f"RNR_NAK timer={value}"
    else:
        text = "NAK " + roce.NAK_NAMES.get(value, str(value))
    return f"AETH 0x{syndrome:02x} ({text}) msn={msn}"


def describe(frame):
    flags = ("S" if frame.se else "-") + ("M" if frame.migreq else "-") + ("A" if frame.ackreq else "-")
    parts = [f"{frame.src} > {frame.dst} tos=0x{frame.tos:02x} ttl={frame.ttl} sport={frame.sport}",
             f"{frame.name} {flags} pad={frame.pad} pkey=0x{frame.pkey:04x} dqp=0x{frame.dqp:06x} psn=0x{frame.psn:06x}"]
    if frame.deth:
        parts.append(f"DETH qkey=0x{frame.deth[0]:08x} srcqp=0x{frame.deth[1]:06x}")
    if frame.reth:
        parts.append(f"RETH va=0x{frame.reth[0]:x} rkey=0x{frame.reth[1]:08x} len={frame.reth[2]}")
    if frame.atomic:
        va, rkey, swap, compare = frame.atomic
        parts.append(f"ATMETH va=0x{va:x} rkey=0x{rkey:08x} swapadd=0x{swap:x} cmp=0x{compare:x}")
    if frame.imm is not None:
        parts.append(f"IMM=0x{frame.imm:08x}")
    if frame.ieth is not None:
        parts.append(f"IETH=0x{frame.ieth:08x}")
    if frame.aeth:
        parts.append(aeth_text(frame.aeth))
    if frame.original is not None:
        parts.append(f"orig=0x{frame.original:x}")
    parts.append(f"payload={frame.payload_bytes}")
    parts.append({True: "icrc-ok", None: "icrc-cut-off"}.get(frame.icrc_ok, "ICRC-BAD"))
    return " ".join(parts + frame.problems)


def is_bad(frame):
    return frame.icrc_ok is False or bool(frame.problems)


def main():
    if "--help" in sys.argv or len(sys.argv) < 2:
        print(__doc__)
        return 0 if "--help" in sys.argv else 2
    quiet, any_bad = "-q" in sys.argv, False
    for path in [arg for arg in sys.argv[1:] if arg != "-q"]:
        frames, others, _ = roce.read_frames(path)
        bad = sum(map(is_bad, frames))
        any_bad |= bad > 0
        if not quiet:
            start_ns = frames[0].time_ns if frames else 0
            for frame in frames:
                print(f"{frame.number:5} {(frame.time_ns - start_ns) / 1e3:14.3f} us {describe(frame)}")
        names = sorted({frame.name for frame in frames})
        print(f"{os.path.basename(path)}: roce={len(frames)} other={others} bad={bad} " +
              " ".join(f"{name}:{sum(frame.name == name for frame in frames)}" for name in names))
    return 1 if any_bad else 0


if __name__ == "__main__":
    sys.exit(main())
