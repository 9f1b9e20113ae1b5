"""How long a gang takes from the decision to its first training step on all ranks.

Runs a sweep of the Fashion-MNIST example, two DDP workers a trial, one trial at a time, and reads
the times of every attempt from the database: `decided` is when the server decided on the attempt,
`first_step` when the last rank had finished its first optimizer step.
"""

import datetime
import json
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile

TRIALS = 20


def sweep(program):
    return {
        "apiVersion": "attune/v1", "kind": "Sweep", "name": "gang-start",
        "command": [str(program)],
        "metric": {"name": "accuracy", "mode": "max"},
        "parameters": {"lr": {"min": 0.01, "max": 0.1, "scale": "log"}, "width": {"value": 16},
                       "batch": {"value": 64}, "samples_per_step": {"value": 192}},
        "searcher": {"name": "random", "seed": 1},
        "scheduler": {"name": "fifo", "max": 1},
        "resources": {"workers": 2, "cpus_per_worker": 1},
        "max_concurrent_trials": 1,
        "stop": {"max_trials": TRIALS},
    }


def milliseconds(start, end):
    times = [datetime.datetime.fromisoformat(t.replace("Z", "+00:00")) for t in (start, end)]
    return (times[1] - times[0]).total_seconds() * 1000


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "sweep.yaml"
        file.write_text(json.dumps(sweep(build / "examples/fashion_mnist/fashion_mnist")))
        data = pathlib.Path(folder) / "data"
        subprocess.run([build / "attune", "run", file, "--data-dir", data, "--port", "0", "--quiet",
                        "-o", "json"], check=True, stdout=subprocess.DEVNULL)
        rows = sqlite3.connect(data / "attune.db").execute(
            "SELECT decided, started, first_step FROM attempts ORDER BY trial").fetchall()
    if len(rows) != TRIALS or any(row[2] is None for row in rows):
        sys.exit(f"expected {TRIALS} attempts with a first step, found {rows}")
    first, *warm = [(milliseconds(d, s), milliseconds(d, f)) for d, s, f in rows]
    forked, stepped = (sorted(column) for column in zip(*warm))
    print(f"gang start, 2 ranks, {len(warm)} gangs after the first (ms from the decision)")
    for name, values in (("every rank has a process", forked),
                         ("first training step on all ranks", stepped)):
        p90 = values[int(len(values) * 0.9)]
        print(f"  {name:34} median {statistics.median(values):6.1f}   "
              f"min {values[0]:6.1f}   p90 {p90:6.1f}")
    print(f"  {'first gang, launcher cold':34}        {first[1]:6.1f}")


main()
