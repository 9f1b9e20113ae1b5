#!/usr/bin/env python3
"""Measures the transfer rate of checkpoints on this machine, and the rates of a raw socket and of SHA-256.

There are three measurements:

- `attune checkpoint get` reads a checkpoint from the server's disk.
- The same from an executor whose folder the server cannot see.
- A trial moves to another executor, and its checkpoint goes directly from one executor to the other.

The last two hide folders from the server. That needs the right to mount; without it, they are left out.
"""

import hashlib
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

import driver

HIDING = 'mount -t tmpfs tmpfs "$0" && exec "$@"'
WORKER = [sys.executable, "-B", str(driver.ROOT / "tests/e2e/programs/checkpoint_worker.py")]


def mib_s(megabytes, seconds):
    return f"{megabytes / seconds:8.0f} MiB/s"


def raw_socket(megabytes, sha=None, file=None):
    """Seconds of a transfer over a socket. The receiver hashes the bytes with `sha` and writes them to `file`."""
    block = bytes(1 << 20)
    server = socket.create_server(("127.0.0.1", 0))

    def send():
        with server.accept()[0] as out:
            for _ in range(megabytes):
                out.sendall(block)

    sender = threading.Thread(target=send)
    sender.start()
    into = memoryview(bytearray(1 << 20))
    begin = time.monotonic()
    with socket.create_connection(server.getsockname()) as source:
        while count := source.recv_into(into):
            if sha:
                sha.update(into[:count])
            if file:
                file.write(into[:count])
    sender.join()
    return time.monotonic() - begin


def sha256(megabytes):
    block, sha = bytes(1 << 20), hashlib.sha256()
    begin = time.monotonic()
    for _ in range(megabytes):
        sha.update(block)
    return time.monotonic() - begin


def hiding_prefix(folder):
    """The words before a command that hide the content of the folder from it; None without the right to mount."""
    for user in [], ["--map-root-user"]:
        prefix = ["unshare", "--mount", *user, "sh", "-c", HIDING, str(folder)]
        if subprocess.run([*prefix, "true"], capture_output=True).returncode == 0:
            return prefix
    return None


QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Service:
    """A server, executors with separate folders, and a sweep with one trial."""

    def __init__(self, build, folder, prefix):
        self.attune, self.folder, self.data, self.port = build / "attune", folder, folder / "data", driver.free_port()
        self.server = driver.Server(build, self.data, self.port, prefix)
        self.executors = []

    def executor(self, name):
        process = subprocess.Popen(
            [self.attune, "executor", "--server", f"127.0.0.1:{self.port}", "--name", name, "--cpus", "1", "--data-dir",
             str(self.folder / "hosts" / name), "--token-file", str(self.data / "token"), "--interface", "lo"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.executors.append(process)
        return process

    def run(self, *args, **how):
        return subprocess.run([self.attune, *args, "--data-dir", str(self.data)], check=True, **{**QUIET, **how})

    def train(self, megabytes, steps, *args):
        sweep = {"apiVersion": "attune/v1", "kind": "Sweep", "name": "large", "command": WORKER,
                 "metric": {"name": "score", "mode": "max"}, "parameters": {"x": {"value": 1.0}},
                 "env": {"PYTHONPATH": str(driver.ROOT / "clients/python"), "MEGABYTES": str(megabytes)},
                 "working_directory": str(self.folder), "scheduler": {"name": "fifo", "max": steps},
                 "resources": {"workers": 1, "cpus_per_worker": 1}, "checkpoint": {"every": 1, "keep_last": 9},
                 "stop": {"max_trials": 1}}
        (self.folder / "sweep.json").write_text(json.dumps(sweep))
        self.run("sweep", "create", str(self.folder / "sweep.json"), *args)

    def end(self):
        for process in self.executors:
            process.terminate()
            process.wait()
        self.server.__exit__()


def get(service, megabytes):
    """Seconds of a download."""
    service.executor("a")
    service.train(megabytes, 1, "--watch")
    begin = time.monotonic()
    service.run("checkpoint", "get", "s1/0", "--out", str(service.folder / "out"))
    return time.monotonic() - begin


def move(service, megabytes):
    """Seconds that the second executor needed for the checkpoint of the first, according to its log."""
    service.executor("a")
    service.train(megabytes, 1000)
    while not (service.folder / "hosts/a/sweeps/s1/trials/0/checkpoints/step-1-attempt-1").exists():
        time.sleep(0.02)
    other = service.executor("b")
    while '"name": "b"' not in service.run("executor", "list", "-o", "json", stdout=subprocess.PIPE).stdout.decode():
        time.sleep(0.02)
    service.run("executor", "drain", "a", "--now")
    return next(float(re.search(r"came in ([\d.]+) s, [\d.]+ MB directly", line)[1])
                for line in other.stderr if "is here" in line)


def main():
    parser = driver.parser(__doc__)
    driver.add_count(parser, "megabytes", 1024, "size of the checkpoint")
    parser.add_argument("folder", metavar="FOLDER", nargs="?", type=driver.existing_folder,
                        default=tempfile.gettempdir(),
                        help="on a disk that is not the bottleneck, such as /dev/shm (default: %(default)s)")
    arguments = parser.parse_args()
    megabytes, where = arguments.megabytes, arguments.folder
    print("raw socket             ", mib_s(megabytes, raw_socket(megabytes)))
    print("the same, hashed       ", mib_s(megabytes, raw_socket(megabytes, hashlib.sha256())))
    with tempfile.TemporaryFile(dir=where, buffering=0) as file:
        print("hashed and written     ", mib_s(megabytes, raw_socket(megabytes, hashlib.sha256(), file)))
    print("SHA-256                ", mib_s(megabytes, sha256(megabytes)))
    for name, hidden, work in (("from the server's disk", False, get), ("from an executor", True, get),
                               ("from one to another", True, move)):
        with tempfile.TemporaryDirectory(prefix="checkpoint-get-", dir=where) as made:
            folder = pathlib.Path(made)
            (folder / "hosts").mkdir()
            prefix = hiding_prefix(folder / "hosts") if hidden else []
            if prefix is None:
                print(f"{name:23} left out: run it as root, or where users may mount")
                continue
            service = Service(arguments.build, folder, prefix)
            try:
                print(f"{name:23}", mib_s(megabytes, work(service, megabytes)), flush=True)
            finally:
                service.end()


if __name__ == "__main__":
    main()
