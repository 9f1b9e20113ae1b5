"""Measures the latency of a server under the load of many clients.

Keep-alive clients poll a sweep, readers hold event streams open, and one program asks and tells, which produces
events. Meanwhile, requests for /livez are measured, each over a new connection.
"""

import http.client
import json
import pathlib
import resource
import selectors
import socket
import sys
import tempfile
import threading
import time

import driver

POLL_S = 0.5  # between two requests of a client
SWEEP = """name: asked
metric: {name: loss, mode: min}
parameters: {x: {min: 0.0, max: 1.0}}
searcher: {name: random, seed: 1}
scheduler: {name: fifo, max: 1}
"""


def request(server, path):
    return (f"GET {path} HTTP/1.1\r\nHost: {server.host}\r\n"
            f"Authorization: Bearer {server.token}\r\n\r\n").encode()


class Load(threading.Thread):
    """All polling clients and stream readers, in one thread."""

    def __init__(self, server, clients, streams):
        super().__init__(daemon=True)
        self.server, self.stopping = server, False
        self.answers = self.events = self.refused = self.lost = 0
        self.selector = selectors.DefaultSelector()
        self.due = []  # (time of the next request, socket) of each client, in order
        self.poll = request(server, "/api/v1/sweeps/s1")
        for i in range(clients):
            # With many connections, the server closes those that have not sent a token.
            connection = self.connect("client")
            connection.sendall(self.poll)
            connection.recv(1 << 16)
            self.due.append((time.monotonic() + POLL_S * i / clients, connection))
        for _ in range(streams):
            self.connect("stream").sendall(request(server, "/api/v1/events?sweep=s1"))

    def connect(self, kind):
        connection = socket.create_connection((self.server.host, self.server.port))
        self.selector.register(connection, selectors.EVENT_READ, kind)
        return connection

    def run(self):
        while not self.stopping:
            now = time.monotonic()
            while self.due and self.due[0][0] <= now:
                _, connection = self.due.pop(0)
                connection.sendall(self.poll)
            wait = max(0, min(0.1, self.due[0][0] - now)) if self.due else 0.1
            for key, _ in self.selector.select(wait):
                data = key.fileobj.recv(1 << 16)
                if not data:
                    self.lost += 1
                    self.selector.unregister(key.fileobj)
                elif key.data == "stream":
                    self.events += data.count(b"\nid: ") + data.startswith(b"id: ")
                else:
                    # The server writes an answer at once, and it is small enough to arrive in one piece.
                    self.answers += data.startswith(b"HTTP/1.1 200")
                    self.refused += data.startswith(b"HTTP/1.1 503")
                    self.due.append((time.monotonic() + POLL_S, key.fileobj))


class Asker(threading.Thread):
    """Asks for trials and tells their results, one after the other."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.stopping = server, False
        self.ask_ms, self.tell_ms = [], []
        self.connection = http.client.HTTPConnection(server.host, server.port)

    def post(self, path, body=""):
        began = time.monotonic()
        self.connection.request("POST", "/api/v1" + path, body, self.server.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 201, 204):
            sys.exit(f"{path}: {answer.status} {text.decode()}")
        return json.loads(text or "{}"), (time.monotonic() - began) * 1000

    def run(self):
        while not self.stopping:
            trial, ms = self.post("/sweeps/s1/trials:ask")
            self.ask_ms.append(ms)
            report = {"epoch": trial["epoch"], "step": 1, "metrics": {"loss": 0.5}}
            _, ms = self.post(f"/sweeps/s1/trials/{trial['trial']}:tell", json.dumps(report))
            self.tell_ms.append(ms)


def livez_ms(server):
    began = time.monotonic()
    with socket.create_connection((server.host, server.port)) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        if not connection.recv(4096).startswith(b"HTTP/1.1 200"):
            sys.exit("/livez is not 200")
    return (time.monotonic() - began) * 1000


def describe(values):
    return f"{driver.summary(values)}, longest {max(values):.2f} ms, of {len(values)}"


def main():
    parser = driver.parser(__doc__)
    driver.add_count(parser, "clients", 500, "clients that poll")
    driver.add_count(parser, "streams", 200, "readers of events")
    driver.add_count(parser, "seconds", 10, "seconds under load")
    arguments = parser.parse_args()
    clients, streams, seconds = arguments.clients, arguments.streams, arguments.seconds
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    with (tempfile.TemporaryDirectory(dir=pathlib.Path.cwd()) as folder,  # a disk, not memory
          driver.Server(arguments.build, pathlib.Path(folder)) as server):
        asker = Asker(server)
        asker.post("/sweeps", SWEEP)
        quiet = [livez_ms(server) for _ in range(200)]
        before_mb, before_threads = server.status("VmRSS") / 1024, server.status("Threads")
        load = Load(server, clients, streams)
        load.start()
        asker.start()
        time.sleep(1)
        busy = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            busy.append(livez_ms(server))
            time.sleep(0.01)
        load.stopping = asker.stopping = True
        load.join()
        asker.join()
        print(f"/livez, quiet: {describe(quiet)}")
        print(f"/livez, {clients} clients that poll, {streams} streams: {describe(busy)}")
        print(f"  meanwhile {load.answers / (seconds + 1):.0f} answers/s, "
              f"{load.events / (seconds + 1):.0f} events/s, {load.refused} refused, {load.lost} lost")
        print(f"  ask: {describe(asker.ask_ms)}\n  tell: {describe(asker.tell_ms)}")
        print(f"  memory: {before_mb:.0f} MB before, {server.status('VmRSS') / 1024:.0f} MB with them; "
              f"threads: {before_threads}, {server.status('Threads')}")


if __name__ == "__main__":
    main()
