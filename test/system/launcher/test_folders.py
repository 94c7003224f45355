#!/usr/bin/python3
"""Where a run's folder is, who holds it, what becomes of it, and of a build that lies in an awkward place."""

import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import launching  # noqa: E402
from launching import EXIT_SIMULATOR, EXIT_USAGE, runs, serving  # noqa: E402

PINGPONG = "ibv_rc_pingpong -g 0 -c -n 50 -p {port}"


class Left(launching.LauncherTest):
    def test_killed_launcher_s_folder_is_removed_by_the_next_run(self):
        marker = self.marker()
        process = self.launch("run", "--free-run", "--quiet", f"exec sleep {marker}", "true")
        self.wait_for_process(marker)
        simulator = serving.simulator_of(process)
        left = self.run_folders()
        self.assertEqual(len(left), 1)
        process.kill()
        process.wait()
        self.wait_for_gone(simulator)
        living = self.launch("run", "--free-run", "--quiet", f"exec sleep {marker}", "true")
        serving.wait_until(lambda: self.run_folders() and self.run_folders() != left, "the next run has its folder", launching.END_S)
        self.assertNotIn(left[0], self.run_folders())
        # That of a living run stays.
        result = self.execute([runs.RNICSIM, "run", "--quiet", "true"], env=self.environment)
        self.assertEqual(result.status, 0, str(result))
        self.assertEqual(len(self.run_folders()), 1)
        living.send_signal(signal.SIGINT)
        self.end_of(living)
        self.assertEqual(self.run_folders(), [])

    def test_killed_server_s_name_can_be_had_again(self):
        server = self.launch("serve", "--quiet")
        server.stdout.readline()
        simulator = serving.simulator_of(server)
        server.kill()
        server.wait()
        self.wait_for_gone(simulator)
        self.assertEqual(self.run_folders(), ["default"])
        again = self.launch("serve", "--quiet")
        self.assertIn("serving 2 hosts", again.stdout.readline())
        again.send_signal(signal.SIGINT)
        self.assertEqual(self.end_of(again)[0], 0)
        self.assertEqual(self.run_folders(), [])


class Names(launching.LauncherTest):
    def test_one_name_is_one_server_s(self):
        for _ in range(5 if runs.LONG else 2):
            servers = [self.launch("serve", "--quiet", stderr=subprocess.STDOUT) for _ in range(4)]
            said = [server.stdout.readline() for server in servers]
            winners = [server for server, line in zip(servers, said) if "serving 2 hosts" in line]
            self.assertEqual(len(winners), 1, said)
            for server in servers:
                if server not in winners:
                    self.assertEqual(self.status_of(server), EXIT_USAGE, said)
            self.assertEqual(sum("running already; choose another --name" in line for line in said), 3, said)
            result = self.execute([runs.RNICSIM, "exec", "--host", "0", "ibv_devices"], env=self.environment)
            self.assertEqual(result.status, 0, str(result))
            winners[0].send_signal(signal.SIGTERM)
            self.assertEqual(self.end_of(winners[0])[0], 0)

    def test_names_that_are_none(self):
        for name in ("", ".hidden", "a/b", "x" * 31, "run-abc", "two words", "a:b"):
            with self.subTest(name=name):
                result = self.execute([runs.RNICSIM, "serve", "--name", name], timeout=20, env=self.environment)
                self.assertEqual(result.status, EXIT_USAGE, str(result))
                self.assertIn("is not a plain name", result.errors, str(result))


class Places(launching.LauncherTest):
    def test_build_below_a_path_with_a_space_or_a_colon(self):
        for name in ("my clone", "a:b", "semi;colon"):
            with self.subTest(name=name):
                top = os.path.join(self.folder, name)
                for folder in ("bin", "lib"):
                    os.makedirs(os.path.join(top, "build", folder))
                command = shutil.copy(runs.RNICSIM, os.path.join(top, "build", "bin", "rnicsim"))
                for library in os.listdir(os.path.join(runs.BUILD, "lib")):
                    if ".so" in library:
                        shutil.copy(os.path.join(runs.BUILD, "lib", library), os.path.join(top, "build", "lib"), follow_symlinks=False)
                shutil.copytree(os.path.join(runs.ROOT, "configs"), os.path.join(top, "configs"))
                pingpong = PINGPONG.format(port=runs.free_port())
                result = self.execute([command, *self.arguments(pingpong, pingpong + " localhost")[1:]], env=self.environment)
                self.assertEqual(result.status, 0, str(result))
                self.assert_output(result, "^50 iters in", 2)
                self.assertTrue(result.report["run"]["virtual_time"]["deterministic"], str(result))
                shutil.rmtree(top)

    def test_relative_runtime_folder_is_not_used(self):
        """Programs change their working folder."""
        self.environment["XDG_RUNTIME_DIR"] = "runtime"
        result = self.execute(self.arguments("cd / && ibv_devinfo", "true"), cwd=self.test_folder, env=self.environment)
        self.assertEqual(result.status, 0, str(result))
        self.assertIn("XDG_RUNTIME_DIR is not an absolute path and is not used: runtime", result.errors, str(result))
        self.assertIn("PORT_ACTIVE", result.output, str(result))

    def test_runtime_folders_that_cannot_be_given_to_the_loader(self):
        for name in ("with space", "with:colon", "x" * 80):
            with self.subTest(name=name):
                runtime = os.path.join(self.test_folder, name)
                os.mkdir(runtime)
                self.environment["XDG_RUNTIME_DIR"] = runtime
                result = self.execute(self.arguments("ibv_devinfo", "true"), env=self.environment)
                self.assertEqual(result.status, 0, str(result))
                self.assertEqual(os.listdir(runtime), [])

    def test_folder_of_somebody_else_is_told_with_a_way_out(self):
        place = os.path.join(self.runtime, "rnicsim")
        if os.geteuid() == 0:
            os.mkdir(place)
            os.chown(place, 65534, 65534)
        else:
            os.symlink(self.folder, place)
        for words, status in ((["run", "true"], EXIT_SIMULATOR), (["serve"], EXIT_USAGE)):
            result = self.execute([runs.RNICSIM, *words], timeout=20, env=self.environment)
            self.assertEqual(result.status, status, str(result))
            self.assertIn("is not a folder of this user", result.errors, str(result))
            self.assertIn("set XDG_RUNTIME_DIR to a folder of your own", result.errors, str(result))


if __name__ == "__main__":
    runs.main()
