"""The package `attune`. The test is the executor at the other end of its channel."""

import hashlib
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import unittest

from rank import PACKAGE, PATIENCE_S, Client


class Reports(Client):
    def test_the_trial_has_attributes_and_children_do_not_inherit_the_channel(self):
        rank = self.rank("import os\nprint(attune.config['lr'], attune.trial, attune.attempt, attune.seed, "
                         "attune.step, attune.checkpoint, os.environ.get('ATTUNE_CHANNEL_FD'))")
        self.assertEqual(rank.end()[:2], (0, "0.1 4 2 7 0 None None\n"))

    def test_defaults_apply_to_parameters_that_the_sweep_does_not_name(self):
        rank = self.rank("print(attune.init({'lr': 9, 'width': 8}), attune.config is attune.init())")
        self.assertEqual(rank.end()[1], "{'lr': 0.1, 'width': 8} True\n")

    def test_seeds_fit_into_32_bits(self):
        rank = self.rank("print(attune.seed)", seed=2**52 + 2**31 + 5)
        self.assertEqual(rank.end()[1], "5\n")

    def test_a_rank_knows_all_of_its_devices(self):
        script = "print(attune.device, attune.devices)"
        rank = self.rank(script, device="cuda:0", devices=["cuda:0", "cuda:2"])
        self.assertEqual(rank.end()[1], "cuda:0 ['cuda:0', 'cuda:2']\n")
        self.assertEqual(self.rank(script, device="cuda:1").end()[1], "cuda:1 ['cuda:1']\n")
        self.assertEqual(self.by_hand(script).stdout, "cpu ['cpu']\n")

    def test_an_unknown_parameter_is_a_key_error_that_names_it(self):
        rank = self.rank("attune.config['depth']")
        error = rank.receive("error")["message"]
        self.assertRegex(error, r"^KeyError: .*depth.*\blr\b.*attune\.init\(\)")

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

    def test_nan_and_infinity_are_sent_as_text_and_other_numbers_exactly(self):
        rank = self.rank("attune.report({'a': float('nan'), 'b': float('-inf'), 'c': 0.1, 'd': 3})")
        self.assertEqual(rank.receive("report")["metrics"], {"a": "nan", "b": "-inf", "c": 0.1, "d": 3.0})

    def test_logs_between_reports_without_waiting(self):
        rank = self.rank("attune.log({'a': float('nan')}, step=0.25)\nattune.log({'a': 1}, 1)", milestone=1)
        self.assertEqual([(line["step"], line["metrics"]) for line in (rank.receive("log"), rank.receive("log"))],
                         [(0.25, {"a": "nan"}), (1.0, {"a": 1.0})])
        self.assertEqual(rank.end()[0], 0)

    def test_refuses_wrong_arguments_of_log(self):
        for call, message in (("{'a': 1}, -1", "step is -1"),
                              ("{'a': 1}, float('nan')", "step is nan"), ("{'a': 1}, '1'", "step is '1'"),
                              ("{'a': 'x'}, 1", "metric 'a' is 'x'")):
            rank = self.rank(f"attune.log({call})")
            self.assertRegex(rank.receive("error")["message"], f"^ValueError: .*{re.escape(message)}")
            self.assertEqual(rank.end()[0], 1)

    def test_refuses_wrong_steps_and_metrics(self):
        for call, message in (("{'a': 1}, step=0", "step is 0"),
                              ("{'a': 1}, step=1.5", "step is 1.5"), ("{'a': 1}, step='1'", "step is '1'"),
                              ("{'a': 1}, step=True", "step is True"),
                              ("{'a': 'x'}", "metric 'a' is 'x'"),
                              ("{'a': '0.5'}", "metric 'a' is '0.5'"),
                              ("{'a': 'nan'}", "metric 'a' is 'nan'"),
                              ("{'a': b'1'}", "metric 'a' is b'1'"),
                              ("{'a': None}", "metric 'a' is None"),
                              ("{'a': 1j}", "metric 'a' is 1j"),
                              ("{'a': {'b': 1}}", "metric 'a' is {'b': 1}"),
                              ("{'a': [1, 2]}", "metric 'a' is [1, 2]"),
                              ("{'\\ud800': 1}", "'\\ud800'"),
                              ("{'a': 10**400}", "metric 'a'"),
                              ("3", "metrics is 3"),
                              ("{'a\\n': 1}", "'a\\n'"),
                              ("{str(i): i for i in range(1001)}", "1001")):
            rank = self.rank(f"attune.report({call})")
            self.assertRegex(rank.receive("error")["message"], f"^ValueError: .*{re.escape(message)}")
            self.assertEqual(rank.end()[0], 1)

    def test_accepts_numbers_of_every_type(self):
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

    def test_refuses_other_wrong_arguments(self):
        for call, message in (("init([1])", "ValueError: defaults is [1]"),
                              ("heartbeat('x')", "ValueError: silence is 'x'"),
                              ("heartbeat(-1)", "ValueError: silence is -1")):
            self.assertIn(message, self.rank(f"attune.{call}").receive("error")["message"])

    def test_sends_an_exception_before_the_traceback(self):
        rank = self.rank("raise ValueError('too green')")
        self.assertEqual(rank.end()[0], 1)
        rank = self.rank("attune.init()\nraise ValueError('too green')")
        self.assertEqual(rank.receive("error"), {"type": "error", "message": "ValueError: too green",
                                                 "lost_peer": False, "disk_full": False})
        self.assertIn("Traceback", rank.end()[2])

    def test_sends_an_exception_that_is_not_utf_8_as_utf_8(self):
        rank = self.rank("attune.init()\nraise ValueError('\\udcff.txt: no such ☃')")
        self.assertEqual(rank.receive("error")["message"], "ValueError: ?.txt: no such ☃")

    def test_another_protocol_is_refused(self):
        code, _, err = self.rank("attune.init()", protocol=2).end()
        self.assertEqual(code, 1)
        self.assertRegex(err, r"RuntimeError: .*protocol 2\b")

    def test_progress_and_silence(self):
        rank = self.rank("attune.progress(); attune.progress(); attune.heartbeat(1.5); attune.heartbeat(-1)")
        kinds = [(m["type"], m.get("silence_ms", m.get("step"))) for m in rank.rest()[:3]]
        self.assertEqual(kinds, [("heartbeat", 1800000), ("progress", 0), ("heartbeat", 1500)])


