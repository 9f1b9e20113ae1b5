"""Compares searchers and schedulers on the Fashion-MNIST example, with real trials of two workers each.

promotion: 27 configurations, promoted by ASHA or all trained to the end.
population: pbt, pb2, and random search with the same number of steps.
searcher: `auto` and `random`, with the sweep file of the example. For each seed, both are compared after the
    number of steps of the shorter sweep.

"accuracy" is the best reported accuracy on the 5,000 validation images.
"test" is the accuracy of that report's checkpoint on the 10,000 test images.
"""

import pathlib
import re
import statistics
import subprocess
import tempfile
from typing import NamedTuple

import driver

COMPARISONS = ("promotion", "population", "searcher")
PARAMETERS = {
    "lr": {"min": 0.001, "max": 0.5, "scale": "log"}, "momentum": {"min": 0.5, "max": 0.95},
    "width": {"values": [8, 16, 24]}, "batch": {"value": 128},
}
# The parameters of a population: only those that may change during a trial vary.
CHANGING = {**PARAMETERS, "width": {"value": 16}}


def sweep(program, images, scheduler, seed, trials, searcher="random", parameters=PARAMETERS):
    return {
        "apiVersion": "attune/v1", "kind": "Sweep", "name": "fashion-mnist", "command": [str(program)],
        "metric": {"name": "accuracy", "mode": "max"},
        "parameters": {**parameters, "samples_per_step": {"value": images}},
        "searcher": {"name": searcher, "seed": seed}, "scheduler": scheduler,
        "resources": {"workers": 2, "cpus_per_worker": 1}, "stop": {"max_trials": trials},
        "checkpoint": {"every": 1, "keep_last": 100},
    }


class Run(NamedTuple):
    accuracy: float
    test: float
    steps: int


def run(build, folder, **options):
    """Runs a sweep to its end with its data in the folder, and returns its database."""
    program = build / "examples/fashion_mnist/fashion_mnist"
    folder.mkdir()
    return driver.run_sweep(build, folder, sweep(program, **options))


def count_steps(database):
    return database.execute("SELECT count(*) FROM reports").fetchone()[0]


def best_result(build, database, steps):
    """The best result of the sweep after this number of steps of all its trials together."""
    accuracy, checkpoint = database.execute(
        "SELECT json_extract(r.metrics, '$.accuracy') AS accuracy, c.path"
        " FROM (SELECT * FROM reports ORDER BY seq LIMIT ?) AS r"
        " JOIN checkpoints AS c USING (trial, attempt, step) ORDER BY accuracy DESC", (steps,)).fetchone()
    evaluated = subprocess.run([build / "examples/fashion_mnist/fashion_mnist", "--evaluate", checkpoint], check=True,
                          capture_output=True, text=True)
    return Run(accuracy, float(re.search(r"test_accuracy (\S+)", evaluated.stdout)[1]), steps)


def compare(build, seeds, images, rows, equal_steps):
    """Prints a line for each of `rows` (a name and the options of its sweeps) with its difference to the last row."""
    results = {name: [] for name, _ in rows}
    for seed in range(1, seeds + 1):
        with tempfile.TemporaryDirectory() as name:
            databases = {row: run(build, pathlib.Path(name) / row, seed=seed, images=images, **options)
                         for row, options in rows}
            trained = {row: count_steps(database) for row, database in databases.items()}
            for row, database in databases.items():
                steps = min(trained.values()) if equal_steps else trained[row]
                result = best_result(build, database, steps)
                results[row].append(result)
                print(f"  seed {seed}, {row}: accuracy {result.accuracy:.4f}, test {result.test:.4f}, "
                      f"{steps} of {trained[row]} steps", flush=True)
    reference = rows[-1][0]
    for row, runs in results.items():
        mean = Run(*(statistics.mean(column) for column in zip(*runs)))
        print(f"{row:12} accuracy {mean.accuracy:.4f}  test {mean.test:.4f}  {mean.steps:.0f} steps", end="")
        if row != reference and seeds > 1:
            differences = [a.accuracy - b.accuracy for a, b in zip(runs, results[reference])]
            error = statistics.stdev(differences) / seeds ** 0.5
            print(f"  ahead of {reference} by {statistics.mean(differences):+.4f} ± {error:.4f} (standard error), "
                  f"in {sum(a > 0 for a in differences)} of {seeds}", end="")
        print()


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("what", metavar="COMPARISON", choices=COMPARISONS, help=f"one of {', '.join(COMPARISONS)}")
    driver.add_count(parser, "seeds", 5, "seeds")
    driver.add_count(parser, "images", 5500, "training images per step")
    arguments = parser.parse_args()
    what = arguments.what
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
    compare(arguments.build, arguments.seeds, arguments.images, rows, equal_steps=what == "searcher")


if __name__ == "__main__":
    main()
