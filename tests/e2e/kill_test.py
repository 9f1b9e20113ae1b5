"""A server that is killed many times during one sweep makes the same decisions as without kills.

    KILLS=1000 ATTUNE_SEED=7 python3 tests/e2e/kill_test.py
"""

import json
import os
import pathlib
import random
import re
import struct
import time
import unittest
import urllib.error
import urllib.request

from support import EndToEnd, PATIENCE_S, ask_server, free_port, sweep

MORE_TRIALS = 20  # trials after the last kill
KILLS = int(os.environ.get("KILLS", 200))
POLL_S = 0.2
POINTS = 256  # the most points of a thinned curve
EVENTS_BETWEEN = 12  # maximum number of events between two kills


class KilledServer(EndToEnd):
    kills = KILLS
    scheduler = {"name": "asha", "mode": "stop", "min": 1, "max": 16, "reduction_factor": 2}
    restarts = False  # whether a trial has more than one attempt

    def serve(self):
        server = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", self.port)
        server.await_stderr(r"http://")
        return server

    def test_decisions_are_unchanged_and_acknowledged_reports_are_kept(self):
        seed = int(os.environ.get("ATTUNE_SEED") or random.randrange(1 << 32))
        print("ATTUNE_SEED", seed)
        draw = random.Random(seed)
        self.port = free_port()
        server = self.serve()
        for name in ("left", "right"):
            self.start("executor", "--server", f"127.0.0.1:{self.port}", "--name", name, "--cpus", 1,
                       "--data-dir", self.data)
        spec = sweep(scheduler=self.scheduler, stop={"max_trials": 100_000})
        status, answer = self.request("/api/v1/sweeps?directory=/tmp", "POST",
                                      json.dumps(spec).encode())
        self.assertEqual(status, 201, answer)

        seq, newest_seq = 0, 0
        for _ in range(self.kills):
            seq += draw.randrange(EVENTS_BETWEEN + 1)
            newest_seq = max(newest_seq, self.await_event(lambda kind, data: data["seq"] >= seq, after=max(0, newest_seq - 1))[1]["seq"])
            server.kill()
            server = self.serve()
        created, limit = self.limit(sum(self.get("/sweeps/s1")["trials"].values()))
        status, answer = self.request("/api/v1/sweeps/s1", "PATCH",
                                      json.dumps({"stop": limit}).encode())
        self.assertEqual(status, 202, answer)
        self.await_event(lambda kind, data: kind == "sweep_changed" and
                         data["state"] == "completed", after=newest_seq)

        self.check_trials(created)
        self.await_removals()
        self.check_checkpoints()
        self.check_curves()
        server.interrupt()
        server.wait()
        code, out, errors = self.attune("db", "check", "--decisions", "--data-dir", self.data)
        self.assertEqual(code, 0, out + errors)
        print(out)

    def limit(self, created):
        """Returns the total number of trials, and the condition that ends the sweep."""
        return created + MORE_TRIALS, {"max_trials": created + MORE_TRIALS}

    def check_trials(self, created):
        trials = self.check_histories_are_whole()
        self.assertGreaterEqual(len(trials), created)
        if not self.restarts:
            self.assertEqual({trial["attempt_count"] for trial in trials}, {1})
        for trial in trials:
            self.check_against_the_rank(trial)

    def trials(self):
        return [self.get(f"/sweeps/s1/trials/{trial['number']}")
                for trial in self.get("/sweeps/s1/trials")["trials"]]

    def await_removals(self):
        """Waits until the executors have deleted all dropped checkpoints. No event reports that."""
        patience = time.monotonic() + PATIENCE_S
        while self.rows("SELECT 1 FROM checkpoints WHERE dropped IS NOT NULL AND removed IS NULL"):
            self.assertLess(time.monotonic(), patience)
            time.sleep(POLL_S)

    def check_checkpoints(self):
        """Checks that the disk holds exactly the checkpoints that the log keeps, and that each is complete."""
        for trial in self.trials():
            kept = {pathlib.Path(one["path"]) for one in trial["checkpoints"] if not one["dropped"]}
            folder = self.data / f"sweeps/s1/trials/{trial['number']}/checkpoints"
            there = set(folder.iterdir()) if folder.exists() else set()
            self.assertEqual(there, kept, trial)
            for path in kept:
                self.assertTrue((path / "manifest.json").is_file(), path)
            if trial["checkpoint"]:
                self.assertIn(pathlib.Path(trial["checkpoint"]), kept)
        best = self.get("/sweeps/s1")["best"]
        if best["checkpoint"]:
            self.assertTrue(os.path.isfile(os.path.join(best["checkpoint"], "manifest.json")))

    def thinned_curves(self):
        """Returns the seq of the binary curves, and {trial: {step: value}}. docs/reference/rest-api.md has the form."""
        request = urllib.request.Request(
            ask_server(self.data)["http"] + "/api/v1/sweeps/s1/curves",
            headers={"Authorization": "Bearer " + (self.data / "token").read_text().strip(),
                     "Accept": "application/vnd.attune.curves"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                data = answer.read()
        except urllib.error.HTTPError as error:
            self.assertEqual(error.code, 503)  # the table is being built
            return 0, {}
        magic, seq, trials, lists, points, steps, _, _, following, _ = struct.unpack_from("<8sQ8I", data)
        self.assertEqual((magic, following), (b"ATCURVE1", 0))
        at = 64

        def take(form, count):
            nonlocal at
            values = struct.unpack_from(f"<{count}{form}", data, at)
            at += -(-struct.calcsize(f"<{count}{form}") // 8) * 8
            return values

        starts, all_steps = take("I", lists + 1), take("d", steps)
        rows, values = take("I", 4 * trials), take("f", points)
        curves = {}
        for number, steps_of, first, _ in zip(*[iter(rows)] * 4):
            own = all_steps[starts[steps_of]:starts[steps_of + 1]]
            curves[number] = dict(zip(own, values[first:first + len(own)]))
        return seq, curves

    def check_curves(self):
        """Compares the thinned curves, which a thread of the killed servers has written, with the log."""
        [[last]] = self.rows("SELECT max(seq) FROM events")
        _, thinned = self.until(lambda: next((found for found in [self.thinned_curves()] if found[0] >= last), None),
                                "the thinned curves do not reach the end of the log")
        exact = {trial["number"]: {step: struct.unpack("<f", struct.pack("<f", value))[0]
                                   for step, value in zip(trial["steps"], trial["values"])}
                 for trial in self.get("/sweeps/s1/curves")["trials"]}
        self.assertEqual(thinned.keys(), exact.keys())
        for number, curve in thinned.items():
            self.assertLessEqual(curve.items(), exact[number].items())
            if len(exact[number]) <= POINTS:
                self.assertEqual(curve, exact[number])
            self.assertLessEqual(len(curve), POINTS)

    def check_against_the_rank(self, trial):
        """Compares the reports that the rank has written down with the log, value by value."""
        attempts = self.data / f"sweeps/s1/trials/{trial['number']}/attempts"
        said = {int(step): float(score) for log in attempts.glob("*/rank-0.log")
                for step, score in re.findall(r"^step (\d+) score (\S+)$", log.read_text(), re.M)}
        detail = self.get(f"/sweeps/s1/trials/{trial['number']}")
        kept = {report["step"]: report["metrics"]["score"] for report in detail["history"]}
        self.assertEqual(kept, said)


class KilledWhilePromoting(KilledServer):
    kills = KILLS // 2
    scheduler = dict(KilledServer.scheduler, mode="promote")
    restarts = True


class KilledWhileCloning(KilledServer):
    kills = KILLS // 2
    scheduler = {"name": "pbt", "max": 100_000, "perturbation_interval": 2, "population": 6}

    def limit(self, created):
        """Members train until the time limit, which is reached at once."""
        return created, {"max_time": "1ms"}

    def check_trials(self, created):
        """Checks the steps of each attempt. A clone may repeat steps that it has reported before."""
        trials = self.trials()
        self.assertGreaterEqual(len(trials), created)
        verdicts = [decision["verdict"] for trial in trials for decision in trial["decisions"]]
        self.assertIn("exploit", verdicts)
        for trial in trials:
            for attempt in trial["attempts"]:
                steps = [report["step"] for report in trial["history"]
                         if report["attempt"] == attempt["number"]]
                first = (attempt["resumed_from"] or 0) + 1
                self.assertEqual(steps, list(range(first, first + len(steps))), trial)


if __name__ == "__main__":
    unittest.main()
