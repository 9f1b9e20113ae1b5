#!/usr/bin/env python3
"""Runs each benchmark at a small size, and checks that it ends and prints plausible figures.

    smoke_test.py BUILD [NAME...]      all benchmarks, or the named ones

Figures are plausible if all figures of FIGURES are printed and above 0, and no figure is infinite or NaN. The
test does not check speed. It uses images of noise, so it needs no data set. For wrong arguments, each benchmark
must print its usage and exit with status 2.
"""

import concurrent.futures
import gzip
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT_S = 120
AT_ONCE = 2

# name: the arguments of one or more runs in the same folder. "{build}" is the build folder, "{folder}" a new folder
# that is removed afterwards.
RUNS = {
    "brain_bench": ["--benchmark_min_time=0.001 --benchmark_filter=/100$|/1000$|Decisions"],
    "store_bench": ["--benchmark_min_time=0.001 --benchmark_filter=ReadTheLog|DecodeReports"],
    "report_rate": ["2000 1 2000"],
    "long_log": ["{folder}/attune.db 50 5"],
    "searchers/searcher_speed": ["--benchmark_min_time=0.001 --benchmark_filter=random|sobol|gp_5/50$"],
    "searchers/searcher_quality": ["1 1 random"],
    "searchers/searcher_warm_start": ["1 0 tpe"],
    "searchers/searcher_fronts": ["1 20"],
    "searchers/searcher_multifidelity": ["1 1 random"],
    "schedulers/scheduler_curves": [f"1 5 val_accuracy:max:{HERE}/schedulers/tune_trainer.csv"],
    "trainer_bench": ["1"],
    "large_checkpoint": ["--checkpoint-dir {folder} --checkpoint-every 1 -- {folder} 0.01",
                         "--resume {folder}/step-1-attempt-1 -- {folder} 0.01"],
    "trial_rate.py": ["{build} 40 4"],
    "verdict_latency.py": ["{build} 100"],
    "restart.py": ["{build} 50 5"],
    "ask_rate.py": ["{build} 200 random 100"],
    "http_load.py": ["{build} 10 4 1"],
    "code_start.py": ["{build} 20 1 3"],
    "gang_start.py": ["{build} 4", "{build} 4 2"],
    "python_gang_start.py": ["{build} 1 all-reduce"],
    "ddp/ddp_rate.py": ["{build} 1 mlp"],
    "checkpoint_get.py": ["{build} 8"],
    "cifar10_accuracy.py": ["{build} 1 256 1"],
    "fashion_mnist.py": ["{build} searcher 1 128"],
    "searchers/pictures.py": ["{build} {folder} 4"],
}
# Google Benchmark decides the exit status of these.
GOOGLE_BENCHMARK = ("brain_bench", "store_bench", "searchers/searcher_speed")

# name: figures that each run prints at least once. "#" stands for the number.
FIGURES = {
    **{name: [r"(?m)^\S+ +# [num]s +# [num]s"] for name in GOOGLE_BENCHMARK},
    "report_rate": [r": # durable reports/s", r"durable after # ms \(median\), # ms \(p99\)", "at most # MB resident"],
    "long_log": ["# events"],
    "searchers/searcher_quality": [r"\| \*\*all\*\* \| #"],
    "searchers/searcher_warm_start": [r"(?:shifted|unrelated) \| #"],
    "searchers/searcher_fronts": [r"\| \*\*all\*\* \| #"],
    "searchers/searcher_multifidelity": [r"`random` \| #"],
    "schedulers/scheduler_curves": [r"fifo` \| #"],
    "trainer_bench": ["first of a program +# ms", "next ones +# ms", "default loop takes # times"],
    "large_checkpoint": ["memory at most # times the state"],
    "trial_rate.py": ["# trials/s", "# ms CPU a trial", "first step -> ended +median # ms"],
    "verdict_latency.py": ["# verdicts: median # ms", "# reports without one: median # us"],
    "restart.py": ["ready in # s, # MB then, # MB at most", "first 100 # ms"],
    "ask_rate.py": ["ask median # ms", "tell median # ms", "# pairs a second", "commits # times"],
    "http_load.py": ["quiet: median # ms", "streams: median # ms", "meanwhile # answers/s, # events/s"],
    "code_start.py": [r"program on the host +first +# +median of the others +#", r"with code +first +# +median of the others +#"],
    "gang_start.py": ["# gangs", "first training step on all ranks +median +# +min +#", "launcher cold +#"],
    "python_gang_start.py": ["first step on all ranks +median +# +min +#"],
    "ddp/ddp_rate.py": ["# steps/s", "mlp: #x the steps a second"],
    "checkpoint_get.py": ["# MiB/s"],
    "cifar10_accuracy.py": [r"(?m)^SDK #, Python #, difference"],
    "fashion_mnist.py": [r"(?m)^\w+ +accuracy #  test #  # steps"],
    "searchers/pictures.py": ["svg: # trials"],
}

