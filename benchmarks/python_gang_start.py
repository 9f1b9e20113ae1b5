"""How long a gang of Python takes from the decision to its first step on all ranks.

As gang_start.py, with two ranks of a script that imports torch and the package of clients/python, and makes the
process group; then it sums one tensor, or trains a step of a small network in DistributedDataParallel, which
imports more. With a Python of its own for each rank, and with ranks that are forked from one that has imported
torch. The first gang of the latter waits for that, or is spawned meanwhile.
"""

import datetime
import json
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import python_torch  # noqa: E402

TRIALS = 8
SCRIPT = """
import attune, attune.torch, torch
attune.torch.init_process_group()
{step}
attune.progress()
attune.report({{"x": attune.config["x"]}})
"""
STEPS = {"all-reduce": "torch.distributed.all_reduce(torch.ones(1))",
         "step of DDP": """
model = attune.torch.prepare_model(torch.nn.Linear(10, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
model(torch.ones(4, 10)).sum().backward()
optimizer.step()
"""}


def milliseconds(start, end):
    times = [datetime.datetime.fromisoformat(t.replace("Z", "+00:00")) for t in (start, end)]
    return (times[1] - times[0]).total_seconds() * 1000


def attempts(build, words, step, environment):
    """(milliseconds to all processes, to the first step) of each gang in turn."""
    with tempfile.TemporaryDirectory() as folder:
        script, file, data = (pathlib.Path(folder) / name for name in ("first.py", "sweep.json", "data"))
        script.write_text(SCRIPT.format(step=step))
        file.write_text(json.dumps({
            "name": "python-gang-start", "command": [sys.executable, *words, str(script)],
            "metric": {"name": "x", "mode": "max"}, "parameters": {"x": {"min": 0.0, "max": 1.0}},
            "scheduler": {"name": "fifo", "max": 1}, "max_concurrent_trials": 1,
            "resources": {"workers": 2, "cpus_per_worker": 1}, "stop": {"max_trials": TRIALS + 1}}))
        subprocess.run([build / "attune", "run", file, "--data-dir", data, "--port", "0", "--quiet",
                        "-o", "json"], check=True, stdout=subprocess.DEVNULL, env=environment)
        rows = sqlite3.connect(data / "attune.db").execute(
            "SELECT decided, started, first_step FROM attempts ORDER BY trial").fetchall()
    if len(rows) != TRIALS + 1 or any(row[2] is None for row in rows):
        sys.exit(f"expected {TRIALS + 1} attempts with a first step, found {rows}")
    return [(milliseconds(row[0], row[1]), milliseconds(row[0], row[2])) for row in rows]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    environment = python_torch.environment_of(build)
    if environment is None:
        return
    environment["PYTHONPATH"] = f"{ROOT / 'clients/python'}:{environment['PYTHONPATH']}"
    print(f"gang start in Python, 2 ranks, {TRIALS} gangs after the first (ms from the decision)")
    for what, step in STEPS.items():
        for way, words in ("python3 SCRIPT", []), ("python3 -m attune.launcher SCRIPT", ["-m", "attune.launcher"]):
            first, *gangs = attempts(build, words, step, environment)
            print(f"  {way}, a {what}")
            for name, column in (("every rank has a process", 0), ("first step on all ranks", 1)):
                values = [gang[column] for gang in gangs]
                print(f"    {name:32} median {statistics.median(values):7.1f}   min {min(values):7.1f}   "
                      f"max {max(values):7.1f}   of the first gang {first[column]:7.1f}", flush=True)


main()
