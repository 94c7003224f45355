#!/usr/bin/python3
"""The capture checkers against genuine Soft-RoCE captures, and against the same captures damaged on purpose."""

import glob
import os
import struct
import sys
import tempfile
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tools", "wire"))
import check_capture  # noqa: E402
import compare_golden  # noqa: E402
import roce  # noqa: E402

TRACES = os.path.join(ROOT, "traces")
LONG = os.environ.get("RN_LONG") == "1"
PINGPONG = "rocev2_tools/rc_pingpong_4096_mtu1024.pcap"
# Files in which frames are damaged or missing at the capture point.
DAMAGED = {"corrupt_icrc.server", "corrupt_payload.server", "trunc_frame.server"}
WITH_GAPS = {"loss_burst_one.server", "loss_nak.server", "loss_send_mid.server", "loss_write_first.server",
             "loss_write_mid.server", "reorder_write.server", "uc_loss_send_mid.server", "uc_loss_write_mid.server"}


def check(path, *options):
    """Errors of a capture; path below traces/ or absolute."""
    arguments = check_capture.parse_options([os.path.join(TRACES, path), *options])
    return check_capture.check(arguments.file, arguments)[1]


def quick(path, *options):
    return check(path, "--no-tshark", "--no-scapy", *options)


def compare(ours, golden, *options):
    paths = [os.path.join(TRACES, path) for path in (ours, golden)]
    return compare_golden.compare(*paths, compare_golden.parse_options([*paths, *options])).errors


def all_traces():
    return sorted(os.path.relpath(path, TRACES) for path in glob.glob(os.path.join(TRACES, "rocev2_*", "*.pcap")))


def stem(path):
    return os.path.basename(path)[:-5]


class Edit:
    """A capture's frames to be changed and written to a temporary file."""

    def __init__(self, path):
        self.records = [[time_ns, bytearray(data)] for time_ns, data, _ in roce.read_pcap(os.path.join(TRACES, path))]

    def frame(self, number):
        return self.records[number - 1][1]

    def seal(self, number):
        """Makes lengths, IP checksum and ICRC of an IPv4 frame right again."""
        data = self.frame(number)
        struct.pack_into("!H", data, 16, len(data) - 14)
        struct.pack_into("!H", data, 38, len(data) - 34)
        struct.pack_into("!H", data, 24, 0)
        struct.pack_into("!H", data, 24, roce.checksum(bytes(data[14:34])))
        struct.pack_into("<I", data, len(data) - 4, roce.icrc(bytes(data[14:-4]), False))

    def write(self):
        handle, path = tempfile.mkstemp(suffix=".pcap")
        with os.fdopen(handle, "wb") as stream:
            stream.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))
            for time_ns, data in self.records:
                stream.write(struct.pack("<IIII", *divmod(time_ns, 1000000000), len(data), len(data)) + data)
        return path


