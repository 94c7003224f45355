#!/usr/bin/python3
"""Whatever a program waits in, it waits in virtual time: the same figures with and without load, and no thread unseen."""

import contextlib
import ctypes
import os
import re
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import runs  # noqa: E402

# program: mode: (what it says, at which millisecond of virtual time); no time: what it prints only has to repeat
EXPECTED = {
    "waits_threads": {
        "timed_mutex": [("timed out 1", 30), ("timed out 1", 50), ("taken 0", 100)],
        "try_mutex": [("taken 0", 100)],
        "kinds_of_mutex": [("taken 0", 100), ("own 1", 100)],
        "hog": [("had a turn 1", 10)],
        "poll_under_lock": [("poll_under_lock 0", 100)],
        "rwlock": [("timed out 1", 30), ("read 0", 100), ("timed out 1", 130), ("written 0", 200)],
        "spin": [("taken 0", 100)],
        "barrier": [("met 0", 30), ("met 1", 60), ("met 2", 90)],
        "semaphore": [("timed out 1", 20), ("timed out 1", 40), ("semaphore 0", 100)],
        "condition_clock": [("steady 1", 20), ("long over 1", 20), ("real 1", 40), ("told 1", 60), ("long over 1", 60)],
        "join": [("timed out 1", 20), ("timed out 1", 40), ("join 0", 100)],
        "cancel": [("cancelled 1", 10), ("cancelled 1", 20), ("free 0", 20)],
        "once": [("initialised 1", 100), ("there 1", 100)],
        "c11": [("timed out 1", 20), ("signalled 1", 200), ("result 7", 200)],
        "exit_of_main": [("outlived 1", 100)],
        "shared": [("spin 0", 100), ("rwlock 0", 200), ("mutex 0", 300), ("semaphore 0", 400), ("barrier 0", 500),
                   ("condition 1", 600)],
    },
    "waits_descriptors": {
        # 65,536 bytes are in the pipe when the reader begins to take 50,000 a millisecond
        "big_pipe": [("written 1000000", 19), ("read 1", 20)],
        "big_socket": [("written 1000000", None), ("read 1", 20)],
        "receive_all": [("timed out 1", 40), ("all 16", 240)],
        "messages": [("received 2", 200), ("sent 2", 200)],
        "move": [("spliced 8", 100), ("teed 8", 200)],
        "connect": [("connected 0", 0), ("connected 0", 0), ("connected 0", 100), ("connected 0", 200)],
        "event": [("event 5", 100)],
        "file_locks": [("flock 0", 100), ("lock 0", 200)],
        "queues": [("received 8", 100), ("timed out 1", 120), ("semaphore 0", 200)],
        "message_queue": [("timed out 1", 20), ("received 4", 100), ("received 4", 200), ("sent 0", 200), ("full 1", 220)],
        "futex": [("changed 1", 0), ("timed out 1", 20), ("timed out 1", 40), ("woken 0", 100)],
        "pause": [("signal 15", 100), ("signal 14", 1100)],
        "interruption": [("left 1", 100), ("read -1", 200), ("restarted 10", 300)],
        "suspend": [("suspended 10", 100), ("poll -1", 200), ("epoll -1", 300)],
        "signal_wait": [("timed out 1", 20), ("waited 0", 120), ("waited 12", 220), ("read 1", 320), ("signal 12", 320)],
        "timer": [("thread 17", 100), ("thread 17", 200), ("thread 17", 300), ("value 18", 450)],
        "children": [("nobody 0", 0), ("waited 0", 100), ("status 3", 100), ("reaped 1", 100), ("status 3", 100),
                     ("none 1", 100)],
    },
    "waits_streams": {
        "popen": [("line 1", 1000), ("end 1", 1000), ("status 0", 1000), ("status 3", 2000)],
        "portions": [("first 1", 1000), ("second 6", 1000), ("third 5", 2000), ("end -1", 2000)],
        "bytes": [("byte 97", 1000), ("byte 98", 1000), ("back 122", 1000), ("block 8", 3000), ("block 1", 3000),
                  ("byte 98", 3000), ("block 2", 3000), ("end 1", 3000)],
        "scan": [("fields 1", 1000), ("number 1234", 1000), ("blank 32", 1000), ("fields 1", 2000), ("word 1", 2000),
                 ("fields -1", 2000)],
        "input": [("byte 97", 100), ("fields 1", 200)],
        "full_pipe": [("blocks 0", 1000), ("lines 0", 1000), ("440003", None), ("status 0", 2000)],
        "slow_reader": [("lines 100000", None), ("status 0", None)],
        "fifo": [("reader 1", 100), ("line 1", 200), ("end 1", 200), ("writer 1", 300), ("written 4", 300), ("read 0", 300)],
        "system": [("system 4", 1000)],
        "random": [],
        "seeds_of_process": [],
        "seeds_of_program": [("srand48(12345678) 161641097", 0), ("srand(4000000000) 1111130805", 0),
                             ("srandom(1) 1804289383", 0)],
    },
}

