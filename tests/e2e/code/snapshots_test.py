"""Sweeps carry their code: a client sends a folder, and executors that share nothing with it run the program.

Each executor has a separate data folder. After the sweep is created, the client's folder is renamed, so that a program
that runs can only come from the snapshot.
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from carried_code import TRAIN, Code  # noqa: E402
from support import ROOT, sweep  # noqa: E402


class Running(Code):
    def test_a_gang_on_two_hosts_runs_from_the_snapshot(self):
        self.serve()
        self.create(resources={"workers": 4, "cpus_per_worker": 1})
        self.code.rename(self.folder / "moved")
        self.executor("a")
        self.executor("b")
        self.completed()
        for rank, host in enumerate("aabb"):
            place = self.place(rank=rank)
            self.assertEqual(place["cwd"], str(self.home(host) / "sweeps/s1/trials/0/work"))
            self.assertEqual(place["file"], str(self.copies(host)[0] / "tree/train.py"))
            self.assertEqual([name for name in place["files"] if name != "result.txt"],
                             ["lib", "sweep.yaml", "train.py"])
        # Only links and the program's own file are in the trial's folder, and nobody may write to the code.
        work = self.home("a") / "sweeps/s1/trials/0/work"
        self.assertTrue(all(path.is_symlink() for path in work.iterdir() if path.name != "result.txt"))
        self.assertEqual((self.copies("a")[0] / "tree/train.py").stat().st_mode & 0o777, 0o444)

    def test_a_host_gets_the_snapshot_from_another_host(self):
        gate = self.close_gate(1)
        self.serve()
        self.create(stop={"max_trials": 2}, resources={"workers": 1, "cpus_per_worker": 2})
        self.executor("a")
        self.await_event(lambda kind, data: kind == "attempt_changed" and data["state"] == "running")
        second = self.executor("b")
        second.await_stderr(r"code sha256:\w+ is here: .* directly from executor a at 127\.0\.0\.1")
        gate.close()
        self.completed()

    def test_a_program_of_the_snapshot_runs_in_a_folder_of_it(self):
        (self.code / "bin").mkdir()
        (self.code / "bin/train").write_text('#!/bin/sh\n[ -e net.py ] && echo "score=7"\n')
        (self.code / "bin/train").chmod(0o755)
        self.serve()
        self.executor("a")
        self.create(command=["./bin/train"], working_directory="lib")
        self.completed()
        self.assertEqual(self.get("/sweeps/s1")["best"]["value"], 7)

    def test_a_program_may_write_to_its_working_directory(self):
        (self.code / "lib/train.py").write_text(TRAIN.replace("from lib import net", "import net"))
        self.serve()
        self.executor("a")
        self.create(working_directory="lib", stop={"max_trials": 2})
        self.completed()
        for trial in range(2):
            folder = self.home("a") / f"sweeps/s1/trials/{trial}/work/lib"
            self.assertEqual(self.place(trial)["cwd"], str(folder))
            self.assertEqual((folder / "result.txt").read_text(), "mine")
        self.assertFalse((self.copies("a")[0] / "tree/lib/result.txt").exists())

    def test_a_writable_copy_belongs_to_the_trial(self):
        (self.code / "train.py").write_text(TRAIN + "open('lib/net.py', 'a').write('# changed')\n")
        self.serve()
        self.executor("a")
        self.create(code={"path": ".", "writable": True}, stop={"max_trials": 2})
        self.completed()
        self.assertEqual(self.place(trial=1)["file"], str(self.home("a") / "sweeps/s1/trials/1/work/train.py"))
        self.assertIn("# changed", (self.home("a") / "sweeps/s1/trials/1/work/lib/net.py").read_text())
        self.assertNotIn("# changed", (self.copies("a")[0] / "tree/lib/net.py").read_text())

    def test_a_changed_copy_is_found_before_the_next_start(self):
        self.serve()
        executor = self.executor("a")
        self.create(max_concurrent_trials=1)
        self.completed()
        changed = self.copies("a")[0] / "tree/lib/net.py"
        changed.chmod(0o644)
        changed.write_text("def score(x):\n    return 'damaged'\n")
        code, _, err = self.attune("sweep", "extend", "s1", "--max-trials", 2, "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.await_event(lambda kind, data: kind == "trial_changed" and data["trial"] == 1
                         and data["state"] == "completed")
        executor.await_stderr("lib/net.py.*fetching code sha256:.* again")

    def test_one_command_runs_a_sweep_with_code(self):
        (self.code / "sweep.yaml").write_text(json.dumps(self.spec()))
        run = self.run_sweep(self.code / "sweep.yaml")
        self.assertEqual(run.wait(), 0, "\n".join(run.stderr))

    def test_the_python_client_sends_the_same_snapshot(self):
        sys.path.insert(0, str(ROOT / "clients/python"))
        from attune.client import Server
        self.serve()
        self.executor("a")
        self.create()
        digest = self.get("/sweeps/s1/resolved")["resolved"]["code"]["digest"]
        server = Server(data_dir=self.data)
        created = server.create(self.code / "sweep.yaml")
        self.assertEqual(created.get()["id"], "s2")
        self.assertEqual(self.get("/sweeps/s2/resolved")["resolved"]["code"]["digest"], digest)
        created.wait()


REPEATED = """
import random
import attune
config = attune.init()
random.seed(attune.seed)
for step in range(attune.step + 1, 4):
    attune.report({"score": config["x"] * random.random()})
