"""The package `attune` for Python, with an executor of the test's own at the other end of its channel."""

import hashlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import unittest

from rank import PACKAGE, PATIENCE_S, Client


class Reports(Client):
    def test_facts_of_the_trial_are_attributes_and_no_child_inherits_the_channel(self):
        rank = self.rank("import os\nprint(attune.config['lr'], attune.trial, attune.attempt, attune.seed, "
                         "attune.step, attune.checkpoint, os.environ.get('ATTUNE_CHANNEL_FD'))")
        self.assertEqual(rank.end()[:2], (0, "0.1 4 2 7 0 None None\n"))

    def test_defaults_hold_where_the_sweep_says_nothing(self):
        rank = self.rank("print(attune.init({'lr': 9, 'width': 8}), attune.config is attune.init())")
        self.assertEqual(rank.end()[1], "{'lr': 0.1, 'width': 8} True\n")

    def test_seeds_are_what_numpy_takes(self):
        rank = self.rank("print(attune.seed)", seed=2**52 + 2**31 + 5)
        self.assertEqual(rank.end()[1], "5\n")

    def test_a_rank_knows_all_of_its_devices(self):
        script = "print(attune.device, attune.devices)"
        rank = self.rank(script, device="cuda:0", devices=["cuda:0", "cuda:2"])
        self.assertEqual(rank.end()[1], "cuda:0 ['cuda:0', 'cuda:2']\n")
        self.assertEqual(self.rank(script, device="cuda:1").end()[1], "cuda:1 ['cuda:1']\n")
        self.assertEqual(self.by_hand(script).stdout, "cpu ['cpu']\n")

    def test_an_unknown_parameter_says_what_to_do(self):
        rank = self.rank("attune.config['depth']")
        error = rank.receive("error")["message"]
        self.assertIn("depth: no parameter of this trial (it has lr)", error)
        self.assertIn("attune.init()", error)

    def test_waits_at_milestones_only_and_leaves_with_stop(self):
        rank = self.rank("for i in range(9): attune.report({'a': i})\n", milestone=2)
        self.assertEqual([rank.receive("report")["waits"] for _ in range(2)], [False, True])
        self.verdict(rank, 2, "continue", milestone=4)
        self.assertEqual([rank.receive("report")["waits"] for _ in range(2)], [False, True])
        self.verdict(rank, 4, "stop")
        self.assertEqual([message["type"] for message in rank.rest()[-2:]], ["progress", "leaving"])
        self.assertEqual(rank.end()[0], 0)

    def test_waits_after_a_yield_with_a_checkpoint_before(self):
        rank = self.rank("attune.report({'a': 0})\nattune.report({'a': 1}, checkpoint=lambda folder: None)",
                         milestone=1, checkpoint_dir=str(self.folder))
        self.assertTrue(rank.receive("report")["waits"])
        rank.socket.sendall(b'{"type": "verdict", "step": 1, "action": "continue"}\n{"type": "yield"}\n')
        rank.receive("checkpoint")
        self.assertTrue(rank.receive("report")["waits"])
        self.verdict(rank, 2, "pause")
        self.assertEqual(rank.end()[0], 0)

    def test_what_json_lacks_is_spelled_and_other_numbers_are_exact(self):
        rank = self.rank("attune.report({'a': float('nan'), 'b': float('-inf'), 'c': 0.1, 'd': 3})")
        self.assertEqual(rank.receive("report")["metrics"], {"a": "nan", "b": "-inf", "c": 0.1, "d": 3.0})

    def test_logs_between_reports_without_waiting(self):
        rank = self.rank("attune.log({'a': float('nan')}, step=0.25)\nattune.log({'a': 1}, 1)", milestone=1)
        self.assertEqual([(line["step"], line["metrics"]) for line in (rank.receive("log"), rank.receive("log"))],
                         [(0.25, {"a": "nan"}), (1.0, {"a": 1.0})])
        self.assertEqual(rank.end()[0], 0)

    def test_what_cannot_be_logged_is_refused(self):
        for call, message in (("{'a': 1}, -1", "step is -1 and must be a finite number of at least 0"),
                              ("{'a': 1}, float('nan')", "step is nan"), ("{'a': 1}, '1'", "step is '1'"),
                              ("{'a': 'x'}, 1", "metric 'a' is 'x', which is not one number")):
            rank = self.rank(f"attune.log({call})")
            self.assertIn(message, rank.receive("error")["message"])
            self.assertEqual(rank.end()[0], 1)

    def test_steps_and_metrics_that_cannot_be_are_refused(self):
        for call, message in (("{'a': 1}, step=0", "step is 0 and must be a whole number above 0"),
                              ("{'a': 1}, step=1.5", "step is 1.5"), ("{'a': 1}, step='1'", "step is '1'"),
                              ("{'a': 1}, step=True", "step is True"),
                              ("{'a': 'x'}", "metric 'a' is 'x', which is not one number: it is text; convert it"),
                              ("{'a': '0.5'}", "metric 'a' is '0.5', which is not one number"),
                              ("{'a': 'nan'}", "metric 'a' is 'nan', which is not one number"),
                              ("{'a': b'1'}", "metric 'a' is b'1', which is not one number"),
                              ("{'a': None}", "metric 'a' is None, which is not one number: its type is NoneType"),
                              ("{'a': 1j}", "metric 'a' is 1j, which is not one number"),
                              ("{'a': {'b': 1}}", "metric 'a' is {'b': 1}, which is not one number"),
                              ("{'a': [1, 2]}", "metric 'a' is [1, 2], which is not one number"),
                              ("{'\\ud800': 1}", "a metric is named '\\ud800'"),
                              ("{'a': 10**400}", "metric 'a' is an integer that is too large for a float"),
                              ("3", "metrics is 3 and must map names to numbers"),
                              ("{'a\\n': 1}", "a metric is named 'a\\n'"),
                              ("{str(i): i for i in range(1001)}", "1001 metrics")):
            rank = self.rank(f"attune.report({call})")
            self.assertIn(message, rank.receive("error")["message"])
            self.assertEqual(rank.end()[0], 1)

    def test_numbers_of_every_type_are_numbers(self):
        rank = self.rank("import decimal, fractions\n"
                         "class Scalar:\n"
                         "    def __init__(self, value): self.value = value\n"
                         "    def item(self): return self.value\n"
                         "class Whole:\n"
                         "    def __index__(self): return 7\n"
                         "attune.report({'a': Scalar(1.5), 'b': decimal.Decimal('0.25'), 'c': fractions.Fraction(1, 2),\n"
                         "               'd': True, 'e': Whole()}, step=Whole())\n"
                         "attune.report({'a': 1}, step=Scalar(8))\n"
                         "attune.report({'a': Scalar('1')}, step=9)")
        told = rank.receive("report")
        self.assertEqual((told["step"], told["metrics"]), (7, {"a": 1.5, "b": 0.25, "c": 0.5, "d": 1.0, "e": 7.0}))
        self.assertEqual(rank.receive("report")["step"], 8)
        self.assertIn("metric 'a' is", rank.receive("error")["message"])

    def test_other_arguments_that_cannot_be_are_refused(self):
        for call, message in (("init([1])", "ValueError: defaults is [1] and must map names to values"),
                              ("heartbeat('x')", "ValueError: silence is 'x' and must be 0 to 604800 seconds"),
                              ("heartbeat(-1)", "ValueError: silence is -1 and must be 0 to 604800 seconds")):
            self.assertIn(message, self.rank(f"attune.{call}").receive("error")["message"])

    def test_an_exception_is_told_before_the_traceback(self):
        rank = self.rank("raise ValueError('too green')")
        self.assertEqual(rank.end()[0], 1)
        rank = self.rank("attune.init()\nraise ValueError('too green')")
        self.assertEqual(rank.receive("error"), {"type": "error", "message": "ValueError: too green",
                                                 "lost_peer": False, "disk_full": False})
        self.assertIn("Traceback", rank.end()[2])

    def test_an_exception_that_is_no_utf_8_is_told_in_utf_8(self):
        rank = self.rank("attune.init()\nraise ValueError('\\udcff.txt: no such ☃')")
        self.assertEqual(rank.receive("error")["message"], "ValueError: ?.txt: no such ☃")

    def test_another_protocol_is_refused(self):
        code, _, err = self.rank("attune.init()", protocol=2).end()
        self.assertEqual(code, 1)
        self.assertIn("the executor speaks protocol 2", err)

    def test_progress_and_silence(self):
        rank = self.rank("attune.progress(); attune.progress(); attune.heartbeat(1.5); attune.heartbeat(-1)")
        kinds = [(m["type"], m.get("silence_ms", m.get("step"))) for m in rank.rest()[:3]]
        self.assertEqual(kinds, [("heartbeat", 1800000), ("progress", 0), ("heartbeat", 1500)])


