"""The base class of tests with pilots."""

import json
import sys

from support import EndToEnd, ROOT, sweep

WORKER = [sys.executable, "-B", str(ROOT / "tests/e2e/programs/fleet_worker.py")]


class PilotsCase(EndToEnd):
    engine = ""     # the command of `attune`
    node_cpus = 0

    def setUp(self):
        super().setUp()
        self.environment["PYTHONPATH"] = str(ROOT / "clients/python")

    def create(self, workers, trials, cpus=None, **changes):
        """Creates a sweep of `fleet_worker.py`. A worker uses a whole node unless `cpus` is given."""
        file = self.write(sweep(**{
            "command": WORKER, "parameters": {"x": {"value": 1.0}}, "working_directory": str(self.folder),
            "env": {"PYTHONPATH": str(ROOT / "clients/python"), "GATES": str(self.gates)},
            "resources": {"workers": workers, "cpus_per_worker": cpus or self.node_cpus},
            "scheduler": {"name": "fifo", "max": 4}, "stop": {"max_trials": trials},
            "failure": {"max_restarts": 0, "backoff": "0s"}, **changes}))
        code, _, err = self.attune("sweep", "create", file, "--data-dir", self.data)
        self.assertEqual(code, 0, err)

    def completed(self, sweep_id="s1"):
        state = self.until(lambda: next((s for s in [self.get(f"/sweeps/{sweep_id}")["state"]]
                                         if s not in ("running", "paused")), None), "the sweep does not end")
        self.assertEqual(state, "completed", self.get(f"/sweeps/{sweep_id}"))

    def online(self):
        return {e["name"] for e in self.get("/executors")["executors"] if e["state"] == "online"}

    def attempts(self, trial=0):
        return self.get(f"/sweeps/s1/trials/{trial}")["attempts"]

    def status(self, part="pilots"):
        code, out, err = self.attune(self.engine, "status", "--data-dir", self.data, "-o", "json")
        self.assertEqual(code, 0, err)
        return json.loads(out)[part]
