"""What searchers and schedulers are worth on the Fashion-MNIST example: real trials of two workers each.

promotion: 27 configurations, promoted by ASHA, and all of them trained to the end.
population: pbt and pb2, and random search with as many steps.
searcher: `auto` and `random`, on the sweep file of the example. Both are compared after as many steps as the
    shorter of the two sweeps of a seed has.

Accuracy is that of the best report on the 5,000 images kept for validation;
"test" is that of its checkpoint on the 10,000 test images.
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
# Of a population only what may change on the way.
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


def run(build, folder, **of_sweep):
    """The database of a sweep that has run to its end, its data in the folder."""
    program = build / "examples/fashion_mnist/fashion_mnist"
    folder.mkdir()
    return driver.run_sweep(build, folder, sweep(program, **of_sweep))


def steps_of(database):
    return database.execute("SELECT count(*) FROM reports").fetchone()[0]


def within(build, database, steps):
    """What the sweep had found after so many steps of all its trials together."""
    accuracy, checkpoint = database.execute(
        "SELECT json_extract(r.metrics, '$.accuracy') AS accuracy, c.path"
        " FROM (SELECT * FROM reports ORDER BY seq LIMIT ?) AS r"
        " JOIN checkpoints AS c USING (trial, attempt, step) ORDER BY accuracy DESC", (steps,)).fetchone()
    told = subprocess.run([build / "examples/fashion_mnist/fashion_mnist", "--evaluate", checkpoint], check=True,
                          capture_output=True, text=True)
    return Run(accuracy, float(re.search(r"test_accuracy (\S+)", told.stdout)[1]), steps)


def compare(build, seeds, images, rows, equal_steps):
    """A line for each of `rows`, a name and what its sweeps are, and differences from the last one."""
    results = {name: [] for name, _ in rows}
    for seed in range(1, seeds + 1):
        with tempfile.TemporaryDirectory() as name:
            databases = {row: run(build, pathlib.Path(name) / row, seed=seed, images=images, **of_sweep)
                         for row, of_sweep in rows}
            trained = {row: steps_of(database) for row, database in databases.items()}
            for row, database in databases.items():
                steps = min(trained.values()) if equal_steps else trained[row]
                result = within(build, database, steps)
                results[row].append(result)
                print(f"  seed {seed}, {row}: accuracy {result.accuracy:.4f}, test {result.test:.4f}, "
                      f"{steps} of {trained[row]} steps", flush=True)
    reference = rows[-1][0]
    for row, runs in results.items():
        mean = Run(*(statistics.mean(column) for column in zip(*runs)))
        print(f"{row:12} accuracy {mean.accuracy:.4f}  test {mean.test:.4f}  {mean.steps:.0f} steps", end="")
        if row != reference and seeds > 1:
            ahead = [a.accuracy - b.accuracy for a, b in zip(runs, results[reference])]
            error = statistics.stdev(ahead) / seeds ** 0.5
            print(f"  ahead of {reference} by {statistics.mean(ahead):+.4f} ± {error:.4f} (standard error), "
                  f"in {sum(a > 0 for a in ahead)} of {seeds}", end="")
        print()


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("what", metavar="COMPARISON", choices=COMPARISONS, help=f"one of {', '.join(COMPARISONS)}")
    driver.add_count(parser, "seeds", 5, "seeds")
    driver.add_count(parser, "images", 5500, "images that a step trains on")
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
