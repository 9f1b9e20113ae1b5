"""Clients without a token open connections and send bytes, without an effect on other clients."""

import http.client
import json
import pathlib
import re
import resource
import socket
import subprocess
import sys
import time
import unittest

import support

STRANGER = [sys.executable, str(support.ROOT / "tests/e2e/programs/stranger.py")]
ASKS = 1000
GROWTH_MB = 64
SWEEP = {
    "apiVersion": "attune/v1", "kind": "Sweep", "name": "asked", "metric": {"name": "loss", "mode": "min"},
    "parameters": {"x": {"min": 0.0, "max": 1.0}}, "searcher": {"name": "random"}, "stop": {"max_trials": 100000},
}


def resident_mb(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) / 1024


class StrangersTest(support.EndToEnd):
    def setUp(self):
        super().setUp()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20_000), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

    def serve(self, *args, descriptors=None):
        limit = [] if descriptors is None else ["prlimit", f"--nofile={descriptors}:{descriptors}"]
        server = support.Process([*limit, self.program, "serve", "--data-dir", str(self.data), "--port", "0",
                                  "--rpc-port", "0", *map(str, args)], env=self.environment, cwd=self.folder)
        self.processes.append(server)
        server.await_stderr("^executors")
        self.where = support.ask_server(self.data)
        self.port = int(self.where["http"].rsplit(":", 1)[1])
        self.rpc_port = int(self.where["rpc"].rsplit(":", 1)[1])
        self.token = (self.data / "token").read_text().strip()
        return server

    def call(self, method, path, body=None):
        """Sends a request on a new connection and returns its status and duration in seconds."""
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=support.PATIENCE_S)
        connection.request(method, "/api/v1" + path, body=body, headers={"Authorization": "Bearer " + self.token})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status, time.monotonic() - began

    def join(self, *args):
        executor = self.start("executor", "--server", f"127.0.0.1:{self.rpc_port}", "--name", "box", "--data-dir",
                              self.folder / "box", "--token-file", self.data / "join", *args)
        self.await_event(lambda kind, data: kind == "executor_changed")
        return executor

    def start_strangers(self, *args):
        stranger = subprocess.Popen([*STRANGER, str(self.port), str(self.rpc_port), *map(str, args)],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(stranger.wait)
        self.addCleanup(stranger.stdout.close)
        self.addCleanup(stranger.stdin.close)
        self.assertEqual(stranger.stdout.readline(), "open\n")
        return stranger

    def check_others_are_unaffected(self, server, *args):
        """Checks that 1,000 requests succeed, the executor keeps its lease, and memory does not grow."""
        self.assertEqual(self.call("POST", "/sweeps", json.dumps(SWEEP))[0], 201)
        for _ in range(20):  # the first requests allocate memory that does not count
            self.call("POST", "/sweeps/s1/trials:ask")
        self.join()
        before = resident_mb(server.popen.pid)
        stranger = self.start_strangers(*args)
        answers = [self.call("POST", "/sweeps/s1/trials:ask") for _ in range(ASKS)]
        grown = resident_mb(server.popen.pid) - before
        seconds = sorted(seconds for _, seconds in answers)
        print(f"asked with {' '.join(map(str, args)) or 'strangers'}: median {seconds[ASKS // 2] * 1000:.1f} ms, "
              f"p99 {seconds[ASKS * 99 // 100] * 1000:.1f} ms, worst {seconds[-1] * 1000:.1f} ms; "
              f"the server grew by {grown:.0f} MB", file=sys.stderr)
        self.assertEqual({status for status, _ in answers}, {200})
        self.assertLess(grown, GROWTH_MB)
        self.assertIsNone(stranger.poll())
        self.assertEqual(self.get("/executors")["executors"][0]["state"], "online")
        self.assertEqual(self.rows("SELECT count(*) FROM events WHERE kind = 'executor_lost'"), [(0,)])

    def test_five_thousand_connections(self):
        certificate = self.folder / "certificate.pem"
        key = self.folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost"],
                       check=True, capture_output=True)
        https_port = support.free_port()
        server = self.serve("--https-host", "127.0.0.1", "--https-port", https_port, "--tls-cert", certificate,
                            "--tls-key", key, "--lease", 5)
        self.check_others_are_unaffected(server, "--https", https_port)

    def test_five_thousand_connections_with_tls_for_executors(self):
        server = self.serve("--rpc-host", "0.0.0.0", "--lease", 5)
        self.check_others_are_unaffected(server, "--rpc-tls")

    def test_a_process_that_may_open_1024_files(self):
        server = self.serve("--lease", 5, descriptors=1024)
        self.check_others_are_unaffected(server)

    def test_unfinished_bodies_without_a_token_use_no_memory(self):
        self.serve()
        bodies = []
        for path in ("/", "/nothing", "/%61pi/v1/sweeps", "/api/v1/sweeps", "//api/v1/sweeps") * 10:
            body = socket.create_connection(("127.0.0.1", self.port))
            body.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab".encode())
            bodies.append(body)
        self.assertEqual(self.call("POST", "/sweeps", json.dumps(SWEEP))[0], 201)
        for body in bodies:
            body.close()


if __name__ == "__main__":
    unittest.main()
