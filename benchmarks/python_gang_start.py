"""How long a gang of Python takes from the decision to its first all-reduce on all ranks.

As gang_start.py, with two ranks of a script that imports torch and the package of clients/python, makes the
process group, and sums one tensor. Python starts and imports anew for each gang.
"""

import datetime
import json
import pathlib
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks/ddp"))
import python_torch  # noqa: E402

TRIALS = 8
SCRIPT = """
import attune, attune.torch, torch
attune.torch.init_process_group()
torch.distributed.all_reduce(torch.ones(1))
attune.progress()
attune.report({"x": attune.config["x"]})
"""


def milliseconds(start, end):
    times = [datetime.datetime.fromisoformat(t.replace("Z", "+00:00")) for t in (start, end)]
    return (times[1] - times[0]).total_seconds() * 1000


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    cache = (build / "CMakeCache.txt").read_text()
    torch = pathlib.Path(re.search(r"^ATTUNE_TORCH_FOUND_DIR:INTERNAL=(.*)$", cache, re.M).group(1))
    if not (torch / "lib/libtorch_python.so").exists():
        print(f"python_gang_start: {torch} is a LibTorch without its Python part; left out")
        return
    environment = python_torch.prepare(torch.resolve(), build / "benchmarks/ddp/python")
    environment["PYTHONPATH"] = f"{ROOT / 'clients/python'}:{environment['PYTHONPATH']}"
    with tempfile.TemporaryDirectory() as folder:
        script, file, data = (pathlib.Path(folder) / name for name in ("first.py", "sweep.json", "data"))
        script.write_text(SCRIPT)
        file.write_text(json.dumps({
            "name": "python-gang-start", "command": [sys.executable, str(script)],
            "metric": {"name": "x", "mode": "max"}, "parameters": {"x": {"min": 0.0, "max": 1.0}},
            "scheduler": {"name": "fifo", "max": 1}, "max_concurrent_trials": 1,
            "resources": {"workers": 2, "cpus_per_worker": 1}, "stop": {"max_trials": TRIALS}}))
        subprocess.run([build / "attune", "run", file, "--data-dir", data, "--port", "0", "--quiet",
                        "-o", "json"], check=True, stdout=subprocess.DEVNULL, env=environment)
        rows = sqlite3.connect(data / "attune.db").execute(
            "SELECT decided, started, first_step FROM attempts ORDER BY trial").fetchall()
    if len(rows) != TRIALS or any(row[2] is None for row in rows):
        sys.exit(f"expected {TRIALS} attempts with a first step, found {rows}")
    print(f"gang start in Python, 2 ranks, {TRIALS} gangs (ms from the decision)")
    for name, column in (("every rank has a process", 1), ("first all-reduce on all ranks", 2)):
        values = [milliseconds(row[0], row[column]) for row in rows]
        print(f"  {name:34} median {statistics.median(values):7.1f}   min {min(values):7.1f}   "
              f"max {max(values):7.1f}")


main()
