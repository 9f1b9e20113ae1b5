"""Sweeps whose hosts download data: once for all trials, with resumption, and with errors that name their reason."""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import EndToEnd, PATIENCE_S, ROOT, free_port, sweep  # noqa: E402

SERVER = ROOT / "tests/support/http_server.py"
TRAIN = """
import json, os, sys
path = os.environ["ATTUNE_DATA_TRAIN_SET"]
found = {"path": path, "bytes": len(open(path, "rb").read()), "mode": os.stat(path).st_mode & 0o777}
json.dump(found, open(os.environ["PLACES"] + "/" + os.environ["ATTUNE_TRIAL"], "w"))
print("score=1", flush=True)
"""


class FileServer:
    """Serves the file as tests/support/http_server.py does."""

    def __init__(self, file):
        self.requests = []  # "PATH RANGE"
        self._popen = subprocess.Popen([sys.executable, "-B", SERVER, file], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        self.port = int(self._popen.stdout.readline())
        self._reader = threading.Thread(target=lambda: self.requests.extend(
            line.strip() for line in iter(self._popen.stdout.readline, "")), daemon=True)
        self._reader.start()

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def open_gate(self):
        self._popen.stdin.write("\n")
        self._popen.stdin.flush()

    def stop(self):
        """Ends the server and returns all requests."""
        self._popen.kill()
        self._popen.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        self._popen.stdin.close()
        self._popen.stdout.close()
        return self.requests


class Data(EndToEnd):
    def setUp(self):
        super().setUp()
        self.port = free_port()
        self.places = self.folder / "places"
        self.places.mkdir()
        self.bytes = os.urandom(1 << 20)
        self.sha256 = hashlib.sha256(self.bytes).hexdigest()
        (self.folder / "source").write_bytes(self.bytes)
        self.files = FileServer(self.folder / "source")
        self.addCleanup(self.files.stop)
        self.home = self.folder / "host"
        self.copies = self.home / "executors/a/data"
        self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", self.port, "--lease", 2) \
            .await_stderr("executors ")

    def executor(self):
        return self.start("executor", "--server", f"127.0.0.1:{self.port}", "--name", "a", "--cpus", 2, "--data-dir",
                          self.home, "--token-file", self.data / "join", "--interface", "lo")

    def create(self, path, **changes):
        file = self.write(sweep(**{
            "command": [sys.executable, "-c", TRAIN], "env": {"PLACES": str(self.places)},
            "data": [{"name": "train-set", "url": self.files.url(path), "sha256": self.sha256}],
            "reports": {"pattern": r"score=(?P<score>\S+)"}, "scheduler": {"name": "fifo"},
            "stop": {"max_trials": 2}, "failure": {"max_restarts": 0, "backoff": "0s"}, "checkpoint": {"every": 0},
            **changes}))
        code, _, err = self.attune("sweep", "create", file, "--data-dir", self.data)
        self.assertEqual(code, 0, err)

    def completed(self):
        self.await_event(lambda kind, data: kind == "sweep_changed" and data["state"] == "completed")

    def log(self, trial):
        path = self.home / f"sweeps/s1/trials/{trial}/attempts/1/rank-0.log"
        return path.read_text() if path.exists() else ""

    def failure(self):
        """Waits until an attempt of trial 0 has failed, and returns the message."""
        self.await_event(lambda kind, data: kind == "attempt_changed" and data["trial"] == 0 and data["state"] == "ended")
        return self.get("/sweeps/s1/trials/0")["attempts"][0]["failure"]

    def test_trials_share_one_download(self):
        self.create("/mirror/train.npz?key=secret", stop={"max_trials": 5})
        self.executor()
        self.completed()
        path = self.copies / self.sha256 / "train.npz"
        for trial in range(5):
            found = json.loads((self.places / str(trial)).read_text())
            self.assertEqual(found, {"path": str(path), "bytes": len(self.bytes), "mode": 0o444})
        self.assertEqual(self.files.stop(), ["/mirror/train.npz -"])

    def test_logs_of_trials_that_wait_say_why(self):
        self.create("/gate")
        self.executor()
        line = f"[attune] downloading train-set from {self.files.url('/gate')}"
        self.until(lambda: line in self.log(0))
        self.files.open_gate()
        self.completed()

    def test_a_killed_executor_continues_the_download(self):
        self.create("/gate")
        first = self.executor()
        partial = self.copies / f".{self.sha256}.part/gate.partial"
        self.until(lambda: partial.exists() and partial.stat().st_size == len(self.bytes) // 2)
        first.kill()
        self.executor()
        self.completed()
        self.assertEqual(self.files.stop(), ["/gate -", f"/gate bytes={len(self.bytes) // 2}-"])

    def test_a_missing_file_is_not_the_failure_of_the_trial(self):
        self.create("/missing?key=secret")
        self.executor()
        message = self.failure()
        self.assertIn(f"data train-set could not be fetched: {self.files.url('/missing')}: HTTP status 404", message)
        self.assertNotIn("secret", message)
        self.assertEqual(self.rows("SELECT DISTINCT failure_kind FROM attempts WHERE failure_kind <> ''"), [("host",)])
        self.assertNotEqual(self.get("/sweeps/s1/trials/0")["state"], "failed")

    def test_a_wrong_hash_is_the_failure_of_the_trial(self):
        found, self.sha256 = self.sha256, "a" * 64
        self.create("/file")
        self.executor()
        message = self.failure()
        self.assertIn(found, message)
        self.assertIn(self.sha256, message)
        self.assertEqual(self.get("/sweeps/s1/trials/0")["state"], "failed")


if __name__ == "__main__":
    unittest.main()
