"""Runs the real `attune` binary and real processes. Tests wait for events instead of sleeping."""

import collections
import contextlib
import fcntl
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ATTUNE_BUILD_DIR", "build")).resolve()
ATTUNE = str(BUILD / "attune")
FASHION_MNIST = str(BUILD / "examples/fashion_mnist/fashion_mnist")
WORKER = [sys.executable, str(ROOT / "tests/e2e/programs/worker.py")]
PATIENCE_S = 60  # a longer wait counts as a failure


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def sweep(**changes):
    """Returns a sweep file with eight trials of one worker and four steps. Changes replace top-level keys."""
    spec = {
        "apiVersion": "attune/v1", "kind": "Sweep", "name": "e2e",
        "command": WORKER,
        "metric": {"name": "score", "mode": "max"},
        "parameters": {"x": {"min": 0.0, "max": 1.0}},
        "searcher": {"name": "random", "seed": 1},
        "scheduler": {"name": "asha", "min": 1, "max": 4, "reduction_factor": 2},
        "resources": {"workers": 1, "cpus_per_worker": 1},
        "checkpoint": {"every": 1},
        "stop": {"max_trials": 8},
    }
    spec.update(changes)
    return spec


def ask_server(data_dir):
    """Asks the server of a data folder for its pid and its http and rpc addresses."""
    folder = os.open(data_dir, os.O_PATH)  # the path may be too long for a socket address
    try:
        with socket.socket(socket.AF_UNIX) as asked:
            asked.connect(f"/proc/self/fd/{folder}/server.sock")
            with asked.makefile() as answer:
                return json.loads(answer.read())
    finally:
        os.close(folder)


class Process:
    """A child process. A thread reads its stderr line by line."""

    def __init__(self, args, **options):
        self.popen = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, **options)
        self.stderr = []
        self._seen = threading.Condition()
        self._ended = False
        self._stdout = ""
        self._threads = [threading.Thread(target=self._read_stderr, daemon=True),
                         threading.Thread(target=self._read_stdout, daemon=True)]
        for thread in self._threads:
            thread.start()

    def _read_stderr(self):
        for line in self.popen.stderr:
            with self._seen:
                self.stderr.append(line.rstrip("\n"))
                self._seen.notify_all()
        with self._seen:
            self._ended = True
            self._seen.notify_all()

    def _read_stdout(self):
        self._stdout = self.popen.stdout.read()

    def await_stderr(self, pattern, times=1):
        """Waits for a match in stderr and returns it; `times`=2 waits for the second match, and so on.

        Also finds earlier output. Fails if the process ends without a match.
        """
        def match():
            matches = [m for m in (re.search(pattern, line) for line in self.stderr) if m]
            return matches[times - 1] if len(matches) >= times else None
        with self._seen:
            self._seen.wait_for(lambda: match() or self._ended, PATIENCE_S)
            found = match()
        assert found, f"no {pattern!r} in stderr:\n" + "\n".join(self.stderr)
        return found

    def kill(self):
        self.popen.kill()
        return self.wait()

    def interrupt(self):
        self.popen.send_signal(signal.SIGINT)

    def wait(self, patience_s=PATIENCE_S):
        code = self.popen.wait(patience_s)
        for thread in self._threads:
            thread.join(PATIENCE_S)
        self.popen.stdout.close()
        self.popen.stderr.close()
        return code

    @property
    def stdout(self):
        return self._stdout


class ProcessExit:
    """Waits for the end of a process that is not a child of the test."""

    def __init__(self, pid):
        self.fd = os.pidfd_open(pid)

    def wait(self, patience_s=PATIENCE_S):
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        ended = bool(poll.poll(patience_s * 1000))
        os.close(self.fd)
        return ended


