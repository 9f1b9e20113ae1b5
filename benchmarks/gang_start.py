"""How long a gang takes from the decision to its first training step on all ranks.

    gang_start.py BUILD [HOSTS]

Runs a sweep of the Fashion-MNIST example, two DDP workers a trial and host, one trial at a time, and
reads the times of every attempt from the database: `decided` is when the server decided on the
attempt, `first_step` when the last rank had finished its first optimizer step. Several hosts are
executors of this machine with addresses and data folders of their own.
"""

import datetime
import json
import pathlib
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

TRIALS = 20


def sweep(program, workers):
    return {
        "apiVersion": "attune/v1", "kind": "Sweep", "name": "gang-start",
        "command": [str(program)],
        "metric": {"name": "accuracy", "mode": "max"},
        "parameters": {"lr": {"min": 0.01, "max": 0.1, "scale": "log"}, "width": {"value": 16},
                       "batch": {"value": 64}, "samples_per_step": {"value": 192}},
        "searcher": {"name": "random", "seed": 1},
        "scheduler": {"name": "fifo", "max": 1},
        "resources": {"workers": workers, "cpus_per_worker": 1},
        "max_concurrent_trials": 1,
        "stop": {"max_trials": TRIALS},
    }


def milliseconds(start, end):
    times = [datetime.datetime.fromisoformat(t.replace("Z", "+00:00")) for t in (start, end)]
    return (times[1] - times[0]).total_seconds() * 1000


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def run(attune, file, data, hosts):
    """With an executor of its own, or so many others."""
    args = [attune, "run", file, "--data-dir", data, "--port", "0", "--quiet", "-o", "json"]
    if hosts == 1:
        subprocess.run(args, check=True, stdout=subprocess.DEVNULL)
        return
    port = str(free_port())
    server = subprocess.Popen([*args, "--no-executor", "--rpc-port", port], stdout=subprocess.DEVNULL)
    while not (data / "join").exists():
        time.sleep(0.01)
    executors = [subprocess.Popen(
        [attune, "executor", "--server", "127.0.0.1:" + port, "--name", f"n{host}", "--cpus", "2", "--interface",
         f"127.0.0.{host}", "--data-dir", data / f"n{host}", "--token-file", data / "join"],
        stderr=subprocess.DEVNULL) for host in range(1, hosts + 1)]
    server.wait()
    for executor in executors:
        executor.terminate()
        executor.wait()


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    hosts = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    workers = 2 * hosts
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "sweep.yaml"
        file.write_text(json.dumps(sweep(build / "examples/fashion_mnist/fashion_mnist", workers)))
        data = pathlib.Path(folder) / "data"
        run(build / "attune", file, data, hosts)
        rows = sqlite3.connect(data / "attune.db").execute(
            "SELECT decided, started, first_step FROM attempts ORDER BY trial").fetchall()
    if len(rows) != TRIALS or any(row[2] is None for row in rows):
        sys.exit(f"expected {TRIALS} attempts with a first step, found {rows}")
    first, *warm = [(milliseconds(d, s), milliseconds(d, f)) for d, s, f in rows]
    forked, stepped = (sorted(column) for column in zip(*warm))
    print(f"gang start, {workers} ranks on {hosts} hosts, {len(warm)} gangs after the first (ms from the decision)")
    for name, values in (("every rank has a process", forked),
                         ("first training step on all ranks", stepped)):
        p90 = values[int(len(values) * 0.9)]
        print(f"  {name:34} median {statistics.median(values):6.1f}   "
              f"min {values[0]:6.1f}   p90 {p90:6.1f}")
    print(f"  {'first gang, launcher cold':34}        {first[1]:6.1f}")


main()
