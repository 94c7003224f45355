#!/usr/bin/python3
"""The same programs as in the Soft-RoCE captures, compared packet by packet."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import runs  # noqa: E402
import compare_golden  # noqa: E402

# golden capture, program (-p is added), extra options of the comparison
STOCK = [
    ("rocev2_tools/rc_pingpong_4096_mtu1024", "ibv_rc_pingpong -g 0 -m 1024 -s 4096 -n 3"),
    ("rocev2_tools/rc_pingpong_64_events", "ibv_rc_pingpong -g 0 -m 1024 -s 64 -n 3 -e"),
    ("rocev2_tools/rc_pingpong_mtu256", "ibv_rc_pingpong -g 0 -m 256 -s 600 -n 2"),
    ("rocev2_tools/rc_pingpong_ipv6", "ibv_rc_pingpong -g 1 -m 1024 -s 1500 -n 2"),
    ("rocev2_jumbo/rc_pingpong_4096_mtu4096", "ibv_rc_pingpong -g 0 -m 4096 -s 4096 -n 3"),
    ("rocev2_tools/ib_write_bw", "ib_write_bw -F -m 1024 -n 5 -s 4096"),
    ("rocev2_tools/ib_read_bw", "ib_read_bw -F -m 1024 -n 5 -s 4096"),
    ("rocev2_tools/ib_send_bw", "ib_send_bw -F -m 1024 -n 5 -s 4096"),
    ("rocev2_tools/ib_write_lat", "ib_write_lat -F -m 1024 -n 5 -s 8"),
    ("rocev2_tools/ib_write_bw_q2_bidir", "ib_write_bw -F -m 1024 -b -q 2 -n 5 -s 1024"),
]

# golden capture, options of golden_peer
PEER = [
    ("rocev2_verbs/vt_rc_send", "-o send"),
    ("rocev2_verbs/vt_rc_send_imm", "-o send_imm"),
    ("rocev2_verbs/vt_rc_send_se", "-o send_se"),
    ("rocev2_verbs/vt_rc_send_inline", "-o send_inline"),
    ("rocev2_verbs/vt_rc_write", "-o write"),
    ("rocev2_verbs/vt_rc_write_imm", "-o write_imm"),
    ("rocev2_verbs/vt_rc_read", "-o read"),
    ("rocev2_verbs/vt_rc_mtu256", "-o write -m 256"),
    ("rocev2_verbs/vt_rc_mtu512_read", "-o read -m 512"),
    ("rocev2_verbs/vt_rc_psnwrap", "-o write -P 0xfffffe"),
    ("rocev2_verbs/vt_rc_psnwrap_read", "-o read -P 0xfffffe"),
    ("rocev2_verbs/vt_rc_burst32", "-o burst"),
    ("rocev2_verbs/vt_rc_burst_long", "-o burst -c 4 -s 64"),
    ("rocev2_verbs/vt_rc_duplex", "-o duplex"),
    ("rocev2_verbs/vt_rc_write_128k_ackreq", "-o one_write -s 32768 -m 256"),
    ("rocev2_jumbo/vt_mtu4096_sizes", "-o write -m 4096"),
    ("rocev2_jumbo/vt_mtu4096_write", "-o one_write -m 4096 -s 10000"),
    ("rocev2_jumbo/vt_mtu2048_send", "-o one_send -m 2048 -s 5000"),
]

# captures that end in an error or have data that the program behind them drew by chance: payload is not compared
PEER_WITHOUT_PAYLOAD = [
    ("rocev2_jumbo/vt_mtu4096_read", "-o one_read -m 4096 -s 10000"),
    ("rocev2_verbs/vt_err_bad_rkey_write", "-o bad_rkey_write"),
    ("rocev2_verbs/vt_err_bad_rkey_read", "-o bad_rkey_read"),
    ("rocev2_verbs/vt_err_oob_write", "-o oob_write"),
    ("rocev2_verbs/vt_err_oob_read", "-o oob_read"),
    ("rocev2_verbs/vt_err_noperm_write", "-o noperm_write"),
    ("rocev2_verbs/vt_err_noperm_read", "-o noperm_read"),
    ("rocev2_verbs/vt_err_long_send", "-o long_send"),
    ("rocev2_verbs/vt_rnr_exceeded", "-o rnr_exceeded -R 20 -r 2"),
    ("rocev2_verbs/vt_dead_peer", "-o dead_peer -A 14 -n 3"),
]


class Golden(runs.SystemTest):
    def compare(self, golden, command, *options):
        result = self.run_pair(command + " -p {port}")
        path = os.path.join(runs.TRACES, golden + ".pcap")
        parsed = compare_golden.parse_options([result.pcap, path, *options])
        found = compare_golden.compare(result.pcap, path, parsed)
        self.assertEqual(found.errors, [], f"differs from {golden}{result}")

    def test_stock_programs(self):
        self.each_of(STOCK, self.compare)

    def test_peer_programs(self):
        self.each_of(PEER, lambda golden, options: self.compare(
            golden, f"{runs.program('golden_peer')} {options}", "--payload"))

    def test_errors(self):
        self.each_of(PEER_WITHOUT_PAYLOAD, lambda golden, options: self.compare(
            golden, f"{runs.program('golden_peer')} {options}"))


if __name__ == "__main__":
    runs.main()
