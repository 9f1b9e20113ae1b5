"""A deleted sweep is erased from the database, and an update rebuilds its tables, even if the server is killed."""

import contextlib
import json
import sqlite3
import unittest

from support import EndToEnd, sweep

REPORTS = 30_000


class Erase(EndToEnd):
    def serve(self):
        server = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", 0)
        server.await_stderr("^executors")
        return server

    def create(self):
        spec = sweep(scheduler={"name": "fifo", "max": 2 * REPORTS})
        for key in ("command", "resources", "checkpoint"):
            del spec[key]
        status, created = self.request("/api/v1/sweeps?directory=/tmp", "POST", json.dumps(spec).encode())
        self.assertEqual(status, 201, created)
        return created["id"]

    def ask(self, sweep_id):
        status, offer = self.request(f"/api/v1/sweeps/{sweep_id}/trials:ask", "POST", b"{}")
        self.assertEqual(status, 200, offer)
        return offer

    def add_reports(self):
        """Adds reports of s1 and of s2, in turns, to the log of a stopped server. The tables follow the log."""
        with contextlib.closing(sqlite3.connect(self.data / "attune.db")) as database:
            seq, last = database.execute("SELECT max(seq), max(time) FROM events").fetchone()
            database.executemany(
                "INSERT INTO events (seq, sweep, trial, time, kind, version, payload)"
                " VALUES (?, ?, 0, ?, 'trial_reported', 1, ?)",
                [(seq + step, 2 if step % 1000 == 0 else 1, last + step, f'[1,{step},{step}.5,{{"score":0.5}}]')
                 for step in range(1, REPORTS)])
            database.execute("UPDATE written_by SET tables = 1")
            database.commit()

    def test_only_the_deletion_remains_although_the_server_is_killed(self):
        server = self.serve()
        offers = [self.ask(self.create()) for _ in range(2)]
        server.interrupt()
        self.assertEqual(server.wait(), 0)
        self.add_reports()

        server = self.serve()
        self.until(lambda: self.rows("SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM building)"))
        self.assertEqual(self.get("/sweeps/s1/trials/0")["step"], REPORTS - 1)
        status, answer = self.request("/api/v1/sweeps/s1/trials/0:tell", "POST",
                                      json.dumps({"epoch": offers[0]["epoch"], "state": "completed"}).encode())
        self.assertEqual(status, 204, answer)
        self.assertEqual(self.request("/api/v1/sweeps/s1:kill", "POST")[0], 202)
        self.assertEqual(self.request("/api/v1/sweeps/s1", "DELETE")[0], 202)
        self.assertEqual(self.request("/api/v1/sweeps/s1")[0], 404)
        self.until(lambda: self.rows("SELECT 1 FROM erased"))
        server.kill()

        server = self.serve()
        self.assertEqual(self.request("/api/v1/sweeps/s1/trials/0")[0], 404)
        self.until(lambda: self.rows("SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM erasures)"))
        self.assertEqual(self.rows("SELECT kind FROM events WHERE sweep = 1"), [("sweep_deleted",)])
        self.assertEqual(len(self.get("/sweeps/s2/trials/0")["history"]), REPORTS // 1000 - 1)
        self.assertEqual(self.create(), "s3")
        server.interrupt()
        self.assertEqual(server.wait(), 0)

        size = (self.data / "attune.db").stat().st_size
        code, _, err = self.attune("db", "vacuum", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.assertLess((self.data / "attune.db").stat().st_size, size / 4)
        code, out, err = self.attune("db", "check", "--data-dir", self.data)
        self.assertEqual(code, 0, out + err)

    def test_a_scheduled_deletion_and_its_undoing_survive_a_killed_server(self):
        def restart(server):
            server.kill()
            return self.serve()

        server = self.serve()
        sweep_id = self.create()
        path = f"/api/v1/sweeps/{sweep_id}"
        self.assertEqual(self.request(path + ":kill", "POST")[0], 202)
        status, answer = self.request(path + "?delay=600", "DELETE")
        self.assertEqual((status, answer["state"]), (202, "scheduled"), answer)
        server = restart(server)
        self.assertEqual(self.get("/sweeps/s1")["deletion"]["actor"], "admin")
        self.assertEqual(self.request(path + ":undelete", "POST")[0], 202)
        server = restart(server)
        self.assertNotIn("deletion", self.get("/sweeps/s1"))
        self.assertEqual([action["action"] for action in self.get("/sweeps/s1/activity")["actions"]][:2],
                         ["undelete", "delete"])

        self.assertEqual(self.request(path + "?delay=1", "DELETE")[0], 202)
        server = restart(server)
        _, deleted = self.await_event(lambda kind, data: kind == "sweep_deleted")
        self.assertEqual(deleted["actor"], "admin")
        self.assertEqual(self.request(path)[0], 404)
        self.assertEqual(self.request(path + ":undelete", "POST")[0], 404)


if __name__ == "__main__":
    unittest.main()
