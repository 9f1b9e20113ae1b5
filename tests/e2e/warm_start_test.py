"""A sweep starts with the results of an earlier one and keeps them after a restart of the server."""

import json
import unittest

from support import EndToEnd

RATES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.9]
BEST = 0.3


def file(**changes):
    return {"name": "outside", "metric": {"name": "loss", "mode": "min"},
            "parameters": {"lr": {"min": 0.0, "max": 1.0}}, "stop": {"max_trials": 6}, **changes}


class WarmStart(EndToEnd):
    def serve(self):
        server = self.start("serve", "--data-dir", self.data, "--port", 0)
        server.await_stderr(r"http://")
        return server

    def steer(self, *words):
        code, out, err = self.attune(*words, "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        return out + err

    def ask(self, sweep):
        return json.loads(self.steer("ask", sweep, "-o", "json"))

    def begin_with(self, *sweeps, **changes):
        """Creates a sweep with a warm start and returns the exit code, stdout and stderr."""
        path = self.write(file(searcher={"name": "tpe", "seed": 3}, warm_start=list(sweeps),
                               parameters={"lr": {"min": 0.0, "max": 0.6}}, **changes))
        return self.attune("sweep", "create", path, "--data-dir", self.data)

    def earlier(self):
        self.steer("sweep", "create", self.write(file(
            initial_points=[{"lr": rate} for rate in RATES], searcher={"name": "random"})))
        for rate in RATES:
            asked = self.ask("s1")
            self.assertEqual(asked["config"], {"lr": rate})
            told = f"loss={abs(rate - BEST)}"
            self.steer("tell", f"s1/{asked['trial']}", "--epoch", asked["epoch"], "--step", 1,
                       "-m", told)
            self.steer("tell", f"s1/{asked['trial']}", "--epoch", asked["epoch"], "--completed")

    def test_the_used_results_are_reported_and_survive_a_restart(self):
        server = self.serve()
        self.earlier()
        code, out, err = self.begin_with("s1")
        self.assertEqual(code, 0, err)
        [taken] = self.get("/sweeps/s2")["warm_start"]
        self.assertRegex(taken, r"^5 of 6\b.*\bs1; 1\b.*\blr$")
        self.assertIn("warm start: " + taken, err)
        server.kill()
        server = self.serve()
        self.assertEqual(self.get("/sweeps/s2")["warm_start"], [taken])
        self.assertIn(taken, self.steer("sweep", "get", "s2"))
        first = self.ask("s2")
        self.assertEqual(first["config"], {"lr": BEST})
        trial = self.get(f"/sweeps/s2/trials/{first['trial']}")
        self.assertRegex(trial["rationale"]["text"], r"\bs1\b.*\btrial 2\b")
        self.assertLess(self.ask("s2")["config"]["lr"], 0.6)
        server.interrupt()
        server.wait()
        code, out, err = self.attune("db", "check", "--decisions", "--data-dir", self.data)
        self.assertEqual(code, 0, out + err)

    def test_a_sweep_that_cannot_be_used_is_named_with_its_line(self):
        self.serve()
        code, out, err = self.begin_with("s9")
        self.assertEqual(code, 2, out + err)
        self.assertRegex(err, r"sweep\.yaml:\d+:\d+: warm_start: .*\bs9\b")
        self.steer("sweep", "create", self.write(file(searcher={"name": "random"})))
        code, out, err = self.begin_with("s1")
        self.assertEqual(code, 2, out + err)
        self.assertRegex(err, r": warm_start: .*\bs1\b")
        status, answer = self.request(
            "/api/v1/sweeps", "POST",
            json.dumps(file(searcher={"name": "grid"}, warm_start=["s1"])).encode())
        self.assertEqual(status, 422, answer)
        self.assertIn("/warm_start", [error["pointer"] for error in answer["errors"]])


if __name__ == "__main__":
    unittest.main()
