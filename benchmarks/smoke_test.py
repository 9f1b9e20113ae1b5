#!/usr/bin/env python3
"""Runs each benchmark at a small size and checks that it ends and prints plausible figures.

    smoke_test.py BUILD_DIR [NAME...]      all of them, or those of these names

The figures of so small a run say nothing about speed. They are plausible if there is one, and none is
negative, infinite or NaN.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT_S = 60

# name: its arguments. "{build}" is the build folder and "{folder}" a new one that is removed afterwards.
PROGRAMS = {
    "brain_bench": ["--benchmark_min_time=0.001", "--benchmark_filter=/100$|/1000$|Decisions"],
    "store_bench": ["--benchmark_min_time=0.001", "--benchmark_filter=ReadTheLog|DecodeReports"],
    "report_rate": ["2000", "1", "2000"],
    "long_log": ["{folder}/attune.db", "50", "5"],
    "searchers/searcher_speed": ["--benchmark_min_time=0.001", "--benchmark_filter=random|sobol|gp_5/50$"],
    "searchers/searcher_quality": ["1", "1", "random"],
    "searchers/searcher_warm_start": ["1", "0", "tpe"],
    "searchers/searcher_fronts": ["1", "20"],
    "searchers/searcher_multifidelity": ["1", "1", "random"],
    "schedulers/scheduler_curves": ["1", "5", f"val_accuracy:max:{HERE}/schedulers/tune_trainer.csv"],
    "trainer_bench": ["1"],
}
DRIVERS = {
    "trial_rate.py": ["{build}", "40", "4"],
    "verdict_latency.py": ["{build}", "100"],
    "restart.py": ["{build}", "50", "5"],
    "ask_rate.py": ["{build}", "200"],
    "http_load.py": ["{build}", "10", "4", "1"],
}
SILENT = {"long_log"}  # it writes a database for other benchmarks

FIGURE = re.compile(r"(?<![\w.-])-?(?:\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?|nan|inf)\b", re.IGNORECASE)


def fault(output):
    """What is implausible about the output, or None."""
    figures = FIGURE.findall(output)
    if not any(re.search("[1-9]", figure) for figure in figures):
        return "prints no figure"
    for figure in figures:
        if figure.lower().lstrip("-") in ("nan", "inf"):
            return f"prints {figure}"
    return None


def run(build, name, arguments):
    """What went wrong, or None."""
    with tempfile.TemporaryDirectory() as folder:
        words = [word.format(build=build, folder=folder) for word in arguments]
        command = ([sys.executable, HERE / name] if name.endswith(".py") else [build / "benchmarks" / name]) + words
        try:
            ended = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return f"did not end within {TIMEOUT_S} s"
    if ended.returncode != 0:
        return f"exit status {ended.returncode}:\n{ended.stdout[-2000:]}"
    wrong = None if name in SILENT else fault(ended.stdout)
    return wrong and f"{wrong}:\n{ended.stdout[-2000:]}"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build, names = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    failed = 0
    for name, arguments in {**PROGRAMS, **DRIVERS}.items():
        if names and name not in names:
            continue
        began = time.monotonic()
        wrong = run(build, name, arguments)
        failed += wrong is not None
        print(f"{'ok' if wrong is None else 'FAILED':6} {time.monotonic() - began:5.1f} s  {name}", flush=True)
        if wrong:
            print(wrong, flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
