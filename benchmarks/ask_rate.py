"""How long it takes to ask for a trial and to tell how it went, when there have been many.

Writes the database of a sweep without a program (`long_log.cc`), starts a server on it, and asks and
tells, one after the other, then both in one request; a wait of the disk is in each. For scale: the
commits of one row that SQLite alone does on the same disk.

    ask_rate.py BUILD_DIR [TRIALS [SEARCHER]]
"""

import json
import math
import pathlib
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

ROUNDS = 1000


class Client:
    """One connection, and no library between: that would take as long as the server does."""

    def __init__(self, data):
        host, port = json.loads((data / "server.json").read_text())["http"].removeprefix("http://").split(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.host = host
        self.token = (data / "token").read_text().strip()

    def ms(self, method, path, body=None):
        text = json.dumps(body) if body else ""
        request = (f"{method} /api/v1/sweeps/s1{path} HTTP/1.1\r\nHost: {self.host}\r\n"
                   f"Authorization: Bearer {self.token}\r\nContent-Length: {len(text)}\r\n\r\n{text}").encode()
        began = time.monotonic()
        self.socket.sendall(request)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.more()
        head, _, content = answer.partition(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].split()[0])
        while len(content) < size:
            content += self.more()
        took = (time.monotonic() - began) * 1000
        if b" 200 " not in head.splitlines()[0]:
            sys.exit(f"{path}: {head.decode()}\n{content.decode()}")
        return took, json.loads(content)

    def more(self):
        piece = self.socket.recv(65536)
        return piece or sys.exit("the server has closed the connection")


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
        ask, tell, both, get = [], [], [], []

        def report(trial, **more):
            config = trial["config"]
            loss = (math.log10(config["lr"]) + 3)**2 + (config["layers"] - 5)**2 / 9  # as in long_log.cc
            return client.ms("POST", f"/trials/{trial['trial']}:tell",
                             {"epoch": trial["epoch"], "step": 2, "metrics": {"loss": loss}, **more})

        for _ in range(ROUNDS):
            took, trial = client.ms("POST", "/trials:ask")
            ask.append(took)
            tell.append(report(trial)[0])
            get.append(client.ms("GET", "")[0])
        _, trial = client.ms("POST", "/trials:ask")
        for _ in range(ROUNDS):
            took, answer = report(trial, ask=True)
            trial = answer["next"]
            both.append(took)
        server.terminate()
        server.wait()
        rate = 1000 * ROUNDS / (sum(ask) + sum(tell))
        rate_of_both = 1000 * ROUNDS / sum(both)
        scale = commits(data)
    print(f"{searcher} after {trials} trials: ask {tells(ask)}; tell {tells(tell)}; the sweep {tells(get)}; "
          f"{rate:.0f} pairs a second; both in one {tells(both)}, {rate_of_both:.0f} pairs a second, "
          f"where SQLite alone commits {scale:.0f} times")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    searcher = sys.argv[3] if len(sys.argv) > 3 else "random"
    measure(build, 100, searcher)
    measure(build, int(sys.argv[2]) if len(sys.argv) > 2 else 100_000, searcher)


main()
