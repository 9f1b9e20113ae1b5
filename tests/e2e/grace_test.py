"""How Attune ends trials: with SIGTERM and a grace period, or at once."""

import os
import signal
import sys
import unittest

from support import EndToEnd, ROOT, ProcessExit, free_port, sweep


class Grace(EndToEnd):
    def setUp(self):
        super().setUp()
        self.notes = self.folder / "notes"
        self.notes.mkdir()
        self.environment["NOTES"] = str(self.notes)
        os.mkfifo(self.notes / "ready")

    def spec(self, mode, **failure):
        return self.write(sweep(command=[sys.executable, str(ROOT / "tests/e2e/programs/grace.py"), mode],
                                stop={"max_trials": 1}, failure=failure))

    def await_processes(self):
        """Returns handles of the rank and its child, which record SIGTERM from now on."""
        return [ProcessExit(int(pid)) for pid in (self.notes / "ready").read_text().split()]

    def expect_gone(self, processes):
        for process in processes:
            self.assertTrue(process.wait(), "a process of the gang is left")

    def recorded(self):
        return {path.name for path in self.notes.iterdir()} - {"ready"}

    def fleet(self, *flags):
        """Starts a server, and an executor in another process."""
        port = free_port()
        server = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", port, *flags)
        server.await_stderr(r"http://")
        return server, self.start("executor", "--server", f"127.0.0.1:{port}", "--name", "a", "--grace", 0,
                                  "--data-dir", self.data)

    def submit(self, file):
        code, _, err = self.attune("sweep", "create", file, "--data-dir", self.data)
        self.assertEqual(code, 0, err)

    def test_ctrl_c_sends_sigterm_to_the_rank_and_then_to_its_child(self):
        run = self.run_sweep(self.spec("leave", grace="1h"))
        processes = self.await_processes()
        run.interrupt()
        self.assertEqual(run.wait(), 130, run.stderr)
        self.expect_gone(processes)
        self.assertEqual(self.recorded(), {"rank", "child"})
        self.assertLessEqual((self.notes / "rank").stat().st_mtime_ns, (self.notes / "child").stat().st_mtime_ns)

    def test_a_second_ctrl_c_kills_all_processes(self):
        run = self.run_sweep(self.spec("stay", grace="1h"))
        processes = self.await_processes()
        run.interrupt()
        run.await_stderr("interrupted")
        run.interrupt()
        self.assertEqual(run.wait(), 130, run.stderr)
        self.expect_gone(processes)

    def test_processes_are_killed_at_the_end_of_the_grace(self):
        run = self.run_sweep(self.spec("stay", grace="100ms"))
        processes = self.await_processes()
        run.interrupt()
        self.assertEqual(run.wait(), 130, run.stderr)
        self.expect_gone(processes)
        self.assertEqual(self.recorded(), {"rank"})

    def test_without_grace_no_sigterm_is_sent(self):
        run = self.run_sweep(self.spec("leave", grace="0s"))
        processes = self.await_processes()
        run.interrupt()
        self.assertEqual(run.wait(), 130, run.stderr)
        self.expect_gone(processes)
        self.assertEqual(self.recorded(), set())

    def test_a_killed_trial_gets_the_grace(self):
        self.fleet()
        self.submit(self.spec("leave", grace="1h"))
        processes = self.await_processes()
        status, answer = self.request("/api/v1/sweeps/s1/trials/0:kill", "POST", b"{}")
        self.assertEqual(status, 202, answer)
        self.expect_gone(processes)
        self.assertEqual(self.recorded(), {"rank", "child"})

    def test_a_leaving_executor_gives_the_grace(self):
        _, executor = self.fleet()
        self.submit(self.spec("leave", grace="1h"))
        processes = self.await_processes()
        executor.popen.send_signal(signal.SIGTERM)
        self.assertEqual(executor.wait(), 0, executor.stderr)
        self.expect_gone(processes)
        self.assertEqual(self.recorded(), {"rank", "child"})

    def test_an_executor_killed_in_the_grace_leaves_no_process(self):
        os.mkfifo(self.notes / "rank")
        _, executor = self.fleet()
        self.submit(self.spec("stay", grace="1h"))
        processes = self.await_processes()
        self.request("/api/v1/sweeps/s1/trials/0:kill", "POST", b"{}")
        (self.notes / "rank").read_text()  # it has received SIGTERM
        executor.kill()
        self.expect_gone(processes)

    def test_a_lost_lease_gives_no_grace(self):
        server, _ = self.fleet("--lease", 1)
        self.submit(self.spec("leave", grace="1h"))
        processes = self.await_processes()
        server.kill()
        self.expect_gone(processes)
        self.assertEqual(self.recorded(), set())


if __name__ == "__main__":
    unittest.main()
