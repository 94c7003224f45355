"""What a capture says about each connection: messages, PSNs, opcode order, acknowledgements.

A capture holds every frame once, at the egress of its NIC, so a first transmission always appears in PSN order.
The strict account allows no retransmission, no NAK and no request without acknowledgement; with loss=True they
are counted instead."""

import bisect
import collections

import roce

FIRST, MIDDLE, LAST, ONLY = "FIRST", "MIDDLE", "LAST", "ONLY"
# operation -> (kind of message, place in it)
PLACES = {
    0: ("send", FIRST), 1: ("send", MIDDLE), 2: ("send", LAST), 3: ("send", LAST), 4: ("send", ONLY), 5: ("send", ONLY),
    6: ("write", FIRST), 7: ("write", MIDDLE), 8: ("write", LAST), 9: ("write", LAST), 10: ("write", ONLY),
    11: ("write", ONLY), 22: ("send", LAST), 23: ("send", ONLY),
    12: ("read", ONLY), 19: ("atomic", ONLY), 20: ("atomic", ONLY), 28: ("flush", ONLY), 29: ("atomic_write", ONLY),
    13: ("response", FIRST), 14: ("response", MIDDLE), 15: ("response", LAST), 16: ("response", ONLY),
}

Message = collections.namedtuple("Message", "kind size first count imm se")


class Connection:
    """One direction of requests (source, destination, destination QP) and the responses to it."""

    # pylint: disable=too-many-instance-attributes
    def __init__(self, key):
        self.source, self.destination, self.dqp = key
        self.requests, self.responses, self.messages = [], [], []
        self.retransmitted = self.naks = self.rnr_naks = self.duplicate_responses = 0
        self.payload_bytes = self.data_packets = 0
        self.mtu = None
        self.sent_frames, self.sent_highs = [], []
        self.errors = []

    def offset(self, psn, near):
        """A PSN's distance from the connection's first, past wraps: the one nearest to the offset near."""
        return near + roce.psn_diff(psn, roce.psn_add(self.base, near))

    def sent_before(self, frame):
        """The highest offset that requests before this frame had used, -1 if none."""
        at = bisect.bisect_left(self.sent_frames, frame.number)
        return self.sent_highs[at - 1] if at else -1

    def error(self, frame, text):
        self.errors.append(f"frame {frame.number}: {self.source} > {self.destination} qp 0x{self.dqp:x} "
                           f"{frame.name} psn 0x{frame.psn:06x}: {text}")


def pick_mtu(frames):
    """The path MTU as full packets show it, or None."""
    return max((f.payload_bytes for f in frames if PLACES.get(f.operation, (0, 0))[1] in (FIRST, MIDDLE)), default=None)


