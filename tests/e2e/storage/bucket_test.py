"""Checkpoints, results and code in a bucket: copies, retention, trials that continue from copies, refusals."""

import hashlib
import io
import json
import re
import shutil
import sys
import tarfile

from buckets import PREFIX, Buckets, main
from support import WORKER

SWEEP = "s1-[0-9a-f]{16}"


class Bucket(Buckets):
    def check_download(self, total_steps):
        """Downloads the best checkpoint of s1 and checks it."""
        self.assertEqual(self.run_command("checkpoint", "get", "s1", "--best", "--out", "best"), "best\n")
        self.assertEqual(json.loads((self.folder / "best/state.json").read_text()), {"step": total_steps})

    def restart_server(self):
        """Kills the server. The next one deletes at once what the bucket no longer needs."""
        self.server.kill()
        self.serve()

    def test_a_sweep_leaves_its_best_checkpoint_its_results_and_its_code(self):
        code = self.folder / "code"
        code.mkdir()
        shutil.copy(WORKER[-1], code / "train.py")
        (code / "sweep.yaml").write_text(json.dumps(self.spec(
            code=".", command=[sys.executable, "-B", "train.py"], working_directory=".",
            parameters={"x": {"min": 0.0, "max": 1.0}}, initial_points=[{"x": 0.5}, {"x": 1.0}],
            stop={"max_trials": 2})))
        self.serve_bucket()
        self.start_executor("a")
        self.run_command("sweep", "create", code / "sweep.yaml")
        self.completed()

        best = self.await_stored(trial=1, step=4)
        self.assertRegex(self.run_command("checkpoint", "list", "s1"), r"s1/1/1-4 .*\bstored\b")
        [folder] = {key.rpartition("/")[0] for key in self.keys("checkpoints/") if "/1/1-4-" in key}
        self.assertRegex(folder, rf"^checkpoints/{SWEEP}/1/1-4-[0-9a-f]{{16}}$")
        self.assertEqual(best["stored_url"], f"s3://{self.bucket}/{PREFIX}/{folder}")
        digest = hashlib.sha256(self.read(folder + "/manifest.json")).hexdigest()
        self.assertEqual(best["digest"], "sha256:" + digest)
        self.assertTrue(folder.endswith("-" + digest[:16]), folder)
        self.assertEqual(json.loads(self.read(folder + "/state.json")), {"step": 4})

        results = self.await_results()
        self.assertRegex(results, rf"^results/{folder.split('/')[1]}/")
        self.assertEqual(json.loads(self.read(results + "/sweep.json"))["best"][0]["trial"], 1)
        trials = [json.loads(line) for line in self.read(results + "/trials.jsonl").splitlines()]
        self.assertEqual(len(trials), 2)

        [archive] = self.until(lambda: self.keys("code/"))
        self.assertRegex(archive, r"^code/\w+/[0-9a-f]{64}/code\.tar\.gz$")
        with tarfile.open(fileobj=io.BytesIO(self.read(archive))) as files:
            self.assertEqual(files.extractfile("./train.py").read(), (code / "train.py").read_bytes())

        self.lose_host("a")
        self.check_download(4)

    def test_attune_run_ends_when_all_is_stored(self):
        self.set_credentials()
        run = self.run_sweep(self.write(self.spec(storage=self.address())))
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertEqual(self.manifests(), ["0/1-4"])
        self.assertEqual(len(self.keys("results/")), 2)

    def test_an_executor_that_leaves_finishes_its_uploads(self):
        self.serve_bucket()
        self.start_executor("a")
        self.create()
        self.completed()
        self.executors["a"].interrupt()
        self.assertEqual(self.executors["a"].wait(), 0)
        self.assertEqual(self.manifests(), ["0/1-4"])

    def test_a_trial_continues_from_the_bucket_after_its_host_is_lost(self):
        gate = self.close_gate(3)
        self.serve_bucket()
        self.start_executor("a")
        self.create()
        self.await_stored(trial=0, step=2)
        self.lose_host("a")
        gate.close()
        self.start_executor("b")
        self.completed()
        first, second = self.get("/sweeps/s1/trials/0")["attempts"]
        self.assertEqual((first["executor"], second["executor"], second["resumed_from"]), ("a", "b", 2))
        self.await_stored(trial=0, step=4)
        self.lose_host("b")
        self.check_download(4)

    def test_a_restarted_server_knows_what_is_stored(self):
        gate = self.close_gate(3)
        self.serve_bucket()
        self.start_executor("a")
        self.create()
        self.await_stored(trial=0, step=2)
        self.server.kill()
        self.lose_host("a")
        gate.close()
        self.serve()  # without --storage-path, because the sweep has its address
        self.start_executor("b")
        self.completed()
        self.assertEqual(self.get("/sweeps/s1/trials/0")["attempts"][-1]["resumed_from"], 2)

    def test_a_sweep_file_names_another_bucket(self):
        other = self.make_bucket()
        self.serve_bucket()
        self.start_executor("a")
        self.create(storage=self.address(other))
        self.completed()
        self.await_stored(trial=0, step=4)
        self.assertIn("0/1-4", self.manifests(other))
        self.assertEqual(self.keys(), [])

    def test_better_checkpoints_replace_others_and_a_deleted_sweep_leaves_nothing(self):
        gate = self.close_gate(3)
        self.serve_bucket()
        self.start_executor("a")
        self.create(parameters={"x": {"min": 0.0, "max": 1.0}}, initial_points=[{"x": 0.5}, {"x": 1.0}],
                    stop={"max_trials": 2}, max_concurrent_trials=1)
        self.await_stored(trial=0, step=2)
        gate.close()
        self.completed()
        self.await_stored(trial=1, step=4)
        self.await_results()
        self.restart_server()
        self.until(lambda: self.manifests() == ["1/1-4"] and len(self.keys("checkpoints/")) == 2)
        # The bucket always had a best checkpoint.
        changes = [request for request in self.s3("requests")
                   if re.search(r"^(PUT|DELETE) \S*/checkpoints/\S*/manifest\.json", request)]
        steps = [re.sub(r"^(\w+) \S*/(\d+)/1-(\d+)-\S*", r"\1 \2 \3", change) for change in changes]
        deleted = [step for step in steps if step.startswith("DELETE")]
        self.assertIn("DELETE 0 2", deleted)
        self.assertNotIn("DELETE 1 4", deleted)
        lives = 0
        for step in steps:
            lives += 1 if step.startswith("PUT") else -1
            self.assertGreater(lives, 0, steps)

        self.run_command("sweep", "rm", "s1", "--now")
        self.restart_server()
        self.until(lambda: not self.keys("checkpoints/") and not self.keys("results/"))