class Checkpoints(Client):
    SAVE = "def save(folder): (folder / 'deep').mkdir(); (folder / 'deep/state').write_text('state')\n"

    def save(self, script="attune.report({'a': 1}, checkpoint=save)", **start):
        return self.rank(self.SAVE + script, checkpoint_dir=str(self.folder), **start)

    def test_is_complete_and_has_a_digest(self):
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

    def test_on_a_full_disk_blames_the_host_and_leaves_no_files(self):
        # A quota, and a library that raises another exception.
        for error in ("raise OSError(errno.EDQUOT, 'Disk quota exceeded')",
                      "\n try: raise OSError(errno.ENOSPC, 'No space left')\n except OSError as e: raise RuntimeError from e"):
            rank = self.save(f"import errno\ndef save(folder): {error}\nattune.report({{'a': 1}}, checkpoint=save)")
            failure = rank.receive("error")
            self.assertTrue(failure["disk_full"])
            self.assertRegex(failure["message"], "^DiskFull: ")
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_on_a_full_disk_blames_the_host_for_any_exception(self):
        script = ("def save(folder):\n (folder / 'a').write_bytes(b'x' * 300_000)\n raise RuntimeError('write failed')\n"
                  "attune.report({'a': 1}, checkpoint=save)")
        self.assertFalse(self.save(script).receive("error")["disk_full"])
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", self.folder], check=False).returncode:
            self.skipTest("may not mount a small disk")
        self.addCleanup(subprocess.run, ["umount", "-l", self.folder], check=True)
        self.assertTrue(self.save(script).receive("error")["disk_full"])
        # A wrapped DiskFull, when the disk has free space again.
        self.assertTrue(self.save("def save(folder): raise OSError(28, 'full')\n"
                                  "try: attune.report({'a': 1}, checkpoint=save)\n"
                                  "except attune.DiskFull as error: raise ValueError from error")
                        .receive("error")["disk_full"])

    def test_copies_the_content_of_a_folder(self):
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

    def test_a_copy_of_an_earlier_checkpoint_has_a_new_manifest(self):
        first = self.save(checkpoint_every=1, attempt=1).receive("checkpoint")
        rank = self.rank("attune.report({'a': 1}, checkpoint=attune.checkpoint)", checkpoint_dir=str(self.folder),
                         checkpoint_every=1, resume={"step": 1, "path": first["path"], "digest": first["digest"]})
        path = pathlib.Path(rank.receive("checkpoint")["path"])
        self.assertEqual((path / "deep/state").read_text(), "state")
        self.assertEqual(json.loads((path / "manifest.json").read_text())["step"], 2)

    def test_refuses_a_path_that_is_not_a_folder_even_if_no_checkpoint_is_due(self):
        (self.folder / "file").touch()
        for value, message in ((str(self.folder / "none"), f"'{self.folder}/none'"),
                               (str(self.folder / "file"), f"'{self.folder}/file'"),
                               ({"model": 1}, "{'model': 1}"), (False, "False")):
            script = f"attune.report({{'a': 1}}, checkpoint={value!r})"
            message = f"ValueError: checkpoint is {message}"
            self.assertIn(message, self.rank(script, max_step=9).receive("error")["message"])
            self.assertIn(message, self.by_hand(script).stderr)

    def test_refuses_a_folder_that_contains_more_than_the_checkpoint(self):
        checkpoints, work = self.folder / "trial/checkpoints", self.folder / "data/work"
        checkpoints.mkdir(parents=True), work.mkdir(parents=True)
        for value, message in (("''", "is empty"), ("b''", "is empty"), ("attune.Checkpoint('')", "is empty"),
                               ("'.'", "working directory"), ("'..'", "working directory"),
                               (repr(str(checkpoints)), "trial's checkpoints"),
                               (repr(str(checkpoints.parent)), "trial's checkpoints")):
            script = f"import os; os.chdir({str(work)!r}); attune.report({{'a': 1}}, checkpoint={value})"
            rank = self.rank(script, checkpoint_dir=str(checkpoints), checkpoint_every=1)
            self.assertRegex(rank.end()[2], f"ValueError: .*{message}", value)
        self.assertEqual(list(checkpoints.iterdir()), [])

    def test_refuses_links_to_folders(self):
        source = self.folder / "source"
        (source / "deep").mkdir(parents=True)
        script = f"attune.report({{'a': 1}}, checkpoint={str(source)!r})"
        (source / "link").symlink_to("deep")
        rank = self.rank(script, checkpoint_dir=str(self.folder), checkpoint_every=1)
        self.assertRegex(rank.receive("error")["message"], "^CheckpointError: .*/source/link: ")
        rank.end()
        self.assertEqual(list(self.folder.iterdir()), [source])

    def test_is_saved_every_few_steps_even_if_steps_are_skipped(self):
        rank = self.save("for s in (1, 2, 3, 7, 8): attune.report({'a': 1}, s, checkpoint=save)",
                         checkpoint_every=3)
        self.assertEqual([m["step"] for m in rank.rest() if m["type"] == "checkpoint"], [3, 7])

    def test_is_saved_at_each_report_if_the_end_is_unknown(self):
        steps = "for s in (1, 2, 5): attune.report({'a': 1}, s, checkpoint=save)"
        rank = self.save(steps, milestone=0, max_step=0)
        self.assertEqual([m["step"] for m in rank.rest() if m["type"] == "checkpoint"], [1, 2, 5])
        rank = self.save(steps, milestone=0, max_step=9)
        self.assertEqual([m["step"] for m in rank.rest() if m["type"] == "checkpoint"], [])

    def test_is_saved_after_a_minute_or_twenty_times_its_duration(self):
        script = ("import time; now = [0]; time.monotonic = lambda: now[0]; attune.init()\n"
                  "def slow(folder): now[0] += 6; save(folder)\n"
                  "for s in range(1, 10): now[0] += 30; attune.report({'a': 1}, s, checkpoint=slow)")
        rank = self.rank(self.SAVE + script, checkpoint_dir=str(self.folder), milestone=0, max_step=99)
        self.assertEqual([m["step"] for m in rank.rest() if m["type"] == "checkpoint"], [2, 6])

    def test_time_is_the_metric_that_time_attr_names(self):
        script = ("for s in range(attune.step + 1, 10): "
                  "attune.report({'thirds': s / 3, 'time': attune.time}, checkpoint=save)")
        rank = self.save(script, time_attr="thirds", checkpoint_every=2)
        saved = rank.receive("checkpoint")
        self.assertEqual(saved["step"], 2)
        self.assertEqual(saved["path"], str(self.folder / "step-2-attempt-2"))
        self.assertEqual([m["step"] for m in rank.rest() if m["type"] == "report"], [2, 3])
        self.assertEqual(rank.end()[2].count("attune: "), 1)

        resumed = self.save(script, time_attr="thirds", resume={"step": 2, "path": saved["path"]})
        report = resumed.receive("report")
        self.assertEqual((report["step"], report["metrics"]), (3, {"thirds": 3, "time": 2}))

        script = "attune.report({'thirds': %s})"
        for value, problem in (("1.9", "1.9"), ("float('nan')", "nan"), ("-1", "-1.0")):
            wrong = self.rank(script % value, time_attr="thirds",
                              resume={"step": 2, "path": saved["path"]})
            self.assertRegex(wrong.receive("error")["message"], f"^ValueError: .*'thirds'.*{problem}")
        missing = self.rank("attune.report({'a': 1})", time_attr="b").receive("error")["message"]
        self.assertRegex(missing, r"^ValueError: .*'b'.*\ba\b")

    def test_that_fails_leaves_no_files(self):
        rank = self.rank("def save(folder): (folder / 'x').write_text('x'); raise OSError('full')\n"
                         "attune.report({'a': 1}, checkpoint=save)",
                         checkpoint_dir=str(self.folder), checkpoint_every=1)
        self.assertIn("full", rank.receive("error")["message"])
        rank.end()
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_refuses_links_in_a_checkpoint(self):
        rank = self.rank("attune.report({'a': 1}, checkpoint=lambda f: (f / 'x').symlink_to('/etc/passwd'))",
                         checkpoint_dir=str(self.folder), checkpoint_every=1)
        self.assertRegex(rank.receive("error")["message"], "^CheckpointError: .*/x: ")

    def test_refuses_files_with_names_that_attune_uses(self):
        for name in ("attune-config.json", "manifest.json"):
            rank = self.rank(f"attune.report({{'a': 1}}, checkpoint=lambda f: (f / '{name}').write_text('mine'))",
                             checkpoint_dir=str(self.folder), checkpoint_every=1)
            self.assertRegex(rank.receive("error")["message"], f"^CheckpointError: .*/{name}: ")
            rank.end()
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_removes_unfinished_checkpoints_of_earlier_attempts(self):
        (self.folder / ".attempt-1-abc").mkdir()
        (self.folder / ".attempt-2-abc").mkdir()
        self.rank("attune.init()", checkpoint_dir=str(self.folder)).end()
        self.assertEqual([path.name for path in self.folder.iterdir()], [".attempt-2-abc"])

    def resume(self, **changes):
        saved = self.save(checkpoint_every=1, attempt=changes.pop("attempt", 1)).receive("checkpoint")
        resume = {"step": 1, "path": saved["path"], "digest": saved["digest"], **changes}
        return self.rank("print(attune.step, (attune.checkpoint / 'deep/state').read_text())\n"
                         "attune.report({'a': 1})", resume=resume)

    def test_resumes_at_the_step_of_the_checkpoint(self):
        rank = self.resume()
        self.assertEqual(rank.receive("report")["step"], 2)
        self.assertEqual(rank.end()[1], "1 state\n")

    def test_refuses_a_checkpoint_with_another_digest_or_step(self):
        self.assertRegex(self.resume(digest="sha256:0").receive("error")["message"], "^CheckpointError: .*sha256:0")
        self.assertRegex(self.resume(step=3, attempt=2).receive("error")["message"], "^CheckpointError: .*step 3")

    def test_refuses_a_damaged_file(self):
        saved = self.save(checkpoint_every=1).receive("checkpoint")
        (self.folder / "step-1-attempt-2/deep/state").write_text("stale")
        rank = self.rank("attune.checkpoint", resume={"step": 1, "path": saved["path"], "digest": ""})
        self.assertRegex(rank.receive("error")["message"], "^CheckpointError: .*/deep/state: ")


