"""How long a report takes on the ranks of a gang: with a verdict, from rank 0's Report() to its return on
the last rank, the log being on disk; and without one, on rank 0.

    verdict_latency.py BUILD_DIR [REPORTS]
"""

import json
import pathlib
import subprocess
import sys
import tempfile

INTERVAL = 10  # of decisions, in reports


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


def tells(nanoseconds, unit, scale):
    values = sorted(nanoseconds)
    return (f"median {values[len(values) // 2] / scale:.2f} {unit}, "
            f"99 % {values[len(values) * 99 // 100] / scale:.2f} {unit}")


def measure(build, workers, reports):
    with tempfile.TemporaryDirectory(dir=pathlib.Path.cwd()) as name:  # a disk, not memory
        folder = pathlib.Path(name)
        file = folder / "sweep.yaml"
        file.write_text(json.dumps(sweep(build / "benchmarks/verdict_trial", folder, workers, reports)))
        subprocess.run([build / "attune", "run", file, "--data-dir", folder / "data", "--port", "0", "--quiet",
                        "-o", "json"], check=True, stdout=subprocess.DEVNULL)
        ranks = [[tuple(map(int, line.split())) for line in
                  (folder / f"report-times-{rank}").read_text().splitlines()] for rank in range(workers)]
    judged, others = [], []
    for step, reports_of_step in enumerate(zip(*ranks), 1):
        began = reports_of_step[0][0]
        if step % INTERVAL == 0:
            judged.append(max(returned for _, returned in reports_of_step) - began)
        elif step > 1:  # the first one waits until all ranks are there
            others.append(reports_of_step[0][1] - began)
    print(f"{workers} ranks, {len(judged)} verdicts: {tells(judged, 'ms', 1e6)}; "
          f"{len(others)} reports without one: {tells(others, 'us', 1e3)}")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    reports = int(sys.argv[2]) if len(sys.argv) > 2 else 5000
    for workers in (1, 2, 4):
        measure(build, workers, reports)


main()
