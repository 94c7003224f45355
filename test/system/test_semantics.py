#!/usr/bin/python3
"""What verbs promise beside moving data: errors, references, clocks, privileges; and what a run says of itself."""

import runs

CASES = ("holding", "handles", "registration", "timestamps", "privileges", "gone_memory")
VIRTUAL = ("wall_time",)  # in free-run simulated time falls behind the clock that programs read


class Semantics(runs.SystemTest):
    def test_cases(self):
        """Each in virtual time and in free-run."""
        def run(case, clock):
            result = self.run_hosts(f"{runs.program('rc_semantics')} {case}", options=list(clock), capture=False)
            self.assertEqual(result.status, 0, str(result))
            self.assertRegex(result.output, rf"{case}: 0 wrong", str(result))
        self.each_of([(case, ()) for case in CASES + VIRTUAL] + [(case, ("--free-run",)) for case in CASES], run)

    def test_pingpong_measures_by_time_stamps(self):
        result = self.run_hosts("ibv_rc_pingpong -g 0 -t -n 20", "ibv_rc_pingpong -g 0 -t -n 20 localhost")
        self.assertEqual(result.status, 0, str(result))
        self.assertEqual(result.output.count("Average receive completion clock cycles"), 2, str(result))

    def test_a_connection_without_gid_is_warned_about_once(self):
        for gid, count in (("", 1), ("-g 0", 0)):
            with self.subTest(gid=gid):
                result = self.run_hosts(f"ibv_rc_pingpong {gid} -n 5", f"ibv_rc_pingpong {gid} -n 5 localhost")
                self.assertEqual(result.status, 0, str(result))
                self.assertEqual(result.errors.count("connected without GRH"), count, str(result))
                if count:
                    self.assertIn("ibv_rc_pingpong on host 0", result.errors)

    def test_the_default_identity_is_nobodys(self):
        """0x02c9 promises mlx5dv, which does not work here."""
        result = self.run_hosts("ibv_devinfo")
        self.assertRegex(result.output, r"vendor_id:\s+0x524e43\s", str(result))
        result = self.run_hosts("ibv_devinfo", options=["--set", "hosts.*.nic.device.vendor_id=0x02c9"])
        self.assertRegex(result.output, r"vendor_id:\s+0x02c9\s", str(result))


if __name__ == "__main__":
    runs.main()
