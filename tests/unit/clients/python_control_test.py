"""What ranks of the package `attune` for Python say to each other, both ends in this process."""

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

from attune import _control  # noqa: E402


class Control(unittest.TestCase):
    """Rank 0 and another one, and a checkpoint on its way between their hosts."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.here, self.there = pathlib.Path(folder.name, "here"), pathlib.Path(folder.name, "there")
        self.here.mkdir()
        self.there.mkdir()
        self.leader = _control.Leader("gang", 2, "127.0.0.1")
        self.addCleanup(lambda: self.leader.close())

    def share(self, files, folder):
        """What the two ends raise, after which they leave: (rank 0, rank 1)."""
        raised = [None, None]
        leader = self.leader

        def lead():
            try:
                leader.share(self.here, files)
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

    def test_thousands_of_files_arrive_or_are_passed_over(self):
        names = [f"part/{number:05d}-of-a-long-name.bin" for number in range(2500)]
        (self.here / "part").mkdir()
        for name in names:
            (self.here / name).write_text(name)
        files = {name: len(name) for name in names}
        self.assertEqual(self.share(files, self.there), [None, None])
        self.assertEqual((self.there / names[-1]).read_text(), names[-1])

    def test_an_empty_file_arrives_too(self):
        (self.here / "empty").touch()
        (self.here / "one").write_text("1")
        self.assertEqual(self.share({"empty": 0, "one": 1}, self.there), [None, None])
        self.assertEqual((self.there / "empty").read_bytes(), b"")
        self.assertEqual((self.there / "one").read_text(), "1")

    def test_a_file_that_is_gone_is_rank_zeros_own_error(self):
        leader, follower = self.share({"gone": 1}, self.there)
        self.assertIsInstance(leader, FileNotFoundError)
        self.assertIsInstance(follower, _control.LostPeer)

    def test_a_folder_that_cannot_be_written_is_the_others_own_error(self):
        (self.here / "a").write_text("a")
        (self.there / "a").write_text("already")
        leader, follower = self.share({"a": 1}, self.there)
        self.assertIsInstance(follower, FileExistsError)
        self.assertIsInstance(leader, _control.LostPeer)

    def test_a_name_outside_of_the_folder_is_refused(self):
        (self.here / "a").write_text("a")
        self.leader.close()
        for name in ("../here/a", str(self.here / "a")):
            self.leader = _control.Leader("gang", 2, "127.0.0.1")
            leader, follower = self.share({name: 1}, self.there)
            self.assertIn("not inside its checkpoint", str(follower))

    def test_what_is_no_hello_ends_its_own_connection_only(self):
        with socket.create_connection((self.leader.host, self.leader.port)) as stranger:
            stranger.sendall(b"[" * 60000 + b"\n")
            self.assertEqual(self.share({}, None), [None, None])

    def test_rank_zero_is_lost_once_its_host_is_not_found_for_long(self):
        tries = []

        def find_nobody(where):
            tries.append(where)
            raise OSError(errno.EHOSTUNREACH, "no way")

        clock = mock.Mock(monotonic=lambda: 0 if len(tries) < 3 else _control._UNREACHABLE_PATIENCE_S + 1)
        with mock.patch.object(_control.socket, "create_connection", find_nobody), \
                mock.patch.object(_control, "time", clock), \
                self.assertRaisesRegex(_control.LostPeer, "rank 0 is gone .*no way"):
            _control.Follower("host", 1, "gang", 1)
        self.assertEqual(tries, [("host", 1)] * 3)

    def test_who_connects_and_is_silent_for_long_holds_up_nobody_and_is_heard(self):
        leader = _control.Leader("gang", 3, "127.0.0.1")
        self.addCleanup(leader.close)
        where = leader.host, leader.port
        with socket.create_connection(where) as late, socket.create_connection(where):  # and one that stays silent
            leader.serve()
            leader.broadcast({"step": 1})
            second = _control.Follower(*where, "gang", 2)
            self.assertEqual(second.receive(1), {"step": 1})
            late.sendall(b'{"gang": "gang", "rank": 1}\n')
            self.assertEqual(json.loads(late.recv(100)), {"step": 1})
        second.close()

    def test_rank_zero_waits_for_nobody_and_its_words_wait_for_late_ranks(self):
        self.leader.serve()
        for step in range(1, 20_000):
            self.leader.broadcast({"step": step})
        follower = _control.Follower(self.leader.host, self.leader.port, "gang", 1)
        for step in range(1, 20_000):
            self.assertEqual(follower.receive(step), {"step": step})
        for step in range(1, 20_000):  # more than a socket holds, to one that is connected
            self.leader.broadcast({"step": step})
        for step in range(1, 20_000):
            self.assertEqual(follower.receive(step), {"step": step})
        follower.close()

    def test_a_wait_is_told_to_the_executor_and_then_in_the_log(self):
        clock, said = [0.0], []
        with mock.patch.object(_control, "time", mock.Mock(monotonic=lambda: clock[0])), \
                contextlib.redirect_stderr(io.StringIO()) as log:
            wait = _control.SlowWait(lambda ranks: f"waits for {ranks}", said.append)
            for now, timeout, heard, lines in ((0.5, 0.5, 0, 0), (1.5, 3.5, 1, 0), (9, None, 1, 1), (20, None, 1, 1)):
                clock[0] = now
                wait.tick([1, 2])
                self.assertEqual((wait.timeout(), len(said), log.getvalue().count("\n")), (timeout, heard, lines))
        self.assertEqual((said, log.getvalue()), ([[1, 2]], "attune: waits for [1, 2]\n"))


if __name__ == "__main__":
    unittest.main()
