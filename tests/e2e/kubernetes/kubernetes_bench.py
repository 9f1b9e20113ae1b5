"""Measures pilots on the control plane of the tests; see docs/benchmarks.md. Not part of `make test`.

    python3 tests/e2e/kubernetes/kubernetes_bench.py [Start] [Status]
"""

import json
import pathlib
import statistics
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import cluster as kubernetes  # noqa: E402
from cluster import NAMESPACE, Pilots, setUpModule  # noqa: E402, F401

STARTS = 20
PILOTS = 1000


class Start(Pilots):
    def test_first_step_of_a_gang_of_two(self):
        times = []
        self.up(nodes="0..8", poll="5s", idle="1s")
        for number in range(1, STARTS + 1):
            self.until(lambda: not self.jobs(), "a pilot is left")
            began = time.monotonic()
            self.create(workers=2, trials=1)
            self.await_event(lambda kind, data: kind == "trial_reported" and data["sweep"] == f"s{number}")
            times.append(time.monotonic() - began)
            self.completed(f"s{number}")
        print(f"`sweep create` to the first step of a gang of two, no pilot before: median of {STARTS}: "
              f"{statistics.median(times):.2f} s, {min(times):.2f} to {max(times):.2f} s")


class Status(Pilots):
    def test_many_pilots(self):
        self.up(nodes="0..1")
        fleet = json.loads((self.data / "kubernetes/fleet.json").read_text())["id"]
        jobs = [{"apiVersion": "batch/v1", "kind": "Job",
                 "metadata": {"name": f"attune-{fleet}-{number}", "namespace": NAMESPACE, "labels": labels},
                 "spec": {"template": {"metadata": {"labels": labels}, "spec": {
                     "restartPolicy": "Never", "nodeSelector": {"no": "node"},
                     "containers": [{"name": "executor", "image": "attune"}]}}}}
                for number in range(1, PILOTS + 1)
                for labels in [{"attune.dev/fleet": fleet, "attune.dev/pilot": str(number)}]]
        for process in self.processes:
            process.kill()
        kubernetes.cluster.kubectl("create", "-f", "-", text=json.dumps(
            {"apiVersion": "v1", "kind": "List", "items": jobs}))
        self.until(lambda: len(kubernetes.cluster.list("pods", NAMESPACE)) == PILOTS, "pods are missing", 300)
        times = []
        for _ in range(5):
            began = time.monotonic()
            self.assertEqual(len(self.status()), PILOTS)
            times.append(time.monotonic() - began)
        print(f"`attune kubernetes status` of {PILOTS} pilots: {statistics.median(times):.2f} s")


if __name__ == "__main__":
    unittest.main()
