"""Checkpoints are fetched and deleted by real processes, each of which may be killed.

An empty file system hides each executor's folder from the server. So the server gets every checkpoint
from its executor.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

from support import EndToEnd, ROOT, free_port, small_disk, sweep

WORKER = [sys.executable, "-B", str(ROOT / "tests/e2e/programs/checkpoint_worker.py")]
HIDING = 'mount -t tmpfs tmpfs "$0" && exec "$@"'  # hides a folder from a program
MEGABYTES = 48


def can_hide(folder):
    return subprocess.run(["unshare", "-m", "sh", "-c", HIDING, folder, "true"],
                          capture_output=True).returncode == 0


def hashes(folder):
    folder = pathlib.Path(folder)
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.rglob("*") if path.is_file()}


class Checkpoints(EndToEnd):
    def serve(self, hidden=True):
        self.port = getattr(self, "port", None) or free_port()
        self.home = self.folder / "box"
        self.home.mkdir(exist_ok=True)
        args = ["serve", "--data-dir", self.data, "--port", 0, "--rpc-port", self.port, "--lease", 2]
        if hidden:
            if not can_hide(self.home):
                self.skipTest("mounting a tmpfs is not allowed here")
            self.server = self.start("-m", "sh", "-c", HIDING, self.home, self.program, *args,
                                     program="unshare")
        else:
            self.server = self.start(*args)
        self.server.await_stderr(r"http://")

    def join(self, name="box"):
        self.executor = self.start("executor", "--server", f"127.0.0.1:{self.port}", "--name", name,
                                   "--cpus", 1, "--data-dir", self.home, "--token-file",
                                   self.data / "join")

    def train(self, steps=2, **changes):
        """Runs a sweep of one trial to its end and returns the folder of its newest checkpoint."""
        file = self.write(sweep(**{
            "command": WORKER, "parameters": {"x": {"value": 1.0}},
            "env": {"PYTHONPATH": str(ROOT / "clients/python"), "MEGABYTES": str(MEGABYTES)},
            "working_directory": str(self.folder),
            "scheduler": {"name": "fifo", "max": steps}, "stop": {"max_trials": 1},
            "checkpoint": {"every": 1, "keep_last": 3}, **changes}))
        status, created = self.request("/api/v1/sweeps", "POST", pathlib.Path(file).read_bytes(),
                                       {"Content-Type": "application/json"})
        self.assertEqual(status, 201, created)
        self.await_event(lambda kind, data: kind == "sweep_changed" and
                         data["state"] == "completed")
        return self.path_of(f"step-{steps}-attempt-1")

    def path_of(self, name):
        return self.home / "sweeps/s1/trials/0/checkpoints" / name

    def checkpoint(self, *args):
        return self.attune("checkpoint", *args, "--data-dir", self.data)

    def start_download(self, **kind):
        self.serve(**kind)
        self.join()
        return self.train()

    def partial_file(self):
        return next(iter(self.folder.glob(".out.part-*")), None)

    def interrupted_download(self):
        """Starts a download that stops in the middle of its largest file."""
        get = self.start("checkpoint", "get", "s1/0", "--out", "out", "--data-dir", self.data)
        while get.popen.poll() is None:
            partial_file = self.partial_file()
            with contextlib.suppress(FileNotFoundError):
                if partial_file and 0 < (partial_file / "model.bin").stat().st_size < MEGABYTES << 20:
                    get.popen.send_signal(signal.SIGSTOP)
                    os.waitid(os.P_PID, get.popen.pid, os.WSTOPPED | os.WNOWAIT)
                    self.assertLess((partial_file / "model.bin").stat().st_size, MEGABYTES << 20)
                    return get
        self.fail("it was not seen in the midst: " + "\n".join(get.stderr))

    def resume_download(self, process):
        process.popen.send_signal(signal.SIGCONT)
        return process.wait()

    def check_download_resumes(self, source):
        code, out, err = self.checkpoint("get", "s1/0", "--out", "out", "-o", "json")
        self.assertEqual(code, 0, err)
        done = json.loads(out)
        self.assertLess(done["fetched_bytes"], done["bytes"])
        self.assertEqual(hashes(self.folder / "out"), hashes(source))
        self.assertIsNone(self.partial_file())

    def test_the_server_fetches_a_checkpoint_from_its_executor(self):
        source = self.start_download()
        code, out, err = self.checkpoint("get", "s1/0")
        self.assertEqual((code, out), (0, "s1-0-step-2\n"), err)
        self.assertEqual(hashes(self.folder / "s1-0-step-2"), hashes(source))
        self.assertIn("state/total.txt", hashes(source))
        for args, folder in ((["s1", "--best"], "best"), (["s1/0", "--best"], "trials"),
                             (["s1/0/1-1"], "named"), (["s1/0", "--step", "1"], "first")):
            code, _, err = self.checkpoint("get", *args, "--out", folder)
            self.assertEqual(code, 0, err)
        self.assertEqual(hashes(self.folder / "best"), hashes(source))
        self.assertEqual(hashes(self.folder / "named"), hashes(self.path_of("step-1-attempt-1")))
        code, _, err = self.checkpoint("get", "s1/0", "--out", "best")
        self.assertEqual(code, 1)
        self.assertIn("best", err)
        code, _, err = self.checkpoint("get", "s1/0", "--step", 7)
        self.assertEqual(code, 3)
        self.assertRegex(err, r"(?s)\bs1/0\b.*\bstep 7\b.*\b1, 2\b")
        self.assertEqual(self.checkpoint("get", "s1/7")[0], 3)

    def test_the_server_reads_the_folder_of_a_lost_executor(self):
        source = self.start_download(hidden=False)
        self.executor.kill()
        code, _, err = self.checkpoint("get", "s1/0", "--out", "out")
        self.assertEqual(code, 0, err)
        self.assertEqual(hashes(self.folder / "out"), hashes(source))

    def test_a_killed_client_resumes_its_download(self):
        source = self.start_download()
        self.interrupted_download().kill()
        self.assertFalse((self.folder / "out").exists())
        self.check_download_resumes(source)

    def test_a_lost_executor_is_named_and_resumes_when_it_is_back(self):
        source = self.start_download()
        get = self.interrupted_download()
        self.executor.kill()
        self.assertEqual(self.resume_download(get), 1)
        self.assertRegex("\n".join(get.stderr), r"\bexecutor box\b")
        self.await_event(lambda kind, data: kind == "executor_changed" and data["state"] == "lost")
        _, _, err = self.checkpoint("get", "s1/0", "--out", "out")
        self.assertRegex(err, r"\bexecutor box\b.* 2\S+Z\b")
        self.join()
        self.until(lambda: self.get("/executors")["executors"][0].get("seconds_since_heartbeat") is not None)
        self.check_download_resumes(source)

    def test_a_restarted_server_resumes_the_download(self):
        source = self.start_download()
        get = self.interrupted_download()
        self.server.kill()
        self.assertEqual(self.resume_download(get), 1)
        self.serve()
        self.until(lambda: self.get("/executors")["executors"][0].get("seconds_since_heartbeat") is not None)
        self.check_download_resumes(source)

    def test_a_full_disk_is_reported_before_the_download(self):
        self.start_download()
        with small_disk(self.folder / "small", MEGABYTES // 2) as small:
            code, _, err = self.checkpoint("get", "s1/0", "--out", small / "out")
            self.assertEqual(code, 1)
            self.assertIn("--out DIR", err)

    def test_an_unused_checkpoint_is_deleted_once(self):
        self.start_download()
        code, _, err = self.checkpoint("rm", "s1/0")
        self.assertEqual(code, 2)
        self.assertRegex(err, r"s1/0\b.*\b2 checkpoints")
        code, _, err = self.checkpoint("rm", "s1/0", "--step", 2)
        self.assertEqual(code, 1)
        self.assertRegex(err, r"s1/0/1-2\b.*\bbest\b")
        code, _, err = self.checkpoint("rm", "s1/0", "--step", 1)
        self.assertEqual((code, err.split(": ")[0]), (0, "checkpoint s1/0/1-1"))
        first_answer = err
        self.until(lambda: not self.path_of("step-1-attempt-1").exists())
        code, _, err = self.checkpoint("rm", "s1/0", "--step", 1)
        self.assertEqual((code, err.split(": ")[0]), (0, "checkpoint s1/0/1-1"))
        self.assertNotEqual(err, first_answer)
        code, _, err = self.checkpoint("get", "s1/0", "--step", 1)
        self.assertEqual(code, 3)
        self.assertRegex(err, r"\bs1/0\b.*\bstep 1\b.* 2\S+Z\b")
        self.assertTrue(self.path_of("step-2-attempt-1").exists())
        code, _, err = self.checkpoint("rm", "s1/0")  # the last remaining checkpoint
        self.assertEqual(code, 1)
        self.assertRegex(err, r"s1/0/1-2\b.*\bbest\b")


if __name__ == "__main__":
    unittest.main()
