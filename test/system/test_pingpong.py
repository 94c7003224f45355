#!/usr/bin/python3
"""ibv_rc_pingpong as Debian ships it: -c makes it check every byte it receives."""

import runs

COMMON = "ibv_rc_pingpong -p {port}"

# (options, size, MTU, iterations)
TABLE = [
    ("-g 0 -c", 4096, 1024, 50),
    ("-g 1 -c", 4096, 1024, 20),
    ("-g 0 -c -e", 4096, 1024, 20),
    ("-g 0 -c", 1, 1024, 20),
    ("-g 0 -c", 1024, 1024, 20),
    ("-g 0 -c", 1025, 1024, 20),
    ("-g 0 -c", 65536, 256, 4),
    ("-g 1 -c", 4097, 512, 10),
    ("-g 0 -c", 65536, 4096, 8),
    ("-g 1 -c -e", 100000, 2048, 4),
    ("-g 0 -c", 1048576, 4096, 3),
]
LONG_TABLE = [(f"-g {gid} -c {events}", size, mtu, 10) for gid in (0, 1) for events in ("", "-e")
              for size in (1, 2, 63, 64, 255, 256, 257, 4095, 4096, 4097, 1048576) for mtu in (256, 512, 1024, 2048, 4096)]


class Pingpong(runs.SystemTest):
    def pingpong(self, options, size, mtu, count):
        result = self.run_pair(f"{COMMON} {options} -s {size} -m {mtu} -n {count}")
        self.assert_output(result, rf"{2 * size * count} bytes in ", 2)
        self.assert_output(result, rf"^{count} iters in ", 2)
        self.assertNotIn("invalid data", result.text, str(result))
        totals = self.check_wire(result, "--opcode", "send", "--messages", str(2 * count), "--size", str(size),
                                 "--mtu", str(mtu))
        self.assertEqual(totals["payload_bytes"], 2 * count * size, str(result))
        self.assertEqual(totals["retransmitted"], 0, str(result))
        frames = self.frames(result)
        self.assertEqual({frame.ipv6 for frame in frames}, {options.startswith("-g 1")}, str(result))
        self.assertEqual(totals["icrc_checked"], len(frames), str(result))

    def test_matrix(self):
        self.each_of(TABLE + (LONG_TABLE if runs.LONG else []), self.pingpong)

    def test_many_small_iterations(self):
        result = self.run_pair(f"{COMMON} -g 0 -c -s 64 -n {20000 if runs.LONG else 2000}")
        self.check_wire(result, "--no-tshark")

    def test_loopback_on_one_host(self):
        # server and client on the same host: the frames go through its own NIC
        result = self.run_hosts("ibv_rc_pingpong -p {port} -g 0 -c -n 20 & server=$!; "
                                "until ibv_rc_pingpong -p {port} -g 0 -c -n 20 localhost; do sleep 0.1; done; "
                                "wait $server")
        self.assert_output(result, r"^20 iters in ", 2)

    def test_first_and_last_of_sixty_four_hosts(self):
        command = f"{COMMON} -g 0 -c -n 20"
        result = self.run_hosts(command, *["true"] * 62, command + " localhost")
        self.assert_output(result, r"^20 iters in ", 2)
        totals = self.check_wire(result, "--opcode", "send", "--messages", "40")
        self.assertEqual(set(totals["ports"]), {runs.mac(0), runs.mac(63)}, str(result))

    def test_more_hosts_than_there_may_be(self):
        result = self.run_hosts(*["true"] * 65, status=2, capture=False, report=False)
        self.assertIn("64", result.errors, str(result))

    def test_three_pairs_on_six_hosts(self):
        ports = [runs.free_port() for _ in range(3)]
        server, client = "ibv_rc_pingpong -g 0 -c -n 50 -p %d", "ibv_rc_pingpong -g 0 -c -n 50 -p %d localhost"
        result = self.run_hosts(*[server % port for port in ports], *[client % port for port in ports])
        self.assert_output(result, r"^50 iters in ", 6)
        self.check_wire(result, "--opcode", "send", "--messages", "300")


if __name__ == "__main__":
    runs.main()
