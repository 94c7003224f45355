#!/usr/bin/python3
"""
READs with k outstanding follow Little's law, k * bytes / L, until the next limit. L is how long a READ takes a place of
max_rd_atomic, from the recurrence (recurrence.read_slot_ps).
"""

import os
import unittest
from concurrent.futures import ThreadPoolExecutor

import config
import limits
import recurrence
from test_rates import TOLERANCE, measure

LONG = bool(os.environ.get("RN_LONG"))
# 2 km of fibre either way: a READ's way is much longer than the fetch of a batch of WQEs.
FAR = ("fabric.link_delay_ps=10000000", "hosts.*.nic.device.max_rd_atomic=128")
# Up to here the next limit is far enough away not to be felt; beyond the bend it is the limit.
KNEE = 0.8
SIZE = 4096


class Little(unittest.TestCase):
    def rates(self, settings, streams):
        """(k, measured, k * bytes / L, next limit, limiter's name) for each (k, options)."""
        cfg = config.Config(settings)
        slot_ps = recurrence.read_slot_ps(cfg, SIZE)
        _, limit = limits.Stream(cfg, "read", SIZE).smallest()

        def one(stream):
            k, options = stream
            measured, named, _ = measure("read", settings, SIZE, 4096, options)
            return k, measured, k * SIZE * 8 * 10**12 / slot_ps, limit, named[0]

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(one, streams))

    def check(self, settings, streams, last=None):
        for k, measured, little, limit, named in self.rates(settings, streams):
            if os.environ.get("RN_VERBOSE"):
                print(f"{settings} k={k}: {measured / 1e9:.3f} Gb/s, k*bytes/L {little / 1e9:.3f} "
                      f"({measured / little - 1:+.3%}), next limit {limit / 1e9:.3f}, {named}")
            with self.subTest(settings=settings, k=k):
                if little <= KNEE * limit:
                    self.assertAlmostEqual(measured / little, 1, delta=TOLERANCE)
                    self.assertEqual(named, "latency")
                elif little >= limit / KNEE:
                    self.assertAlmostEqual(measured / limit, 1, delta=TOLERANCE)
                    self.assertEqual(named, "ethernet_line")
                else:
                    self.assertLess(measured, 1.01 * min(little, limit))
                    self.assertGreater(measured, 0.95 * min(little, limit))

    def test_one_queue_pair_with_k_outstanding(self):
        ks = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128) if LONG else (1, 2, 4, 8, 16, 32, 48, 64, 96)
        self.check(FAR, [(k, {"qps": 1, "depth": 200, "rd_atomic": k, "warm": 400, "count": 2000}) for k in ks])

    def test_k_queue_pairs_with_one_outstanding_each(self):
        ks = (1, 2, 3, 5, 8, 12, 16, 24, 32, 48, 64, 96) if LONG else (1, 3, 8, 32, 64)
        self.check(FAR[:1], [(k, {"qps": k, "depth": 8, "rd_atomic": 1, "warm": 16, "count": 100}) for k in ks])

    def test_short_way(self):
        """With 5 m of cable, as long as a fetched batch of WQEs is not used up before the next is there."""
        self.check((), [(k, {"qps": 1, "depth": 64, "rd_atomic": k, "warm": 200, "count": 2000}) for k in (1, 2)])

    def test_the_bend_is_no_free_parameter(self):
        """A slot that is 2 % longer would not fit: the tolerance can fail."""
        (_, measured, little, _, _), = self.rates(FAR, [(8, {"qps": 1, "depth": 64, "rd_atomic": 8, "warm": 64})])
        self.assertGreater(abs(measured / (little / 1.02) - 1), TOLERANCE)


if __name__ == "__main__":
    unittest.main()
