#!/usr/bin/python3
"""
Hits and misses of the PTE cache (MPT, MTT) and the context cache (QPC, CQC): equal to a plain LRU that is fed with the
logged order of lookups; and cyclic sweeps, which hit always at capacity and never with one more in a set.
"""

import os
import random
import unittest

import config
import lru

LONG = bool(os.environ.get("RN_LONG"))
SMALL = {"mpt": (4, 2), "mtt": (2, 3), "qpc": (2, 5), "cqc": (2, 3)}


def geometry_settings(geometry):
    sections = {"mpt": "pte_cache", "mtt": "pte_cache", "qpc": "context_cache", "cqc": "context_cache"}
    return [f"hosts.*.nic.{sections[unit]}.{unit}_{what}={value}" for unit, size in geometry.items()
            for what, value in zip(("sets", "ways"), size)]


def triples(order):
    return " ".join(",".join(map(str, message)) for message in order)


class Reference(unittest.TestCase):
    """Every lookup of the log, its victim, and the report's counters."""

    def check(self, settings, geometry, *arguments):
        result = config.run(settings, *arguments, report=True, logs=("lookup",))
        wrong, counts = lru.replay(result["lookup"], geometry, result["cleared_ps"],
                                   result["report"]["measured"]["to_ps"])
        self.assertEqual(wrong[:10], [], f"{len(wrong)} lookups")
        self.compare_counters(result["report"], counts)
        return counts

    def compare_counters(self, report, counts):
        for (host, unit), (hits, misses) in counts.items():
            caches = report["hosts"][host]["nic"]["caches"]
            of = caches["pte_cache" if unit in ("mpt", "mtt") else "context_cache"][unit]
            with self.subTest(host=host, unit=unit):
                self.assertEqual((of["hits"] + of["merges"], of["misses"]), (hits, misses))

    def test_random_traffic_through_small_caches(self):
        for seed in range(8 if LONG else 2):
            rng = random.Random(seed)
            order = [(rng.randrange(12), rng.randrange(10), rng.randrange(24))
                     for _ in range(2000 if LONG else 300)]
            counts = self.check(geometry_settings(SMALL), SMALL, "--qps", 12, "--keys", 10, "--pages", 24, "--bytes", 64,
                                "--warm", 20, "--order", triples(order))
            for (_, unit), (hits, misses) in counts.items():
                self.assertGreater(min(hits, misses), 20 if unit != "cqc" else -1, f"{unit}: {counts}")

    def test_replacement_is_not_just_by_set(self):
        """The reference with one way more or less does not fit: it could fail."""
        rng = random.Random(1)
        order = [(rng.randrange(12), rng.randrange(10), rng.randrange(24)) for _ in range(100)]
        result = config.run(geometry_settings(SMALL), "--qps", 12, "--keys", 10, "--pages", 24, "--bytes", 64, "--order",
                            triples(order), report=True, logs=("lookup",))
        for unit in SMALL:
            for step in (1, -1):
                other = {unit: (SMALL[unit][0], SMALL[unit][1] + step)}
                try:
                    wrong, _ = lru.replay(result["lookup"], other)
                except StopIteration:
                    continue  # no victim at all: everything is pinned
                self.assertNotEqual(wrong, [], f"{unit} {step:+d}")

    def test_streams_with_many_misses_under_way(self):
        for operation in ("write", "read"):
            with self.subTest(operation=operation):
                self.check(geometry_settings(SMALL), SMALL, "--op", operation, "--qps", 24, "--depth", 4, "--bytes", 4096,
                           "--warm", 20, "--count", 400 if LONG else 60)


