"""RoCEv2 frames from a pcap file: reading, decoding, ICRC. Standard library only; knows nothing of the simulator."""

import ipaddress
import struct
import zlib

UDP_PORT = 4791
PSN_MASK = 0xffffff

OPERATIONS = {
    0: "SEND_FIRST", 1: "SEND_MIDDLE", 2: "SEND_LAST", 3: "SEND_LAST_IMM", 4: "SEND_ONLY", 5: "SEND_ONLY_IMM",
    6: "WRITE_FIRST", 7: "WRITE_MIDDLE", 8: "WRITE_LAST", 9: "WRITE_LAST_IMM", 10: "WRITE_ONLY",
    11: "WRITE_ONLY_IMM", 12: "READ_REQ", 13: "READ_RESP_FIRST", 14: "READ_RESP_MIDDLE", 15: "READ_RESP_LAST",
    16: "READ_RESP_ONLY", 17: "ACK", 18: "ATOMIC_ACK", 19: "CMP_SWAP", 20: "FETCH_ADD", 22: "SEND_LAST_INV",
    23: "SEND_ONLY_INV", 28: "FLUSH", 29: "ATOMIC_WRITE",
}
TRANSPORTS = {0: "RC", 1: "UC", 2: "RD", 3: "UD", 4: "CNP", 5: "XRC"}
RC, UC, UD = 0, 1, 3

# operations by the header that follows the BTH (IBA 9.2)
WITH_RETH = {6, 10, 11, 12, 29}
WITH_IMM = {3, 5, 9, 11}
WITH_IETH = {22, 23}
WITH_AETH = {13, 15, 16, 17, 18}
WITH_ATOMIC = {19, 20}
RESPONSES = {13, 14, 15, 16, 17, 18}

AETH_ACK, AETH_RNR, AETH_NAK = 0, 1, 3
NAK_NAMES = {0: "PSN_SEQ_ERR", 1: "INVALID_REQ", 2: "REM_ACCESS_ERR", 3: "REM_OP_ERR", 4: "INVALID_RD_REQ"}


def psn_add(psn, count):
    return (psn + count) & PSN_MASK


def psn_diff(a, b):
    """a - b in the 24-bit circle, -2^23 .. 2^23 - 1."""
    return ((a - b + (1 << 23)) & PSN_MASK) - (1 << 23)


def read_pcap(path):
    """Yields (time in ns, captured bytes, length on the wire) of each record of a classic Ethernet pcap file."""
    with open(path, "rb") as stream:
        data = stream.read()
    magics = {b"\xd4\xc3\xb2\xa1": ("<", 1000), b"\x4d\x3c\xb2\xa1": ("<", 1),
              b"\xa1\xb2\xc3\xd4": (">", 1000), b"\xa1\xb2\x3c\x4d": (">", 1)}
    if data[:4] not in magics or len(data) < 24:
        raise ValueError(f"{path}: not a pcap file")
    order, unit = magics[data[:4]]
    if struct.unpack_from(order + "I", data, 20)[0] & 0xffff != 1:
        raise ValueError(f"{path}: link type is not Ethernet")
    at = 24
    while at < len(data):
        if at + 16 > len(data):
            raise ValueError(f"{path}: last record is cut off")
        seconds, fraction, captured, length = struct.unpack_from(order + "IIII", data, at)
        if at + 16 + captured > len(data):
            raise ValueError(f"{path}: last record is cut off")
        yield seconds * 1000000000 + fraction * unit, data[at + 16:at + 16 + captured], length
        at += 16 + captured


