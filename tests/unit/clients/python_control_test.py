"""Messages between ranks of the package `attune`. Both ends are in this process."""

import contextlib
import errno
import io
import json
import pathlib
import socket
import sys
import tempfile
import threading
import unittest
from unittest import mock

PACKAGE = pathlib.Path(__file__).resolve().parents[3] / "clients/python"
PATIENCE_S = 30
sys.path.insert(0, str(PACKAGE))

from attune import CheckpointError, _control  # noqa: E402


class Control(unittest.TestCase):
    """Rank 0 and another rank on two hosts, and the checkpoint that rank 0 shares."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source, self.target = pathlib.Path(folder.name, "here"), pathlib.Path(folder.name, "there")
        self.source.mkdir()
        self.target.mkdir()
        self.leader = _control.Leader("gang", 2, "127.0.0.1")
        self.addCleanup(lambda: self.leader.close())

    def share(self, files, folder):
        """Shares files, then closes both ends. Returns the exceptions of (rank 0, rank 1)."""
        raised = [None, None]
        leader = self.leader

        def lead():
            try:
                leader.share(self.source, files)
            except Exception as error:
                raised[0] = error
            if raised[0]:
                leader.close()

        thread = threading.Thread(target=lead)
        thread.start()
        follower = _control.Follower(leader.host, leader.port, "gang", 1)
        try:
            follower.fetch(folder)
        except Exception as error:
            raised[1] = error
        follower.close()
        thread.join(PATIENCE_S)
        return raised

    def test_shares_thousands_of_files(self):
        names = [f"part/{number:05d}-of-a-long-name.bin" for number in range(2500)]
        (self.source / "part").mkdir()
        for name in names:
            (self.source / name).write_text(name)
        files = {name: len(name) for name in names}
        self.assertEqual(self.share(files, self.target), [None, None])
        self.assertEqual((self.target / names[-1]).read_text(), names[-1])

    def test_shares_an_empty_file(self):
        (self.source / "empty").touch()
        (self.source / "one").write_text("1")
        self.assertEqual(self.share({"empty": 0, "one": 1}, self.target), [None, None])
        self.assertEqual((self.target / "empty").read_bytes(), b"")
        self.assertEqual((self.target / "one").read_text(), "1")

    def test_a_missing_file_is_an_error_of_rank_zero(self):
        leader, follower = self.share({"gone": 1}, self.target)
        self.assertIsInstance(leader, FileNotFoundError)
        self.assertIsInstance(follower, _control.LostPeer)

    def test_a_file_that_cannot_be_written_is_an_error_of_the_other_rank(self):
        (self.source / "a").write_text("a")
        (self.target / "a").write_text("already")
        leader, follower = self.share({"a": 1}, self.target)
        self.assertIsInstance(follower, FileExistsError)
        self.assertIsInstance(leader, _control.LostPeer)

    def test_refuses_a_name_outside_of_the_folder(self):
        (self.source / "a").write_text("a")
        self.leader.close()
        for name in ("../here/a", str(self.source / "a")):
            self.leader = _control.Leader("gang", 2, "127.0.0.1")
            leader, follower = self.share({name: 1}, self.target)
            self.assertIsInstance(follower, CheckpointError)
            self.assertIn(repr(name), str(follower))

    def test_a_wrong_first_message_closes_only_its_connection(self):
        with socket.create_connection((self.leader.host, self.leader.port)) as stranger:
            stranger.sendall(b"[" * 60000 + b"\n")
            self.assertEqual(self.share({}, None), [None, None])

    def test_gives_up_if_rank_zero_stays_unreachable(self):
        tries = []

        def find_nobody(where):
            tries.append(where)
            raise OSError(errno.EHOSTUNREACH, "no way")

        clock = mock.Mock(monotonic=lambda: 0 if len(tries) < 3 else _control._UNREACHABLE_PATIENCE_S + 1)
        with mock.patch.object(_control.socket, "create_connection", find_nobody), \
                mock.patch.object(_control, "time", clock), \
                self.assertRaisesRegex(_control.LostPeer, r"\brank 0\b.*no way"):
            _control.Follower("host", 1, "gang", 1)
        self.assertEqual(tries, [("host", 1)] * 3)

    def test_a_silent_connection_delays_no_other_rank(self):
        leader = _control.Leader("gang", 3, "127.0.0.1")
        self.addCleanup(leader.close)
        where = leader.host, leader.port
        with socket.create_connection(where) as late, socket.create_connection(where):
            leader.serve()
            leader.broadcast({"step": 1})
            second = _control.Follower(*where, "gang", 2)
            self.assertEqual(second.receive(1), {"step": 1})
            late.sendall(b'{"gang": "gang", "rank": 1}\n')
            self.assertEqual(json.loads(late.recv(100)), {"step": 1})
        second.close()

    def test_rank_zero_does_not_wait_and_late_ranks_get_all_messages(self):
        self.leader.serve()
        for step in range(1, 20_000):
            self.leader.broadcast({"step": step})
        follower = _control.Follower(self.leader.host, self.leader.port, "gang", 1)
        for step in range(1, 20_000):
            self.assertEqual(follower.receive(step), {"step": step})
        for step in range(1, 20_000):  # exceeds the buffer of the socket
            self.leader.broadcast({"step": step})
        for step in range(1, 20_000):
            self.assertEqual(follower.receive(step), {"step": step})
        follower.close()

    def test_announces_a_wait_to_the_executor_and_then_in_the_log(self):
        clock, ranks_announced = [0.0], []
        with mock.patch.object(_control, "time", mock.Mock(monotonic=lambda: clock[0])), \
                contextlib.redirect_stderr(io.StringIO()) as log:
            wait = _control.SlowWait(lambda ranks: f"waits for {ranks}", ranks_announced.append)
            for now, timeout, heard, lines in ((0.5, 0.5, 0, 0), (1.5, 3.5, 1, 0), (9, None, 1, 1), (20, None, 1, 1)):
                clock[0] = now
                wait.tick([1, 2])
                self.assertEqual((wait.timeout(), len(ranks_announced), log.getvalue().count("\n")), (timeout, heard, lines))
        self.assertEqual((ranks_announced, log.getvalue()), ([[1, 2]], "attune: waits for [1, 2]\n"))


if __name__ == "__main__":
    unittest.main()