class Checkpoints(Client):
    SAVE = "def save(folder): (folder / 'deep').mkdir(); (folder / 'deep/state').write_text('state')\n"

    def save(self, script="attune.report({'a': 1}, checkpoint=save)", **start):
        return self.rank(self.SAVE + script, checkpoint_dir=str(self.folder), **start)

    def test_lies_complete_at_its_name_with_its_digest(self):
        saved = self.save(checkpoint_every=1).receive("checkpoint")
        folder = self.folder / "step-1-attempt-2"
        self.assertEqual(saved["path"], str(folder))
        manifest = (folder / "manifest.json").read_bytes()
        self.assertEqual(saved["digest"], "sha256:" + hashlib.sha256(manifest).hexdigest())
        listed = json.loads(manifest)
        self.assertEqual((listed["format"], listed["step"], listed["world_size"]),
                         ("attune-checkpoint/1", 1, 1))
        self.assertEqual(set(listed["files"]), {"attune-config.json", "deep/state"})
        self.assertEqual(listed["files"]["deep/state"],
                         {"bytes": 5, "sha256": hashlib.sha256(b"state").hexdigest()})
        self.assertEqual(json.loads((folder / "attune-config.json").read_text()), {"lr": 0.1})
        self.assertEqual(saved["bytes"], sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()))

    def test_that_finds_no_room_blames_the_host_and_leaves_nothing(self):
        # A quota, and a library that says something else.
        for error in ("raise OSError(errno.EDQUOT, 'Disk quota exceeded')",
                      "\n try: raise OSError(errno.ENOSPC, 'No space left')\n except OSError as e: raise RuntimeError from e"):
            rank = self.save(f"import errno\ndef save(folder): {error}\nattune.report({{'a': 1}}, checkpoint=save)")
            said = rank.receive("error")
            self.assertTrue(said["disk_full"])
            self.assertIn("a disk or a quota of this host is full", said["message"])
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_on_a_full_disk_blames_the_host_whatever_the_exception_says(self):
        script = ("def save(folder):\n (folder / 'a').write_bytes(b'x' * 300_000)\n raise RuntimeError('write failed')\n"
                  "attune.report({'a': 1}, checkpoint=save)")
        self.assertFalse(self.save(script).receive("error")["disk_full"])
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", self.folder], check=False).returncode:
            self.skipTest("may not mount a small disk")
        self.addCleanup(subprocess.run, ["umount", "-l", self.folder], check=True)
        self.assertTrue(self.save(script).receive("error")["disk_full"])
        # Caught and wrapped, and raised when there is room again.
        self.assertTrue(self.save("def save(folder): raise OSError(28, 'full')\n"
                                  "try: attune.report({'a': 1}, checkpoint=save)\n"
                                  "except attune.DiskFull as error: raise ValueError from error")
                        .receive("error")["disk_full"])

    def test_that_is_a_folder_is_a_copy_of_its_content(self):
        script = ("import pathlib, tempfile\n"
                  "for make in attune.Checkpoint.from_directory, pathlib.Path, str:\n"
                  "    with tempfile.TemporaryDirectory() as folder:\n"
                  "        path = pathlib.Path(folder)\n"
                  "        (path / 'deep').mkdir()\n"
                  "        (path / 'deep/state').write_text(make.__name__)\n"
                  "        (path / 'link').symlink_to('deep/state')\n"
                  "        attune.report({'a': 1}, checkpoint=make(folder))\n")
        rank = self.rank(script, checkpoint_dir=str(self.folder), checkpoint_every=1)
        for content in ("from_directory", "Path", "str"):
            path = pathlib.Path(rank.receive("checkpoint")["path"])
            self.assertEqual({file.relative_to(path).as_posix(): file.read_text() for file in path.rglob("*")
                              if file.is_file() and file.name not in ("manifest.json", "attune-config.json")},
                             {"deep/state": content, "link": content})
            self.assertFalse((path / "link").is_symlink())
        self.assertEqual(rank.end()[0], 0)

    def test_that_is_a_copy_of_an_earlier_one_has_a_manifest_of_its_own(self):
        first = self.save(checkpoint_every=1, attempt=1).receive("checkpoint")
        rank = self.rank("attune.report({'a': 1}, checkpoint=attune.checkpoint)", checkpoint_dir=str(self.folder),
                         checkpoint_every=1, resume={"step": 1, "path": first["path"], "digest": first["digest"]})
        path = pathlib.Path(rank.receive("checkpoint")["path"])
        self.assertEqual((path / "deep/state").read_text(), "state")
        self.assertEqual(json.loads((path / "manifest.json").read_text())["step"], 2)

    def test_that_is_no_folder_is_refused_also_where_none_is_due(self):
        (self.folder / "file").touch()
        for value, message in ((str(self.folder / "none"), "which does not exist"),
                               (str(self.folder / "file"), "which is a file; give the folder"),
                               ({"model": 1}, "checkpoint is {'model': 1} and must be a folder"), (False, "is False")):
            script = f"attune.report({{'a': 1}}, checkpoint={value!r})"
            self.assertIn(message, self.rank(script, max_step=9).receive("error")["message"])
            self.assertIn(message, self.by_hand(script).stderr)

    def test_that_is_a_folder_with_more_than_its_files_is_refused(self):
        checkpoints, work = self.folder / "trial/checkpoints", self.folder / "data/work"
        checkpoints.mkdir(parents=True), work.mkdir(parents=True)
        for value, message in (("''", "is empty"), ("b''", "is empty"), ("attune.Checkpoint('')", "is empty"),
                               ("'.'", "the working directory"), ("'..'", "the working directory"),
                               (repr(str(checkpoints)), "the folder of the trial's checkpoints"),
                               (repr(str(checkpoints.parent)), "the folder of the trial's checkpoints")):
            script = f"import os; os.chdir({str(work)!r}); attune.report({{'a': 1}}, checkpoint={value})"
            rank = self.rank(script, checkpoint_dir=str(checkpoints), checkpoint_every=1)
            self.assertRegex(rank.end()[2], f"ValueError: .*{message}", value)
        self.assertEqual(list(checkpoints.iterdir()), [])

    def test_that_is_a_folder_has_no_links_to_folders(self):
        source = self.folder / "source"
        (source / "deep").mkdir(parents=True)
        script = f"attune.report({{'a': 1}}, checkpoint={str(source)!r})"
        (source / "link").symlink_to("deep")
        rank = self.rank(script, checkpoint_dir=str(self.folder), checkpoint_every=1)
        self.assertIn("link: is a link to a folder", rank.receive("error")["message"])
        rank.end()
        self.assertEqual(list(self.folder.iterdir()), [source])

    def test_every_so_many_steps_also_where_steps_are_left_out(self):
        rank = self.save("for s in (1, 2, 3, 7, 8): attune.report({'a': 1}, s, checkpoint=save)",
                         checkpoint_every=3)
        self.assertEqual([m["step"] for m in rank.rest() if m["type"] == "checkpoint"], [3, 7])

    def test_each_time_where_no_end_is_known(self):
        steps = "for s in (1, 2, 5): attune.report({'a': 1}, s, checkpoint=save)"
        rank = self.save(steps, milestone=0, max_step=0)
        self.assertEqual([m["step"] for m in rank.rest() if m["type"] == "checkpoint"], [1, 2, 5])
        rank = self.save(steps, milestone=0, max_step=9)
        self.assertEqual([m["step"] for m in rank.rest() if m["type"] == "checkpoint"], [])

    def test_after_a_minute_or_twenty_times_what_it_takes(self):
        script = ("import time; now = [0]; time.monotonic = lambda: now[0]; attune.init()\n"
                  "def slow(folder): now[0] += 6; save(folder)\n"
                  "for s in range(1, 10): now[0] += 30; attune.report({'a': 1}, s, checkpoint=slow)")
        rank = self.rank(self.SAVE + script, checkpoint_dir=str(self.folder), milestone=0, max_step=99)
        self.assertEqual([m["step"] for m in rank.rest() if m["type"] == "checkpoint"], [2, 6])

    def test_time_is_a_metric_where_the_sweep_says_so(self):
        script = ("for s in range(attune.step + 1, 10): "
                  "attune.report({'thirds': s / 3, 'time': attune.time}, checkpoint=save)")
        rank = self.save(script, time_attr="thirds", checkpoint_every=2)
        saved = rank.receive("checkpoint")
        self.assertEqual(saved["step"], 2)
        self.assertEqual(saved["path"], str(self.folder / "step-2-attempt-2"))
        self.assertEqual([m["step"] for m in rank.rest() if m["type"] == "report"], [2, 3])
        self.assertEqual(rank.end()[2].count("lies within the unit of thirds"), 1)

        resumed = self.save(script, time_attr="thirds", resume={"step": 2, "path": saved["path"]})
        report = resumed.receive("report")
        self.assertEqual((report["step"], report["metrics"]), (3, {"thirds": 3, "time": 2}))

        script = "attune.report({'thirds': %s})"
        for value, problem in (("1.9", "is 1.9 after 2"), ("float('nan')", "is nan and must be"),
                               ("-1", "is -1.0 and must be")):
            wrong = self.rank(script % value, time_attr="thirds",
                              resume={"step": 2, "path": saved["path"]})
            self.assertIn(problem, wrong.receive("error")["message"])
        self.assertIn("is not in the report, which has a",
                      self.rank("attune.report({'a': 1})", time_attr="b").receive("error")["message"])

    def test_one_that_fails_leaves_nothing(self):
        rank = self.rank("def save(folder): (folder / 'x').write_text('x'); raise OSError('full')\n"
                         "attune.report({'a': 1}, checkpoint=save)",
                         checkpoint_dir=str(self.folder), checkpoint_every=1)
        self.assertIn("full", rank.receive("error")["message"])
        rank.end()
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_links_are_refused(self):
        rank = self.rank("attune.report({'a': 1}, checkpoint=lambda f: (f / 'x').symlink_to('/etc/passwd'))",
                         checkpoint_dir=str(self.folder), checkpoint_every=1)
        self.assertIn("a checkpoint has files and folders only", rank.receive("error")["message"])

    def test_files_of_the_packages_own_are_not_the_programs(self):
        for name in ("attune-config.json", "manifest.json"):
            rank = self.rank(f"attune.report({{'a': 1}}, checkpoint=lambda f: (f / '{name}').write_text('mine'))",
                             checkpoint_dir=str(self.folder), checkpoint_every=1)
            self.assertIn(f"{name}: Attune writes a file of this name", rank.receive("error")["message"])
            rank.end()
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_what_earlier_attempts_were_writing_is_removed(self):
        (self.folder / ".attempt-1-abc").mkdir()
        (self.folder / ".attempt-2-abc").mkdir()
        self.rank("attune.init()", checkpoint_dir=str(self.folder)).end()
        self.assertEqual([path.name for path in self.folder.iterdir()], [".attempt-2-abc"])

    def resume(self, **changes):
        saved = self.save(checkpoint_every=1, attempt=changes.pop("attempt", 1)).receive("checkpoint")
        resume = {"step": 1, "path": saved["path"], "digest": saved["digest"], **changes}
        return self.rank("print(attune.step, (attune.checkpoint / 'deep/state').read_text())\n"
                         "attune.report({'a': 1})", resume=resume)

    def test_is_resumed_from_at_its_step(self):
        rank = self.resume()
        self.assertEqual(rank.receive("report")["step"], 2)
        self.assertEqual(rank.end()[1], "1 state\n")

    def test_another_than_the_server_knows_is_refused(self):
        self.assertIn("not the checkpoint that the server knows", self.resume(digest="sha256:0").receive("error")["message"])
        self.assertIn("no checkpoint of step 3", self.resume(step=3, attempt=2).receive("error")["message"])

    def test_a_damaged_file_is_refused(self):
        saved = self.save(checkpoint_every=1).receive("checkpoint")
        (self.folder / "step-1-attempt-2/deep/state").write_text("stale")
        rank = self.rank("attune.checkpoint", resume={"step": 1, "path": saved["path"], "digest": ""})
        self.assertIn("deep/state: is not the file that the manifest lists",
                      rank.receive("error")["message"])