def checksum(header):
    """The internet checksum; 0 over a header that holds a right one."""
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def icrc(packet, ipv6):
    """ICRC of a packet from its IP header up to the ICRC: CRC-32 over 8 bytes of ones and the packet in which
    every field that a router may change is all ones (IBA annex A17)."""
    masked = bytearray(packet)
    if ipv6:
        masked[0] |= 0x0f
        masked[1] = masked[2] = masked[3] = masked[7] = 0xff
        udp = 40
    else:
        masked[1] = masked[8] = masked[10] = masked[11] = 0xff
        udp = (masked[0] & 15) * 4
    masked[udp + 6] = masked[udp + 7] = 0xff
    masked[udp + 12] = 0xff
    return zlib.crc32(b"\xff" * 8 + bytes(masked)) & 0xffffffff


class Frame:
    """One decoded RoCEv2 frame. Absent headers are None; problems lists what is malformed."""

    # pylint: disable=too-many-instance-attributes
    def __init__(self, number, time_ns, data, length):
        self.number, self.time_ns, self.data, self.length = number, time_ns, data, length
        self.truncated = len(data) < length
        self.problems = []
        self.reth = self.atomic = self.imm = self.ieth = self.aeth = self.deth = self.original = None
        self.dst_mac, self.src_mac = data[0:6].hex(":"), data[6:12].hex(":")

    @property
    def name(self):
        if self.opcode == 0x81:
            return "CNP"
        return TRANSPORTS.get(self.transport, f"T{self.transport}") + "_" + \
            OPERATIONS.get(self.operation, f"OP{self.operation}")

    @property
    def is_response(self):
        return self.operation in RESPONSES

    @property
    def aeth_kind(self):
        return None if self.aeth is None else (self.aeth[0] >> 5) & 3 if self.aeth[0] < 0x80 else -1


def parse_ip(frame, data):
    """Fills in the IP fields; returns (offset of UDP, offset of the packet's end) or None if not UDP."""
    ethertype = struct.unpack_from("!H", data, 12)[0]
    if ethertype == 0x0800 and len(data) >= 34 and data[14] >> 4 == 4:
        header_bytes = (data[14] & 15) * 4
        total = struct.unpack_from("!H", data, 16)[0]
        if data[23] != 17:
            return None
        frame.ipv6 = False
        frame.tos, frame.ttl = data[15], data[22]
        frame.ip_id, fragment = struct.unpack_from("!HH", data, 18)
        frame.dont_fragment = bool(fragment & 0x4000)
        frame.src, frame.dst = (str(ipaddress.IPv4Address(data[at:at + 4])) for at in (26, 30))
        if header_bytes != 20:
            frame.problems.append("IPv4 header has options")
        if fragment & 0xbfff:
            frame.problems.append("IPv4 fragment")
        if checksum(data[14:14 + header_bytes]) != 0:
            frame.problems.append("wrong IPv4 header checksum")
        return 14 + header_bytes, 14 + total
    if ethertype == 0x86dd and len(data) >= 54 and data[14] >> 4 == 6:
        if data[20] != 17:
            return None
        frame.ipv6 = True
        word, payload = struct.unpack_from("!IH", data, 14)
        frame.tos, frame.flow_label, frame.ttl = (word >> 20) & 0xff, word & 0xfffff, data[21]
        frame.ip_id, frame.dont_fragment = None, None
        frame.src, frame.dst = (str(ipaddress.IPv6Address(data[at:at + 16])) for at in (22, 38))
        return 54, 54 + payload
    return None


def udp_checksum_ok(frame, data, udp, end):
    if frame.udp_checksum == 0 or frame.truncated:
        return True
    addresses = data[22:54] if frame.ipv6 else data[26:34]
    body = addresses + struct.pack("!HH", 17, end - udp) + data[udp:end]
    return checksum(body + b"\0" * (len(body) % 2)) == 0


