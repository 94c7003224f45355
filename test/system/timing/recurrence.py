"""
The way of one RDMA WRITE or READ of one packet through two idle NICs with warm caches, as a recurrence over its stages.
Times are picoseconds; edges of clocks are exact. Written from the Timing sections of docs/blocks, not from the simulator.

Every registered fifo between two blocks is one cycle of the consumer's clock.
"""


class Clock:
    """Edge n is floor(n * 10^12 / hz)."""

    def __init__(self, hz):
        self.hz = hz

    def edge(self, cycle):
        return cycle * 10**12 // self.hz

    def at(self, ps):
        """The first cycle whose edge is at or after @ps."""
        cycle = ps * self.hz // 10**12
        return cycle if self.edge(cycle) >= ps else cycle + 1


# Lanes' rates: picoseconds a byte, as numerator and denominator.
LANE_BYTE_PS = {1: (4000, 1), 2: (2000, 1), 3: (130000, 128), 4: (65000, 128), 5: (32500, 128)}


def link_ps(pcie, size):
    """Time of @size bytes, overheads included, on a PCIe link that was idle."""
    num, den = LANE_BYTE_PS[pcie.gen]
    return size * 1000 * num // (den * pcie.lanes * (1000 - pcie.dllp_permille))


def completions(pcie, address, size):
    """Completions of a read: each ends at a multiple of RCB and has at most MPS bytes."""
    count = 0
    while size:
        most = pcie.mps_bytes - (address + pcie.mps_bytes) % pcie.rcb_bytes
        size -= min(most, size)
        address += most
        count += 1
    return count


def line_ps(fabric, size):
    """First bit of a frame of @size bytes without FCS to the last bit of its FCS, on an idle line."""
    bps = fabric.link_mbps * 10**6
    busy = (max(size, 60) + 8 + 4 + 12) * 8 * 10**12 // bps
    return busy - 12 * 8 * 10**12 // bps


ROCE_BYTES = 14 + 20 + 8 + 12 + 4  # Ethernet, IPv4, UDP, BTH, ICRC
RETH_BYTES, AETH_BYTES = 16, 4
SQ_DOORBELL_BYTES, BLUEFLAME_BYTES, WQEBB_BYTES, CQE_BYTES = 8, 64, 64, 64


