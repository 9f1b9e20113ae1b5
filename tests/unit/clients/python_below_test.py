"""Child processes of a rank. The test is the executor at the socket ATTUNE_CHANNEL."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from rank import PACKAGE, PATIENCE_S

START = {"type": "start", "protocol": 1, "sweep": "s1", "trial": 4, "attempt": 2, "device": "cpu", "cpus": 1, "seed": 7,
         "config": {"lr": 0.1}, "milestone": 0, "max_step": 0, "checkpoint_every": 0, "checkpoint_dir": ""}


class Executor:
    """Answers programs that join, and refuses a second claim of a rank."""

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.received, self.claims, self.lock = [], {}, threading.Lock()
        self.is_silent = False
        self.reasons = []  # the messages of `leaving`
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        place = {}
        with connection, connection.makefile("rb") as lines:
            for line in lines:
                self._handle_message(json.loads(line), place, connection)

    def _handle_message(self, message, place, connection):
        with self.lock:
            answer = self._answer(message, place)
            self.received.append((place.get("rank"), message["type"]))
        if answer and not self.is_silent:
            connection.sendall(json.dumps(answer).encode() + b"\n")

    def _answer(self, message, place):
        kind = message.pop("type")
        answer = None
        if kind == "leaving":
            self.reasons.append(message["message"])
        if kind == "join":
            place.update(message)
            answer = {**START, **message}
        elif kind == "claim" and place["rank"] in self.claims:
            answer = {"type": "refused", "message": "process 7 already speaks as rank 0, so process 8 cannot"}
        elif kind == "claim":
            self.claims[place["rank"]] = place
            answer = {"type": "claimed"}
        message["type"] = kind
        return answer

    def close(self):
        self.listener.close()


class Below(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name, "socket")
        self.executor = Executor(self.path)
        self.addCleanup(self.executor.close)

    def run_script(self, script, **environment):
        """Runs a script whose parent is not the process that inherits the channel. Returns the ended process."""
        return subprocess.run([sys.executable, "-Bc", script], text=True, capture_output=True, timeout=PATIENCE_S,
                              env=dict(os.environ, PYTHONPATH=str(PACKAGE), ATTUNE_CHANNEL=str(self.path),
                                       ATTUNE_CHANNEL_PARENT="1", ATTUNE_CHANNEL_FD="77", ATTUNE_TRIAL="4", **environment))

    def types(self, rank=0):
        return [kind for sender, kind in self.executor.received if sender == rank]

    def test_joins_and_claims_its_rank_before_it_reports(self):
        ended = self.run_script("import attune\nattune.report({'a': 1})\nprint(attune.rank, attune.world_size)")
        self.assertEqual((ended.returncode, ended.stdout), (0, "0 1\n"), ended.stderr)
        self.assertEqual(self.types()[:2], ["join", "claim"])
        self.assertIn("report", self.types())

    def test_reads_its_rank_from_the_environment_of_the_launcher(self):
        ended = self.run_script("import attune\nprint(attune.rank, attune.world_size, attune.local_rank, attune.by_hand)",
                                RANK="1", WORLD_SIZE="2", LOCAL_RANK="1", LOCAL_WORLD_SIZE="2")
        self.assertEqual(ended.stdout, "1 2 1 False\n", ended.stderr)

    def test_a_program_that_only_reads_its_configuration_claims_nothing(self):
        ended = self.run_script("import attune\nprint(attune.init({'width': 3}))")
        self.assertEqual(ended.stdout, "{'lr': 0.1, 'width': 3}\n", ended.stderr)
        self.assertEqual(self.types(), ["join"])

    def test_a_second_process_of_a_rank_may_run_but_not_report(self):
        script = ("import attune, os\nattune.report({'a': 1})\npid = os.fork()\n"
                  "if pid == 0:\n"
                  "    attune.progress()  # is ignored\n"
                  "    try: attune.report({'a': 2})\n"
                  "    except RuntimeError as error: print(error, flush=True)\n"
                  "    os._exit(0)\n"
                  "os.waitpid(pid, 0)")
        ended = self.run_script(script)
        self.assertEqual((ended.returncode, ended.stdout),
                         (0, "process 7 already speaks as rank 0, so process 8 cannot\n"), ended.stderr)

    def test_sends_the_text_of_an_exit_before_functions_of_atexit(self):
        self.run_script("import attune, atexit, sys\nattune.report({'a': 1})\n"
                        "atexit.register(attune.heartbeat, 0)\nsys.exit('bad config')")
        self.assertEqual(self.types()[-2:], ["leaving", "heartbeat"])
        self.assertEqual(self.executor.reasons, ["SystemExit: bad config"])

    def test_a_program_that_claims_no_rank_sends_the_text_of_its_exit(self):
        self.run_script("import attune, sys\nattune.init()\nsys.exit('bad config')")
        self.assertEqual((self.types(), self.executor.reasons), (["join", "leaving"], ["SystemExit: bad config"]))

    def test_an_exit_without_a_text_has_an_empty_reason(self):
        self.run_script("import attune\nattune.report({'a': 1})\nraise SystemExit(3)")
        self.assertEqual(self.executor.reasons, [""])

    def test_fails_if_the_executor_does_not_answer(self):
        self.executor.is_silent = True
        ended = self.run_script("import attune, attune._connect\nattune._connect._ANSWER_S = 0.01\nattune.init()")
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, r"RuntimeError: .*\b0\.01 s\b")

    def test_a_lost_channel_is_an_error_that_names_the_path(self):
        self.path.unlink()
        ended = self.run_script("import attune\nattune.init()")
        self.assertRegex(ended.stderr, f"RuntimeError: .*{self.path}.*{self.path.parent}")
        self.assertEqual(ended.returncode, 1)

    def test_a_lost_descriptor_is_an_error_that_names_it(self):
        environment = dict(os.environ, PYTHONPATH=str(PACKAGE), ATTUNE_CHANNEL_FD="77", ATTUNE_TRIAL="4")
        ended = subprocess.run([sys.executable, "-Bc", "import attune\nattune.init()"], text=True, capture_output=True,
                               timeout=PATIENCE_S, env=environment)
        self.assertRegex(ended.stderr, r"RuntimeError: .*ATTUNE_CHANNEL_FD.*\b77\b")
        self.assertEqual(ended.returncode, 1)


if __name__ == "__main__":
    unittest.main()
