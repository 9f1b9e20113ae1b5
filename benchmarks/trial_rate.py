"""Measures how many whole trials per second one machine runs, from the sweep's first event to its last.

Each trial is a gang of one real worker process, which its program's launcher forks. It reports once, waits for
the verdict on that report, and ends. The times come from the database.
"""

import pathlib
import resource
import sys
import tempfile
import time

import driver


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


def main():
    parser = driver.parser(__doc__)
    driver.add_count(parser, "trials", 1000, "trials")
    driver.add_count(parser, "at_once", 8, "trials at once")
    arguments = parser.parse_args()
    trials, at_once = arguments.trials, arguments.at_once
    if trials <= at_once:
        parser.error("TRIALS: more than AT_ONCE, because the first trials do not count")
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        database = driver.run_sweep(arguments.build, pathlib.Path(folder),
                                    sweep(arguments.build / "benchmarks/quick_trial", trials, at_once))
        wall = time.monotonic() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        rows = database.execute("SELECT decided, started, first_step, ended FROM attempts "
                                "WHERE outcome = 'finished' ORDER BY decided").fetchall()
    if len(rows) != trials:
        sys.exit(f"expected {trials} attempts that finished, found {len(rows)}")
    # Leaves out the first gangs, which wait until the launcher has loaded LibTorch.
    warm = rows[at_once:]
    span = driver.milliseconds(warm[0][0], max(row[3] for row in warm)) / 1000
    print(f"{trials} trials of one report, {at_once} at once: {len(warm) / span:.0f} trials/s "
          f"({wall:.2f} s with start and end, "
          f"{(used.ru_utime + used.ru_stime) / trials * 1000:.1f} ms CPU a trial)")
    for name, start, end in (("decided -> process", 0, 1), ("process -> first step", 1, 2),
                             ("first step -> ended", 2, 3)):
        print(f"  {name:22}", driver.summary([driver.milliseconds(row[start], row[end]) for row in warm],
                                           decimals=1, percent=90))


if __name__ == "__main__":
    main()