class Threads(Client):
    def test_tells_the_executor_of_the_end_of_a_trial_that_a_thread_reports(self):
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

    def test_every_rank_follows_the_verdict(self):
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

    def test_a_late_rank_gets_the_last_verdict_from_the_executor(self):
        for action, end in (("continue", (0, "on\n")), ("stop", (0, ""))):
            zero, one = self.gang("if attune.rank == 1: input()\nattune.report({'a': 1})\nprint('on')")[0]
            zero.end()
            one.process.stdin.write("\n")
            one.process.stdin.flush()
            waiting = one.receive("waiting")
            self.assertEqual((waiting["ranks"], waiting["step"]), ([0], 1))
            self.verdict(one, 1, action)
            self.assertEqual(one.end()[:2], end)

    def test_a_late_rank_gets_the_verdict_of_each_step_from_the_executor(self):
        zero, one = self.gang("if attune.rank == 1: input()\nfor i in range(3): attune.report({'a': i})\nprint('on')")[0]
        zero.end()
        one.process.stdin.write("\n")
        one.process.stdin.flush()
        for step in 1, 2, 3:
            self.assertEqual(one.receive("waiting")["step"], step)
            self.verdict(one, step, "continue")
        self.assertEqual(one.end()[:2], (0, "on\n"))

    def test_ranks_with_different_every_rank_are_an_error(self):
        for saving_rank in (0, 1):
            ranks, _ = self.gang(f"attune.report({{'a': 1}}, checkpoint=lambda f: None, every_rank=attune.rank == {saving_rank})",
                                 checkpoint_dir=str(self.folder), milestone=1)
            if saving_rank == 1:
                ranks[1].receive("waiting")
                self.verdict(ranks[0], 1, "continue")
            self.assertRegex(ranks[1].receive("error")["message"], "^ValueError: .*every_rank=True")
            for rank in ranks:
                rank.end()

    def test_only_rank_0_reports_and_each_rank_writes_its_part(self):
        script = ("attune.report({'a': 1}, checkpoint=lambda f: (f / str(attune.rank)).touch(), "
                  "every_rank=True)")
        ranks, _ = self.gang(script, checkpoint_dir=str(self.folder), checkpoint_every=1)
        self.assertEqual({m["type"] for m in ranks[1].rest()}, {"heartbeat", "progress", "leaving"})
        path = pathlib.Path(ranks[0].receive("checkpoint")["path"])
        self.assertEqual({f.name for f in path.iterdir()},
                         {"0", "1", "attune-config.json", "manifest.json"})

    def test_refuses_a_file_that_two_ranks_write(self):
        script = (f"folder = {str(self.folder)!r} + f'/part-{{attune.rank}}'\n"
                  "import os, pathlib; os.mkdir(folder); pathlib.Path(folder, 'state').touch()\n"
                  "attune.report({'a': 1}, checkpoint=folder, every_rank=True)")
        (self.folder / "checkpoints").mkdir()
        ranks, _ = self.gang(script, checkpoint_dir=str(self.folder / "checkpoints"), checkpoint_every=1)
        errors = [message["message"] for rank in ranks for message in rank.rest() if message["type"] == "error"]
        self.assertTrue(any(re.match("CheckpointError: .*/state: ", message) for message in errors), errors)

    def test_ranks_of_other_hosts_can_take_part_in_saving_if_they_write_no_file(self):
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
        self.assertRegex(ranks[1].receive("error")["message"], rf"^CheckpointError: {self.folder}/.* 1\b")

    def test_a_rank_that_has_ended_is_a_lost_peer_for_the_other(self):
        ranks, _ = self.gang("attune.report({'a': 1})\n"
                             "if attune.rank == 0: raise ValueError('mine')\nattune.report({'a': 2})")
        self.assertFalse(ranks[0].receive("error")["lost_peer"])
        ranks[0].end()
        error = ranks[1].receive("error")
        self.assertTrue(error["lost_peer"])
        self.assertIn("rank 0", error["message"])

    def test_ignores_other_programs_that_connect_to_its_port(self):
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

    def test_reads_its_rank_from_the_environment_of_torchrun(self):
        script = "print(attune.rank, attune.world_size, attune.local_rank)\nattune.report({'a': 1})"
        for rank, out in ((0, "0 2 0\nstep 1  a=1\n"), (1, "1 2 1\n")):
            run = self.by_hand(script, RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank))
            self.assertEqual(run.stdout, out, run.stderr)


if __name__ == "__main__":
    unittest.main()
