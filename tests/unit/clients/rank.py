"""A process that is a rank. The test is the executor at the other end of its channel."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parents[3] / "clients/python"
PATIENCE_S = 30


class Rank:
    """A process that runs `script` as one rank."""

    def __init__(self, script, **start):
        ours, theirs = socket.socketpair()
        self.socket, self.lines = ours, ours.makefile("rb")
        ours.settimeout(PATIENCE_S)
        environment = dict(os.environ, PYTHONPATH=str(PACKAGE), ATTUNE_CHANNEL_FD=str(theirs.fileno()))
        self.process = subprocess.Popen([sys.executable, "-Bc", script], env=environment, text=True,
                                        pass_fds=[theirs.fileno()], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        theirs.close()
        self.send(**{"type": "start", "protocol": 1, "sweep": "s1", "trial": 4, "attempt": 2, "rank": 0,
                     "world_size": 1, "local_rank": 0, "local_world_size": 1, "device": "cpu", "cpus": 1,
                     "seed": 7, "config": {"lr": 0.1}, "milestone": 0, "max_step": 0,
                     "checkpoint_every": 0, "checkpoint_dir": "", **start})

    def send(self, **message):
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, kind):
        """Waits for the next message of this type, and returns it."""
        for line in self.lines:
            message = json.loads(line)
            if message["type"] == kind:
                return message
        raise AssertionError(f"the rank has closed its channel without a {kind}:\n{self.end()[2]}")

    def rest(self):
        return [json.loads(line) for line in self.lines]

    def end(self):
        """Waits for the end of the process. Returns (exit status, stdout, stderr)."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        self.socket.close()
        self.lines.close()
        return self.process.returncode, out, err

    def stop(self):
        self.process.kill()
        self.end()


class Client(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def rank(self, script, **start):
        rank = Rank("import attune\n" + script, **start)
        self.addCleanup(rank.stop)
        return rank

    def by_hand(self, script, **environment):
        return subprocess.run([sys.executable, "-Bc", "import attune\n" + script], text=True,
                              capture_output=True, timeout=PATIENCE_S,
                              env=dict(os.environ, PYTHONPATH=str(PACKAGE), **environment))

    def verdict(self, rank, step, action, milestone=0):
        rank.send(type="verdict", step=step, action=action, milestone=milestone)
