"""A program takes the port of a dead server: no client sends it a token."""

import os
import socket
import subprocess
import sys
import unittest

from support import EndToEnd, ask_server

NOBODY = "65534"
# Listens on a port of 127.0.0.1, prints the port and then the first data of the first client.
STRANGER = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
client, _ = listener.accept()
print(client.recv(1000), flush=True)
"""


def port_of(address):
    return int(address.rsplit(":", 1)[1])


class StaleServer(EndToEnd):
    def serve(self, *flags):
        server = self.start("serve", "--data-dir", self.data, "--port", 0, *(flags or ["--rpc-port", 0]))
        server.await_stderr("^executors")
        return server, ask_server(self.data)

    def take(self, address):
        """Starts a foreign program that listens at the address."""
        listener = socket.create_server(("127.0.0.1", port_of(address)))
        self.addCleanup(listener.close)
        return listener

    def assert_nobody_connected(self, listener):
        listener.setblocking(False)
        with self.assertRaises(BlockingIOError):
            listener.accept()

    def executor(self, address, *flags, name="box"):
        return self.start("executor", "--server", f"127.0.0.1:{port_of(address)}", "--name", name, "--data-dir",
                          self.folder / name, *flags)

    def await_executor(self):
        self.await_event(lambda kind, data: kind == "executor_changed" and data["state"] == "online")

    def test_commands_send_nothing_to_a_foreign_program_at_the_port(self):
        server, where = self.serve()
        server.kill()
        stranger = self.take(where["http"])
        code, _, err = self.attune("sweep", "list", "--data-dir", self.data)
        self.assertEqual(code, 1)
        self.assertIn("attune serve", err)
        self.assert_nobody_connected(stranger)

    def test_an_executor_sends_nothing_to_a_foreign_program_at_the_port(self):
        server, where = self.serve()
        executor = self.executor(where["rpc"], "--token-file", self.data / "join", "--give-up", 3)
        self.await_executor()
        server.kill()
        stranger = self.take(where["rpc"])
        self.assertEqual(executor.wait(), 1, executor.stderr)
        self.assert_nobody_connected(stranger)

    def test_an_executor_follows_the_server_to_another_port(self):
        server, where = self.serve()
        executor = self.executor(where["rpc"], "--token-file", self.data / "join")
        self.await_executor()
        server.kill()
        stranger = self.take(where["rpc"])
        self.serve()
        executor.await_stderr(r"\bconnected to\b")
        self.assert_nobody_connected(stranger)

    def test_long_paths(self):
        self.data = self.folder / ("a" * 120) / "data"
        _, where = self.serve()
        self.executor(where["rpc"], "--token-file", self.data / "join")
        self.await_executor()
        code, out, err = self.attune("executor", "list", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.assertIn("box", out)

    def test_a_token_without_a_folder_goes_only_to_programs_of_this_user(self):
        _, where = self.serve()
        self.environment["ATTUNE_TOKEN"] = (self.data / "token").read_text().strip()
        self.executor(where["rpc"])
        del self.environment["ATTUNE_TOKEN"]
        self.await_executor()

    def test_an_executor_waits_for_a_server_that_is_away(self):
        server, where = self.serve()
        self.environment["ATTUNE_TOKEN"] = (self.data / "token").read_text().strip()
        server.kill()
        executor = self.executor(where["rpc"])
        executor.await_stderr(r"\btrying again\b")
        self.serve("--rpc-port", port_of(where["rpc"]))
        self.await_executor()

    @unittest.skipIf(os.geteuid() != 0, "only root can become another user")
    def test_a_program_of_another_user_gets_no_token(self):
        stranger = subprocess.Popen(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                                     sys.executable, "-c", STRANGER], stdout=subprocess.PIPE, text=True, cwd="/")
        self.addCleanup(stranger.stdout.close)
        self.addCleanup(stranger.wait)
        self.addCleanup(stranger.kill)
        self.environment["ATTUNE_TOKEN"] = "a-token-without-a-folder"
        executor = self.executor("127.0.0.1:" + stranger.stdout.readline().strip())
        self.assertEqual(executor.wait(), 4, executor.stderr)
        self.assertIn("another user", "\n".join(executor.stderr))
        self.assertEqual(stranger.stdout.readline(), "b''\n")


if __name__ == "__main__":
    unittest.main()
