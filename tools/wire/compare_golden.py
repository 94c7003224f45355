#!/usr/bin/python3
"""Compares a capture with a Soft-RoCE capture of the same program (traces/).

Usage: tools/wire/compare_golden.py [options] OURS.pcap GOLDEN.pcap

Compared, connection by connection: the requests (opcode, payload and pad length, PSN from the connection's first,
RETH length, immediate data, solicited event), the read responses, every NAK, what was acknowledged in the end, and
header fields that must not vary. Differences that are right stand in the table ACCEPTED with their reason; they are
printed and counted. Any other one is an error: exit status 1. The result is JSON on standard output."""

import argparse
import collections
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import flows  # noqa: E402
import roce  # noqa: E402

# Soft-RoCE (rxe) is a peer, not the specification: what may differ, and why.
ACCEPTED = {
    "addresses": "MAC, IP and GID are those of other hosts",
    "qpn": "queue pair numbers are the device's choice",
    "psn_base": "the program draws its starting PSN",
    "rkey": "keys are the device's choice",
    "va": "buffer addresses are the process's",
    "time": "rxe ran on emulated processors",
    "interleaving": "which direction's frame comes first depends on timing",
    "sport": "UDP source port is free entropy per QP; rxe hashes its QP numbers",
    "ip_id": "rxe's comes from the kernel's counter; with DF set it has no meaning (RFC 6864)",
    "ttl": "hop limit is the route's or the QP's attribute",
    "migreq": "rxe sends 0, which is path migration not armed; hardware sends 1 (IBA 9.2, 17.2.8)",
    "ackreq": "where AckReq is set beyond what it needs is the requester's choice; rxe: every last packet and each 66th",
    "ack_coalescing": "a responder may acknowledge several requests at once (IBA 9.7.5.1.2); rxe never does",
    "credits": "rxe sends the credit code 'none' (31); end-to-end credits are optional (IBA 9.7.7.2)",
    "msn_at_ack": "a coalesced ACK's MSN may be ahead of its PSN's message (IBA 9.7.7.1)",
    "long_send": "rxe answers a SEND longer than the receive with 0x63; IBA 9.9.3: invalid request, 0x61",
    "late_requests": "how many requests left before a NAK came in depends on timing",
}

FIXED_FIELDS = ("tver", "pkey", "fecn", "becn", "dont_fragment", "udp_checksum", "tos", "transport")
FREE_FIELDS = {"migreq": "migreq", "ttl": "ttl", "sport": "sport", "ip_id": "ip_id", "ackreq": "ackreq"}


class Comparison:
    """Collects differences: accepted ones by reason, others as errors."""

    def __init__(self):
        self.accepted, self.errors = collections.Counter(), []

    def accept(self, reason, count=1):
        self.accepted[reason] += count if ACCEPTED[reason] else 0

    def error(self, text):
        self.errors.append(text)

    def sequences(self, what, ours, golden):
        """Two lists that must be equal; names the first difference."""
        if ours == golden:
            return
        at = next((i for i, (a, b) in enumerate(zip(ours, golden)) if a != b), min(len(ours), len(golden)))
        entry = lambda items: items[at] if at < len(items) else "nothing"
        self.error(f"{what}: {len(ours)} against {len(golden)}; at {at}: {entry(ours)}, golden {entry(golden)}")


