#!/usr/bin/env python3
"""How fast checkpoints travel, beside a raw socket, one whose receiver hashes, and SHA-256 alone, all on this machine.

    checkpoint_get.py ATTUNE [MEGABYTES] [FOLDER]

`attune checkpoint get`, read by the server from its disk, and through it from an executor whose folder
it cannot see (needs the right to mount); then from that executor directly to another, to which its trial
has to move. FOLDER should be on a disk that is not the bottleneck, such as /dev/shm.
"""

import hashlib
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
HIDING = 'mount -t tmpfs tmpfs "$0" && exec "$@"'
WORKER = [sys.executable, "-B", str(ROOT / "tests/e2e/programs/checkpoint_worker.py")]


def mib_s(megabytes, seconds):
    return f"{megabytes / seconds:8.0f} MiB/s"


def raw_socket(megabytes, sha=None, file=None):
    """Seconds; with a hash, or a file, what was received goes there before more is received."""
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


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_file(path):
    while not path.exists():
        time.sleep(0.02)


QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Service:
    """A server, executors with folders of their own, and a trial of so many steps."""

    def __init__(self, attune, folder, hidden):
        self.attune, self.folder, self.data, self.port = attune, folder, folder / "data", str(free_port())
        (folder / "hosts").mkdir()
        prefix = ["unshare", "-m", "sh", "-c", HIDING, str(folder / "hosts")] if hidden else []
        self.processes = [subprocess.Popen([*prefix, attune, "serve", "--data-dir", str(self.data), "--port", "0",
                                            "--rpc-port", self.port], **QUIET)]
        await_file(self.data / "server.json")

    def executor(self, name):
        process = subprocess.Popen(
            [self.attune, "executor", "--server", f"127.0.0.1:{self.port}", "--name", name, "--cpus", "1", "--data-dir",
             str(self.folder / "hosts" / name), "--token-file", str(self.data / "token"), "--interface", "lo"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.processes.insert(0, process)
        return process

    def run(self, *args, **how):
        return subprocess.run([self.attune, *args, "--data-dir", str(self.data)], check=True, **{**QUIET, **how})

    def train(self, megabytes, steps, *args):
        sweep = {"apiVersion": "attune/v1", "kind": "Sweep", "name": "large", "command": WORKER,
                 "metric": {"name": "score", "mode": "max"}, "parameters": {"x": {"value": 1.0}},
                 "env": {"PYTHONPATH": str(ROOT / "clients/python"), "MEGABYTES": str(megabytes)},
                 "working_directory": str(self.folder), "scheduler": {"name": "fifo", "max": steps},
                 "resources": {"workers": 1, "cpus_per_worker": 1}, "checkpoint": {"every": 1, "keep_last": 9},
                 "stop": {"max_trials": 1}}
        (self.folder / "sweep.json").write_text(json.dumps(sweep))
        self.run("sweep", "create", str(self.folder / "sweep.json"), *args)

    def end(self):
        for process in self.processes:
            process.terminate()
            process.wait()


def get(service, megabytes):
    """Seconds of a download."""
    service.executor("a")
    service.train(megabytes, 1, "--watch")
    begin = time.monotonic()
    service.run("checkpoint", "get", "s1/0", "--out", str(service.folder / "out"))
    return time.monotonic() - begin


def move(service, megabytes):
    """Seconds until the second executor has what the first one saved, as it says."""
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
    attune = str(pathlib.Path(sys.argv[1]).resolve())
    megabytes = int(sys.argv[2]) if len(sys.argv) > 2 else 1024
    print("raw socket             ", mib_s(megabytes, raw_socket(megabytes)))
    print("the same, hashed       ", mib_s(megabytes, raw_socket(megabytes, hashlib.sha256())))
    with tempfile.TemporaryFile(dir=sys.argv[3] if len(sys.argv) > 3 else None, buffering=0) as file:
        print("hashed and written     ", mib_s(megabytes, raw_socket(megabytes, hashlib.sha256(), file)))
    print("SHA-256                ", mib_s(megabytes, sha256(megabytes)))
    for name, hidden, work in (("from the server's disk", False, get), ("from an executor", True, get),
                               ("from one to another", True, move)):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="checkpoint-get-",
                                               dir=sys.argv[3] if len(sys.argv) > 3 else None))
        service = Service(attune, folder, hidden)
        try:
            print(f"{name:23}", mib_s(megabytes, work(service, megabytes)), flush=True)
        finally:
            service.end()
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
