"""
What saturated streams of WRITEs or READs can carry: a closed form for each resource that could be used up. The payload
rate is the smallest of them. Host 0 posts; the data's source is host 0 (WRITE) or host 1 (READ).
"""

from recurrence import (AETH_BYTES, CQE_BYTES, RETH_BYTES, ROCE_BYTES, SQ_DOORBELL_BYTES, WQEBB_BYTES, Clock,
                        completions, link_ps)

FRAME_OVERHEAD_BYTES = 8 + 4 + 12  # preamble, FCS, gap


class Stream:
    """Messages of @size bytes in packets of @mtu bytes."""

    def __init__(self, config, operation, size, mtu=4096):
        self.config = config
        self.reads = operation == "read"
        self.size = size
        self.packets = max(1, -(-size // mtu))
        self.payload = min(size, mtu)
        self.source, self.target = (1, 0) if self.reads else (0, 1)

    def rate(self, ps_per_message):
        return self.size * 8 * 10**12 / ps_per_message

    # Links: bytes of a message over the rate.

    def ethernet_line(self):
        ends = (2 if self.packets > 1 else 1) * AETH_BYTES if self.reads else RETH_BYTES
        size = self.size + self.packets * (ROCE_BYTES + FRAME_OVERHEAD_BYTES) + ends
        return self.rate(size * 8 * 10**6 / self.config.fabric.link_mbps)

    def pcie(self, host):
        return self.config.host[host].pcie

    def byte_ps(self, host):
        """Exactly, where link_ps() rounds down."""
        return link_ps(self.pcie(host), 10**9) / 10**9

    def mrrs(self, host):
        return min(self.pcie(host).mrrs_bytes, self.config.host[host].dma.reassembly_bytes, self.payload)

    def read_bytes(self, host):
        """One read TLP's completions on the link."""
        pcie, size = self.pcie(host), self.mrrs(host)
        return size + completions(pcie, 0, size) * pcie.completion_header_bytes

    def reads_per_message(self, host):
        return self.packets * -(-self.payload // self.mrrs(host))

    def writes_per_message(self):
        own = 1 if self.target == 0 else 0  # its CQE
        return self.packets * -(-self.payload // self.pcie(self.target).mps_bytes) + own

    def pcie_down(self, host):
        pcie, size = self.pcie(host), 0
        if host == self.source:
            size += self.reads_per_message(host) * self.read_bytes(host)
        if host == 0:
            size += WQEBB_BYTES + pcie.completion_header_bytes + SQ_DOORBELL_BYTES + pcie.header_bytes
        return self.rate(size * self.byte_ps(host)) if size else float("inf")

    def pcie_up(self, host):
        pcie, size = self.pcie(host), 0
        if host == self.source:
            size += self.reads_per_message(host) * pcie.header_bytes
        if host == self.target:
            tlps = self.packets * -(-self.payload // pcie.mps_bytes)
            size += self.size + tlps * pcie.header_bytes
        if host == 0:
            size += CQE_BYTES + 2 * pcie.header_bytes  # with the read of its WQE
        return self.rate(size * self.byte_ps(host))

    def memory(self, host):
        return self.config.host[host].root_complex.memory_gbps * 10**9

    # Finite things: how many over how long each is held.

    def round_trip_ps(self):
        """A read TLP's turn to its last completion, in whole core cycles: so long its tag and buffer are held."""
        p, size = self.config.host[self.source], self.read_bytes(self.source)
        core = Clock(p.nic.core_hz)
        served = (core.edge(p.dma.issue_latency_cycles) + link_ps(p.pcie, p.pcie.header_bytes) +
                  p.pcie.propagation_ps + p.root_complex.read_latency_ps)
        return core.edge(core.at(served + link_ps(p.pcie, size) + p.pcie.propagation_ps))

    def held(self, count, ps):
        return count * self.mrrs(self.source) * 8 * 10**12 / ps

    def dma_tags(self):
        return self.held(self.config.host[self.source].dma.tags, self.round_trip_ps())

    def reassembly(self):
        room = self.config.host[self.source].dma.reassembly_bytes // self.mrrs(self.source)
        return self.held(room, self.round_trip_ps())

    def root_complex_reads(self):
        root = self.config.host[self.source].root_complex
        served = root.read_latency_ps + self.read_bytes(self.source) * self.byte_ps(self.source)
        return self.held(root.outstanding_reads, served)

    def nonposted_credits(self):
        pcie = self.pcie(self.source)
        back = link_ps(pcie, pcie.header_bytes) + pcie.propagation_ps + pcie.credit_return_ps
        return self.held(pcie.nonposted_header_credits, back)

    def posted_credits(self):
        pcie = self.pcie(self.target)
        size = min(pcie.mps_bytes, self.payload)
        units = -(-size // 16)
        data_credits = max(pcie.posted_data_credits, -(-pcie.mps_bytes // 16))
        tlps = min(pcie.posted_header_credits, data_credits // units)
        back = (link_ps(pcie, size + pcie.header_bytes) + pcie.propagation_ps +
                size * 8000 // self.config.host[self.target].root_complex.memory_gbps + pcie.credit_return_ps)
        return tlps * self.size / self.writes_per_message() * 8 * 10**12 / back

    # Initiation intervals: what passes a stage for a message, times the interval.

    def interval(self, host, cycles):
        return self.rate(cycles * 10**12 / self.config.host[host].nic.core_hz)

    def stages(self):
        """(limiter, host): cycles of a message."""
        near, far = self.config.host
        source, target = self.config.host[self.source], self.config.host[self.target]
        tlps = {self.source: self.reads_per_message(self.source), self.target: self.writes_per_message()}
        tlps[0] += 1 if self.reads else 2  # WQE and CQE; writes_per_message() has the CQE of a READ
        found = {
            ("block:dma", self.source): tlps[self.source] * source.dma.issue_interval_cycles,
            ("block:dma", self.target): tlps[self.target] * target.dma.issue_interval_cycles,
            ("block:dma_completion", self.source):
                self.reads_per_message(self.source) * source.dma.completion_interval_cycles,
            ("block:sched", 0): near.sched.interval_cycles,
            ("block:wqe_fetch", 0): near.wqe_fetch.decode_interval_cycles,
            ("block:cqe", 0): near.cqe.interval_cycles,
        }
        if self.reads:
            found["block:transport_tx", 1] = self.packets * far.transport.reply_packet_cycles
            # A response keeps the engine for a cycle more, which takes it; the request's turn comes between.
            found["block:transport_tx", 0] = (self.packets * (near.transport.completion_cycles + 1) +
                                              near.transport.turn_cycles + 1)
        else:
            found["block:transport_tx", 0] = self.packets * near.transport.tx_packet_cycles
            found["block:transport_rx", 1] = self.packets * far.transport.rx_packet_cycles
        return found

    def limits(self):
        """{(limiter's name, host; None where both ends share it): bits of payload a second}."""
        found = {
            ("ethernet_line", None): self.ethernet_line(),
            ("memory_bandwidth", self.source): self.memory(self.source),
            ("memory_bandwidth", self.target): self.memory(self.target),
            ("dma_tags", self.source): self.dma_tags(),
            ("buffers:dma", self.source): self.reassembly(),
            ("root_complex_reads", self.source): self.root_complex_reads(),
            ("pcie_credits", self.source): self.nonposted_credits(),
            ("pcie_credits", self.target): self.posted_credits(),
        }
        for host in (0, 1):
            found["pcie_down", host] = self.pcie_down(host)
            found["pcie_up", host] = self.pcie_up(host)
        for key, cycles in self.stages().items():
            found[key] = self.interval(key[1], cycles)
        return found

    def smallest(self):
        found = self.limits()
        key = min(found, key=found.get)
        return key, found[key]