class EndToEnd(unittest.TestCase):
    maxDiff = None
    program = ATTUNE

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="attune-e2e-"))
        self.data = self.folder / "data"
        self.gates = self.folder / "gates"
        self.gates.mkdir()
        self.environment = dict(os.environ, GATES=str(self.gates), NO_COLOR="1")
        self.processes = []
        self.addCleanup(self._clean_up)

    def _clean_up(self):
        for process in self.processes:
            process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, content, name="sweep.yaml"):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def start(self, *args, program=None):
        process = Process([program or self.program, *map(str, args)], env=self.environment, cwd=self.folder)
        self.processes.append(process)
        return process

    def attune(self, *args):
        """Runs a command to its end and returns its exit code, stdout and stderr."""
        process = self.start(*args)
        code = process.wait()
        return code, process.stdout, "\n".join(process.stderr)

    def run_command(self, *words):
        """Runs a command on the data folder, which must succeed, and returns its output."""
        code, out, err = self.attune(*words, "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        return out or err

    def run_sweep(self, file, *args):
        return self.start("run", file, "--data-dir", self.data, "--port", 0, *args)

    def close_gate(self, step):
        """Holds workers before this step until the caller closes the returned file."""
        gate = open(self.gates / f"step-{step}", "w")
        fcntl.flock(gate, fcntl.LOCK_EX)
        self.addCleanup(gate.close)
        return gate

    # ---- the server that runs on self.data --------------------------------------------------

    def request(self, path, method="GET", body=None, headers=None):
        """Sends a request and returns its status and parsed answer. The server must have printed its address."""
        server = ask_server(self.data)
        token = (self.data / "token").read_text().strip()
        request = urllib.request.Request(
            server["http"] + path, method=method, data=body,
            headers={"Authorization": "Bearer " + token, **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"null")

    def get(self, path):
        status, answer = self.request("/api/v1" + path)
        self.assertEqual(status, 200, answer)
        return answer

    def rows(self, query, *values):
        """Runs a query on the database, with or without a running server."""
        with contextlib.closing(sqlite3.connect(self.data / "attune.db")) as database:
            return database.execute(query, values).fetchall()

    def await_event(self, condition, after=0):
        """Waits for the first event after `after` that meets the condition, and returns its kind and data."""
        server = ask_server(self.data)
        token = (self.data / "token").read_text().strip()
        request = urllib.request.Request(f"{server['http']}/api/v1/events?after={after}",
                                         headers={"Authorization": "Bearer " + token})
        deadline = time.monotonic() + PATIENCE_S
        last = collections.deque(maxlen=12)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as stream:
            kind = ""
            for raw in stream:
                if time.monotonic() > deadline:  # heartbeats arrive forever
                    self.fail("\n".join([f"no such event within {PATIENCE_S} s; the last ones:", *last, self.scene()]))
                line = raw.decode().rstrip("\n")
                if line.startswith("event:"):
                    kind = line[6:].strip()
                elif line.startswith("data:"):
                    data = json.loads(line[5:])
                    if condition(kind, data):
                        return kind, data
                    last.append(f"{kind} {line[5:]}")
        self.fail("the events stream ended")

    def await_report(self, trial, step):
        return self.await_event(lambda kind, data: kind == "trial_reported" and
                                data["trial"] == trial and data["step"] >= step)

    def until(self, condition, failure="the condition did not become true", patience_s=None):
        """Calls `condition` repeatedly and returns its first true value. Use it only if no event exists."""
        deadline = time.monotonic() + (patience_s or PATIENCE_S)
        while not (value := condition()):
            if time.monotonic() > deadline:
                self.fail(f"{failure}\n{self.scene()}")
            time.sleep(0.02)
        return value

    def assert_golden(self, name, text):
        """Checks that tests/golden/NAME.txt has the content `text`. ATTUNE_WRITE_GOLDEN=1 writes the file instead."""
        path = ROOT / "tests/golden" / f"{name}.txt"
        if os.environ.get("ATTUNE_WRITE_GOLDEN"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        expected = path.read_text() if path.exists() else ""
        self.assertEqual(text, expected, f"set ATTUNE_WRITE_GOLDEN=1 to write {path}")

    def scene(self):
        """Returns the last output of each process, for failure messages."""
        return "\n".join(line for process in self.processes for line in process.stderr[-8:])

    def check_histories_are_whole(self, sweep_id="s1"):
        """Checks that the steps of every trial are 1, 2, 3, … without a gap or a repetition."""
        trials = self.get(f"/sweeps/{sweep_id}/trials")["trials"]
        self.assertEqual([t["number"] for t in trials], list(range(len(trials))))
        for trial in trials:
            detail = self.get(f"/sweeps/{sweep_id}/trials/{trial['number']}")
            steps = [report["step"] for report in detail["history"]]
            self.assertEqual(steps, list(range(1, len(steps) + 1)), detail)
        return trials


def fill(folder):
    """Fills the file system with one file and returns its path."""
    path = folder / "filler"
    while os.statvfs(folder).f_bavail > 0:
        # A tmpfs may refuse a write while it has space. A second attempt succeeds.
        with contextlib.suppress(OSError), open(path, "ab", buffering=0) as out:
            out.write(b"\0" * 65536)
    return path


@contextlib.contextmanager
def small_disk(folder, megabytes):
    """Mounts a tmpfs of this size at `folder`. Skips the test if mounting is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder],
                             capture_output=True)
    if mounted.returncode != 0:
        raise unittest.SkipTest("mounting a tmpfs is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