class Genuine(unittest.TestCase):
    def test_every_icrc_and_length_is_right_in_undamaged_captures(self):
        for path in all_traces():
            frames, _, _ = roce.read_frames(os.path.join(TRACES, path))
            errors = check_capture.check_frames(frames, False)
            self.assertEqual(bool(errors), stem(path) in DAMAGED, f"{path}: {errors[:3]}")

    def test_every_icrc_by_scapy(self):
        for path in all_traces():
            frames, _, _ = roce.read_frames(os.path.join(TRACES, path))
            _, errors = check_capture.check_with_scapy(frames)
            self.assertEqual(bool(errors), stem(path) in DAMAGED - {"trunc_frame.server"}, f"{path}: {errors[:3]}")

    def test_accounts_hold_with_loss_allowed(self):
        for path in all_traces():
            if stem(path) not in DAMAGED | WITH_GAPS:
                self.assertEqual(quick(path, "--loss"), [], path)

    def test_accounts_hold_strictly_where_nothing_was_lost(self):
        for path in all_traces():
            name = stem(path)
            if path.startswith("rocev2_loss") or "vt_err" in name or "vt_rnr" in name or \
                    name in ("vt_dead_peer", "rc_pingpong_4096_mtu1024_spurious_retransmit", "vt_rc_mw_sendinv"):
                continue
            self.assertEqual(quick(path), [], path)

    def test_gaps_are_found(self):
        for path in all_traces():
            if stem(path) in WITH_GAPS:
                self.assertNotEqual(quick(path, "--loss"), [], path)

    def test_loss_is_an_error_in_the_strict_account(self):
        for name in ("loss_write_mid.client", "loss_ack_write.client", "loss_read_req.client", "dup_read_req.client",
                     "retry_exceeded.client"):
            self.assertNotEqual(quick(f"rocev2_loss/{name}.pcap"), [], name)

    def test_tshark_finds_nothing(self):
        paths = [path for path in all_traces() if stem(path) not in DAMAGED]
        for path in paths if LONG else paths[::6] + ["rocev2_tools/rc_pingpong_ipv6.pcap"]:
            self.assertEqual(check_capture.check_dissection(os.path.join(TRACES, path)), [], path)

    def test_tshark_finds_the_truncated_frame(self):
        self.assertNotEqual(check_capture.check_dissection(os.path.join(TRACES, "rocev2_loss/trunc_frame.server.pcap")), [])

    def test_padded_payload_that_looks_like_an_ether_type_is_no_malformed_packet(self):
        edit = Edit("rocev2_verbs/vt_rc_send.pcap")
        decoded = [roce.decode(0, 0, bytes(data), len(data)) for _, data in edit.records]
        number = 1 + next(at for at, frame in enumerate(decoded) if frame.payload_bytes == 3)
        edit.frame(number)[-8:-4] = b"\x88\x47\0\0"
        edit.seal(number)
        path = edit.write()
        self.assertNotEqual(check_capture.finish_dissection(path, check_capture.start_dissection(path), first=False), [])
        self.assertEqual(check_capture.check_dissection(path), [])
        os.unlink(path)

    def test_totals(self):
        options = check_capture.parse_options([os.path.join(TRACES, PINGPONG)])
        totals, errors = check_capture.check(options.file, options)
        self.assertEqual(errors, [])
        self.assertEqual(totals["messages"], {"send": 6})
        self.assertEqual(totals["payload_bytes"], 6 * 4096)
        self.assertEqual(totals["data_packets"], 24)
        self.assertEqual(totals["icrc_checked"], totals["icrc_checked_by_scapy"])
        self.assertEqual(sum(port["frames"] for port in totals["ports"].values()), 30)

    def test_expected_messages(self):
        right = ("--messages", "6", "--size", "4096", "--mtu", "1024", "--opcode", "send")
        self.assertEqual(quick(PINGPONG, *right), [])
        self.assertNotEqual(quick(PINGPONG, "--messages", "7", "--opcode", "send"), [])
        self.assertNotEqual(quick(PINGPONG, "--size", "4095", "--opcode", "send"), [])
        self.assertNotEqual(quick(PINGPONG, "--messages", "6", "--opcode", "write"), [])
        self.assertNotEqual(quick(PINGPONG, "--mtu", "2048"), [])


