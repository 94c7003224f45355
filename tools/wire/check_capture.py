#!/usr/bin/python3
"""Checks a RoCEv2 capture and prints its totals as JSON.

Usage: tools/wire/check_capture.py [options] FILE.pcap

Checked: no packet that tshark calls malformed, no expert message of warning or worse (save the zero UDP checksum
over IPv6, which RoCEv2 has); IP checksums and lengths; every ICRC (IPv4 by scapy too); for each connection gapless
PSNs, opcode order, message sizes, complete and ordered answers, ascending MSNs. Complaints go to standard error.
Exit status 1 if there is one."""

import argparse
import collections
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import flows  # noqa: E402
import roce  # noqa: E402

# These two heuristics take genuine RoCE payload for their own protocol and call it malformed.
TSHARK = ["tshark", "-n", "--disable-protocol", "rpcordma", "--disable-heuristic", "mellanox_eoib"]
# A third one takes a payload of two bytes, which two pad bytes of 0 follow, for an EtherType if it has such a value.
# It is turned off only for a second look at a capture that has a malformed packet.
SECOND_LOOK = ["--disable-heuristic", "eth_over_ib"]
EXPERT_WARNING = 0x600000
# tshark's complaint about UDP over IPv6 without a checksum; RoCEv2 (IBA annex A17.4.5) says it is 0.
ZERO_CHECKSUM = "Illegal checksum value (0)"


