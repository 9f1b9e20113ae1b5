"""Measures how much later a gang starts if its sweep carries its code.

Runs the same sweep twice, one trial at a time: with the program on the host, and with a snapshot of a folder. Prints the
time from the decision until the rank has a process, for the first gang, which fetches the snapshot, and for the others.
"""

import os
import pathlib
import statistics
import tempfile

import driver

KILOBYTE = 1000


def make_folder(folder, files, kilobytes):
    """Writes files of random bytes, 100 to a folder, and a program."""
    for number in range(files):
        path = folder / f"part-{number // 100}" / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(kilobytes * KILOBYTE))
    program = folder / "train"
    program.write_text("#!/bin/sh\necho loss=1\n")
    program.chmod(0o755)


def sweep(folder, trials, with_code):
    return {
        "apiVersion": "attune/v1", "kind": "Sweep", "name": "code-start",
        "command": ["./train" if with_code else str(folder / "train")],
        **({"code": str(folder)} if with_code else {}),
        "reports": {"pattern": r"loss=(?P<loss>\S+)"},
        "metric": {"name": "loss", "mode": "min"}, "parameters": {"x": {"min": 0.0, "max": 1.0}},
        "searcher": {"name": "random", "seed": 1},
        "max_concurrent_trials": 1, "stop": {"max_trials": trials},
    }


def starts(build, folder, trials, with_code):
    """Returns the milliseconds from the decision to the process of each attempt, in order."""
    with tempfile.TemporaryDirectory(dir=pathlib.Path.cwd()) as name:  # a disk, not memory
        database = driver.run_sweep(build, pathlib.Path(name), sweep(folder, trials, with_code))
        rows = database.execute("SELECT decided, started FROM attempts ORDER BY decided").fetchall()
    return [driver.milliseconds(decided, started) for decided, started in rows]


def main():
    parser = driver.parser(__doc__)
    driver.add_count(parser, "files", 1000, "files of the folder")
    driver.add_count(parser, "kilobytes", 10, "kB of each file")
    driver.add_count(parser, "trials", 20, "trials of each sweep; at least 2")
    arguments = parser.parse_args()
    if arguments.trials < 2:
        parser.error("TRIALS: at least 2, for one gang after the first")
    with tempfile.TemporaryDirectory(dir=pathlib.Path.cwd()) as name:
        folder = pathlib.Path(name).resolve()
        make_folder(folder, arguments.files, arguments.kilobytes)
        print(f"{arguments.files} files of {arguments.kilobytes} kB, {arguments.trials} gangs (ms from the decision to "
              "the process)")
        for what, with_code in (("program on the host", False), ("with code", True)):
            first, *later = starts(arguments.build, folder, arguments.trials, with_code)
            print(f"  {what:20} first {first:7.1f}   median of the others {statistics.median(later):6.1f}   "
                  f"p90 {driver.percentile(later, 90):6.1f}", flush=True)


if __name__ == "__main__":
    main()
