"""A bucket that fails, credentials that expire, and executors that are killed during uploads."""

import re
import sys

from buckets import Buckets, main
from support import ROOT

LARGE = [sys.executable, "-B", str(ROOT / "tests/e2e/programs/checkpoint_worker.py")]


class Faults(Buckets):
    def test_training_continues_with_expired_credentials_and_uploads_follow_when_they_are_new(self):
        gate = self.close_gate(2)
        self.serve_bucket("old-key")
        self.start_executor("a")
        self.create()
        self.await_stored(trial=0, step=1)
        self.assertEqual(self.storage_problem("a"), "")
        self.s3("expire", "old-key")
        gate.close()
        self.completed()
        self.until(lambda: "ExpiredToken" in self.storage_problem("a"))
        self.assertNotIn("0/1-4", self.manifests())

        self.set_credentials("new-key")
        self.await_stored(trial=0, step=4)
        self.until(lambda: self.storage_problem("a") == "")
        self.await_results()
        self.check_secrecy()

    def test_a_copy_stays_if_a_newer_checkpoint_is_lost_with_its_host(self):
        gates = [self.close_gate(3), self.close_gate(4)]
        self.serve_bucket()
        self.start_executor("a")
        self.create()
        self.await_stored(trial=0, step=2)
        self.s3("fault", "denied", "PUT /.*/1-3-", 1000)
        gates[0].close()
        self.until(lambda: self.storage_problem("a"))
        self.lose_host("a")
        self.await_event(lambda kind, data: kind == "executor_changed" and data["state"] == "lost")
        self.s3("requests")
        self.server.kill()
        self.serve()  # it cleans the bucket now
        self.s3("await", "GET /.*checkpoints")
        gates[1].close()
        self.start_executor("b")
        self.completed()
        self.assertEqual(self.get("/sweeps/s1/trials/0")["attempts"][1]["resumed_from"], 2)

    def test_a_killed_executor_continues_its_upload(self):
        self.serve_bucket()
        self.start_executor("a")
        self.s3("fault", "hold", f"PUT /{self.bucket}/.*/model.bin", 1)
        self.create(command=LARGE, scheduler={"name": "fifo", "max": 1},
                    env={"PYTHONPATH": str(ROOT / "clients/python"), "MEGABYTES": "1"})
        self.completed()
        self.s3("await", f"^PUT /{self.bucket}/.*/total.txt")
        self.s3("await", f"^PUT /{self.bucket}/.*/model.bin")  # held
        self.executors["a"].kill()
        self.s3("await", f"^gone PUT /{self.bucket}/.*/model.bin")
        self.assertEqual(self.manifests(), [])

        self.start_executor("a")
        self.await_stored(trial=0, step=1)
        sent = [re.search(r"([^/]+?)(\?|$)", request)[1] for request in self.s3("requests")
                if re.match(rf"PUT /{self.bucket}/\w+/checkpoints/", request)]
        self.assertEqual(sorted(sent), ["attune-config.json", "manifest.json", "model.bin", "model.bin", "total.txt"])

    def test_a_busy_bucket_and_cut_connections_only_delay_uploads(self):
        self.serve_bucket()
        self.start_executor("a")
        self.s3("fault", "busy", f"PUT /{self.bucket}/", 3)
        self.s3("fault", "cut", f"GET /{self.bucket}\\b", 2)
        self.create(stop={"max_trials": 2})
        self.completed()
        best = self.get("/sweeps/s1")["best"]
        self.await_stored(best["trial"], 4)
        self.await_results()
        self.assertEqual(self.get("/sweeps/s1/trials/0")["attempt_count"], 1)
        self.until(lambda: self.storage_problem("a") == "")
        requests = self.s3("requests")
        sent = [request for request in requests if request.startswith("PUT")]
        self.assertGreater(len(sent), len(set(sent)), "no file was sent again")
        self.assertGreater(sum(request.startswith("GET") for request in requests), 2)

    def test_a_missing_bucket_is_named(self):
        self.set_credentials()
        self.serve("--storage-path", self.address("missing-bucket"))
        self.start_executor("a")
        self.create()
        self.completed()
        self.until(lambda: "s3://missing-bucket" in self.storage_problem("a"))
        self.s3("bucket", "missing-bucket")
        self.set_secret("AWS_REGION", "us-east-1")  # a change of the settings starts the next try
        self.await_stored(trial=0, step=4)


if __name__ == "__main__":
    main()
