"""Measures the time of a gang from the decision to its first training step on all ranks.

Runs a sweep of the Fashion-MNIST example, one trial at a time, with two DDP workers per host, and reads the times
of each attempt from the database. `decided` is when the server decided on the attempt. `first_step` is when the
last rank had finished its first optimizer step. For several hosts, it starts executors on this machine with
separate addresses and data folders.

On one host, it then measures trials that resume: promoted trials from their own checkpoint, and clones from the
checkpoint of another trial. Their time begins when the slot is free, that is, when the previous gang has ended.
"""

import json
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import driver

FIFO = {"name": "fifo", "max": 1}
PROMOTION = {"name": "asha", "mode": "promote", "min": 1, "max": 9, "reduction_factor": 3}
POPULATION = 6


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


def run_on_hosts(attune, folder, sweep_to_run, hosts):
    """Like driver.run_sweep, on this number of executors."""
    file, data, port = folder / "sweep.json", folder / "data", str(driver.free_port())
    file.write_text(json.dumps(sweep_to_run))
    server = subprocess.Popen([attune, "run", file, "--data-dir", data, "--port", "0", "--quiet", "-o", "json",
                               "--no-executor", "--rpc-port", port], stdout=subprocess.DEVNULL)
    while not (data / "join").exists():
        if server.poll() is not None:
            sys.exit("gang_start: attune run has ended; see its error above")
        time.sleep(0.01)
    executors = [subprocess.Popen(
        [attune, "executor", "--server", "127.0.0.1:" + port, "--name", f"n{host}", "--cpus", "2", "--interface",
         f"127.0.0.{host}", "--data-dir", data / f"n{host}", "--token-file", data / "join"],
        stderr=subprocess.DEVNULL) for host in range(1, hosts + 1)]
    server.wait()
    for executor in executors:
        executor.terminate()
        executor.wait()
    return sqlite3.connect(data / "attune.db")


def attempts(build, hosts, scheduler, trials):
    """decided, started, first_step, ended and resumed_from of each attempt, in the order of decisions."""
    to_run = sweep(build / "examples/fashion_mnist/fashion_mnist", 2 * hosts, scheduler, trials)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if hosts == 1:
            database = driver.run_sweep(build, folder, to_run)
        else:
            database = run_on_hosts(build / "attune", folder, to_run, hosts)
        return database.execute(
            "SELECT decided, started, first_step, ended, resumed_from FROM attempts ORDER BY decided").fetchall()


def print_row(name, values):
    print(f"  {name:34} median {statistics.median(values):6.1f}   min {min(values):6.1f}   "
          f"p90 {driver.percentile(values, 90):6.1f}", flush=True)


def measure_resumed(build, what, scheduler, trials):
    """Measures trials that resume. One trial runs at a time, so its slot is free when the previous attempt ended."""
    rows = attempts(build, 1, scheduler, trials)
    waits = [(driver.milliseconds(before[3], decided), driver.milliseconds(before[3], first_step))
             for before, (decided, _, first_step, _, resumed_from) in zip(rows, rows[1:])
             if resumed_from is not None and first_step is not None]
    if not waits:
        sys.exit(f"gang_start: no gang was {what} in {trials} trials; try more TRIALS")
    decided, stepped = zip(*waits)
    print(f"{what}, {len(waits)} gangs (ms from the slot being free)")
    print_row("decided", decided)
    print_row("first training step on all ranks", stepped)


def main():
    parser = driver.parser(__doc__)
    driver.add_count(parser, "trials", 20, "trials; promotion has five times as many, clones half as many steps")
    driver.add_count(parser, "hosts", 1, "executors")
    arguments = parser.parse_args()
    build, trials, hosts = arguments.build, arguments.trials, arguments.hosts
    if trials < 4:
        parser.error("TRIALS: at least 4, so that some trials resume")
    rows = [row[:3] for row in attempts(build, hosts, FIFO, trials)]
    if len(rows) != trials or any(row[2] is None for row in rows):
        sys.exit(f"gang_start: expected {trials} attempts with a first step, found {rows}")
    first, *warm = [(driver.milliseconds(d, s), driver.milliseconds(d, f)) for d, s, f in rows]
    forked, stepped = zip(*warm)
    print(f"gang start, {2 * hosts} ranks on {hosts} hosts, {len(warm)} gangs after the first (ms from the decision)")
    print_row("every rank has a process", forked)
    print_row("first training step on all ranks", stepped)
    print(f"  {'first gang, launcher cold':34}        {first[1]:6.1f}")
    if hosts == 1:
        measure_resumed(build, "promoted", PROMOTION, 5 * trials)
        population = {"name": "pbt", "max": trials // 2, "perturbation_interval": 1}
        measure_resumed(build, "cloned", population, POPULATION)


if __name__ == "__main__":
    main()
