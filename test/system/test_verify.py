#!/usr/bin/python3
"""Our own RC programs: every operation with data checked, and every error with its completions."""

import sys

import runs

SANE = "-p {port}"


class Verify(runs.SystemTest):
    def verify(self, options, wire=("--loss",), **keywords):
        command = f"{runs.program('rc_verify')} {SANE} {options}"
        result = self.run_pair(command, **keywords)
        self.assert_output(result, "all data right", 2)
        return result, self.check_wire(result, *wire) if wire else None

    def test_all_operations_and_sizes(self):
        self.verify("-n 2", wire=())

    def test_wire_is_clean(self):
        _, totals = self.verify("-n 2 -s 0,1,3,64,1024,1025,4096", wire=("--mtu", "1024"))
        self.assertEqual(totals["messages"], {"read": 14, "send": 28, "write": 28})
        self.assertEqual(totals["payload_bytes"], (0 + 1 + 3 + 64 + 1024 + 1025 + 4096) * 10)

    def test_every_mtu(self):
        self.each_of((256, 512, 2048, 4096), lambda mtu: self.verify(
            f"-m {mtu} -s 0,{mtu - 1},{mtu},{mtu + 1},{4 * mtu},20000", wire=("--mtu", str(mtu))))

    def test_variants(self):
        rows = ("-e", "-i -s 0,1,3,63,64", "-u -s 1,5000", "-k 1", "-k 4", "-g 1", "-P 0xfffff0",
                "-e -i -u -k 2 -g 1 -s 0,1,64,3000")
        self.each_of(rows, lambda options: self.verify(
            options if "-s" in options else options + " -s 0,1,64,1025,30000", wire=()))

    def test_late_receives_draw_rnr_naks(self):
        _, totals = self.verify("-l 30 -o send,send_imm,write_imm -n 2 -s 0,64,5000")
        self.assertGreater(totals["rnr_naks"], 0)

    def test_psn_wraps(self):
        result, totals = self.verify("-P 0xfffffe -n 2 -s 4096,5000", wire=("--mtu", "1024"))
        self.assertEqual(totals["retransmitted"], 0)
        psns = {frame.psn for frame in self.frames(result)}
        self.assertTrue({0xffffff, 0} <= psns)

    def test_big_message(self):
        size = 2 ** 31 if runs.LONG else 2 ** 25
        command = f"{runs.program('rc_verify')} {SANE} -t 300 -n 1 -m 4096 -k 1 -o write -s {size}"
        result = self.run_pair(command, capture=False, timeout=900 if runs.LONG else None)
        self.assert_output(result, "all data right", 2)


class Errors(runs.SystemTest):
    def cases(self):
        listed = self.execute([runs.program("rc_errors"), "-L"])
        return listed.output.split()

    def error(self, case):
        result = self.run_pair(f"{runs.program('rc_errors')} {SANE} -t 15 -c {case}")
        self.assert_output(result, "all as expected", 2)
        if case == "modify_to_error":
            self.assertEqual(self.frames(result), [], str(result))
        else:
            # After the error the case connects its QPs again, 1000 PSNs on.
            self.check_wire(result, "--loss", "--no-scapy", "--restart-psn", "1000")

    def test_each_error(self):
        # One run for each, so that one that fails does not hide the others.
        self.each_of(self.cases(), self.error)

    def test_all_in_one_process(self):
        result = self.run_pair(f"{runs.program('rc_errors')} {SANE} -t 15")
        self.assert_output(result, f"{len(self.cases())} cases, all as expected", 2)

    def test_with_events(self):
        result = self.run_pair(f"{runs.program('rc_errors')} {SANE} -t 15 -e")
        self.assert_output(result, "all as expected", 2)

    def test_the_program_can_fail(self):
        # the two sides disagree: the client expects an error that does not come
        name = runs.program("rc_errors")
        result = self.run_hosts(f"{name} {SANE} -t 3 -c write_beyond", f"{name} {SANE} -t 3 -c send_too_long localhost",
                                status=None)
        self.assertEqual(result.status, 1, str(result))


if __name__ == "__main__":
    groups = {"verify": "Verify", "errors": "Errors"}
    sys.argv[1:] = [groups.get(argument, argument) for argument in sys.argv[1:]]
    runs.main()
