#!/usr/bin/python3
"""Saturated streams meet the smallest of the closed forms (limits.py) within 1 %, and the report names it."""

import os
import unittest
from concurrent.futures import ThreadPoolExecutor

import config
import limits

LONG = bool(os.environ.get("RN_LONG"))
TOLERANCE = 0.01
NIC, HOST = "hosts.{}.nic.{}={}", "hosts.{}.host.root_complex.{}={}"


def nic(host, key, value):
    return NIC.format(host, key, value)


def root(host, key, value):
    return HOST.format(host, key, value)


def case(operation, limiter, *settings, size=65536, mtu=4096, **streams):
    return (operation, limiter, settings, size, mtu, streams)


def some(*values):
    """All of them, or the first and the last."""
    return values if LONG else (values[0], values[-1])


def cases_of(operation):
    """(operation, the limiter that the settings are meant to make, ...)."""
    source, target = (1, 0) if operation == "read" else (0, 1)
    down, up, line = ("pcie_down", source), ("pcie_up", target), ("ethernet_line", None)
    tags, in_credits, out_credits = ("dma_tags", source), ("pcie_credits", target), ("pcie_credits", source)
    found = [case(operation, line)]
    found += [case(operation, line, f"fabric.link_mbps={mbps}") for mbps in some(10000, 25000, 40000, 56000)]
    found += [case(operation, line, mtu=mtu) for mtu in some(2048, 1024)]
    # Generation 3, x16 to x4 and below; other generations.
    found += [case(operation, down, nic(source, "pcie.lanes", lanes)) for lanes in some(4, 2, 1, 8)]
    found += [case(operation, up, nic(target, "pcie.lanes", lanes)) for lanes in some(4, 2, 1, 8)]
    found += [case(operation, down, nic(source, "pcie.gen", gen), nic(source, "pcie.lanes", 4)) for gen in some(1, 2, 4)]
    found += [case(operation, tags, nic(source, "dma.tags", count)) for count in some(1, 2, 3, 4, 8)]
    # MRRS: bytes that a tag stands for.
    found += [case(operation, tags, nic(source, "dma.tags", count), nic(source, "pcie.mrrs_bytes", mrrs), size=262144)
              for count, mrrs in some((16, 64), (8, 128), (4, 256), (3, 1024), (2, 2048), (1, 4096))]
    found += [case(operation, line, nic(source, "dma.tags", 4), nic(source, "pcie.mrrs_bytes", 4096))]
    # MPS: headers that the data takes along, either way.
    found += [case(operation, up, nic(target, "pcie.lanes", 4), nic(target, "pcie.mps_bytes", mps))
              for mps in some(64, 128, 512, 1024)]
    found += [case(operation, down, nic(source, "pcie.lanes", 4), nic(source, "pcie.mps_bytes", mps))
              for mps in some(64, 128, 512)]
    found += [case(operation, in_credits, nic(target, "pcie.posted_header_credits", n)) for n in some(1, 2, 4, 8, 10)]
    found += [case(operation, in_credits, nic(target, "pcie.posted_data_credits", n)) for n in some(16, 32, 64, 128, 160)]
    found += [case(operation, out_credits, nic(source, "pcie.nonposted_header_credits", n)) for n in some(1, 2, 3, 4)]
    found += [case(operation, ("root_complex_reads", source), root(source, "outstanding_reads", n))
              for n in some(1, 2, 4, 6)]
    found += [case(operation, ("memory_bandwidth", host), root(host, "memory_gbps", 40)) for host in (source, target)]
    found += [case(operation, ("buffers:dma", source), nic(source, "dma.reassembly_bytes", n))
              for n in some(512, 1024, 2048, 4096)]
    found += [case(operation, ("block:dma", target), nic(target, "dma.issue_interval_cycles", n)) for n in some(15, 64)]
    found += [case(operation, ("block:dma", source), nic(source, "dma.issue_interval_cycles", n)) for n in some(30, 64)]
    found += [case(operation, ("block:dma_completion", source), nic(source, "dma.completion_interval_cycles", n))
              for n in some(30, 64)]
    return found