class Damaged(unittest.TestCase):
    """Each check fails when what it looks at is wrong. Frame 1 is a SEND FIRST, 4 a SEND LAST, 5 its ACK."""

    def damaged(self, change, path=PINGPONG, check_with=quick):
        edit = Edit(path)
        change(edit)
        written = edit.write()
        try:
            return "\n".join(check_with(written))
        finally:
            os.unlink(written)

    def test_unchanged_copy_passes(self):
        self.assertEqual(self.damaged(lambda edit: edit.seal(1), check_with=check), "")

    def test_any_flipped_bit_after_the_ethernet_header_is_found(self):
        first = Edit(PINGPONG).frame(1)
        # all of the headers, and some of the payload and the ICRC
        for at in [*range(14, 60), 500, len(first) - 4, len(first) - 1]:
            for bit in (1, 0x80) if not LONG else (1 << n for n in range(8)):
                if at == 46 and bit >= 0x40:
                    continue  # FECN and BECN: switches set them, so the ICRC leaves them out
                def flip(edit, at=at, bit=bit):
                    edit.frame(1)[at] ^= bit
                self.assertNotEqual(self.damaged(flip), "", f"byte {at} bit 0x{bit:x}")

    def test_flipped_payload_bit_is_found_by_scapy(self):
        def flip(edit):
            edit.frame(1)[200] ^= 1
        self.assertIn("says scapy", self.damaged(flip, check_with=lambda path: check(path, "--no-tshark")))

    def test_ipv6_icrc(self):
        def flip(edit):
            edit.frame(1)[300] ^= 1
        self.assertIn("ICRC", self.damaged(flip, "rocev2_tools/rc_pingpong_ipv6.pcap"))

    def test_missing_request(self):
        self.assertIn("gap: 1 PSNs", self.damaged(lambda edit: edit.records.pop(1)))

    def test_missing_last_ack(self):
        self.assertIn("never acknowledged", self.damaged(lambda edit: edit.records.pop()))

    def test_swapped_requests(self):
        def swap(edit):
            edit.records[1][1], edit.records[2][1] = edit.records[2][1], edit.records[1][1]
        self.assertIn("gap", self.damaged(swap))

    def test_times_out_of_order(self):
        def swap(edit):
            edit.records[1][0] = edit.records[0][0] - 1
        self.assertIn("earlier", self.damaged(swap))

    def sealed(self, number, at, value, path=PINGPONG):
        """Complaints after one byte of a frame is replaced and the frame made whole again."""
        def change(edit):
            edit.frame(number)[at] = value
            edit.seal(number)
        return self.damaged(change, path)

    def test_illegal_opcode_order(self):
        self.assertIn("unfinished", self.sealed(2, 42, 4))
        self.assertIn("without its", self.sealed(1, 42, 1))
        self.assertIn("without its write", self.sealed(4, 42, 8))

    def test_reserved_bits(self):
        self.assertIn("reserved", self.sealed(1, 46, 0x20))
        self.assertIn("version", self.sealed(1, 43, 1))

    def test_nak_and_msn(self):
        ack = next(i for i, (_, data) in enumerate(Edit(PINGPONG).records, 1) if data[42] == 17)
        self.assertIn("NAK", self.sealed(ack, 54, 0x60))
        self.assertIn("MSN", self.sealed(ack, 57, 0))
        self.assertIn("MSN", self.sealed(ack, 57, 9))

    def test_ack_of_unsent_psn(self):
        ack = next(i for i, (_, data) in enumerate(Edit(PINGPONG).records, 1) if data[42] == 17)
        psn = Edit(PINGPONG).frame(ack)[53]
        self.assertIn("not sent", self.sealed(ack, 53, psn + 1))

    def test_write_length(self):
        path = "rocev2_tools/ib_write_bw.pcap"
        self.assertIn("RETH length", self.sealed(1, 69, 1, path))

    def test_short_middle_packet(self):
        def shorten(edit):
            del edit.frame(2)[100:104]
            edit.seal(2)
        self.assertIn("not the MTU", self.damaged(shorten))

    def test_read_answered_short(self):
        def shorten(edit):
            number = next(i for i, (_, data) in enumerate(edit.records, 1) if data[42] == 15)
            del edit.frame(number)[100:104]
            edit.seal(number)
        self.assertIn("answered with", self.damaged(shorten, "rocev2_tools/ib_read_bw.pcap"))

    def test_not_a_capture(self):
        with tempfile.NamedTemporaryFile(suffix=".pcap") as stream:
            with self.assertRaises(ValueError):
                check(stream.name)


class Comparison(unittest.TestCase):
    def test_a_capture_equals_itself(self):
        for path in all_traces():
            self.assertEqual(compare(path, path, "--payload"), [], path)

    def test_psn_base_and_wrap_do_not_matter(self):
        self.assertEqual(compare("rocev2_verbs/vt_rc_write.pcap", "rocev2_verbs/vt_rc_psnwrap.pcap", "--payload"), [])

    def test_other_programs_differ(self):
        base = "rocev2_verbs/vt_rc_send.pcap"
        for other in ("vt_rc_write", "vt_rc_send_imm", "vt_rc_send_se", "vt_rc_read", "vt_rc_tclass", "vt_rc_send_inline"):
            self.assertNotEqual(compare(f"rocev2_verbs/{other}.pcap", base), [], other)

    def test_retransmission_differs_unless_ignored(self):
        pair = ("rocev2_tools/rc_pingpong_4096_mtu1024_spurious_retransmit.pcap", PINGPONG)
        self.assertNotEqual(compare(*pair), [])
        self.assertEqual(compare(*pair, "--ignore-retransmissions"), [])

    def test_other_nak_differs(self):
        self.assertNotEqual(compare("rocev2_verbs/vt_rnr_exceeded.pcap", "rocev2_verbs/vt_rnr.pcap"), [])


if __name__ == "__main__":
    unittest.main()
