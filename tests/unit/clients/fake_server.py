"""A fake server with prepared answers, for tests of `attune.client`."""

import collections
import contextlib
import http.server
import json
import os
import pathlib
import socket
import sys
import tempfile
import threading
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "clients/python"))

import attune.client  # noqa: E402
from attune.client import Server  # noqa: E402

PATIENCE_S = 30
SWEEP = {"id": "s1", "name": "test", "state": "running", "reason": "", "metric": {"name": "loss"},
         "time_attr": "", "best": None, "pareto_front": [], "max_trials": 0, "trials": {"running": 0}}
OFFER = {"state": "running", "reason": "", "trial": 0, "config": {"lr": 0.1}, "attempt": 1, "epoch": 7,
         "seed": 3, "milestone": 1, "max_step": 4, "lease": 600.0}

Request = collections.namedtuple("Request", "connection method path headers body")


def problem(status, detail, errors=None):
    return status, {"title": "No", "status": status, "detail": detail, "errors": errors or []}


class FakeServer(http.server.ThreadingHTTPServer):
    """Records requests in `asked`, and sends prepared answers.

    `answers` is a list of the next answers, or a function from the path of a request to its answer. An answer is a
    document, or (status, document, headers), or BREAK, which closes the connection.
    """

    daemon_threads = True
    BREAK = "break"

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked, self.answers = [], []
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def close(self):
        self.shutdown()
        self.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append(Request(self.client_address, self.command, self.path, self.headers, body))
        answers = self.server.answers
        answer = answers(self.path) if callable(answers) else answers.pop(0)
        if answer == FakeServer.BREAK:
            self.close_connection = True
            return
        status, document, *headers = answer if isinstance(answer, tuple) else (200, answer)
        text = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(text)), **dict(*headers)}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_GET

    def log_message(self, *_):
        pass


class Client(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.fake = self.start()
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ATTUNE_")}
        for patch in (mock.patch.dict(os.environ, clean, clear=True),
                      mock.patch.object(attune.client, "_PAUSE_S_MIN", 0)):
            patch.start()
            self.addCleanup(patch.stop)

    def start(self):
        fake = FakeServer()
        self.addCleanup(fake.close)
        return fake

    def server(self, *answers, **options):
        self.fake.answers += answers
        return Server(self.fake.url, token="secret", **options)

    def sweep(self, *answers, **options):
        sweep = self.server(SWEEP, *answers, **options).sweep("s1")
        self.fake.asked.clear()
        return sweep

    def trial(self, *answers):
        trial = self.sweep(OFFER, *answers).ask()
        self.fake.asked.clear()
        return trial

    def asked(self):
        return [f"{each.method} {each.path}" for each in self.fake.asked]

    def told(self):
        return [json.loads(each.body) for each in self.fake.asked if each.body]

    def keys(self):
        return [each.headers["Idempotency-Key"] for each in self.fake.asked]

    def answer(self, text):
        """Answers with `text` at the socket of the data folder, until the returned function is called."""
        (self.folder / "server.sock").unlink(missing_ok=True)
        opened = os.open(self.folder, os.O_PATH)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"/proc/self/fd/{opened}/server.sock")
        os.close(opened)
        listener.listen()

        def serve():
            while True:
                try:
                    asked, _ = listener.accept()
                except OSError:
                    return
                with asked:
                    asked.sendall(text.encode())

        thread = threading.Thread(target=serve)
        thread.start()

        def stop():
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            listener.close()

        self.addCleanup(stop)
        return stop

    def use_folder(self, fake, token="of-the-folder"):
        (self.folder / "token").write_text(token + "\n")
        return self.answer(json.dumps({"http": fake.url}))
