"""An executor joins a server over TLS with only the line that the server prints."""

import contextlib
import pathlib
import shlex
import socket
import ssl
import subprocess
import unittest

from support import EndToEnd, PATIENCE_S, sweep


class Join(EndToEnd):
    def serve(self, *more):
        server = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-host", "0.0.0.0",
                            *(more if "--rpc-port" in more else ("--rpc-port", 0, *more)))
        line = server.await_stderr(r"^executors  attune (executor .*)$").group(1)
        return server, shlex.split(line)

    def join(self, line, name="host"):
        return self.start(*line, "--data-dir", self.folder / name, "--name", name, "--cpus", 2)

    @staticmethod
    def meet_a_stranger(port, identity):
        """Returns after a client has made a TLS handshake and closed the connection at once."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(identity)
        context.set_alpn_protocols(["h2"])
        with socket.create_server(("", port)) as listener:
            listener.settimeout(PATIENCE_S)
            while True:
                connected, _ = listener.accept()
                with contextlib.suppress(OSError), context.wrap_socket(connected, server_side=True) as guest:
                    while guest.recv(1024):
                        pass
                    return

    @staticmethod
    def word(line):
        return pathlib.Path(line[line.index("--token-file") + 1]).read_text().strip()

    def with_word(self, line, word):
        """Returns the command line with another join word, in a separate file."""
        changed = list(line)
        changed[line.index("--token-file") + 1] = self.write(word, "word")
        return changed

    def test_the_join_word_may_come_from_standard_input_or_the_environment(self):
        _, line = self.serve()
        word = self.word(line)
        at = line.index("--token-file")
        sources = {"stdin": (line[:at] + ["--token-file", "-"], word + "\n", self.environment),
                   "environment": (line[:at], "", dict(self.environment, ATTUNE_TOKEN=word))}
        for name, (arguments, stdin_text, environment) in sources.items():
            executor = subprocess.Popen([self.program, *arguments, "--data-dir", str(self.folder / name), "--name", name],
                                        stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
            self.addCleanup(executor.wait)
            self.addCleanup(executor.kill)
            executor.stdin.write(stdin_text)
            executor.stdin.close()
            self.await_event(lambda kind, data: kind == "executor_changed" and data["executor"] == name)
            shown = pathlib.Path(f"/proc/{executor.pid}/cmdline").read_text()
            self.assertNotIn(word.rsplit(":", 1)[1], shown)

    def test_a_join_token_only_joins_and_can_be_rotated(self):
        server, line = self.serve()
        executor = self.join(line)
        self.await_event(lambda kind, _: kind == "executor_changed")
        secret = self.word(line).rsplit(":", 1)[1]
        for path, method in (("/sweeps", "GET"), ("/sweeps", "POST"), ("/events", "GET")):
            status, problem = self.request("/api/v1" + path, method, body=b"{}" if method == "POST" else None,
                                           headers={"Authorization": "Bearer " + secret})
            self.assertEqual(status, 403, problem)
        code, _, err = self.attune("token", "rotate", "join", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.assertEqual(executor.wait(), 4)
        self.assertIn("revoked", "\n".join(executor.stderr))
        self.assertNotEqual(self.word(line).rsplit(":", 1)[1], secret)
        self.join(line, "another")
        self.await_event(lambda kind, data: kind == "executor_changed" and data["executor"] == "another")

    def test_one_line_adds_a_host_that_runs_gangs(self):
        server, line = self.serve()
        self.join(line)
        file = self.write(sweep(stop={"max_trials": 2}))
        code, _, err = self.attune("sweep", "create", file, "--watch", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        trials = self.get("/sweeps/s1/trials")["trials"]
        self.assertEqual(len(trials), 2)
        self.assertNotIn("failed", [t["state"] for t in trials])
        self.assertFalse([line for line in server.stderr if ".cc:" in line], "a library has printed lines")

    def test_a_restarted_server_keeps_its_identity(self):
        server, line = self.serve()
        port = line[line.index("--server") + 1].rsplit(":", 1)[1]
        executor = self.join(line)
        self.await_event(lambda kind, _: kind == "executor_changed")
        server.kill()
        executor.await_stderr(r"\bno connection\b")
        _, again = self.serve("--rpc-port", port)
        self.assertEqual(self.word(again), self.word(line))
        executor.await_stderr(r"\bconnected to\b")

    def test_a_different_certificate_later_counts_as_a_server_that_is_down(self):
        server, line = self.serve("--lease", 1)
        port = line[line.index("--server") + 1].rsplit(":", 1)[1]
        executor = self.join(line)
        self.await_event(lambda kind, _: kind == "executor_changed")
        server.kill()
        server, _ = self.serve("--lease", 1, "--rpc-port", port)
        executor.await_stderr(r"\bconnected to\b")  # the server has accepted it
        server.kill()
        executor.await_stderr("nothing heard ")
        other = self.start("serve", "--data-dir", self.folder / "other", "--port", 0, "--rpc-port", 0,
                           "--rpc-host", "0.0.0.0")
        other.await_stderr("^executors")
        other.kill()
        self.meet_a_stranger(int(port), self.folder / "other/tls.pem")
        self.serve("--rpc-port", port)
        executor.await_stderr(r"\bconnected to\b", times=2)

    def test_proxies_from_the_environment_are_ignored(self):
        _, line = self.serve()
        self.environment["https_proxy"] = self.environment["http_proxy"] = "http://127.0.0.1:1"
        self.join(line)
        self.await_event(lambda kind, _: kind == "executor_changed")

    def test_a_different_certificate_is_refused_before_the_token_is_sent(self):
        _, line = self.serve()
        word = self.word(line)
        other = "sha256:" + "0" * 64 + ":" + word.rsplit(":", 1)[1]
        executor = self.join(self.with_word(line, other))
        self.assertEqual(executor.wait(), 4)
        err = "\n".join(executor.stderr)
        self.assertRegex(err, rf"\b{word.split(':')[1]}\b.*\b000")
        self.assertIn("DATA-DIR/join", err)
        self.assertEqual(self.get("/executors")["executors"], [])

    def test_incomplete_words_and_unencrypted_connections_are_refused(self):
        _, line = self.serve()
        word = self.word(line)
        for given, told in ((word[:40], "--token-file: "),
                            (word.rsplit(":", 1)[1], "--rpc-host ADDRESS")):
            line[line.index("--server") + 1] = "192.0.2.1:7071"
            executor = self.join(self.with_word(line, given))
            self.assertEqual(executor.wait(), 2)
            self.assertIn(told, "\n".join(executor.stderr))

    def test_a_damaged_certificate_is_reported_and_kept(self):
        self.data.mkdir()
        (self.data / "tls.pem").write_text("-----BEGIN CERTIFICATE-----\nhello\n")
        server = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-host", "0.0.0.0")
        self.assertNotEqual(server.wait(), 0)
        self.assertRegex("\n".join(server.stderr), r"/tls\.pem\b.*certificate")
        self.assertIn("hello", (self.data / "tls.pem").read_text())


if __name__ == "__main__":
    unittest.main()