class Refusals(Buckets):
    def assert_refused(self, answer, *words):
        status, problem = answer
        self.assertEqual(status, 422, problem)
        for word in words:
            self.assertIn(word, json.dumps(problem))
        self.assertEqual(self.get("/sweeps")["sweeps"], [])

    def test_an_address_that_is_not_valid(self):
        self.serve()
        for address in ("s3://", "ftp://bucket", "bucket", "s3://bucket?region="):
            self.assert_refused(self.post(storage=address), "storage")
        refused = self.post(storage="s3://key:password-of-mine@bucket/tune")
        self.assert_refused(refused, "storage")
        self.assertNotIn("password-of-mine", json.dumps(refused))

    def test_a_host_without_rclone(self):
        self.serve_bucket()
        with self.without_rclone():
            self.start_executor("bare")
        self.start_executor("complete")
        self.assert_refused(self.post(), "bare", "rclone", "install")
        self.assertNotIn("complete", json.dumps(self.post()))
        self.executors["bare"].kill()
        self.await_event(lambda kind, data: kind == "executor_changed" and data["executor"] == "bare"
                         and data["state"] == "lost")
        status, answer = self.post()
        self.assertEqual(status, 201, answer)

    def test_a_server_without_rclone(self):
        self.set_credentials()
        with self.without_rclone():
            for address, exit_code, word in ((self.address(), 1, "rclone"), ("ftp://bucket", 2, "ftp://bucket")):
                code, _, err = self.attune("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0,
                                           "--storage-path", address)
                self.assertEqual(code, exit_code, err)
                self.assertIn(word, err)
            self.serve()
            self.assert_refused(self.post(storage=self.address()), "rclone", "install")


if __name__ == "__main__":
    main()
