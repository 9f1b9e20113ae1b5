#!/usr/bin/env python3
"""Sends requests to a running server and checks the answers. Schemathesis generates the requests from the contract.

ATTUNE_SEED is the seed, ATTUNE_EXAMPLES the number of requests for each operation.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

from support import EndToEnd, ask_server, sweep  # noqa: E402
from tools import ENVIRONMENT, require  # noqa: E402

SEED = os.environ.get("ATTUNE_SEED", "1")
EXAMPLES = os.environ.get("ATTUNE_EXAMPLES", "30")
CHECKS = ["not_a_server_error", "status_code_conformance", "content_type_conformance",
          "response_headers_conformance", "response_schema_conformance"]
STREAMS = ["/api/v1/events"]  # endless answers
ASK_TELL_SWEEPS = 30  # number of sweeps for the ask/tell API; some requests stop or delete them

# Existing names. Most requests use one of them, because other names only give a 404.
NAMES = {
    "path.sweep": [f"s{number}" for number in range(1, ASK_TELL_SWEEPS + 2)],
    "path.trial": [0, 1, 2],
    "path.checkpoint": ["1-1", "1-2", "1-4"],
    "query.file": ["manifest.json"],
    "path.executor": [socket.gethostname()],
}


def config():
    lines = []
    for name, values in NAMES.items():
        lines += [f'[dictionaries."{name}"]', f"values = {json.dumps(values)}",
                  f'[parameters."{name}"]', f'dictionary = "{name}"', "probability = 0.9"]
    return "\n".join(lines) + "\n"


class Schemathesis(EndToEnd):
    def test_answers_follow_the_contract(self):
        self.assertEqual(self.run_sweep(self.write(sweep(stop={"max_trials": 3}))).wait(), 0)
        last = self.rows("SELECT max(seq) FROM events")[0][0]
        server = self.start("serve", "--with-executor", "--data-dir", self.data, "--port", 0, "--rpc-port", 0)
        server.await_stderr(r"http://")
        self.await_event(lambda kind, data: kind == "executor_changed" and data["state"] == "online", last)
        self.create_sweeps()
        address = ask_server(self.data)["http"]
        token = (self.data / "token").read_text().strip()
        file = self.write(config(), "schemathesis.toml")
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", file, "run",
                   address + "/api/v1/openapi.json", "--url", address, "--header", f"Authorization: Bearer {token}",
                   "--checks", ",".join(CHECKS), "--seed", SEED, "--max-examples", EXAMPLES,
                   "--phases", "examples,fuzzing", "--generation-database", "none", "--no-color"]
        for path in STREAMS:
            command += ["--exclude-path", path]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder,
                                env=ENVIRONMENT)
        self.assertEqual(result.returncode, 0, f"seed {SEED}:\n{result.stdout}")

    def create_sweeps(self):
        spec = sweep(scheduler={"name": "fifo", "max": 4})
        for key in ("command", "resources", "checkpoint"):
            del spec[key]
        for number in range(2, ASK_TELL_SWEEPS + 2):
            self.post("/sweeps", spec)
            for _ in range(2):
                self.post(f"/sweeps/s{number}/trials:ask", {})

    def post(self, path, body):
        status, answer = self.request("/api/v1" + path, "POST", json.dumps(body).encode())
        self.assertIn(status, (200, 201), answer)


if __name__ == "__main__":
    require("schemathesis")
    unittest.main()
