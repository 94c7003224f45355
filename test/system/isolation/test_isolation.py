#!/usr/bin/python3
"""A client that lies in every way it can think of, beside programs whose data is checked, in one simulator.

Nobody else notices: the data is right, the simulator lives, and when the client is gone nothing of it is left."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import runs  # noqa: E402
import serving  # noqa: E402

# How much is played, by count: a busy machine takes longer and plays the same.
ACTS = 6000 if runs.LONG else 500
ACTS_OF_ONE = 200 if runs.LONG else 8
ACTS_OF_TIME = 600 if runs.LONG else 40
SEED = int(os.environ.get("RN_SEED", "1"))
VERIFY = "{program} -p {port} -t 120 -P {psn} -n 2 -s 0,1,64,1025,20000 -g {gid}"


class HostileTest(serving.ServingTest):
    def hostile(self, host, seed, acts, *options):
        return self.start(host, runs.program("hostile"), "-s", str(seed), "-n", str(acts), *options)

    def acts(self, *options):
        found = self.execute([runs.program("hostile"), *options, "-L"]).output.split()
        self.assertGreater(len(found), 5)
        return found

    def beside_transfers(self, hostiles):
        """Checked transfers, one after the other, until all the hostile clients have ended; what those said."""
        rounds = 0
        while rounds == 0 or any(hostile.poll() is None for hostile in hostiles):
            psn = (rounds * 7919 + 0x5a5a5a) & 0xffffff
            self.run_pair_of_programs(VERIFY.format(program=runs.program("rc_verify"), port="{port}", psn=psn, gid=rounds % 2),
                                      "all data right")
            self.run_pair_of_programs("ibv_rc_pingpong -g 0 -c -n 100 -s 10000 -p {port}", "100 iters")
            rounds += 1
        outputs = [self.finish(hostile) for hostile in hostiles]
        for output in outputs:
            self.assertIn("done", output)
        return outputs


class Isolation(HostileTest):
    def test_hostile_client_beside_checked_transfers(self):
        self.serve()
        self.run_pair_of_programs("ibv_rc_pingpong -g 0 -c -n 20 -p {port}")  # everything is loaded once
        before = self.baseline()
        self.beside_transfers([self.hostile(host, SEED + host, ACTS) for host in (0, 1)])
        self.assert_back_at(before)
        self.run_pair_of_programs("ib_write_bw -F -n 200 -p {port}", "BW peak")
        report = self.end()
        self.assert_nothing_left(report)
        self.assert_was_hostile(report)

    def assert_was_hostile(self, report):
        """The client came through to the places it attacks; otherwise this test shows nothing."""
        counters = serving.counters_of(report, 0)
        for name in ("bad_key", "bad_bounds", "sq_malformed", "req_cqe_error", "resp_remote_access_errors", "cq_overruns",
                     "sq_bad_qp", "arms_ignored", "rq_kicks_ignored", "illegal_writes"):
            self.assertGreater(counters[name], 0, name)
        driver = report["result"]["hosts"][0]["driver"]["counters"]
        for name in ("request_errors", "clients_ended"):
            self.assertGreater(driver[name], 0, name)

    def test_each_act_alone_leaves_nothing(self):
        self.serve()
        self.run_pair_of_programs("ibv_rc_pingpong -g 0 -c -n 20 -p {port}")
        before = self.baseline()
        for act in self.acts():
            with self.subTest(act=act):
                self.assertIn("done", self.finish(self.hostile(0, SEED, ACTS_OF_ONE, "-a", act)))
                self.assert_back_at(before)
        self.run_pair_of_programs("ibv_rc_pingpong -g 0 -c -n 20 -p {port}", "20 iters")
        self.assert_nothing_left(self.end())

    def test_in_one_run(self):
        hostile = f"{runs.program('hostile')} -s {SEED + 7} -n {ACTS // 4} & "
        program = f"{runs.program('rc_verify')} -p {{port}} -t 60 -P 0x5a5a5a -n 4; s=$?; wait; exit $s"
        result = self.run_pair(hostile + program, hostile + program.replace("; s=", " localhost; s="), capture=False)
        self.assert_output(result, "all data right", 2)
        self.assert_output(result, r"^hostile: .* done", 2)
        self.assert_nothing_left(result.report)


class Time(HostileTest):
    """The same for virtual time: a process that lies about it, or asks for it in every way, delays a run and no more."""

    CLOCK = ()

    def hostile(self, host, seed, acts, *options):
        """Not preloaded: it speaks to the simulator by itself."""
        return self.start(host, "env", "-u", "LD_PRELOAD", runs.program("hostile"), "-T", "-s", str(seed), "-n", str(acts), *options)

    def count(self, outputs, what):
        return sum(int(re.search(rf"(\d+) {what}", output)[1]) for output in outputs)

    def test_lies_about_time_beside_checked_transfers(self):
        self.serve()
        self.run_pair_of_programs("ibv_rc_pingpong -g 0 -c -n 20 -p {port}")
        before = self.baseline()
        outputs = self.beside_transfers([self.hostile(host, SEED + host, ACTS_OF_TIME) for host in (0, 1)])
        self.assert_back_at(before)
        for what in ("pages", "turns", "refused", "hung up"):  # otherwise this test shows nothing
            self.assertGreater(self.count(outputs, what), 0, f"{what}: {outputs}")
        self.assert_nothing_left(self.end())

    def test_each_act_alone_leaves_nothing(self):
        self.serve()
        self.run_pair_of_programs("ibv_rc_pingpong -g 0 -c -n 20 -p {port}")
        before = self.baseline()
        for act in self.acts("-T"):
            with self.subTest(act=act):
                self.assertIn("done", self.finish(self.hostile(0, SEED, ACTS_OF_ONE, "-a", act)))
                self.assert_back_at(before)
        self.run_pair_of_programs("ibv_rc_pingpong -g 0 -c -n 20 -p {port}", "20 iters")
        self.assert_nothing_left(self.end())

    def test_in_one_run_that_ends_by_itself(self):
        """Clients of both kinds. What the run says of itself is what it was."""
        program = f"{runs.program('rc_verify')} -p {{port}} -t 100 -P 0x5a5a5a -n 4"
        for options in ("-T", ""):
            with self.subTest(options=options):
                hostile = f"env -u LD_PRELOAD {runs.program('hostile')} {options} -s {SEED + 7} -n {ACTS_OF_TIME} & "
                ends = "; s=$?; wait; exit $s"
                result = self.run_pair(hostile + program + ends, hostile + program + " localhost" + ends, capture=False,
                                       timeout=2 * runs.TIMEOUT_S)
                self.assert_output(result, "all data right", 2)
                self.assert_output(result, r"^hostile: .* done", 2)
                self.assert_nothing_left(result.report)
                self.assertFalse(result.report["run"]["virtual_time"]["deterministic"])


class Refusals(runs.SystemTest):
    """What a peer asks for and may not have draws the NAK of the IBA, once; the programs check the statuses."""

    CLOCK = ("--free-run",)
    ACCESS, INVALID, OPERATION = 0x62, 0x61, 0x63  # AETH syndromes
    CASES = [("write_unknown_rkey", ACCESS), ("write_stale_rkey", ACCESS), ("write_other_variant", ACCESS),
             ("write_other_pd", ACCESS), ("write_beyond", ACCESS), ("write_no_rights", ACCESS),
             ("write_long_unknown_rkey", ACCESS), ("write_qp_forbids", INVALID),
             ("read_unknown_rkey", ACCESS), ("read_stale_rkey", ACCESS), ("read_other_pd", ACCESS), ("read_beyond", ACCESS),
             ("read_no_rights", ACCESS), ("read_qp_forbids", INVALID),
             ("send_too_long", INVALID), ("receive_unknown_lkey", OPERATION), ("receive_stale_lkey", OPERATION)]

    def test_refused_with_the_right_nak(self):
        cases = self.CASES if runs.LONG else self.CASES[1::3]
        for case, syndrome in cases:
            with self.subTest(case=case):
                result = self.run_pair(f"{runs.program('rc_errors')} -p {{port}} -t 15 -c {case}")
                self.assert_output(result, "all as expected", 2)
                naks = [frame for frame in self.frames(result) if frame.aeth and frame.aeth[0] >= 0x60]
                self.assertEqual([(nak.aeth[0], nak.src_mac) for nak in naks], [(syndrome, runs.mac(0))], str(result))


if __name__ == "__main__":
    runs.main()
