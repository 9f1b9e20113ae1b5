"""What searchers and schedulers are worth on the Fashion-MNIST example: real trials of two workers each.

    fashion_mnist.py BUILD promotion|population|searcher [SEEDS]

promotion: 27 configurations, promoted by ASHA, and all of them trained to the end.
population: pbt and pb2, and random search with as many steps.
searcher: `auto` and `random`, on the sweep file of the example.

A step trains on 5,500 images. Accuracy is that of the best report on the 5,000 images kept for validation;
"test" is that of its checkpoint on the 10,000 test images.
"""

import json
import pathlib
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile

PARAMETERS = {
    "lr": {"min": 0.001, "max": 0.5, "scale": "log"}, "momentum": {"min": 0.5, "max": 0.95},
    "width": {"values": [8, 16, 24]}, "batch": {"value": 128}, "samples_per_step": {"value": 5500},
}
# Of a population only what may change on the way.
CHANGING = {**PARAMETERS, "width": {"value": 16}}


def sweep(program, scheduler, seed, trials, searcher="random", parameters=PARAMETERS):
    return {
        "apiVersion": "attune/v1", "kind": "Sweep", "name": "fashion-mnist", "command": [str(program)],
        "metric": {"name": "accuracy", "mode": "max"}, "parameters": parameters,
        "searcher": {"name": searcher, "seed": seed}, "scheduler": scheduler,
        "resources": {"workers": 2, "cpus_per_worker": 1}, "stop": {"max_trials": trials},
        "checkpoint": {"every": 1},
    }


def run(build, **of_sweep):
    """Best accuracy, that of its trial on the test images, and steps trained in all."""
    program = build / "examples/fashion_mnist/fashion_mnist"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "sweep.yaml").write_text(json.dumps(sweep(program, **of_sweep)))
        subprocess.run([build / "attune", "run", folder / "sweep.yaml", "--data-dir", folder / "data", "--port",
                        "0", "--quiet", "-o", "json"], check=True, stdout=subprocess.DEVNULL)
        database = sqlite3.connect(folder / "data/attune.db")
        (steps,) = database.execute("SELECT count(*) FROM reports").fetchone()
        best, checkpoint = database.execute(
            "SELECT t.best, c.path FROM trials AS t JOIN checkpoints AS c ON c.trial = t.number"
            " AND c.step = t.best_step AND c.dropped IS NULL ORDER BY t.best DESC").fetchone()
        told = subprocess.run([program, "--evaluate", checkpoint], check=True, capture_output=True, text=True)
    return best, float(re.search(r"test_accuracy (\S+)", told.stdout)[1]), steps


def compare(build, seeds, rows):
    """A line for each of `rows`, a name and what its sweeps are, and differences from the last one."""
    results = {name: [] for name, _ in rows}
    for seed in range(1, seeds + 1):
        for name, of_sweep in rows:
            results[name].append(run(build, seed=seed, **of_sweep))
            print(f"  seed {seed}, {name}: accuracy {results[name][-1][0]:.4f}, test {results[name][-1][1]:.4f}, "
                  f"{results[name][-1][2]} steps", flush=True)
    reference = rows[-1][0]
    for name, of_all in results.items():
        best, test, steps = (statistics.mean(column) for column in zip(*of_all))
        print(f"{name:12} accuracy {best:.4f}  test {test:.4f}  {steps:.0f} steps", end="")
        if name != reference and seeds > 1:
            ahead = [a[0] - b[0] for a, b in zip(of_all, results[reference])]
            error = statistics.stdev(ahead) / seeds ** 0.5
            print(f"  ahead of {reference} by {statistics.mean(ahead):+.4f} ± {error:.4f} (standard error), "
                  f"in {sum(a > 0 for a in ahead)} of {seeds}", end="")
        print()


def main():
    build, what = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    seeds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    population = {"parameters": CHANGING, "trials": 6}
    whole = {"name": "fifo", "max": 12}
    rows = {
        "promotion": [
            ("promotion", {"trials": 27, "scheduler": {"name": "asha", "mode": "promote", "min": 1, "max": 9}}),
            ("all", {"trials": 27, "scheduler": {"name": "fifo", "max": 9}})],
        "population": [
            *((name, {**population, "scheduler": {"name": name, "max": 12, "perturbation_interval": 2,
                                                  "synchronous": True}}) for name in ("pbt", "pb2")),
            ("random", {**population, "scheduler": whole})],
        "searcher": [
            (name, {"trials": 16, "searcher": name,
                    "scheduler": {"name": "asha", "min": 1, "max": 9, "reduction_factor": 3}})
            for name in ("auto", "random")],
    }[what]
    compare(build, seeds, rows)


main()
