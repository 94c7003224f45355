#!/usr/bin/python3
"""What programs see of the simulated NIC, and what they see outside a run."""

import os
import re

import runs


class Devices(runs.SystemTest):
    def test_each_host_has_one_device(self):
        result = self.run_hosts("ibv_devices", "ibv_devices", "ibv_devices", capture=False)
        self.assertEqual(len(re.findall(r"^\s+rnicsim0\s", result.output, re.M)), 3, str(result))

    def test_devinfo_shows_an_active_ethernet_port_and_both_gids(self):
        result = self.run_hosts("ibv_devinfo -v", "ibv_devinfo -v", capture=False)
        for pattern in (r"state:\s+PORT_ACTIVE", r"link_layer:\s+Ethernet", r"active_mtu:\s+4096",
                        r"node_guid:\s+(?!0000:0000:0000:0000)", r"max_qp:\s+[1-9]"):
            self.assert_output(result, pattern, 2)
        for host in range(2):
            self.assert_output(result, r"GID\[\s*0\]:\s+" + re.escape(runs.gid(host)) + ", RoCE v2")
        self.assert_output(result, r"GID\[\s*1\]:\s+fe80::[0-9a-f:]+, RoCE v2", 2)

    def test_part_id_is_configuration(self):
        for part in (4119, 4123):
            result = self.run_hosts("ibv_devinfo", "ibv_devinfo", capture=False,
                                    options=["--set", f"hosts.*.nic.device.vendor_part_id={part}"])
            self.assert_output(result, rf"vendor_part_id:\s+{part}\s*$", 2)

    def test_named_device_that_does_not_exist(self):
        result = self.run_hosts("ibv_devinfo -d mlx5_0", capture=False, status=None)
        self.assertNotEqual(result.status, 0, str(result))

    def test_outside_a_run_there_is_no_device(self):
        # The library found through the build tree, but no simulator: as on a machine without NIC.
        bare = self.execute(["ibv_devices"])
        library = os.path.join(runs.BUILD, "lib")
        ours = self.execute(["ibv_devices"], env={**os.environ, "LD_LIBRARY_PATH": library})
        if not runs.SANITIZED:
            self.assertEqual((ours.status, ours.text), (bare.status, bare.text), str(ours))


if __name__ == "__main__":
    runs.main()
