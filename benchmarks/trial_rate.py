"""How many whole trials a second one machine runs, from the sweep's first event to its last.

Every trial is a gang of one real worker process, forked by its program's launcher: it reports once,
waits for the verdict on that report, and ends. Times are read from the database.

    trial_rate.py BUILD_DIR [TRIALS [AT_ONCE]]
"""

import datetime
import json
import pathlib
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time


def sweep(program, trials, at_once):
    return {
        "apiVersion": "attune/v1", "kind": "Sweep", "name": "trial-rate",
        "command": [str(program)],
        "metric": {"name": "loss", "mode": "min"},
        "parameters": {"x": {"min": 0.0, "max": 1.0}},
        "searcher": {"name": "random", "seed": 1},
        "scheduler": {"name": "fifo", "max": 1},
        "resources": {"workers": 1, "cpus_per_worker": 0},
        "max_concurrent_trials": at_once,
        "stop": {"max_trials": trials},
    }


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    trials = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    at_once = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "sweep.yaml"
        file.write_text(json.dumps(sweep(build / "benchmarks/quick_trial", trials, at_once)))
        data = pathlib.Path(folder) / "data"
        began = time.monotonic()
        subprocess.run([build / "attune", "run", file, "--data-dir", data, "--port", "0", "--quiet",
                        "-o", "json"], check=True, stdout=subprocess.DEVNULL)
        wall = time.monotonic() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        rows = [[seconds(column) for column in row] for row in sqlite3.connect(data / "attune.db")
                .execute("SELECT decided, started, first_step, ended FROM attempts "
                         "WHERE outcome = 'finished'").fetchall()]
    if len(rows) != trials:
        sys.exit(f"expected {trials} attempts that finished, found {len(rows)}")
    # Without the first gangs, which wait for the launcher to load LibTorch.
    warm = sorted(rows)[at_once:]
    span = max(row[3] for row in warm) - min(row[0] for row in warm)
    print(f"{trials} trials of one report, {at_once} at once: {len(warm) / span:.0f} trials/s "
          f"({wall:.2f} s with start and end, "
          f"{(used.ru_utime + used.ru_stime) / trials * 1000:.1f} ms CPU a trial)")
    for name, start, end in (("decided -> process", 0, 1), ("process -> first step", 1, 2),
                             ("first step -> ended", 2, 3)):
        values = sorted((row[end] - row[start]) * 1000 for row in warm)
        print(f"  {name:22} median {values[len(values) // 2]:6.1f} ms   "
              f"p90 {values[int(len(values) * 0.9)]:6.1f} ms")


main()