class Sweep(unittest.TestCase):
    """Keys, pages or queue pairs of one set in turn. The first lookup of each message is the one that counts."""

    WARM_ROUNDS, ROUNDS = 3, 20

    def lookups(self, settings, arguments, members, message, unit, host, numbers):
        """Results of the first lookups of @numbers, message by message."""
        order = [message(member) for member in members] * (self.WARM_ROUNDS + self.ROUNDS)
        warm = self.WARM_ROUNDS * len(members)
        result = config.run(settings, *arguments, "--warm", warm, "--order", triples(order), report=True,
                            logs=("lookup",))
        posts = [m["post_ps"] for m in result["messages"]][warm:]
        log = [entry for entry in map(lru.Lookup, result["lookup"])
               if entry.host == host and entry.unit == unit and entry.counts and entry.number in numbers]
        found = []
        for idx, post_ps in enumerate(posts):
            end_ps = posts[idx + 1] if idx + 1 < len(posts) else result["end_ps"]
            of = [entry.result for entry in log if post_ps <= entry.at_ps < end_ps]
            self.assertGreater(len(of), 0, f"message {idx} looked nothing up")
            self.assertEqual(set(of[1:]) - {"hit"}, set(), "only the first lookup of a message may miss")
            found.append(of[0])
        return found

    def strangers(self, settings, arguments, unit, host, numbers):
        """Sets that others than @numbers are looked up in."""
        result = config.run(settings, *arguments, "--order", triples([(0, 0, 0)] * 4), logs=("lookup",), report=True)
        first_ps = result["messages"][0]["post_ps"]
        return {entry.set for entry in map(lru.Lookup, result["lookup"])
                if entry.host == host and entry.unit == unit and entry.counts and entry.at_ps >= first_ps and
                entry.number not in numbers}

    def sweep(self, unit, size, arguments, message, number_of, count):
        """@number_of(run's object, host, member): what the member's messages look up in @unit."""
        sets, ways = size
        settings = geometry_settings({unit: size})
        objects = config.run(settings, *arguments, "--order", "0,0,0", report=True)
        for host in (0, 1):
            numbers = {member: number_of(objects, host, member) for member in range(count)}
            if None in numbers.values():
                continue
            others = self.strangers(settings, arguments, unit, host, set(numbers.values()))
            by_set = {}
            for member, number in numbers.items():
                by_set.setdefault(number % sets, {}).setdefault(number, member)
            members = next(list(of.values()) for which, of in sorted(by_set.items())
                           if len(of) > ways and which not in others)
            for more, result in ((0, "hit"), (1, "miss")):
                chosen = members[:ways + more]
                seen = self.lookups(settings, arguments, chosen, message, unit, host, {numbers[m] for m in chosen})
                with self.subTest(unit=unit, host=host, size=size, members=len(chosen)):
                    self.assertEqual(len(seen), self.ROUNDS * len(chosen))
                    self.assertEqual(set(seen), {result})

    def test_keys(self):
        for size in ((8, 2), (4, 1), (4, 16)) if LONG else ((8, 2),):
            self.sweep("mpt", size, ("--keys", 80, "--bytes", 8), lambda m: (0, m, 0),
                       lambda run, host, m: run["keys"][m]["key"][host] >> 8, 80)

    def test_pages(self):
        line = config.Config().host[0].pte_cache.mtt_line_entries
        for size in ((8, 2), (4, 4), (16, 1)) if LONG else ((8, 2),):
            self.sweep("mtt", size, ("--pages", 40 * line, "--bytes", 8), lambda m: (0, 0, m * line),
                       lambda run, host, m: run["keys"][0]["mtt"][host] // line + m, 40)

    def test_queue_pairs(self):
        for size in ((4, 5), (2, 8), (1, 12)) if LONG else ((4, 5),):
            self.sweep("qpc", size, ("--qps", 40, "--bytes", 8), lambda m: (m, 0, 0),
                       lambda run, host, m: run["links"][m]["qpn"][host], 40)

    def test_completion_queues(self):
        for size in ((4, 3), (2, 8)) if LONG else ((4, 3),):
            self.sweep("cqc", size, ("--qps", 40, "--bytes", 8), lambda m: (m, 0, 0),
                       lambda run, host, m: run["links"][m]["cqn"][host] if host == 0 else None, 40)


if __name__ == "__main__":
    unittest.main()