PERSONALITY, NO_RANDOMIZE = 135, 0x40000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2


def refuse_personality():
    """In a child before exec: the system call that switches address randomisation off fails from now on."""
    def statement(code, value, yes=0, no=0):
        return struct.pack("HBBI", code, yes, no, value)

    load, equal, has_bit, give = 0x20, 0x15, 0x45, 0x06
    program = b"".join((
        statement(load, 0), statement(equal, PERSONALITY, 0, 4),
        statement(load, 16), statement(equal, 0xffffffff, 2, 0), statement(has_bit, NO_RANDOMIZE, 0, 1),
        statement(give, 0x00050001),  # errno EPERM
        statement(give, 0x7fff0000)))
    text = ctypes.create_string_buffer(program)
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(text)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0):
        os._exit(99)


@contextlib.contextmanager
def load():
    """Two busy processes."""
    busy = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) for _ in range(2)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


class Waits(runs.SystemTest):
    def outcome(self, program, modes):
        """What each mode prints, and the report."""
        loop = f"for mode in {' '.join(modes)}; do {runs.program(program)} $mode || echo failed; done"
        result = self.run_hosts(loop, options=["--virtual-time", "--quiet"], capture=False, raw=False, timeout=150)
        virtual = result.report["run"]["virtual_time"]
        self.assertTrue(virtual["deterministic"] or virtual["address_randomisation"], f"{virtual}{result}")
        self.assertEqual((virtual["outside"], virtual["unproved"]), (0, 0), f"{virtual}{result}")
        return [line.partition(" ")[2] for line in result.output.splitlines()], result

    def check(self, program):
        modes = EXPECTED[program]
        listed = subprocess.run([runs.program(program)], capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(listed, list(modes), "each mode has its expectation")
        plain, result = self.outcome(program, modes)
        with load():
            loaded, _ = self.outcome(program, modes)
        self.assertEqual(plain, loaded, "output under load")
        lines = iter(plain)
        for mode, expected in modes.items():
            with self.subTest(mode=mode):
                said = []
                for line in lines:
                    said.append(line)
                    if line.startswith(mode + " 0 at ") or (mode == "exit_of_main" and line.startswith("outlived")):
                        break
                self.check_mode(said, expected, result)

    def check_mode(self, said, expected, result):
        for (what, at_ms), line in zip(expected, said):
            text, _, at_ns = line.partition(" at ")
            self.assertEqual(text, what, f"{said}{result}")
            if at_ms is not None:
                # what calls cost in all
                self.assertTrue(0 <= int(at_ns) - at_ms * 1000000 < 50000, str(said))
        self.assertGreaterEqual(len(said), len(expected), str(said))

    def test_threads_wait_for_one_another(self):
        self.check("waits_threads")

    def test_descriptors_signals_and_children_are_waited_for(self):
        self.check("waits_descriptors")

    def test_streams_wait_and_random_numbers_repeat(self):
        self.check("waits_streams")

    def test_refused_fixed_addresses_are_reported(self):
        arguments = self.arguments("true", options=["--virtual-time"], capture=False)
        result = self.execute(arguments, preexec_fn=refuse_personality)
        self.assertEqual(result.status, 0, str(result))
        virtual = result.report["run"]["virtual_time"]
        self.assertTrue(virtual["address_randomisation"], str(virtual))
        self.assertFalse(virtual["deterministic"], str(virtual))
        self.assertTrue(re.search("addresses are random", result.errors), str(result))

    def test_fixed_addresses_are_reported(self):
        result = self.execute(self.arguments("true", options=["--virtual-time"], capture=False))
        self.assertFalse(result.report["run"]["virtual_time"]["address_randomisation"], str(result))


if __name__ == "__main__":
    runs.main()