def request_view(conn, payload):
    """What must be equal of each first transmission."""
    view, high = [], -1
    for frame in conn.requests:
        offset = conn.offset(frame.psn, max(high, 0))
        if offset <= high:
            continue
        high = offset + (max(1, -(-frame.reth[2] // (conn.mtu or 4096))) if frame.operation == 12 else 1) - 1
        view.append((frame.name, offset, frame.payload_bytes, frame.pad, frame.reth[2] if frame.reth else None,
                     frame.imm, frame.se) + ((frame.payload.hex(),) if payload else ()))
    return view


def retransmission_view(conn):
    counts = collections.Counter(conn.offset(frame.psn, conn.high) for frame in conn.requests)
    return sorted((offset, count) for offset, count in counts.items() if count > 1)


def read_response_view(conn, payload):
    return [(f.name, conn.offset(f.psn, conn.high), f.payload_bytes, f.pad) + ((f.payload.hex(),) if payload else ())
            for f in conn.responses if f.operation in (13, 14, 15, 16)]


def nak_view(conn):
    return [(f"0x{f.aeth[0]:02x}", conn.offset(f.psn, conn.high), f.aeth[1])
            for f in conn.responses if f.aeth and f.aeth_kind != roce.AETH_ACK]


def acks_of(conn):
    """PSN offset -> MSN of the plain ACKs."""
    return {conn.offset(f.psn, conn.high): f.aeth[1] for f in conn.responses
            if f.operation == 17 and f.aeth_kind == roce.AETH_ACK}


def compare_acks(result, label, ours, golden):
    mine, theirs = acks_of(ours), acks_of(golden)
    high = lambda conn: max((conn.offset(f.psn, conn.high) for f in conn.responses
                             if f.aeth_kind in (None, roce.AETH_ACK)), default=-1)
    if high(ours) != high(golden):
        result.error(f"{label}: acknowledged up to PSN +{high(ours)}, golden +{high(golden)}")
    result.accept("ack_coalescing", len(set(theirs) - set(mine)) + len(set(mine) - set(theirs)))
    for offset in set(mine) & set(theirs):
        if mine[offset] < theirs[offset]:
            result.error(f"{label}: ACK of PSN +{offset} has MSN {mine[offset]}, golden {theirs[offset]}")
        elif mine[offset] != theirs[offset]:
            result.accept("msn_at_ack")
    credits = lambda conn: {f.aeth[0] for f in conn.responses if f.aeth and f.aeth_kind == roce.AETH_ACK}
    result.accept("credits", int(credits(ours) != credits(golden)))


def compare_naks(result, label, ours, golden):
    mine, theirs = nak_view(ours), nak_view(golden)
    if [(("0x61",) + n[1:] if n[0] == "0x63" else n) for n in theirs] == mine and mine != theirs:
        result.accept("long_send")
        return
    result.sequences(f"{label}: NAKs", mine, theirs)


def compare_requests(result, label, ours, golden, options):
    mine, theirs = request_view(ours, options.payload), request_view(golden, options.payload)
    if nak_view(golden) and nak_view(ours) and mine != theirs:
        # After a fatal NAK the connection is dead; what was already under way is timing.
        shared = min(len(mine), len(theirs))
        result.accept("late_requests", abs(len(mine) - len(theirs)))
        mine, theirs = mine[:shared], theirs[:shared]
    result.sequences(f"{label}: requests", mine, theirs)
    if not options.ignore_retransmissions:
        result.sequences(f"{label}: retransmissions (PSN, times)", retransmission_view(ours), retransmission_view(golden))


def compare_fields(result, label, ours, golden):
    """Header fields by opcode: those that are fixed must be equal, the others are noted."""
    for name in sorted({f.name for f in ours} & {f.name for f in golden}):
        values = lambda frames, field: {getattr(f, field) for f in frames if f.name == name}
        for field in FIXED_FIELDS:
            mine, theirs = values(ours, field), values(golden, field)
            if not mine <= theirs:
                result.error(f"{label}: {name}: {field} is {sorted(map(str, mine))}, golden {sorted(map(str, theirs))}")
        for field, reason in FREE_FIELDS.items():
            result.accept(reason, int(values(ours, field) != values(golden, field)))
        rkeys = lambda frames: {f.reth[1] for f in frames if f.name == name and f.reth}
        addresses = lambda frames: {f.reth[0] for f in frames if f.name == name and f.reth}
        result.accept("rkey", int(rkeys(ours) != rkeys(golden)))
        result.accept("va", int(addresses(ours) != addresses(golden)))


def signature(conn):
    return [(m.kind, m.size, m.imm, m.se) for m in conn.messages]


def pair_connections(ours, golden, payload):
    """Pairs connections with the same requests first, then with the same messages, the rest as they appear."""
    pairs, rest, free = [], [], list(golden)
    for conn in ours:
        view = request_view(conn, payload)
        match = next((other for other in free if request_view(other, payload) == view), None) or \
            next((other for other in free if signature(other) == signature(conn)), None)
        if match is None:
            rest.append(conn)
        else:
            free.remove(match)
            pairs.append((conn, match))
    return pairs + list(zip(rest, free))


def compare(ours_path, golden_path, options):
    result = Comparison()
    ours_frames, _, _ = roce.read_frames(ours_path)
    golden_frames, _, _ = roce.read_frames(golden_path)
    ours, _ = flows.connections_of(ours_frames, options.mtu, loss=True)
    golden, _ = flows.connections_of(golden_frames, options.mtu, loss=True)
    if len(ours) != len(golden):
        result.error(f"{len(ours)} connections with requests, golden {len(golden)}")
    for index, (mine, theirs) in enumerate(pair_connections(ours, golden, options.payload)):
        label = f"connection {index} ({mine.source} > {mine.destination})"
        compare_requests(result, label, mine, theirs, options)
        result.sequences(f"{label}: read responses", read_response_view(mine, options.payload),
                         read_response_view(theirs, options.payload))
        compare_naks(result, label, mine, theirs)
        if theirs.responses and not options.late_ok:
            compare_acks(result, label, mine, theirs)
        compare_fields(result, label, mine.requests + mine.responses, theirs.requests + theirs.responses)
        result.accept("qpn", int(mine.dqp != theirs.dqp))
        result.accept("psn_base", int(mine.base != theirs.base))
        result.accept("addresses", int(mine.source != theirs.source))
    side = lambda frames: [f.src == frames[0].src for f in frames] if frames else []
    result.accept("interleaving", int(side(ours_frames) != side(golden_frames)))
    result.accept("time", 1)
    return result


def parse_options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours")
    parser.add_argument("golden")
    parser.add_argument("--mtu", type=int, metavar="BYTES", help="path MTU (default: as full packets show it)")
    parser.add_argument("--payload", action="store_true", help="payload bytes must be equal too")
    parser.add_argument("--ignore-retransmissions", action="store_true", help="retransmissions may differ")
    parser.add_argument("--late-ok", action="store_true", help="what was acknowledged in the end may differ")
    return parser.parse_args(arguments)


def main():
    options = parse_options()
    try:
        result = compare(options.ours, options.golden, options)
    except (OSError, ValueError) as problem:
        print(f"compare_golden: {problem}", file=sys.stderr)
        return 1
    accepted = {name: {"times": times, "reason": ACCEPTED[name]} for name, times in sorted(result.accepted.items()) if times}
    print(json.dumps({"equal": not result.errors, "errors": result.errors, "accepted": accepted}, indent=1))
    for error in result.errors:
        print(error, file=sys.stderr)
    return 1 if result.errors else 0


if __name__ == "__main__":
    sys.exit(main())
