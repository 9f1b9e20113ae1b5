"""A server that is killed over and over during one sweep decides as if nothing had happened.

    KILLS=1000 ATTUNE_SEED=7 python3 tests/e2e/kill_test.py
"""

import json
import os
import random
import re
import unittest

from support import EndToEnd, free_port, sweep

MORE_TRIALS = 20  # after the last kill
KILLS = int(os.environ.get("KILLS", 200))
EVENTS_BETWEEN = 12  # a life of the server: from none to so many events more


class KilledServer(EndToEnd):
    kills = KILLS
    mode = "stop"

    def serve(self):
        server = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", self.port)
        server.await_stderr(r"http://")
        return server

    def test_every_decision_stands_and_nothing_acknowledged_is_missing(self):
        seed = int(os.environ.get("ATTUNE_SEED") or random.randrange(1 << 32))
        print("ATTUNE_SEED", seed)
        draw = random.Random(seed)
        self.port = free_port()
        server = self.serve()
        for name in ("left", "right"):
            self.start("executor", "--server", f"127.0.0.1:{self.port}", "--name", name, "--cpus", 1,
                       "--data-dir", self.data)
        spec = sweep(scheduler={"name": "asha", "mode": self.mode, "min": 1, "max": 16,
                                "reduction_factor": 2},
                     stop={"max_trials": 100_000})
        status, answer = self.request("/api/v1/sweeps?directory=/tmp", "POST",
                                      json.dumps(spec).encode())
        self.assertEqual(status, 201, answer)

        seq = 0
        for _ in range(self.kills):
            seq += draw.randrange(EVENTS_BETWEEN + 1)
            self.await_event(lambda kind, data: data["seq"] >= seq, after=max(0, seq - 1))
            server.kill()
            server = self.serve()
        created = sum(self.get("/sweeps/s1")["trials"].values()) + MORE_TRIALS
        status, answer = self.request("/api/v1/sweeps/s1", "PATCH",
                                      json.dumps({"stop": {"max_trials": created}}).encode())
        self.assertEqual(status, 202, answer)
        self.await_event(lambda kind, data: kind == "sweep_changed" and
                         data["state"] == "completed", after=seq)

        trials = self.check_histories_are_whole()
        self.assertGreaterEqual(len(trials), created)
        if self.mode == "stop":
            self.assertEqual({trial["attempts"] for trial in trials}, {1})
        for trial in trials:
            self.check_against_the_rank(trial)
        server.interrupt()
        server.wait()
        code, out, errors = self.attune("db", "check", "--decisions", "--data-dir", self.data)
        self.assertEqual(code, 0, out + errors)
        print(out)

    def check_against_the_rank(self, trial):
        """What the rank says it has reported is what the log holds, value for value."""
        attempts = self.data / f"sweeps/s1/trials/{trial['number']}/attempts"
        said = {int(step): float(score) for log in attempts.glob("*/rank-0.log")
                for step, score in re.findall(r"^step (\d+) score (\S+)$", log.read_text(), re.M)}
        detail = self.get(f"/sweeps/s1/trials/{trial['number']}")
        kept = {report["step"]: report["metrics"]["score"] for report in detail["history"]}
        self.assertEqual(kept, said)


class KilledWhilePromoting(KilledServer):
    kills = KILLS // 4
    mode = "promote"


if __name__ == "__main__":
    unittest.main()
