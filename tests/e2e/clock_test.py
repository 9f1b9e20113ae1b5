"""A server starts with a wrong clock, and later with the right one."""

import json
import time
import unittest

from support import BUILD, EndToEnd, free_port, sweep

YEARS_30_S = 30 * 365 * 24 * 3600


class WrongClock(EndToEnd):
    def serve(self, off_s=0):
        shim = BUILD / "tests/e2e/libclock_off.so"
        server = self.start(f"LD_PRELOAD={shim}", f"CLOCK_OFF_SECONDS={off_s}", self.program, "serve", "--data-dir",
                            self.data, "--port", 0, "--rpc-port", free_port(), program="env")
        server.await_stderr("executors ")
        return server

    def ask(self, **body):
        status, answer = self.request("/api/v1/sweeps/s1/trials:ask", "POST", json.dumps(body).encode())
        self.assertEqual(status, 200, answer)
        return answer

    def end(self, server):
        server.interrupt()
        self.assertEqual(server.wait(), 0)

    def year_of(self, moment):
        return int(moment[:4])

    def test_a_clock_30_years_ahead_ends_no_lease_and_is_corrected_at_the_next_start(self):
        spec = sweep(stop={"max_trials": 3, "max_time": "1h"})
        for key in ("command", "scheduler", "checkpoint", "resources"):
            del spec[key]
        server = self.serve()
        status, answer = self.request("/api/v1/sweeps", "POST", json.dumps(spec).encode())
        self.assertEqual(status, 201, answer)
        asked = self.ask(lease="10m")
        self.end(server)

        this_year = time.gmtime().tm_year
        server = self.serve(YEARS_30_S)
        server.await_stderr(r"\bclock\b.*\bdays after\b")
        status, answer = self.request(f"/api/v1/sweeps/s1/trials/{asked['trial']}:tell", "POST", json.dumps(
            {"epoch": asked["epoch"], "step": 1, "metrics": {"score": 0.5}}).encode())
        self.assertEqual(status, 200, answer)  # its lease has not ended
        self.assertEqual(self.get("/sweeps/s1")["state"], "running")  # its time budget has not ended
        history = self.get("/sweeps/s1/trials/0")["history"]
        self.assertGreater(self.year_of(history[0]["time"]), this_year + 28)
        self.end(server)

        server = self.serve()
        server.await_stderr(r"\bclock\b.*\bdays before\b")
        self.ask()
        created = [self.get(f"/sweeps/s1/trials/{number}")["created"] for number in (0, 1)]
        self.assertEqual({self.year_of(moment) for moment in created} - {this_year, this_year + 1}, set())
        _, event = self.await_event(lambda kind, data: kind == "trial_created" and data["trial"] == 1)
        self.assertIn(self.year_of(event["time"]), (this_year, this_year + 1))
        times = [moment for [moment] in self.rows("SELECT time FROM events ORDER BY seq")]
        self.assertEqual(times, sorted(times))
        self.assertLess(times[-1] - times[0], 10**6 * 600)
        code, out, err = self.attune("db", "check", "--decisions", "--data-dir", self.data)
        self.assertEqual(code, 0, out + err)


if __name__ == "__main__":
    unittest.main()
