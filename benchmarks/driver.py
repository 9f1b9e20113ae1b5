"""Shared code of the benchmark drivers in Python: arguments, sweeps, servers and medians."""

import argparse
import contextlib
import datetime
import json
import pathlib
import re
import socket
import sqlite3
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))  # python_torch, for drivers that need it


def build_folder(text):
    build = pathlib.Path(text).resolve()
    if not (build / "attune").is_file():
        raise argparse.ArgumentTypeError(f"{text}: contains no program attune; run scripts/build")
    return build


def existing_folder(text):
    if not pathlib.Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text}: not a folder; create it, or name another folder")
    return pathlib.Path(text)


def count(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: not a whole number of at least 1")
    return int(text)


def parser(description):
    """A parser with the argument `build`. Wrong arguments print the usage and exit with 2."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("build", metavar="BUILD", type=build_folder, help="the build folder")
    return made


def add_count(to, name, default, what):
    to.add_argument(name, metavar=name.upper(), nargs="?", type=count, default=default,
                    help=f"{what} (default: {default:,})")


def last_failure(database):
    """Why the last attempt failed."""
    row = database.execute("SELECT failure FROM attempts WHERE failure != '' ORDER BY ended DESC LIMIT 1").fetchone()
    return row[0] if row else "see its error above"


def run_sweep(build, folder, sweep, environment=None):
    """Runs a sweep to its end, with its data in `folder`/data, and returns its database."""
    file, data = folder / "sweep.json", folder / "data"
    file.write_text(json.dumps(sweep))
    status = subprocess.run([build / "attune", "run", file, "--data-dir", data, "--port", "0", "--quiet", "-o", "json"],
                            stdout=subprocess.DEVNULL, env=environment).returncode
    if status != 0 and not (data / "attune.db").exists():
        sys.exit(f"attune run ended with {status}; see its error above")
    database = sqlite3.connect(data / "attune.db")
    if status != 0:
        sys.exit(f"the sweep {sweep['name']} has failed: {last_failure(database)}")
    return database


class Server:
    """A running `attune serve` that is ready. It ends with the `with` block."""

    def __init__(self, build, data, rpc_port=0, prefix=()):
        self.process = subprocess.Popen(
            [*prefix, build / "attune", "serve", "--data-dir", data, "--port", "0", "--rpc-port", str(rpc_port)],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            if "http://" in line:
                break
        else:
            sys.exit("attune serve has ended:\n" + "".join(lines))
        self.url = re.search(r"http://[0-9.:]+", lines[-1]).group()
        self.host, port = self.url.removeprefix("http://").split(":")
        self.port = int(port)
        self.token = (data / "token").read_text().strip()
        self.headers = {"Authorization": "Bearer " + self.token}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stderr.close()

    def status(self, key):
        """A number of /proc/PID/status: a count, or kB of memory."""
        lines = pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(key + ":"))


def free_port():
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as probe:
        return probe.getsockname()[1]


def milliseconds(start, end):
    """Milliseconds between two times of the database."""
    start, end = (datetime.datetime.fromisoformat(time.replace("Z", "+00:00")) for time in (start, end))
    return (end - start).total_seconds() * 1000


def percentile(values, percent):
    return sorted(values)[min(len(values) * percent // 100, len(values) - 1)]


def summary(values, unit="ms", decimals=2, percent=99):
    """A text with the median and a percentile."""
    return (f"median {statistics.median(values):.{decimals}f} {unit}, "
            f"{percent} % {percentile(values, percent):.{decimals}f} {unit}")