"""


class Repeating(Code):
    def history(self, trial):
        return [(point["step"], point["metrics"]) for point in self.get(f"/sweeps/{trial}")["history"]]

    def checkout(self, trial, folder):
        code, out, err = self.attune("trial", "checkout", trial, folder, "--data-dir", self.data)
        self.assertEqual((code, out), (0, f"{folder}\n"), err)
        return folder / "attune-trial"

    def test_a_checked_out_trial_trains_again_with_the_same_metrics(self):
        (self.code / "train.py").write_text(REPEATED)
        (self.code / "run.sh").write_text("")
        (self.code / "run.sh").chmod(0o755)
        (self.code / "latest").symlink_to("lib")
        self.serve()
        self.executor("a")
        self.create(command=[sys.executable, "-B", "train.py"], env={"PYTHONPATH": str(ROOT / "clients/python")}, stop={"max_trials": 3})
        self.completed()
        files = self.checkout("s1/2", self.folder / "again")
        for path in self.code.rglob("*"):
            copy = self.folder / "again" / path.relative_to(self.code)
            self.assertEqual((copy.is_symlink(), os.access(copy, os.X_OK)), (path.is_symlink(), os.access(path, os.X_OK)))
            if path.is_file():
                self.assertEqual(copy.read_bytes(), path.read_bytes())
        self.assertEqual(json.loads((files / "config.json").read_text()), self.get("/sweeps/s1/trials/2")["config"])
        shutil.rmtree(self.code)
        code, _, err = self.attune("sweep", "create", files / "sweep.yaml", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.completed("s2")
        self.assertEqual(self.history("s2/trials/0"), self.history("s1/trials/2"))
        self.assertNotEqual(self.history("s1/trials/1"), self.history("s1/trials/2"))
        first, second = (self.get(f"/sweeps/{id}")["code"]["digest"] for id in ("s1", "s2"))
        self.assertEqual(first, second)

    def test_refuses_a_folder_that_exists(self):
        self.serve()
        self.create()
        code, _, err = self.attune("trial", "checkout", "s1/0", self.code, "--data-dir", self.data)
        self.assertEqual(code, 1)
        self.assertIn("already exists", err)


class Recording(Code):
    def record(self):
        """Waits until executor a has recorded the environment of the sweep, and returns the record."""
        self.await_event(lambda kind, data: kind == "attempt_changed" and data["state"] == "running")
        environment = self.until(lambda: self.get("/sweeps/s1/trials/0/environment")["executors"])
        self.assertEqual([each["executor"] for each in environment], ["a"])
        return environment[0]["record"]

    def test_an_attempt_has_the_versions_with_which_it_ran(self):
        gate = self.close_gate(1)
        self.serve()
        self.executor("a")
        self.create()
        record = self.record()
        gate.close()
        self.completed()
        self.assertEqual(record["python"]["version"], sys.version.split()[0])
        self.assertEqual(record["python"]["executable"], sys.executable)
        self.assertIn("packages", record["python"])
        self.assertIn(record["attune"], self.attune("version")[1])
        self.assertNotIn("git", record, "the sweep has the commit of its code")
        again = self.folder / "again"
        code, _, err = self.attune("trial", "checkout", "s1/0", again, "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        environment = json.loads((again / "attune-trial/environment.json").read_text())
        self.assertEqual(environment["executors"][0]["record"], record)

    @unittest.skipUnless(shutil.which("git"), "this machine has no git")
    def test_without_a_snapshot_an_attempt_has_the_git_commit_of_its_folder(self):
        def git(*arguments):
            command = ["git", "-C", self.code, "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments]
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

        git("init", "--quiet")
        git("add", ".")
        git("commit", "--quiet", "--message", "first")
        (self.code / "lib/net.py").write_text("def score(x):\n    return 2 * x\n")
        gate = self.close_gate(1)
        self.serve()
        self.executor("a")
        spec = self.spec(env={"PLACES": str(self.places)}, reports={"pattern": r"score=(?P<score>\S+)"})
        del spec["code"]
        (self.code / "sweep.yaml").write_text(json.dumps(spec))
        code, _, err = self.attune("sweep", "create", self.code / "sweep.yaml", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        record = self.record()
        gate.close()
        self.completed()
        self.assertEqual(record["git"], {"commit": git("rev-parse", "HEAD"), "dirty": True})


class Storage(Code):
    def test_a_second_sweep_adds_only_the_changed_file(self):
        self.serve()
        self.create()
        before = self.stored_files()
        (self.code / "lib/net.py").write_text("def score(x):\n    return 2 * x\n")
        self.create()
        added = set(self.stored_files()) - set(before)
        self.assertEqual(added, {hashlib.sha256((self.code / "lib/net.py").read_bytes()).hexdigest()})

    def test_code_is_deleted_with_the_last_sweep_that_uses_it(self):
        self.serve()
        for _ in range(2):
            self.create()
        for id in ("s1", "s2"):
            self.assertTrue(self.stored_files())
            code, _, err = self.attune("sweep", "kill", id, "--data-dir", self.data)
            self.assertEqual(code, 0, err)
            self.await_event(lambda kind, data, id=id: kind == "sweep_changed" and data["sweep"] == id
                             and data["state"] == "killed")
            code, _, err = self.attune("sweep", "rm", id, "--now", "--data-dir", self.data)
            self.assertEqual(code, 0, err)
        self.until(lambda: not self.stored_files())

    def test_a_killed_server_continues_an_upload(self):
        large = os.urandom(3 << 20)
        (self.code / "weights.bin").write_bytes(large)
        self.serve()
        sys.path.insert(0, str(ROOT / "clients/python"))
        from attune import _code
        snapshot = _code.collect(self.code, [], [], 10 ** 9)
        hexes = snapshot.digest.partition(":")[2]
        post = {"method": "POST", "headers": {"Content-Type": "application/octet-stream"}}
        status, state = self.request(f"/api/v1/code/{hexes}/manifest?last=true", body=snapshot.manifest, **post)
        self.assertEqual((status, state["complete"]), (200, False))
        contents = {hashlib.sha256(path.read_bytes()).hexdigest(): path.read_bytes()
                    for path in self.code.rglob("*") if path.is_file()}
        pack = b"".join(contents[sha256] for sha256 in state["missing"])
        status, _ = self.request(f"/api/v1/code/{hexes}/pack?offset=0", body=pack[:1 << 20], **post)
        self.assertEqual(status, 200)
        self.server.kill()
        self.serve()
        state = self.get(f"/code/{hexes}")
        self.assertEqual(state["pack_bytes"], 1 << 20)
        for offset in range(1 << 20, len(pack), 1 << 20):
            status, state = self.request(f"/api/v1/code/{hexes}/pack?offset={offset}",
                                         body=pack[offset:offset + (1 << 20)], **post)
            self.assertEqual(status, 200, state)
        self.assertTrue(state["complete"])

    def test_a_killed_executor_continues_a_fetch(self):
        (self.code / "weights.bin").write_bytes(os.urandom(64 << 20))
        self.serve()
        self.create()
        folder = self.home("a") / "executors/a/code"
        first = self.start("executor", "--server", f"127.0.0.1:{self.port}", "--name", "a", "--cpus", 2, "--data-dir",
                           self.home("a"), "--token-file", self.data / "join", "--interface", "lo")
        part = self.until(lambda: next(folder.glob(".*.part/tree/weights.bin"), None)
                          or next(folder.glob("*/tree/weights.bin"), None))
        first.kill()
        kept = part.stat().st_size if part.exists() else 0
        second = self.start("executor", "--server", f"127.0.0.1:{self.port}", "--name", "a", "--cpus", 2, "--data-dir",
                            self.home("a"), "--token-file", self.data / "join", "--interface", "lo")
        self.completed()
        if kept < 64 << 20:
            fetched = float(second.await_stderr(r"code sha256:\w+ is here: .* of which ([\d.]+) MB came")[1])
            self.assertLessEqual(fetched * 1e6, (64 << 20) + 1e5 - kept)

    def test_a_backup_with_code_is_complete(self):
        self.serve()
        self.create()
        backup = self.folder / "backup.db"
        code, _, err = self.attune("db", "backup", backup, "--with-code", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.server.kill()
        shutil.rmtree(self.data)
        code, _, err = self.attune("db", "restore", backup, "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.serve()
        self.executor("a")
        self.completed()


class BadCode(Code):
    def setUp(self):
        super().setUp()
        self.serve()

    def refused(self, text, **changes):
        """Checks that no sweep is created and that nothing is left of its code."""
        (self.code / "sweep.yaml").write_text(json.dumps(self.spec(**changes)))
        code, _, err = self.attune("sweep", "create", self.code / "sweep.yaml", "--data-dir", self.data)
        self.assertNotEqual(code, 0)
        self.assertIn(text, err)
        self.assertEqual(self.get("/sweeps")["sweeps"], [])
        self.assertFalse((self.data / "code").exists())

    def test_a_folder_that_is_gone(self):
        self.refused("nowhere", code="nowhere")

    def test_a_secret(self):
        (self.code / ".env").write_text("KEY=1")
        self.refused(".env")

    def test_a_link_out_of_the_folder(self):
        (self.code / "outside").symlink_to("/etc")
        self.refused("outside")

    def test_links_in_a_circle(self):
        (self.code / "a").symlink_to("b")
        (self.code / "b").symlink_to("a")
        self.refused("circle")

    def test_a_name_that_is_not_utf8(self):
        (pathlib.Path(os.fsdecode(os.fsencode(self.code) + b"/\xff.py"))).write_text("")
        self.refused("UTF-8")

    def test_names_that_differ_only_in_case(self):
        (self.code / "Train.py").write_text("")
        self.refused("Train.py")

    def test_too_many_bytes(self):
        (self.code / "data.bin").touch()
        os.truncate(self.code / "data.bin", 101_000_000)
        self.refused("data.bin (101 MB)")

    def test_a_program_outside_of_the_code(self):
        self.refused("outside of the code", command=["../train"])

    def test_a_snapshot_that_the_server_does_not_have(self):
        self.refused("sha256:" + "0" * 64, code={"digest": "sha256:" + "0" * 64})


if __name__ == "__main__":
    unittest.main()