class RequestAccount:
    """Walks a connection's requests: gapless PSNs, legal opcode order, message sizes."""

    def __init__(self, connection, mtu, loss):
        self.connection, self.mtu, self.loss = connection, mtu, loss
        self.open_kind, self.open_size, self.open_first, self.open_length = None, 0, 0, None
        self.next, self.seen = 0, {}
        connection.base, connection.high = connection.requests[0].psn, 0

    def psns_of(self, frame):
        if frame.operation != 12 or not frame.reth[2]:
            return 1
        return max(1, -(-frame.reth[2] // (self.mtu or 4096)))

    def packet(self, frame):
        conn = self.connection
        offset = conn.offset(frame.psn, conn.high)
        if offset < self.next:
            self.repeated(frame, offset)
            return
        if offset > self.next:
            conn.error(frame, f"gap: {offset - self.next} PSNs missing before it")
        kind, place = PLACES.get(frame.operation, (None, None))
        if kind is None or kind == "response":
            conn.error(frame, "opcode is no request")
            return
        self.seen[offset] = (frame.opcode, frame.payload_bytes)
        self.order(frame, kind, place)
        self.size(frame, kind, place, offset)
        self.next = offset + self.psns_of(frame)
        conn.high = max(conn.high, self.next - 1)
        conn.sent_frames.append(frame.number)
        conn.sent_highs.append(conn.high)

    def repeated(self, frame, offset):
        self.connection.retransmitted += 1
        if not self.loss:
            self.connection.error(frame, "PSN used before")
        elif frame.operation != 12 and self.seen.get(offset, (frame.opcode, frame.payload_bytes)) != \
                (frame.opcode, frame.payload_bytes):
            self.connection.error(frame, "retransmission differs in opcode or length")

    def order(self, frame, kind, place):
        inside = self.open_kind is not None
        if place in (FIRST, ONLY) and inside:
            self.connection.error(frame, f"inside an unfinished {self.open_kind}")
        if place in (MIDDLE, LAST) and self.open_kind != kind:
            self.connection.error(frame, f"without its {kind} FIRST")
        if place in (FIRST, MIDDLE) and self.mtu and frame.payload_bytes != self.mtu:
            self.connection.error(frame, f"payload {frame.payload_bytes}, not the MTU {self.mtu}")
        if self.mtu and frame.payload_bytes > self.mtu:
            self.connection.error(frame, f"payload {frame.payload_bytes} exceeds the MTU {self.mtu}")
        if place == LAST and not frame.payload_bytes:
            self.connection.error(frame, "LAST without payload")

    def size(self, frame, kind, place, offset):
        conn = self.connection
        conn.data_packets += kind in ("send", "write")
        conn.payload_bytes += frame.payload_bytes
        if place in (FIRST, ONLY):
            self.open_kind, self.open_size, self.open_first = kind, 0, offset
            self.open_length = frame.reth[2] if frame.reth and kind == "write" else None
        self.open_size += frame.payload_bytes
        if place in (LAST, ONLY):
            if self.open_length is not None and self.open_length != self.open_size:
                conn.error(frame, f"RETH length {self.open_length}, payload {self.open_size}")
            size = frame.reth[2] if kind == "read" else self.open_size
            count = self.psns_of(frame) if kind == "read" else offset - self.open_first + 1
            conn.messages.append(Message(kind, size, self.open_first, count, frame.imm, frame.se))
            self.open_kind = None

    def finish(self):
        if self.open_kind and not self.loss:
            self.connection.error(self.connection.requests[-1], f"{self.open_kind} not finished")


class ResponseAccount:
    """Walks the responses: PSNs and MSNs ascend, reads answered wholly and in order, no NAK unless loss."""

    def __init__(self, connection, loss):
        self.connection, self.loss = connection, loss
        self.high = -1
        self.msn = 0
        self.reads = {}
        for message in connection.messages:
            if message.kind in ("read", "atomic_write"):
                for at in range(message.count):
                    self.reads[message.first + at] = (message, at)
        self.read_payload = collections.Counter()
        self.ends = [message.first + message.count - 1 for message in connection.messages]

    def packet(self, frame):
        conn = self.connection
        offset = conn.offset(frame.psn, max(self.high, 0))
        if frame.aeth is not None:
            self.syndrome(frame, offset)
        if frame.operation in (13, 14, 15, 16):
            self.read_response(frame, offset)
        elif offset < self.high:
            conn.duplicate_responses += 1
            if not self.loss:
                conn.error(frame, "acknowledges less than an earlier one")
        if offset > conn.sent_before(frame):
            conn.error(frame, "acknowledges a PSN that was not sent")
        if frame.aeth_kind in (None, roce.AETH_ACK):
            self.high = max(self.high, offset)

    def syndrome(self, frame, offset):
        conn, (syndrome, msn) = self.connection, frame.aeth
        kind = frame.aeth_kind
        conn.naks += kind == roce.AETH_NAK
        conn.rnr_naks += kind == roce.AETH_RNR
        if kind not in (roce.AETH_ACK, roce.AETH_RNR, roce.AETH_NAK):
            conn.error(frame, f"reserved syndrome 0x{syndrome:02x}")
        elif kind != roce.AETH_ACK and not self.loss:
            conn.error(frame, f"NAK, syndrome 0x{syndrome:02x}")
        step = roce.psn_diff(msn, self.msn & roce.PSN_MASK)
        if step < 0:
            conn.error(frame, f"MSN {msn} after {self.msn & roce.PSN_MASK}")
        else:
            self.msn += step
        if self.msn > len(self.ends) + (1 if self.loss else 0):
            conn.error(frame, f"MSN {self.msn}, but only {len(self.ends)} messages were sent")
        if kind == roce.AETH_ACK and not self.loss:
            done = bisect.bisect_right(self.ends, offset if frame.operation != 13 else offset - 1)
            if self.msn < done:
                conn.error(frame, f"MSN {msn} with {done} messages acknowledged")

    def read_response(self, frame, offset):
        conn = self.connection
        message, at = self.reads.get(offset, (None, 0))
        if message is None:
            conn.error(frame, "answers no read request")
            return
        if offset <= self.high:
            conn.duplicate_responses += 1
            if not self.loss:
                conn.error(frame, "read response out of order")
            return
        if self.loss:
            conn.payload_bytes += frame.payload_bytes
            return
        if offset != self.high + 1 and at != 0:
            conn.error(frame, f"read response skips {offset - self.high - 1} PSNs")
        wanted = ONLY if message.count == 1 else FIRST if at == 0 else LAST if at == message.count - 1 else MIDDLE
        if PLACES[frame.operation][1] != wanted:
            conn.error(frame, f"a read response {wanted} belongs here")
        conn.payload_bytes += frame.payload_bytes
        self.read_payload[message.first] += frame.payload_bytes
        if at == message.count - 1 and message.kind == "read" and \
                self.read_payload[message.first] != message.size:
            conn.error(frame, f"read of {message.size} bytes answered with {self.read_payload[message.first]}")

    def finish(self):
        conn = self.connection
        if not self.loss and self.high < conn.high:
            conn.error(conn.requests[-1], f"last {conn.high - self.high} PSNs never acknowledged")


def pair_responses(connections, streams):
    """Gives each response stream to the request connection of the other direction whose PSNs it answers."""
    errors, free = [], list(connections)
    for (source, destination, dqp, _), frames in sorted(streams.items(), key=lambda item: item[1][0].number):
        def fitness(conn):
            sent = {f.psn for f in conn.requests}
            spans = [(f.psn, -(-f.reth[2] // (conn.mtu or 4096))) for f in conn.requests if f.operation == 12]
            return sum(f.psn in sent or any(0 <= roce.psn_diff(f.psn, psn) < count for psn, count in spans)
                       for f in frames)
        candidates = [conn for conn in free if (conn.source, conn.destination) == (destination, source)]
        best = max(candidates, key=fitness, default=None)
        if best is None or fitness(best) == 0:
            errors.append(f"responses to qp 0x{dqp:x} of {destination} answer no request in the capture")
            continue
        best.responses, best.peer_qp = frames, dqp
        free.remove(best)
    return errors


def restarts_of(frames, psns):
    """Per pair of hosts, the frames at which QPs start anew: the first request of a stream with one of these PSNs."""
    restarts, begun = {}, set()
    for frame in frames:
        stream = (frame.src, frame.dst, frame.dqp)
        if not frame.is_response and frame.psn in psns and (stream, frame.psn) not in begun:
            begun.add((stream, frame.psn))
            restarts.setdefault(frozenset((frame.src, frame.dst)), []).append(frame.number)
    return restarts


def connections_of(frames, mtu=None, loss=False, restart_psns=()):
    """(connections with their accounts, errors) of the RC and UC frames; restart_psns: see restarts_of."""
    requests, responses = {}, {}
    frames = [f for f in frames if f.opcode != 0x81 and f.transport in (roce.RC, roce.UC)]
    restarts = restarts_of(frames, restart_psns)
    for frame in frames:
        table = responses if frame.is_response else requests
        era = bisect.bisect_right(restarts.get(frozenset((frame.src, frame.dst)), []), frame.number)
        table.setdefault((frame.src, frame.dst, frame.dqp, era), []).append(frame)
    connections = []
    for (*key, _), stream in requests.items():
        conn = Connection(key)
        conn.requests, conn.transport = stream, stream[0].transport
        conn.mtu = mtu or pick_mtu(stream)
        connections.append(conn)
    errors = pair_responses([conn for conn in connections if conn.transport == roce.RC], responses)
    for conn in connections:
        conn.mtu = mtu or pick_mtu(conn.requests + conn.responses)
        account = RequestAccount(conn, conn.mtu, loss)
        for frame in conn.requests:
            account.packet(frame)
        account.finish()
        if conn.transport == roce.RC:
            answers = ResponseAccount(conn, loss)
            for frame in conn.responses:
                answers.packet(frame)
            answers.finish()
        errors += conn.errors
    return connections, errors
