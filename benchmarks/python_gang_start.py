"""Measures the time of a gang of Python processes from the decision to its first step on all ranks.

Two ranks of a script import torch and the package of clients/python, and create the process group. Then they sum
a tensor, or train a step of a small network with DistributedDataParallel, which imports more modules. Each rank is
a new Python process, or is forked from a process that has imported torch. The first forked gang waits for that
import, or its ranks are started as new processes meanwhile.
"""

import pathlib
import statistics
import sys
import tempfile

import driver
import python_torch

SCRIPT = """
import attune, attune.torch, torch
attune.torch.init_process_group()
{step}
attune.progress()
attune.report({{"x": attune.config["x"]}})
"""
STEPS = {"all-reduce": "torch.distributed.all_reduce(torch.ones(1))",
         "DDP": """
model = attune.torch.prepare_model(torch.nn.Linear(10, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
model(torch.ones(4, 10)).sum().backward()
optimizer.step()
"""}


def attempts(build, words, step, trials, environment):
    """(milliseconds until all processes run, milliseconds until the first step) of each gang, in order."""
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "first.py"
        script.write_text(SCRIPT.format(step=step))
        rows = driver.run_sweep(build, pathlib.Path(folder), {
            "name": "python-gang-start", "command": [sys.executable, *words, str(script)],
            "metric": {"name": "x", "mode": "max"}, "parameters": {"x": {"min": 0.0, "max": 1.0}},
            "scheduler": {"name": "fifo", "max": 1}, "max_concurrent_trials": 1,
            "resources": {"workers": 2, "cpus_per_worker": 1}, "stop": {"max_trials": trials}}, environment).execute(
                "SELECT decided, started, first_step FROM attempts ORDER BY trial").fetchall()
    if len(rows) != trials or any(row[2] is None for row in rows):
        sys.exit(f"python_gang_start: expected {trials} attempts with a first step, found {rows}")
    return [(driver.milliseconds(row[0], row[1]), driver.milliseconds(row[0], row[2])) for row in rows]


def main():
    parser = driver.parser(__doc__)
    driver.add_count(parser, "gangs", 8, "gangs after the first")
    parser.add_argument("step", metavar="STEP", nargs="?", choices=STEPS, help="all-reduce or DDP (default: both)")
    arguments = parser.parse_args()
    build, gangs_after = arguments.build, arguments.gangs
    environment = python_torch.environment_of(build)
    if environment is None:
        return
    environment["PYTHONPATH"] = f"{driver.ROOT / 'clients/python'}:{environment['PYTHONPATH']}"
    print(f"gang start in Python, 2 ranks, {gangs_after} gangs after the first (ms from the decision)")
    for what in [arguments.step] if arguments.step else STEPS:
        for way, words in ("python3 SCRIPT", []), ("python3 -m attune.launcher SCRIPT", ["-m", "attune.launcher"]):
            first, *gangs = attempts(build, words, STEPS[what], gangs_after + 1, environment)
            print(f"  {way}, to the first step: {what}")
            for name, column in (("every rank has a process", 0), ("first step on all ranks", 1)):
                values = [gang[column] for gang in gangs]
                print(f"    {name:32} median {statistics.median(values):7.1f}   min {min(values):7.1f}   "
                      f"max {max(values):7.1f}   of the first gang {first[column]:7.1f}", flush=True)


if __name__ == "__main__":
    main()
