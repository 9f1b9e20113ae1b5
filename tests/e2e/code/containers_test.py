"""Ranks in containers of an engine whose daemon starts them: reports, files, ends, and hosts that cannot run them."""

import os
import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from carried_code import Code  # noqa: E402
from fake_engine import DIGEST, IMAGE_ID, FakeEngine  # noqa: E402
from support import PATIENCE_S, ProcessExit, ROOT  # noqa: E402

IMAGE = "registry.example/train:1"
TRAIN = """
import fcntl, os
import attune
open(os.environ["PLACES"] + "/pid", "w").write(str(os.getpid()))
with open(os.environ["GATES"] + "/step-1", "a") as gate:
    fcntl.flock(gate, fcntl.LOCK_SH)
attune.report({"score": 7 if os.environ["SECRET"] == "hidden" else 0})
"""


class Containers(Code):
    def setUp(self):
        super().setUp()
        (self.code / "train.py").write_text(TRAIN)
        self.bin = self.folder / "bin"
        self.engine = FakeEngine(self.bin, "docker")
        self.addCleanup(self.engine.close)
        self.environment["PATH"] = f"{self.bin}:{os.environ['PATH']}"
        self.serve()

    def create_in_container(self, **changes):
        return self.create(**{"command": ["python3", "train.py"],
                              "environment": {"container": IMAGE, "engine": "docker"},
                              "env": {"PLACES": str(self.places), "GATES": str(self.gates), "SECRET": "hidden",
                                      "PYTHONPATH": str(ROOT / "clients/python")}, **changes})

    def start_and_hold(self):
        """Starts an executor and a trial that waits. Returns the executor and an observer of the program's end."""
        self.gate = self.close_gate(1)
        executor = self.executor("a")
        self.create_in_container()
        pid = self.until(lambda: (self.places / "pid").exists() and (self.places / "pid").read_text())
        return executor, ProcessExit(int(pid))

    def assert_no_container(self):
        self.assertTrue(self.engine.await_containers(0, PATIENCE_S), self.engine.containers)

    def test_a_trial_reports_from_its_container(self):
        self.executor("a")
        self.create_in_container(stop={"max_trials": 2})
        self.completed()
        self.assertEqual(self.get("/sweeps/s1/trials/1")["best"], 7)
        self.assert_no_container()
        work = self.home("a") / "sweeps/s1/trials/0/work"
        (argv, client), = [run for run in self.engine.runs if str(work) in " ".join(run[0])]
        self.assertIn("--entrypoint=python3", argv)
        self.assertEqual(argv[argv.index(IMAGE_ID):], [IMAGE_ID, "train.py"])
        self.assertNotIn("hidden", " ".join(argv))
        self.assertEqual(client["SECRET"], "hidden")
        # The program may write to the folders of the trial, and not to the copy of the code.
        mounts = dict(mount.removeprefix("type=bind,source=").split(",", 1)
                      for option, mount in zip(argv, argv[1:]) if option == "--mount")
        self.assertTrue(mounts[str(self.copies("a")[0])].endswith(",ro"), mounts)
        self.assertEqual(mounts[str(work)], f"target={work}")
        log = (self.home("a") / "sweeps/s1/trials/0/attempts/1/rank-0.log").read_text()
        self.assertIn(f"[attune] pulling the image {IMAGE} with docker\nlayer 1 of 1\n", log)
        self.assertEqual(list((self.home("a") / "executors/a/containers").iterdir()), [])
        record = self.until(lambda: next((each["record"] for each in
                                          self.get("/sweeps/s1/trials/0/environment")["executors"]), None))
        self.assertEqual(record["container"],
                         {"image": IMAGE, "engine": "docker", "id": IMAGE_ID, "digest": DIGEST})

    def test_a_killed_trial_ends_its_container(self):
        _, program = self.start_and_hold()
        code, _, err = self.attune("sweep", "kill", "s1", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.assertTrue(program.wait(), "the program has outlived its trial")
        self.assert_no_container()

    def test_a_killed_executor_leaves_no_container(self):
        executor, program = self.start_and_hold()
        executor.kill()
        self.assertTrue(program.wait(), "the program has outlived its executor")
        self.assert_no_container()
        self.gate.close()
        self.executor("a")
        self.completed()

    def test_the_next_executor_removes_a_container_that_nobody_removed(self):
        executor, program = self.start_and_hold()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            if status.startswith("Name:\tattune-follow\n") and f"PPid:\t{executor.popen.pid}\n" in status:
                os.kill(int(pid), signal.SIGKILL)
        executor.kill()
        self.assertEqual(len(self.engine.containers), 1)
        self.executor("a")
        self.assertTrue(program.wait(), "the program has outlived two executors")
        self.gate.close()
        self.completed()

    def test_a_sweep_fails_if_its_image_cannot_be_pulled(self):
        self.engine.pulls = False
        self.executor("a")
        self.create_in_container()
        self.await_event(lambda kind, data: kind == "sweep_changed" and data["state"] == "failed")
        self.assertIn("manifest unknown", self.get("/sweeps/s1/trials/0")["attempts"][-1]["failure"])
        self.assertEqual(self.engine.runs, [])

    def test_a_host_without_the_engine_does_not_fail_the_trial(self):
        (self.bin / "docker").unlink()
        self.environment["PATH"] = str(self.bin)
        self.executor("a")
        self.create_in_container()
        _, ended = self.await_event(lambda kind, data: kind == "attempt_changed" and data["state"] == "ended")
        self.assertIn("docker", ended["failure"])
        self.await_event(lambda kind, data: kind == "trial_changed" and data["state"] == "pending"
                         and data["seq"] > ended["seq"])


if __name__ == "__main__":
    unittest.main()
