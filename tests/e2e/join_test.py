"""An executor that joins a server by TLS, with nothing but the line that the server prints."""

import contextlib
import shlex
import socket
import ssl
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
        """Returns when somebody has shaken hands there, and left at once."""
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
        return line[line.index("--join") + 1]

    def test_one_copied_line_brings_a_host_that_runs_gangs(self):
        server, line = self.serve()
        self.join(line)
        file = self.write(sweep(stop={"max_trials": 2}))
        code, _, err = self.attune("sweep", "create", file, "--watch", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        trials = self.get("/sweeps/s1/trials")["trials"]
        self.assertEqual(len(trials), 2)
        self.assertNotIn("failed", [t["state"] for t in trials])
        self.assertFalse([said for said in server.stderr if ".cc:" in said], "a library prints on its own")

    def test_a_server_that_begins_again_is_the_same(self):
        server, line = self.serve()
        port = line[line.index("--server") + 1].rsplit(":", 1)[1]
        executor = self.join(line)
        self.await_event(lambda kind, _: kind == "executor_changed")
        server.kill()
        executor.await_stderr("no connection to the server")
        _, again = self.serve("--rpc-port", port)
        self.assertEqual(self.word(again), self.word(line))
        executor.await_stderr("connected to the server")

    def test_another_certificate_later_is_a_server_that_is_away(self):
        server, line = self.serve("--lease", 1)
        port = line[line.index("--server") + 1].rsplit(":", 1)[1]
        executor = self.join(line)
        self.await_event(lambda kind, _: kind == "executor_changed")
        server.kill()
        server, _ = self.serve("--lease", 1, "--rpc-port", port)
        executor.await_stderr("connected to the server")  # it has been welcomed
        server.kill()
        executor.await_stderr("nothing heard from the server")
        other = self.start("serve", "--data-dir", self.folder / "other", "--port", 0, "--rpc-port", 0,
                           "--rpc-host", "0.0.0.0")
        other.await_stderr("^executors")
        other.kill()
        self.meet_a_stranger(int(port), self.folder / "other/tls.pem")
        self.serve("--rpc-port", port)
        executor.await_stderr("connected to the server", times=2)

    def test_a_proxy_of_the_environment_is_not_asked(self):
        _, line = self.serve()
        self.environment["https_proxy"] = self.environment["http_proxy"] = "http://127.0.0.1:1"
        self.join(line)
        self.await_event(lambda kind, _: kind == "executor_changed")

    def test_another_certificate_is_refused_before_the_token_is_told(self):
        _, line = self.serve()
        word = self.word(line)
        other = "sha256:" + "0" * 64 + ":" + word.rsplit(":", 1)[1]
        line[line.index("--join") + 1] = other
        executor = self.join(line)
        self.assertEqual(executor.wait(), 4)
        err = "\n".join(executor.stderr)
        self.assertIn("has the fingerprint " + word.split(":")[1] + " and not 000", err)
        self.assertIn("give --join what `attune serve` prints", err)
        self.assertEqual(self.get("/executors")["executors"], [])

    def test_what_was_half_copied_or_would_cross_the_network_in_the_clear(self):
        _, line = self.serve()
        word = self.word(line)
        at = line.index("--join") + 1
        for given, told in ((word[:40], "not the whole word"),
                            (word.rsplit(":", 1)[1], "in the clear")):
            line[at] = given
            line[line.index("--server") + 1] = "192.0.2.1:7071"
            executor = self.join(line)
            self.assertEqual(executor.wait(), 2)
            self.assertIn(told, "\n".join(executor.stderr))

    def test_a_damaged_certificate_is_said_and_kept(self):
        self.data.mkdir()
        (self.data / "tls.pem").write_text("-----BEGIN CERTIFICATE-----\nhello\n")
        server = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-host", "0.0.0.0")
        self.assertNotEqual(server.wait(), 0)
        self.assertRegex("\n".join(server.stderr), r"tls\.pem .*does not hold a certificate")
        self.assertIn("hello", (self.data / "tls.pem").read_text())


if __name__ == "__main__":
    unittest.main()