class Host:
    """What the blocks of one host's NIC take, as of docs/blocks."""

    def __init__(self, config, idx):
        self.p = config.host[idx]
        self.core = Clock(self.p.nic.core_hz)
        self.mac = Clock(self.p.mac.clock_hz)

    def translation(self, cycle):
        """A DMA request pushed in @cycle to its turn: accepted, looked up in MPT and MTT, answered."""
        return cycle + 1 + 1 + self.p.pte_cache.mpt_cycles + self.p.pte_cache.mtt_cycles + 1

    def context(self, cycle):
        """A context asked for in @cycle and found."""
        return cycle + 1 + self.p.context_cache.hit_cycles + 1

    def mmio(self, post_ps, size):
        """A store of @size bytes to the cycle in which the doorbell unit sees it."""
        pcie = self.p.pcie
        return self.core.at(post_ps + self.p.root_complex.mmio_latency_ps +
                            link_ps(pcie, size + pcie.header_bytes) + pcie.propagation_ps)

    def read(self, turn, size):
        """
        A DMA read of a page's first @size bytes that gets its turn in cycle @turn to the cycle in which its client sees
        the answer. Its TLPs follow each other so closely that the first one's latency counts and the link down is busy
        from then on.
        """
        pcie, dma = self.p.pcie, self.p.dma
        served = (self.core.edge(turn + dma.issue_latency_cycles) + link_ps(pcie, pcie.header_bytes) +
                  pcie.propagation_ps + self.p.root_complex.read_latency_ps)
        data = size
        for offset in range(0, size, pcie.mrrs_bytes):
            tlp = min(pcie.mrrs_bytes, size - offset)
            data += completions(pcie, offset, tlp) * pcie.completion_header_bytes
        there = self.core.at(served + link_ps(pcie, data) + pcie.propagation_ps)
        return there + dma.response_latency_cycles

    def write(self, turn, size):
        """A DMA write that gets its first turn in cycle @turn to the cycle in which its client sees the answer."""
        dma = self.p.dma
        burst = dma.burst_tlps * self.p.pcie.mps_bytes
        turns = -(-size // burst)
        return turn + (turns - 1) * dma.burst_tlps * dma.issue_interval_cycles + dma.response_latency_cycles

    def write_first_bit(self, turn):
        return self.core.edge(turn + self.p.dma.issue_latency_cycles)

    def write_visible(self, turn, size):
        """A DMA write of one TLP that gets its turn in cycle @turn to its bytes being visible."""
        pcie, root = self.p.pcie, self.p.root_complex
        return (self.write_first_bit(turn) + link_ps(pcie, size + pcie.header_bytes) + pcie.propagation_ps +
                size * 8000 // root.memory_gbps + root.write_latency_ps)

    def first_bit(self, cycle):
        """A frame that transport pushes in core cycle @cycle to its first bit on the line."""
        return self.mac.edge(self.mac.at(self.core.edge(cycle)) + self.p.mac.tx_latency_cycles)

    def frame_seen(self, last_bit_ps):
        """Its last bit at the port to the core cycle in which transport sees it."""
        taken = self.mac.at(last_bit_ps) + 1
        return max(self.core.at(self.mac.edge(taken)) + 1,
                   self.core.at(self.mac.edge(taken + self.p.mac.rx_latency_cycles)))


def _wqe(host, at, post_ps, blueflame):
    """Post to the work item's visibility for transport."""
    p = host.p
    seen = host.mmio(post_ps, BLUEFLAME_BYTES if blueflame else SQ_DOORBELL_BYTES)
    rung = seen + p.doorbell.decode_latency_cycles + 1
    at["doorbell"] = at["sched"] = host.core.edge(rung)
    have = host.context(rung + 1)
    if not blueflame:
        have = host.read(host.translation(have), WQEBB_BYTES)
    decoded = have + p.wqe_fetch.decode_latency_cycles
    at["fetch"] = host.core.edge(decoded)
    return decoded + 1


def _send(host, at, work, size, is_inline):
    """The work item to the first bit of its packet; the cycle in which its context was used last."""
    p = host.p
    built = host.context(work + 1) + p.transport.turn_cycles
    at["context"] = host.core.edge(built)
    ready = built
    if not is_inline:
        turn = host.translation(built)
        at["translation"] = host.core.edge(turn)
        ready = host.read(turn, size)
    at["dma"] = host.core.edge(ready)
    at["first_packet"] = at["last_packet"] = host.first_bit(ready + p.transport.tx_pipeline_cycles)
    return built


def _respond(host, at, fabric, last_bit_ps, size):
    """The request's last bit at the responder to the last bit of the ACK at its own port."""
    p = host.p
    checked = host.context(host.frame_seen(last_bit_ps) + p.transport.rx_pipeline_cycles)
    key_checked = checked + 1 + p.pte_cache.mpt_cycles + 1
    turn = host.translation(key_checked)
    at["remote_first_bit"] = host.write_first_bit(turn)
    at["remote_visible"] = host.write_visible(turn, size)
    placed = host.write(turn, size)
    queued = placed + p.transport.ack_generation_cycles
    queued = host.core.at(host.core.edge(queued) + p.transport.ack_delay_ps)
    at["ack_first_bit"] = host.first_bit(queued + p.transport.tx_pipeline_cycles)
    return at["ack_first_bit"] + line_ps(fabric, ROCE_BYTES + AETH_BYTES)


def _processed(host, last_bit_ps, used):
    """The answer's last bit at the requester to its effect. @used: cycle in which tx used the context last."""
    p = host.p
    seen = host.frame_seen(last_bit_ps) + p.transport.rx_pipeline_cycles
    held = seen if seen <= used + p.transport.context_hold_cycles else host.context(seen)
    return held + p.transport.completion_cycles


def _complete(host, at, retired):
    """From the cycle in which the WQE is retired to its CQE."""
    at["ack"] = host.core.edge(retired)
    written = host.context(retired + 1)
    at["cqe"] = host.core.edge(written)
    at["cqe_visible"] = host.write_visible(host.translation(written), CQE_BYTES)


def write(config, post_ps, size, blueflame):
    """
    Times of the stages of a WRITE of @size bytes posted at @post_ps: by BlueFlame with the payload inline, or by
    doorbell with WQE and payload in host memory.
    """
    fabric = config.fabric
    near, far = Host(config, 0), Host(config, 1)
    at = {"post": post_ps}
    work = _wqe(near, at, post_ps, blueflame)
    used = _send(near, at, work, size, blueflame)
    frame = ROCE_BYTES + RETH_BYTES + size + -size % 4
    arrived = at["first_packet"] + line_ps(fabric, frame) + fabric.link_delay_ps
    ack = _respond(far, at, fabric, arrived, size)
    _complete(near, at, _processed(near, ack + fabric.link_delay_ps, used))
    return at


def _read_from(config, at, built, size):
    """
    A READ request built in cycle @built: the cycle in which its response is processed, and the one in which the data has
    been handed to memory and the WQE is retired.
    """
    fabric = config.fabric
    near, far = Host(config, 0), Host(config, 1)
    p = far.p
    at["context"] = at["dma"] = near.core.edge(built)
    at["first_packet"] = at["last_packet"] = near.first_bit(built + near.p.transport.tx_pipeline_cycles)
    arrived = at["first_packet"] + line_ps(fabric, ROCE_BYTES + RETH_BYTES) + fabric.link_delay_ps
    checked = far.context(far.frame_seen(arrived) + p.transport.rx_pipeline_cycles)
    key_checked = checked + 1 + p.pte_cache.mpt_cycles + 1
    data = far.read(far.translation(key_checked + p.transport.ack_generation_cycles), size)
    sent = far.first_bit(data + p.transport.tx_pipeline_cycles)
    there = sent + line_ps(fabric, ROCE_BYTES + AETH_BYTES + size + -size % 4) + fabric.link_delay_ps
    processed = _processed(near, there, built)
    turn = near.translation(processed)
    at["data_first_bit"] = near.write_first_bit(turn)
    return processed, near.write(turn, size)


def read(config, post_ps, size):
    """Times of the stages of a READ of @size bytes posted by doorbell at @post_ps."""
    near = Host(config, 0)
    at = {"post": post_ps}
    work = _wqe(near, at, post_ps, False)
    built = near.context(work + 1) + near.p.transport.turn_cycles
    _, retired = _read_from(config, at, built, size)
    _complete(near, at, retired)
    at["cqe_visible"] = max(at["cqe_visible"], _cqe_behind(near, at, size))
    return at


def _cqe_behind(host, at, size):
    """When a CQE is visible that finds the link up, or memory, busy with a READ's data."""
    pcie, root = host.p.pcie, host.p.root_complex
    tlps = -(-size // pcie.mps_bytes)
    data = size + tlps * pcie.header_bytes
    last = size - (tlps - 1) * pcie.mps_bytes
    sent = at["data_first_bit"] + pcie.propagation_ps
    by_link = sent + link_ps(pcie, data + CQE_BYTES + pcie.header_bytes) + CQE_BYTES * 8000 // root.memory_gbps
    by_memory = sent + link_ps(pcie, data) + (last + CQE_BYTES) * 8000 // root.memory_gbps
    return max(by_link, by_memory) + root.write_latency_ps


def _next_build(host, cycle):
    """A parked QP made active in @cycle to the build of its next request, the WQE and tx's context at hand."""
    decoded = host.context(cycle + 2) + host.p.wqe_fetch.decode_latency_cycles
    return decoded + 2 + host.p.transport.turn_cycles


def read_slot_ps(config, size):
    """
    How long a READ of one packet takes one of max_rd_atomic places: from the build of its request to that of the request
    that comes after it in its place. A response makes the QP active; when its turn comes before the data has been handed to
    memory it parks once more, and the WQE's end makes it active again.
    """
    near = Host(config, 0)
    start = built = near.core.at(10**9)
    count = 256
    for _ in range(count):
        processed, retired = _read_from(config, {}, built, size)
        built = _next_build(near, processed)
        if built - near.p.transport.turn_cycles <= retired:
            built = _next_build(near, retired)
    return (near.core.edge(built) - near.core.edge(start)) / count
