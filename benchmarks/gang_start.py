"""How long a gang takes from the decision to its first training step on all ranks.

    gang_start.py BUILD [HOSTS]

Runs a sweep of the Fashion-MNIST example, two DDP workers a trial and host, one trial at a time, and
reads the times of every attempt from the database: `decided` is when the server decided on the
attempt, `first_step` when the last rank had finished its first optimizer step. Several hosts are
executors of this machine with addresses and data folders of their own. On one host, then, the same of
trials that go on: promoted from their own checkpoint, and as clones of another's, from when the slot was
free, which is when the gang before was gone.
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
FIFO = {"name": "fifo", "max": 1}
GO_ON = {"promoted": {"name": "asha", "mode": "promote", "min": 1, "max": 9, "reduction_factor": 3},
         "cloned": {"name": "pbt", "max": 10, "perturbation_interval": 1}}


def sweep(program, workers, scheduler, trials):
    return {
        "apiVersion": "attune/v1", "kind": "Sweep", "name": "gang-start",
        "command": [str(program)],
        "metric": {"name": "accuracy", "mode": "max"},
        "parameters": {"lr": {"min": 0.01, "max": 0.1, "scale": "log"}, "width": {"value": 16},
                       "batch": {"value": 64}, "samples_per_step": {"value": 192}},
        "searcher": {"name": "random", "seed": 1},
        "scheduler": scheduler,
        "resources": {"workers": workers, "cpus_per_worker": 1},
        "max_concurrent_trials": 1,
        "stop": {"max_trials": trials},
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


def attempts(build, hosts, scheduler, trials):
    """decided, started, first_step, ended and resumed_from of each, in the order of decisions."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "sweep.yaml"
        file.write_text(json.dumps(
            sweep(build / "examples/fashion_mnist/fashion_mnist", 2 * hosts, scheduler, trials)))
        data = pathlib.Path(folder) / "data"
        run(build / "attune", file, data, hosts)
        return sqlite3.connect(data / "attune.db").execute(
            "SELECT decided, started, first_step, ended, resumed_from FROM attempts ORDER BY decided").fetchall()


def tell(name, values):
    values = sorted(values)
    print(f"  {name:34} median {statistics.median(values):6.1f}   min {values[0]:6.1f}   "
          f"p90 {values[int(len(values) * 0.9)]:6.1f}")


def tell_of_going_on(build, what, scheduler, trials):
    """One trial at a time: the slot of an attempt is free when the one before has ended."""
    rows = attempts(build, 1, scheduler, trials)
    waits = [(milliseconds(before[3], decided), milliseconds(before[3], first_step))
             for before, (decided, _, first_step, _, resumed_from) in zip(rows, rows[1:])
             if resumed_from is not None and first_step is not None]
    decided, stepped = zip(*waits)
    print(f"{what}, {len(waits)} gangs (ms from the slot being free)")
    tell("decided", decided)
    tell("first training step on all ranks", stepped)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    hosts = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    workers = 2 * hosts
    rows = [row[:3] for row in attempts(build, hosts, FIFO, TRIALS)]
    if len(rows) != TRIALS or any(row[2] is None for row in rows):
        sys.exit(f"expected {TRIALS} attempts with a first step, found {rows}")
    first, *warm = [(milliseconds(d, s), milliseconds(d, f)) for d, s, f in rows]
    forked, stepped = zip(*warm)
    print(f"gang start, {workers} ranks on {hosts} hosts, {len(warm)} gangs after the first (ms from the decision)")
    tell("every rank has a process", forked)
    tell("first training step on all ranks", stepped)
    print(f"  {'first gang, launcher cold':34}        {first[1]:6.1f}")
    if hosts == 1:
        for what, scheduler in GO_ON.items():
            tell_of_going_on(build, what, scheduler, 100 if what == "promoted" else 6)


main()
