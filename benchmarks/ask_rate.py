"""Measures the latency of asking for a trial and telling its result, in a sweep with many trials.

Writes the database of a sweep without a program (`long_log.cc`) and starts a server on it. Asks and tells in
turn, then does both in one request. Each request waits for the disk once. For comparison, it also measures how
many rows SQLite alone commits per second on the same disk.
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

import driver


class Client:
    """A plain socket. An HTTP library would take as long as the server itself."""

    def __init__(self, server):
        self.socket = socket.create_connection((server.host, server.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.host, self.token = server.host, server.token

    def ms(self, method, path, body=None):
        text = json.dumps(body) if body else ""
        request = (f"{method} /api/v1/sweeps/s1{path} HTTP/1.1\r\nHost: {self.host}\r\n"
                   f"Authorization: Bearer {self.token}\r\nContent-Length: {len(text)}\r\n\r\n{text}").encode()
        began = time.monotonic()
        self.socket.sendall(request)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.receive()
        head, _, content = answer.partition(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].split()[0])
        while len(content) < size:
            content += self.receive()
        took = (time.monotonic() - began) * 1000
        if b" 200 " not in head.splitlines()[0]:
            sys.exit(f"{path}: {head.decode()}\n{content.decode()}")
        return took, json.loads(content)

    def receive(self):
        piece = self.socket.recv(65536)
        return piece or sys.exit("the server has closed the connection")


def commits_per_second(folder, rounds):
    """Commits per second of SQLite with the settings of the server's database."""
    database = sqlite3.connect(folder / "scale.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE rows(value)")
    began = time.monotonic()
    for i in range(rounds):
        database.execute("INSERT INTO rows VALUES (?)", (i,))
    return rounds / (time.monotonic() - began)


def measure(build, trials, searcher, rounds):
    with tempfile.TemporaryDirectory(dir=pathlib.Path.cwd()) as folder:  # a disk, not memory
        data = pathlib.Path(folder)
        subprocess.run([build / "benchmarks/long_log", data / "attune.db", str(trials), "2", "asked", searcher],
                       check=True, stdout=subprocess.DEVNULL)
        with driver.Server(build, data) as server:
            ask, tell, both, get = measure_latencies(Client(server), rounds)
        rate = 1000 * rounds / (sum(ask) + sum(tell))
        rate_of_both = 1000 * rounds / sum(both)
        scale = commits_per_second(data, rounds)
    ask, tell, both, get = map(driver.summary, (ask, tell, both, get))
    print(f"{searcher} after {trials} trials: ask {ask}; tell {tell}; the sweep {get}; "
          f"{rate:.0f} pairs a second; both in one {both}, {rate_of_both:.0f} pairs a second, "
          f"where SQLite alone commits {scale:.0f} times", flush=True)


def measure_latencies(client, rounds):
    """Milliseconds of each ask, each tell, each request with both, and each read of the sweep."""
    ask, tell, both, get = [], [], [], []

    def report(trial, **more):
        config = trial["config"]
        loss = (math.log10(config["lr"]) + 3)**2 + (config["layers"] - 5)**2 / 9  # as in long_log.cc
        return client.ms("POST", f"/trials/{trial['trial']}:tell",
                         {"epoch": trial["epoch"], "step": 2, "metrics": {"loss": loss}, **more})

    for _ in range(rounds):
        took, trial = client.ms("POST", "/trials:ask")
        ask.append(took)
        tell.append(report(trial)[0])
        get.append(client.ms("GET", "")[0])
    _, trial = client.ms("POST", "/trials:ask")
    for _ in range(rounds):
        took, answer = report(trial, ask=True)
        trial = answer["next"]
        both.append(took)
    return ask, tell, both, get


def main():
    parser = driver.parser(__doc__)
    driver.add_count(parser, "trials", 100_000, "earlier trials in the second run; the first run has 100")
    parser.add_argument("searcher", metavar="SEARCHER", nargs="?", default="random", help="(default: random)")
    driver.add_count(parser, "rounds", 1000, "number of measured trials")
    arguments = parser.parse_args()
    for trials in (100, arguments.trials):
        measure(arguments.build, trials, arguments.searcher, arguments.rounds)


if __name__ == "__main__":
    main()