def start_dissection(path, *switches):
    """tshark at work on the file, beside whatever the caller does until finish_dissection."""
    command = TSHARK + [*switches, "-r", path, "-Y", f"_ws.malformed or _ws.expert.severity >= {EXPERT_WARNING}",
                        "-T", "fields", "-E", "aggregator=\x1f", "-e", "frame.number", "-e", "_ws.expert.severity",
                        "-e", "_ws.expert.message"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish_dissection(path, tshark, first=True):
    """What tshark finds wrong with the file."""
    output, messages_of_tshark = tshark.communicate()
    if tshark.returncode:
        return [f"tshark: {messages_of_tshark.strip()}"]
    errors = []
    for line in output.splitlines():
        number, severities, messages = (line.split("\t") + [""] * 3)[:3]
        pairs = zip(severities.split("\x1f"), messages.split("\x1f"))
        bad = [text for severity, text in pairs
               if int(severity or 0, 0) >= EXPERT_WARNING and not text.startswith(ZERO_CHECKSUM)]
        errors += [f"frame {number}: tshark: {text}" for text in bad]
        if not messages:
            errors.append(f"frame {number}: tshark: malformed")
    if errors and first:
        return finish_dissection(path, start_dissection(path, *SECOND_LOOK), first=False)
    return errors


def check_dissection(path):
    return finish_dissection(path, start_dissection(path))


def spread(frames, count):
    """That many of the frames, evenly spread."""
    if count is None or len(frames) <= count:
        return frames
    return [frames[at * len(frames) // count] for at in range(count)]


def check_with_scapy(frames):
    """ICRC of the IPv4 frames by scapy's RoCE layer: (frames checked, errors)."""
    from scapy.contrib.roce import BTH
    from scapy.layers.l2 import Ether
    errors, checked = [], 0
    for frame in frames:
        if frame.ipv6 or frame.icrc_ok is None:
            continue
        packet = Ether(frame.data)
        if BTH not in packet:
            errors.append(f"frame {frame.number}: scapy finds no BTH")
            continue
        bth, checked = packet[BTH], checked + 1
        if bth.compute_icrc(b"") != roce.struct.pack("!I", bth.icrc):
            errors.append(f"frame {frame.number}: {frame.name}: ICRC wrong, says scapy")
    return checked, errors


def check_frames(frames, allow_cut):
    """Lengths, checksums and ICRC of each frame."""
    errors = []
    for frame in frames:
        errors += [f"frame {frame.number}: {frame.name}: {text}" for text in frame.problems]
        if frame.icrc_ok is False:
            errors.append(f"frame {frame.number}: {frame.name}: ICRC 0x{frame.icrc:08x}, not 0x{frame.icrc_wanted:08x}")
        elif frame.icrc_ok is None and not allow_cut:
            errors.append(f"frame {frame.number}: {frame.name}: cut off, ICRC not checked")
    return errors


def check_times(path):
    last, errors = None, []
    for number, (time_ns, _, _) in enumerate(roce.read_pcap(path), 1):
        if last is not None and time_ns < last:
            errors.append(f"frame {number}: earlier than the one before")
        last = time_ns
    return errors


def check_messages(connections, wanted):
    """--messages, --size, --mtu and --opcode against what was sent."""
    messages = [m for conn in connections for m in conn.messages if wanted.opcode in (None, m.kind)
                and (wanted.size is None or m.size == wanted.size or wanted.messages is None)]
    errors = []
    if wanted.messages is not None and len(messages) != wanted.messages:
        errors.append(f"{len(messages)} {wanted.opcode or ''} messages, not {wanted.messages}")
    if wanted.size is not None:
        errors += [f"a {m.kind} of {m.size} bytes, not {wanted.size}" for m in messages if m.size != wanted.size]
        if wanted.mtu:
            each = max(1, -(-wanted.size // wanted.mtu))
            packets = sum(m.count for m in messages)
            if packets != each * len(messages):
                errors.append(f"{packets} data packets for {len(messages)} messages of {each}")
    return errors


def totals_of(path, frames, others, total_bytes, connections):
    ports = collections.defaultdict(lambda: {"frames": 0, "bytes": 0})
    for _, data, length in roce.read_pcap(path):
        port = ports[data[6:12].hex(":")]
        port["frames"] += 1
        port["bytes"] += length
    kinds = collections.Counter(m.kind for conn in connections for m in conn.messages)
    return {
        "file": os.path.basename(path), "roce_frames": len(frames), "other_frames": others, "wire_bytes": total_bytes,
        "icrc_checked": sum(f.icrc_ok is not None for f in frames),
        "opcodes": dict(sorted(collections.Counter(f.name for f in frames).items())),
        "ports": dict(sorted(ports.items())), "messages": dict(sorted(kinds.items())),
        "payload_bytes": sum(conn.payload_bytes for conn in connections),
        "data_packets": sum(m.count for conn in connections for m in conn.messages if m.kind in ("send", "write", "read")),
        "retransmitted": sum(conn.retransmitted for conn in connections),
        "naks": sum(conn.naks for conn in connections), "rnr_naks": sum(conn.rnr_naks for conn in connections),
        "connections": [{
            "source": conn.source, "destination": conn.destination, "dqp": conn.dqp, "mtu": conn.mtu,
            "sport": sorted({f.sport for f in conn.requests}), "requests": len(conn.requests),
            "responses": len(conn.responses), "messages": len(conn.messages), "payload_bytes": conn.payload_bytes,
            "first_psn": conn.requests[0].psn, "retransmitted": conn.retransmitted,
            "naks": conn.naks, "rnr_naks": conn.rnr_naks,
        } for conn in connections],
    }


def check(path, options):
    """(totals, errors) of a capture."""
    tshark = None if options.no_tshark else start_dissection(path)
    frames, others, total_bytes = roce.read_frames(path)
    errors = check_frames(frames, options.allow_cut) + check_times(path)
    scapy_checked = 0
    if not options.no_scapy:
        scapy_checked, scapy_errors = check_with_scapy(spread(frames, options.scapy_limit))
        errors += scapy_errors
    connections, flow_errors = flows.connections_of(frames, options.mtu, options.loss, options.restart_psn)
    errors += flow_errors + check_messages(connections, options)
    if not frames:
        errors.append("no RoCEv2 frame in the capture")
    totals = totals_of(path, frames, others, total_bytes, connections)
    totals["icrc_checked_by_scapy"] = scapy_checked
    if tshark:
        errors = finish_dissection(path, tshark) + errors
    return totals, errors


def parse_options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--messages", type=int, metavar="N", help="messages in the whole capture (of --opcode, --size)")
    parser.add_argument("--size", type=int, metavar="BYTES", help="size of each message")
    parser.add_argument("--mtu", type=int, metavar="BYTES", help="path MTU (default: as full packets show it)")
    parser.add_argument("--opcode", choices=("send", "write", "read", "atomic"), help="count only these messages")
    parser.add_argument("--restart-psn", type=lambda text: int(text, 0), action="append", default=[], metavar="PSN",
                        help="a request with this PSN starts its connection anew (a QP was reset and reused)")
    parser.add_argument("--loss", action="store_true", help="allow and count retransmissions, NAKs, unanswered requests")
    parser.add_argument("--allow-cut", action="store_true", help="frames may be cut off (snap length)")
    parser.add_argument("--no-tshark", action="store_true", help="leave tshark out")
    parser.add_argument("--no-scapy", action="store_true", help="leave scapy out")
    parser.add_argument("--scapy-limit", type=int, metavar="N", help="only N frames, evenly spread, by scapy, which is slow")
    return parser.parse_args(arguments)


def main():
    options = parse_options()
    try:
        totals, errors = check(options.file, options)
    except (OSError, ValueError) as problem:
        print(f"check_capture: {problem}", file=sys.stderr)
        return 1
    print(json.dumps(totals, indent=1))
    for error in errors[:50]:
        print(error, file=sys.stderr)
    if len(errors) > 50:
        print(f"... {len(errors) - 50} more", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