CASES = cases_of("write") + cases_of("read") + [
    # An interval longer than context_hold_cycles costs a look-up of the context more.
    case("write", ("block:transport_tx", 0), nic(0, "transport.tx_packet_cycles", 250)),
    case("write", ("block:transport_rx", 1), nic(1, "transport.rx_packet_cycles", 400)),
    case("read", ("dma_tags", 1), nic(1, "dma.tags", 12)),
    case("read", ("block:transport_tx", 1), nic(1, "transport.reply_packet_cycles", 400)),
    case("read", ("block:transport_tx", 0), nic(0, "transport.completion_cycles", 400), qps=1, depth=16),
]

# Stages that serve messages, with small ones: (limiter, setting, cycles a message, what else). A WRITE of 64 bytes looks up
# the contexts of wqe_fetch, tx (for its turn and for its ACK) and cqe, with a release each; and the translations of its
# payload, its CQE and a batch_wqebbs-th of its WQE.
SMALL = {"size": 64, "qps": 16, "depth": 64, "warm": 64}
MESSAGE_CASES = [
    ("block:sched", ("sched.interval_cycles", 100), 100, {"signal_every": 16}),
    ("block:wqe_fetch", ("wqe_fetch.decode_interval_cycles", 100), 100, {"signal_every": 16}),
    ("block:cqe", ("cqe.interval_cycles", 100), 100, {}),
    ("block:context_cache", ("context_cache.interval_cycles", 50), 8 * 50, {}),
    ("block:pte_cache", ("pte_cache.interval_cycles", 50), (2 + 1 / 8) * 50, {}),
    ("block:pte_cache", ("pte_cache.interval_cycles", 100), (1 + 1 / 16 + 1 / 8) * 100, {"signal_every": 16}),
]


def measure(operation, settings, size, mtu, streams):
    arguments = {"qps": 4, "depth": 4, "warm": 8, "count": 400 if LONG else 60}
    arguments.update(streams)
    if size > 65536:
        arguments["count"] //= 4
    arguments.setdefault("rd_atomic", 16)
    options = ["--op", operation, "--bytes", size, "--mtu", mtu]
    for key, value in arguments.items():
        options += ["--" + key.replace("_", "-"), value]
    result = config.run(settings, *options, report=True)
    flows = zip(result["from"], result["to"])
    bps = sum((to[0] - from_[0]) * size * 8 * 10**12 / (to[1] - from_[1]) for from_, to in flows)
    limiter = result["report"]["limiter"]
    host = limiter.get("host")
    return bps, (limiter["name"], int(host[-1]) if host else None), limiter


def judge_message(job):
    limiter, (key, value), cycles, streams = job
    settings = (nic(0, key, value),)
    bps = 64 * 8 / cycles * config.Config(settings).host[0].nic.core_hz
    streams = {**SMALL, "count": 1000 if LONG else 300, **streams}
    del streams["size"]
    measured, named, said = measure("write", settings, 64, 4096, streams)
    text = (f"write 64 B {settings[0]}: form {bps / 64 / 8e6:.3f} M/s by {limiter}, measured {measured / 64 / 8e6:.3f} "
            f"({measured / bps - 1:+.3%}), named {said}")
    return text, measured / bps - 1, named != (limiter, 0) or abs(measured / bps - 1) > TOLERANCE


def judge(job):
    """(what was compared, measured / form - 1, whether it is wrong)."""
    operation, intended, settings, size, mtu, streams = job
    stream = limits.Stream(config.Config(settings), operation, size, mtu)
    key, bps = stream.smallest()
    measured, named, limiter = measure(operation, settings, size, mtu, streams)
    if key[1] is None:
        named = (named[0], None)
    text = (f"{operation} {size} B {' '.join(settings)}: form {bps / 1e9:.3f} Gb/s by {key}, measured "
            f"{measured / 1e9:.3f} ({measured / bps - 1:+.3%}), named {limiter}")
    wrong = key != intended or named != key or abs(measured / bps - 1) > TOLERANCE
    return text, measured / bps - 1, wrong


class Rates(unittest.TestCase):
    def check(self, judgement, jobs):
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = list(pool.map(judgement, jobs))
        if os.environ.get("RN_VERBOSE"):
            print("\n".join(text for text, _, _ in found))
        wrong = [text for text, _, is_wrong in found if is_wrong]
        self.assertEqual(wrong, [], f"{len(wrong)} of {len(found)}:\n" + "\n".join(wrong))

    def test_each_limit_is_met_and_named(self):
        self.check(judge, CASES)

    def test_stages_that_serve_messages_are_met_and_named(self):
        self.check(judge_message, MESSAGE_CASES)


if __name__ == "__main__":
    unittest.main()
