"""Measures the duration of Report() on the ranks of a gang.

With a verdict: from the call on rank 0 to the return on the last rank; the report is on disk then. Without a
verdict: the duration on rank 0.
"""

import pathlib
import tempfile

import driver

INTERVAL = 10  # reports per decision


def sweep(program, folder, workers, reports):
    return {
        "apiVersion": "attune/v1", "kind": "Sweep", "name": "verdicts",
        "command": [str(program)], "working_directory": str(folder),
        "metric": {"name": "loss", "mode": "min"},
        "parameters": {"x": {"value": 1.0}},
        "scheduler": {"name": "median", "max": reports, "interval": INTERVAL, "grace_period": INTERVAL},
        "resources": {"workers": workers, "cpus_per_worker": 0},
        "stop": {"max_trials": 1},
    }


def measure(build, workers, reports):
    with tempfile.TemporaryDirectory(dir=pathlib.Path.cwd()) as name:  # a disk, not memory
        folder = pathlib.Path(name)
        driver.run_sweep(build, folder, sweep(build / "benchmarks/verdict_trial", folder, workers, reports))
        ranks = [[tuple(map(int, line.split())) for line in
                  (folder / f"report-times-{rank}").read_text().splitlines()] for rank in range(workers)]
    judged_ms, others_us = [], []
    for step, reports_of_step in enumerate(zip(*ranks), 1):
        began = reports_of_step[0][0]
        if step % INTERVAL == 0:
            judged_ms.append((max(returned for _, returned in reports_of_step) - began) / 1e6)
        elif step > 1:  # the first report waits until all ranks have started
            others_us.append((reports_of_step[0][1] - began) / 1e3)
    print(f"{workers} ranks, {len(judged_ms)} verdicts: {driver.summary(judged_ms)}; "
          f"{len(others_us)} reports without one: {driver.summary(others_us, 'us')}")


def main():
    parser = driver.parser(__doc__)
    driver.add_count(parser, "reports", 5000, "reports of each rank")
    arguments = parser.parse_args()
    if arguments.reports < INTERVAL:
        parser.error(f"REPORTS: at least {INTERVAL}, for one verdict")
    for workers in (1, 2, 4):
        measure(arguments.build, workers, arguments.reports)


if __name__ == "__main__":
    main()
