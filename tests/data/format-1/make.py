"""Makes the databases in this folder with the `attune` of ATTUNE_BUILD_DIR. See README.md here.

    ATTUNE_BUILD_DIR=build python3 tests/data/format-1/make.py
"""

import gzip
import json
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "e2e"))

from support import WORKER, EndToEnd, free_port  # noqa: E402
from support import sweep as any_sweep  # noqa: E402

FOREVER = 1_000_000


class Logs(EndToEnd):
    def setUp(self):
        super().setUp()
        self.executors = {}
        shutil.copy(WORKER[1], self.folder)  # so that the log names no folder of the checkout

    def sweep(self, **changes):
        return any_sweep(**{"command": ["/usr/bin/python3", str(self.folder / "worker.py")],
                            **changes})

    def serve(self):
        self.rpc_port = free_port()
        server = self.start("serve", "--data-dir", self.data, "--port", 0,
                            "--rpc-port", self.rpc_port)
        server.await_stderr(r"http://")
        return server

    def executor(self, name, cpus=2):
        process = self.start("executor", "--server", f"127.0.0.1:{self.rpc_port}", "--name", name,
                             "--cpus", cpus, "--gpus", 0, "--memory", "1GiB",
                             "--token-file", self.data / "token", "--data-dir", self.data)
        self.executors[name] = process
        return process

    def create(self, **changes):
        status, answer = self.request("/api/v1/sweeps?directory=/tmp", "POST",
                                      json.dumps(self.sweep(**changes)).encode(),
                                      {"Idempotency-Key": changes["name"]})
        self.assertEqual(status, 201, answer)

    def steer(self, *words):
        code, out, err = self.attune(*words, "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        return out

    def post(self, path, body=None, key=None):
        status, answer = self.request("/api/v1" + path, "POST", json.dumps(body or {}).encode(),
                                      {"Idempotency-Key": key} if key else {})
        self.assertLess(status, 300, answer)
        return answer

    def await_kind(self, kind, after=0, **members):
        return self.await_event(lambda k, data: k == kind and all(
            data.get(name) == value for name, value in members.items()), after)[1]["seq"]

    def keep(self, name):
        for process in [p for p in self.processes if p.popen.poll() is None]:
            process.kill()
        database = sqlite3.connect(self.data / "attune.db")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("VACUUM")
        rows = database.execute("SELECT kind, count(*) FROM events GROUP BY kind").fetchall()
        database.close()
        target = HERE / f"{name}.db.gz"
        with open(self.data / "attune.db", "rb") as source, \
                gzip.GzipFile(target, "wb", 9, mtime=0) as out:
            shutil.copyfileobj(source, out)
        print(target.name, target.stat().st_size, rows)

    def test_asha_paused_extended_and_opened_again(self):
        server = self.serve()
        self.executor("box")
        gate = self.close_gate(2)
        self.create(name="asha", initial_points=[{"x": 0.9}], stop={"max_trials": 9},
                    tags=["golden", "log"])
        self.await_kind("trial_reported", sweep="s1", trial=1, step=1)
        self.post("/sweeps/s1/trials", {"config": {"x": 0.25}}, "enqueued-1")
        self.steer("sweep", "pause", "s1")
        gate.close()
        paused = self.await_kind("attempt_changed", state="ended", outcome="paused")
        self.steer("sweep", "resume", "s1")
        ended = self.await_kind("sweep_changed", paused, state="completed")
        stopped = next(t["number"] for t in self.get("/sweeps/s1/trials")["trials"]
                       if t["state"] == "stopped")
        self.steer("trial", "continue", f"s1/{stopped}", "--until", 6)
        ended = self.await_kind("sweep_changed", ended, state="completed")
        self.steer("sweep", "extend", "s1", "--max-trials", 12)
        ended = self.await_kind("sweep_changed", ended, state="completed")
        kept = next(c for c in self.get("/sweeps/s1/trials/0")["checkpoints"]
                    if c["dropped"] is None)
        self.steer("checkpoint", "pin", f"s1/0/{kept['attempt']}-{kept['step']}")
        self.executors["box"].interrupt()
        self.executors["box"].wait()
        server.interrupt()
        server.wait()
        self.keep("asha")

    def test_grid_with_failures_cut_off_by_a_kill(self):
        self.serve()
        self.executor("box")
        self.create(name="grid", searcher={"name": "grid"}, scheduler={"name": "fifo", "max": 3},
                    parameters={"x": {"values": [0.1, 0.2, 0.3]},
                                "mode": {"values": ["well", "throw", "die-at"]},
                                "at": {"value": 2}},
                    failure={"max_restarts": 1, "backoff": "0.1s"}, stop={})
        failed = self.await_kind("trial_changed", sweep="s1", state="failed")
        self.close_gate(7)
        self.create(name="random", resources={"workers": 2, "cpus_per_worker": 1}, priority=3,
                    scheduler={"name": "fifo", "max": FOREVER}, checkpoint={"every": 0},
                    stop={"max_trials": 2})
        self.await_kind("trial_reported", failed, sweep="s2", step=5)
        self.create(name="waits", resources={"workers": 2, "cpus_per_worker": 1}, priority=5,
                    scheduler={"name": "fifo", "max": FOREVER}, stop={"max_trials": 1})
        self.post("/sweeps/s1/trials", {"config": {"x": 0.2, "mode": "well"}}, "late")
        self.keep("grid")

    def test_asked_trials(self):
        server = self.serve()
        spec = self.sweep(name="asked", stop={"max_trials": 20})
        for key in ("command", "resources", "checkpoint"):
            del spec[key]
        status, answer = self.request("/api/v1/sweeps?directory=/tmp", "POST",
                                      json.dumps(spec).encode(), {"Idempotency-Key": "asked"})
        self.assertEqual(status, 201, answer)
        self.post("/sweeps/s1/trials", {"config": {"x": 0.75}}, "enqueued-a")
        for number in range(7):
            asked = json.loads(self.steer("ask", "s1", "-o", "json"))
            tell = ["tell", f"s1/{asked['trial']}", "--epoch", asked["epoch"]]
            if number == 5:
                self.steer(*tell, "--failed", "--message", "it was too hot")
                continue
            for step in range(1, 5):
                value = "nan" if number == 2 else str(asked["config"]["x"] * step)
                out = json.loads(self.steer(*tell, "--step", step, "-m", f"score={value}", "-o", "json"))
                if out["verdict"] != "continue":
                    break
        server.interrupt()
        server.wait()
        self.keep("asked")

    def test_an_executor_that_was_lost(self):
        self.serve()
        self.executor("left", 1)
        self.executor("right", 1)
        self.await_kind("executor_changed", executor="right", state="online")
        gate = self.close_gate(2)
        self.create(name="lost", scheduler={"name": "asha", "min": 1, "max": 8,
                                            "reduction_factor": 2}, stop={"max_trials": 6})
        self.await_kind("trial_reported", trial=0, step=1)
        self.await_kind("trial_reported", trial=1, step=1)
        self.executors["left"].kill()
        lost = self.await_kind("executor_changed", executor="left", state="lost")
        gate.close()
        self.executor("left", 1)
        self.await_kind("executor_changed", lost, executor="left", state="online")
        self.await_kind("trial_changed", lost, state="completed")
        self.keep("lost")


if __name__ == "__main__":
    unittest.main()
