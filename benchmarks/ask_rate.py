"""How long it takes to ask for a trial and to tell how it went, when there have been many.

Writes the database of a sweep without a program (`long_log.cc`), starts a server on it, and asks and
tells, one after the other; a wait of the disk is in each. For scale: the commits of one row that SQLite
alone does on the same disk.

    ask_rate.py BUILD_DIR [TRIALS [SEARCHER]]
"""

import http.client
import json
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time

ROUNDS = 1000


class Client:
    def __init__(self, data):
        url = json.loads((data / "server.json").read_text())["http"]
        self.connection = http.client.HTTPConnection(url.removeprefix("http://"))
        self.headers = {"Authorization": "Bearer " + (data / "token").read_text().strip()}

    def ms(self, method, path, body=None):
        began = time.monotonic()
        self.connection.request(method, "/api/v1/sweeps/s1" + path, body and json.dumps(body),
                                self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        took = (time.monotonic() - began) * 1000
        if answer.status != 200:
            sys.exit(f"{path}: {answer.status} {text.decode()}")
        return took, json.loads(text)


def tells(values):
    values = sorted(values)
    return f"median {values[len(values) // 2]:.2f} ms, 99 % {values[len(values) * 99 // 100]:.2f} ms"


def commits(folder):
    """A second, by SQLite with the settings of the server's own database."""
    database = sqlite3.connect(folder / "scale.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE rows(value)")
    began = time.monotonic()
    for i in range(ROUNDS):
        database.execute("INSERT INTO rows VALUES (?)", (i,))
    return ROUNDS / (time.monotonic() - began)


def measure(build, trials, searcher):
    with tempfile.TemporaryDirectory(dir=pathlib.Path.cwd()) as folder:  # a disk, not memory
        data = pathlib.Path(folder)
        subprocess.run([build / "benchmarks/long_log", data / "attune.db", str(trials), "2", "asked", searcher],
                       check=True, stdout=subprocess.DEVNULL)
        server = subprocess.Popen(
            [build / "attune", "serve", "--data-dir", data, "--port", "0", "--rpc-port", "0"],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        for line in server.stderr:
            if "http://" in line:
                break
        client = Client(data)
        ask, tell, get = [], [], []
        for _ in range(ROUNDS):
            took, trial = client.ms("POST", "/trials:ask")
            ask.append(took)
            report = {"epoch": trial["epoch"], "step": 2, "metrics": {"loss": 0.5}}
            took, _ = client.ms("POST", f"/trials/{trial['trial']}:tell", report)
            tell.append(took)
            get.append(client.ms("GET", "")[0])
        server.terminate()
        server.wait()
        rate = 1000 * ROUNDS / (sum(ask) + sum(tell))
        scale = commits(data)
    print(f"{searcher} after {trials} trials: ask {tells(ask)}; tell {tells(tell)}; the sweep {tells(get)}; "
          f"{rate:.0f} pairs a second, where SQLite alone commits {scale:.0f} times")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    searcher = sys.argv[3] if len(sys.argv) > 3 else "random"
    measure(build, 100, searcher)
    measure(build, int(sys.argv[2]) if len(sys.argv) > 2 else 100_000, searcher)


main()