class Threads(Client):
    def test_the_end_of_a_trial_that_a_thread_reports_is_told_to_the_executor(self):
        report = "attune.report({'a': 1})"
        thread = f"import threading; t = threading.Thread(target=lambda: {report}); t.start(); t.join(); print('on')"
        for script, kinds, out in ((thread, ["done", "leaving"], "on\n"), (report, ["leaving"], "")):
            rank = self.rank(script, milestone=1)
            rank.receive("report")
            self.verdict(rank, 1, "stop")
            self.assertEqual([message["type"] for message in rank.rest() if message["type"] != "progress"], kinds)
            self.assertEqual(rank.end()[:2], (0, out))


class Gang(Client):
    def gang(self, script, **start):
        ranks = [self.rank(script, rank=rank, local_rank=rank, world_size=2, local_world_size=2, **start)
                 for rank in range(2)]
        meeting = ranks[0].receive("rendezvous")
        ranks[1].send(**meeting)
        return ranks, meeting

    def test_every_rank_takes_the_branch_of_the_verdict(self):
        ranks, _ = self.gang("import atexit; atexit.register(lambda: print('left at', attune.step))\n"
                             "while True: attune.report({'a': 1})", milestone=2)
        ranks[0].receive("report")
        ranks[0].receive("report")
        while ranks[1].receive("progress")["step"] < 2:
            pass
        self.verdict(ranks[0], 2, "stop")
        for rank in ranks:
            self.assertEqual(rank.end()[:2], (0, "left at 2\n"))

    def test_rank_zero_alone_may_report(self):
        ranks, _ = self.gang("if attune.rank == 0:\n    for i in range(3): attune.report({'a': i})\n"
                             "attune.init()\ninput()\nprint('done')")
        for rank in ranks:
            rank.process.stdin.write("\n")
            self.assertEqual(rank.end()[:2], (0, "done\n"))

    def test_a_late_rank_hears_from_the_executor_how_rank_zero_has_left(self):
        for action, end in (("continue", (0, "on\n")), ("stop", (0, ""))):
            zero, one = self.gang("if attune.rank == 1: input()\nattune.report({'a': 1})\nprint('on')")[0]
            zero.end()
            one.process.stdin.write("\n")
            one.process.stdin.flush()
            waiting = one.receive("waiting")
            self.assertEqual((waiting["ranks"], waiting["step"]), ([0], 1))
            self.verdict(one, 1, action)
            self.assertEqual(one.end()[:2], end)

    def test_a_late_rank_hears_of_each_step_from_the_executor(self):
        zero, one = self.gang("if attune.rank == 1: input()\nfor i in range(3): attune.report({'a': i})\nprint('on')")[0]
        zero.end()
        one.process.stdin.write("\n")
        one.process.stdin.flush()
        for step in 1, 2, 3:
            self.assertEqual(one.receive("waiting")["step"], step)
            self.verdict(one, step, "continue")
        self.assertEqual(one.end()[:2], (0, "on\n"))

    def test_ranks_that_do_not_agree_on_every_rank_are_told(self):
        for who in (0, 1):
            ranks, _ = self.gang(f"attune.report({{'a': 1}}, checkpoint=lambda f: None, every_rank=attune.rank == {who})",
                                 checkpoint_dir=str(self.folder), milestone=1)
            if who == 1:
                ranks[1].receive("waiting")
                self.verdict(ranks[0], 1, "continue")
            self.assertIn("on every rank, or on none", ranks[1].receive("error")["message"])
            for rank in ranks:
                rank.end()

    def test_only_rank_0_reports_and_each_writes_its_part(self):
        script = ("attune.report({'a': 1}, checkpoint=lambda f: (f / str(attune.rank)).touch(), "
                  "every_rank=True)")
        ranks, _ = self.gang(script, checkpoint_dir=str(self.folder), checkpoint_every=1)
        self.assertEqual({m["type"] for m in ranks[1].rest()}, {"heartbeat", "progress", "leaving"})
        path = pathlib.Path(ranks[0].receive("checkpoint")["path"])
        self.assertEqual({f.name for f in path.iterdir()},
                         {"0", "1", "attune-config.json", "manifest.json"})

    def test_a_file_that_two_ranks_write_is_refused(self):
        script = (f"folder = {str(self.folder)!r} + f'/part-{{attune.rank}}'\n"
                  "import os, pathlib; os.mkdir(folder); pathlib.Path(folder, 'state').touch()\n"
                  "attune.report({'a': 1}, checkpoint=folder, every_rank=True)")
        (self.folder / "checkpoints").mkdir()
        ranks, _ = self.gang(script, checkpoint_dir=str(self.folder / "checkpoints"), checkpoint_every=1)
        said = [message["message"] for rank in ranks for message in rank.rest() if message["type"] == "error"]
        self.assertTrue(any("state: another rank has written a file of this name" in each for each in said), said)

    def test_ranks_of_other_hosts_take_part_in_saving_if_they_write_nothing(self):
        script = ("import os\n"
                  "if attune.rank == 1: os.path.isdir = lambda path: False  # as on another host\n"
                  "def save(folder):\n"
                  "    print('saves')\n"
                  "    if attune.rank in attune.config['writers']: (folder / str(attune.rank)).touch()\n"
                  "attune.report({'a': 1}, checkpoint=save, every_rank=True)")
        start = {"checkpoint_dir": str(self.folder), "checkpoint_every": 1}
        ranks, _ = self.gang(script, config={"writers": [0]}, **start)
        self.assertIn("0", [f.name for f in pathlib.Path(ranks[0].receive("checkpoint")["path"]).iterdir()])
        self.assertEqual(ranks[1].end()[:2], (0, "saves\n"))
        ranks, _ = self.gang(script, config={"writers": [0, 1]}, **start)
        self.assertIn("this host has no such folder for 1", ranks[1].receive("error")["message"])

    def test_a_rank_that_left_is_a_lost_peer_to_the_other(self):
        ranks, _ = self.gang("attune.report({'a': 1})\n"
                             "if attune.rank == 0: raise ValueError('mine')\nattune.report({'a': 2})")
        self.assertFalse(ranks[0].receive("error")["lost_peer"])
        ranks[0].end()
        error = ranks[1].receive("error")
        self.assertTrue(error["lost_peer"])
        self.assertIn("rank 0", error["message"])

    def test_strangers_at_the_port_are_turned_away(self):
        script = "attune.init()\nattune.report({'a': 1})\nprint('on')"
        zero = self.rank(script, world_size=2, local_world_size=2, milestone=1)
        meeting = zero.receive("rendezvous")
        for hello in (b"GET / HTTP/1.1\r\n\r\n", b"", b'{"gang": "s1/5.1", "rank": 1}\n', b"[]\n",
                      b'{"gang": "s1/4.2", "rank": 0}\n'):
            with socket.create_connection((meeting["host"], meeting["port"])) as stranger:
                stranger.sendall(hello)
        one = self.rank(script, rank=1, local_rank=1, world_size=2, local_world_size=2)
        one.send(**meeting)
        one.receive("waiting")
        self.verdict(zero, 1, "continue")
        for rank in (zero, one):
            self.assertEqual(rank.end()[:2], (0, "on\n"))


class ByHand(Client):
    def test_is_a_gang_of_one_that_prints_its_reports(self):
        run = self.by_hand("print(attune.init({'lr': 0.5}), attune.rank, attune.world_size, attune.checkpoint)\n"
                           "attune.report({'a': 0.25, 'b': 2}, checkpoint=print)")
        self.assertEqual(run.stdout, "{'lr': 0.5} 0 1 None\nstep 1  a=0.25  b=2\n", run.stderr)

    def test_takes_its_place_from_torchrun(self):
        script = "print(attune.rank, attune.world_size, attune.local_rank)\nattune.report({'a': 1})"
        for rank, out in ((0, "0 2 0\nstep 1  a=1\n"), (1, "1 2 1\n")):
            run = self.by_hand(script, RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank))
            self.assertEqual(run.stdout, out, run.stderr)


if __name__ == "__main__":
    unittest.main()