def parse_extended(frame, data, at):
    """Fills in the headers between BTH and payload; returns the payload's offset."""
    op = frame.operation
    if frame.transport in (2, UD):
        qkey, source = struct.unpack_from("!II", data, at)
        frame.deth, at = (qkey, source & 0xffffff), at + 8
    if op in WITH_RETH and frame.transport != UD:
        frame.reth, at = struct.unpack_from("!QII", data, at), at + 16
    if op == 28:
        at += 4
    if op in WITH_ATOMIC and frame.transport != UD:
        frame.atomic, at = struct.unpack_from("!QIQQ", data, at), at + 28
    if op in WITH_IMM:
        frame.imm, at = struct.unpack_from("!I", data, at)[0], at + 4
    if op in WITH_IETH:
        frame.ieth, at = struct.unpack_from("!I", data, at)[0], at + 4
    if op in WITH_AETH and frame.transport == RC:
        word = struct.unpack_from("!I", data, at)[0]
        frame.aeth, at = (word >> 24, word & 0xffffff), at + 4
    if op == 18:
        frame.original, at = struct.unpack_from("!Q", data, at)[0], at + 8
    return at


def decode(number, time_ns, data, length):
    """The Frame of a record, or None if it is not RoCEv2."""
    frame = Frame(number, time_ns, data, length)
    if len(data) < 14:
        return None
    place = parse_ip(frame, data)
    if place is None:
        return None
    udp, end = place
    if len(data) < udp + 8:
        return None
    frame.sport, frame.dport, udp_bytes, frame.udp_checksum = struct.unpack_from("!HHHH", data, udp)
    if frame.dport != UDP_PORT:
        return None
    if udp_bytes != end - udp:
        frame.problems.append(f"UDP length {udp_bytes}, IP says {end - udp}")
    if end != length:
        frame.problems.append(f"frame has {length} bytes, IP says {end}")
    if not udp_checksum_ok(frame, data, udp, end):
        frame.problems.append("UDP checksum neither 0 nor right")
    bth = udp + 8
    try:
        frame.opcode, flags, frame.pkey, qp_word, psn_word = struct.unpack_from("!BBHII", data, bth)
        frame.transport, frame.operation = frame.opcode >> 5, frame.opcode & 31
        frame.se, frame.migreq = bool(flags & 0x80), bool(flags & 0x40)
        frame.pad, frame.tver = (flags >> 4) & 3, flags & 15
        frame.fecn, frame.becn = bool(qp_word >> 31), bool((qp_word >> 30) & 1)
        frame.dqp, frame.ackreq, frame.psn = qp_word & 0xffffff, bool(psn_word >> 31), psn_word & 0xffffff
        if (qp_word >> 24) & 0x3f or (psn_word >> 24) & 0x7f:
            frame.problems.append("reserved bits of the BTH set")
        if frame.tver:
            frame.problems.append(f"transport header version {frame.tver}")
        at = bth + (28 if frame.opcode == 0x81 else 12)
        if frame.opcode != 0x81:
            at = parse_extended(frame, data, at)
    except struct.error:
        frame.problems.append("headers cut off")
        frame.payload_bytes, frame.payload, frame.icrc_ok = 0, b"", None
        return frame
    frame.payload_bytes = end - 4 - frame.pad - at
    frame.payload = data[at:min(len(data), end - 4 - frame.pad)]
    if frame.payload_bytes < 0:
        frame.problems.append("packet shorter than its headers")
        frame.payload_bytes = 0
    frame.icrc_ok = None
    if len(data) >= end:
        if any(data[end - 4 - frame.pad:end - 4]):
            frame.problems.append("pad bytes not 0")
        frame.icrc = struct.unpack_from("<I", data, end - 4)[0]
        frame.icrc_wanted = icrc(data[14:end - 4], frame.ipv6)
        frame.icrc_ok = frame.icrc == frame.icrc_wanted
    return frame


def read_frames(path):
    """(RoCEv2 frames, number of other frames, total bytes on the wire without FCS) of a pcap file."""
    frames, others, total_bytes = [], 0, 0
    for number, (time_ns, data, length) in enumerate(read_pcap(path), 1):
        total_bytes += length
        frame = decode(number, time_ns, data, length)
        if frame is None:
            others += 1
        else:
            frames.append(frame)
    return frames, others, total_bytes
