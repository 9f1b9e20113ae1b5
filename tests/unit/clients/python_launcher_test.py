"""The module attune.launcher. The test sends the requests of an executor."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import unittest

from rank import PACKAGE, PATIENCE_S, Client


class Launcher(Client):
    def setUp(self):
        super().setUp()
        self.script = self.folder / "train.py"
        self.script.write_text("import attune, os, random, sys\n"
                               "print(sys.argv[1:], attune.attempt, os.environ['COLOUR'], flush=True)\n"
                               "print(random.random(), flush=True)\n"
                               "attune.report({'a': 1})\n")

    def start(self, *words):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(self.socket.close)
        self.socket.settimeout(PATIENCE_S)
        environment = dict(os.environ, PYTHONPATH=str(PACKAGE), ATTUNE_LAUNCHER_FD=str(theirs.fileno()))
        process = subprocess.Popen([sys.executable, "-Bm", "attune.launcher", *words], env=environment,
                                   pass_fds=[theirs.fileno()], stderr=subprocess.PIPE, text=True)
        theirs.close()
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def fork(self, attempt, process_group=0):
        """Requests a rank. Returns (pid, pidfd, the executor's end of the rank's channel)."""
        ours, theirs = socket.socketpair()
        self.addCleanup(ours.close)
        ours.settimeout(PATIENCE_S)
        with theirs, open(self.folder / f"{attempt}.log", "wb") as log:
            packet = {"type": "fork", "request": attempt, "argv": [], "env": {"COLOUR": "red"},
                      "cwd": str(self.folder), "process_group": process_group}
            socket.send_fds(self.socket, [json.dumps(packet).encode()], [theirs.fileno(), log.fileno()])
        answer, (pidfd,), _, _ = socket.recv_fds(self.socket, 65536, 1)
        self.addCleanup(os.close, pidfd)
        answer = json.loads(answer)
        self.assertEqual((answer["type"], answer["request"]), ("forked", attempt))
        ours.sendall(json.dumps({"type": "start", "protocol": 1, "rank": 0, "world_size": 1,
                                 "attempt": attempt, "milestone": 1}).encode() + b"\n")
        lines = ours.makefile("rb")
        self.addCleanup(lines.close)
        self.assertTrue(any(json.loads(line)["type"] == "report" for line in lines))
        return answer["pid"], pidfd, ours

    def test_forks_ranks_with_different_seeds_that_end_with_their_executor(self):
        process = self.start("--import", "json", str(self.script), "--x=1")
        ready = json.loads(self.socket.recv(65536))
        self.assertEqual(ready, {"type": "ready", "protocol": 1, "pid": process.pid})
        first, _, channel = self.fork(1)
        _, second, _ = self.fork(2)
        logs = [(self.folder / f"{attempt}.log").read_text().splitlines() for attempt in (1, 2)]
        self.assertEqual([log[0] for log in logs], ["['--x=1'] 1 red", "['--x=1'] 2 red"])
        self.assertNotEqual(logs[0][1], logs[1][1])

        channel.sendall(b'{"type": "verdict", "step": 1, "action": "stop"}\n')
        self.assertEqual(json.loads(self.socket.recv(65536)),
                         {"type": "exited", "pid": first, "exit_code": 0})
        self.socket.close()
        self.assertEqual(process.wait(PATIENCE_S), 0)
        poll = select.poll()
        poll.register(second, select.POLLIN)
        self.assertTrue(poll.poll(PATIENCE_S * 1000), "a rank outlives its launcher")

    def test_survives_the_fork_of_a_rank_whose_gang_has_ended(self):
        self.start("--import", "json", str(self.script))
        self.socket.recv(65536)
        first, _, channel = self.fork(1)
        channel.sendall(b'{"type": "verdict", "step": 1, "action": "stop"}\n')
        self.assertEqual(json.loads(self.socket.recv(65536))["pid"], first)
        late, pidfd, _ = self.fork(2, process_group=first)
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        self.assertEqual(json.loads(self.socket.recv(65536)),
                         {"type": "exited", "pid": late, "signal": signal.SIGKILL})

    def test_by_hand_runs_the_script(self):
        run = subprocess.run([sys.executable, "-Bm", "attune.launcher", self.script, "--x=1"], text=True,
                             env=dict(os.environ, PYTHONPATH=str(PACKAGE), COLOUR="red"),
                             capture_output=True, timeout=PATIENCE_S)
        self.assertEqual(run.stdout.splitlines()[0], "['--x=1'] 1 red", run.stderr)
        self.assertEqual(run.stdout.splitlines()[2], "step 1  a=1")

    def test_a_script_has_the_main_module_of_a_new_python(self):
        text = ("import __main__, os, pickle, sys\n"
                "class Model: pass\n"
                "show = lambda value: value if value is None or isinstance(value, str) else type(value).__name__\n"
                "print({name: show(value) for name, value in sorted(vars(__main__).items()) if name[:2] == '__'})\n"
                "print(__file__, sys.argv, sys.path[0], getattr(__spec__, 'name', None), Model.__module__)\n"
                "print(__loader__.name, __loader__.path, show.__code__.co_filename, vars(__main__) is globals())\n"
                "assert type(pickle.loads(pickle.dumps(Model()))) is Model\n")
        (self.folder / "package").mkdir()
        for name in "script.py", "package/__main__.py", "package/module.py":
            (self.folder / name).write_text(text)
        environment = dict(os.environ, PYTHONPATH=str(PACKAGE))
        for words in (["script.py", "--x"], ["./script.py"], [self.folder / "script.py"], ["package"],
                      ["-m", "package", "--x"], ["-m", "package.module"], ["absent.py"], ["-m", "absent"]):
            with self.subTest(words=words):
                fresh, launched = (subprocess.run([sys.executable, "-B", *launcher, *words], text=True, env=environment,
                                                  cwd=self.folder, capture_output=True, timeout=PATIENCE_S)
                                   for launcher in ([], ["-m", "attune.launcher"]))
                self.assertEqual(launched.stdout, fresh.stdout, launched.stderr)
                self.assertEqual(launched.returncode, fresh.returncode, launched.stderr)

    def test_names_a_module_that_cannot_be_imported(self):
        _, err = self.start("--import", "no_such_module", str(self.script)).communicate(timeout=PATIENCE_S)
        self.assertIn("no_such_module", err)


if __name__ == "__main__":
    unittest.main()
