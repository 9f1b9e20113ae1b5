#!/usr/bin/env python3
"""How fast `attune checkpoint get` is, beside a raw socket and SHA-256 alone, all on this machine.

    checkpoint_get.py ATTUNE [MEGABYTES] [FOLDER]

Twice: read by the server from its disk, and through it from an executor whose folder it cannot see
(needs the right to mount). FOLDER should be on a disk that is not the bottleneck, such as /dev/shm.
"""

import hashlib
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
HIDING = 'mount -t tmpfs tmpfs "$0" && exec "$@"'
WORKER = [sys.executable, "-B", str(ROOT / "tests/e2e/checkpoint_worker.py")]


def mib_s(megabytes, seconds):
    return f"{megabytes / seconds:8.0f} MiB/s"


def raw_socket(megabytes):
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
        while source.recv_into(into):
            pass
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


def get(attune, megabytes, folder, hidden):
    """Seconds of a download."""
    data, home, port = folder / "data", folder / "box", str(free_port())
    home.mkdir()
    prefix = ["unshare", "-m", "sh", "-c", HIDING, str(home)] if hidden else []
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([*prefix, attune, "serve", "--data-dir", str(data), "--port", "0",
                               "--rpc-port", port], **quiet)
    await_file(data / "server.json")
    executor = subprocess.Popen([attune, "executor", "--server", f"127.0.0.1:{port}", "--name", "box",
                                 "--cpus", "1", "--data-dir", str(home), "--token-file",
                                 str(data / "token")], **quiet)
    try:
        sweep = {"apiVersion": "attune/v1", "kind": "Sweep", "name": "large", "command": WORKER,
                 "metric": {"name": "score", "mode": "max"}, "parameters": {"x": {"value": 1.0}},
                 "env": {"PYTHONPATH": str(ROOT / "clients/python"), "MEGABYTES": str(megabytes)},
                 "working_directory": str(folder), "scheduler": {"name": "fifo", "max": 1},
                 "resources": {"workers": 1, "cpus_per_worker": 1}, "checkpoint": {"every": 1},
                 "stop": {"max_trials": 1}}
        (folder / "sweep.json").write_text(json.dumps(sweep))
        subprocess.run([attune, "sweep", "create", str(folder / "sweep.json"), "--watch",
                        "--data-dir", str(data)], check=True, **quiet)
        begin = time.monotonic()
        subprocess.run([attune, "checkpoint", "get", "s1/0", "--out", str(folder / "out"),
                        "--data-dir", str(data)], check=True, **quiet)
        return time.monotonic() - begin
    finally:
        for process in (executor, server):
            process.terminate()
            process.wait()


def main():
    attune = str(pathlib.Path(sys.argv[1]).resolve())
    megabytes = int(sys.argv[2]) if len(sys.argv) > 2 else 1024
    print("raw socket          ", mib_s(megabytes, raw_socket(megabytes)))
    print("SHA-256             ", mib_s(megabytes, sha256(megabytes)))
    for name, hidden in (("from the server's disk", False), ("from an executor", True)):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="checkpoint-get-",
                                               dir=sys.argv[3] if len(sys.argv) > 3 else None))
        try:
            print(f"{name:22}", mib_s(megabytes, get(attune, megabytes, folder, hidden)), flush=True)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