NO_NUMBER = re.compile(r"(?<![\w.-])-?(?:nan|inf)\b", re.IGNORECASE)


def write_images(folder):
    """Writes the four files of Fashion-MNIST with a few images of noise."""
    noise = random.Random(1)
    for part, count in ("train", 1200), ("t10k", 200):
        size = count.to_bytes(4, "big")
        side = (28).to_bytes(4, "big")
        for name, content in (
                ("images-idx3", b"\0\0\x08\x03" + size + side + side + noise.randbytes(count * 28 * 28)),
                ("labels-idx1", b"\0\0\x08\x01" + size + bytes(i % 10 for i in range(count)))):
            (folder / f"{part}-{name}-ubyte.gz").write_bytes(gzip.compress(content, compresslevel=1))


def find_fault(name, output):
    """Describes the first implausible figure in the output, or returns None."""
    if found := NO_NUMBER.search(output):
        return f"prints {found[0]}"
    for line in FIGURES[name]:
        found = list(re.finditer(line.replace("#", r"(-?\d[\d.e+-]*)"), output))
        if not found:
            return f"prints no figure like: {line}"
        for match in found:
            if min(map(float, match.groups())) <= 0:
                return f"prints a figure that is not above 0: {match[0]}"
    return None


def start(build, name, words, folder, images):
    """The exit status and the output of one run."""
    program = [sys.executable, HERE / name] if name.endswith(".py") else [build / "benchmarks" / name]
    # With more threads, they would wait for each other on cores that other benchmarks use.
    environment = {**os.environ, "ATTUNE_DATA_DIR": str(images), "OMP_NUM_THREADS": "1"}
    try:
        ended = subprocess.run(program + words, cwd=folder, env=environment, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return None, f"did not end within {TIMEOUT_S} s"
    return ended.returncode, ended.stdout


def run(build, name, images):
    """The result ("ok", "left out" or "FAILED") and the output that explains it."""
    if name not in GOOGLE_BENCHMARK:
        status, output = start(build, name, ["--no-such-argument"], None, images)
        if status != 2 or "usage" not in output:
            return "FAILED", f"wrong arguments: exit status {status}:\n{output}"
    with tempfile.TemporaryDirectory() as folder:
        for arguments in RUNS[name]:
            words = [word.format(build=build, folder=folder) for word in arguments.split()]
            status, output = start(build, name, words, folder, images)
            if status != 0:
                return "FAILED", f"exit status {status}:\n{output[-2000:]}"
            if problem := find_fault(name, output):
                if "left out: " in output:
                    return "left out", output
                return "FAILED", f"{problem}:\n{output[-2000:]}"
    return "ok", ""


def timed(*arguments):
    began = time.monotonic()
    return *run(*arguments), time.monotonic() - began


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-") or not RUNS.keys() >= set(sys.argv[2:]):
        print(__doc__, "\nNames: ", ", ".join(RUNS), sep="", file=sys.stderr)
        sys.exit(2)
    build, names = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:] or RUNS
    failed = False
    with tempfile.TemporaryDirectory() as images, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        write_images(pathlib.Path(images))
        for name, done in [(name, pool.submit(timed, build, name, images)) for name in names]:
            result, text, took_s = done.result()
            failed |= result == "FAILED"
            print(f"{result:8} {took_s:5.1f} s  {name}\n{text}", end="", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
