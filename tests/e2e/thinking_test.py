"""A server that is killed while its searcher computes makes the same proposals as without kills.

    KILLS=1000 ATTUNE_SEED=7 python3 tests/e2e/thinking_test.py
"""

import json
import os
import random
import time
import unittest

from support import BUILD, EndToEnd, free_port, sweep

KILLS = int(os.environ.get("KILLS", 100))
TRIALS = 3 * KILLS
THINK_MS = 20
MAX_LIFETIME_S = 0.1  # maximum lifetime of a server, enough for about five proposals


class KilledWhileThinking(EndToEnd):
    program = str(BUILD / "tests/e2e/thinking_attune")

    def serve(self):
        server = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", self.port)
        server.await_stderr(r"http://")
        return server

    def test_every_proposal_is_derived_again(self):
        seed = int(os.environ.get("ATTUNE_SEED") or random.randrange(1 << 32))
        print("ATTUNE_SEED", seed)
        draw = random.Random(seed)
        self.port = free_port()
        server = self.serve()
        self.start("executor", "--server", f"127.0.0.1:{self.port}", "--name", "box", "--cpus", 4,
                   "--data-dir", self.data)
        spec = sweep(searcher={"name": "thinker", "seed": 1, "think_ms": THINK_MS},
                     stop={"max_trials": TRIALS})
        status, answer = self.request("/api/v1/sweeps?directory=/tmp", "POST",
                                      json.dumps(spec).encode())
        self.assertEqual(status, 201, answer)

        for _ in range(KILLS):
            time.sleep(draw.uniform(0, MAX_LIFETIME_S))  # the test needs a random time, not an event
            server.kill()
            server = self.serve()
        self.await_event(lambda kind, data: kind == "sweep_changed" and
                         data["state"] == "completed")
        trials = self.check_histories_are_whole()
        self.assertEqual(len(trials), TRIALS)
        server.interrupt()
        server.wait()
        code, out, errors = self.attune("db", "check", "--decisions", "--data-dir", self.data)
        self.assertEqual(code, 0, out + errors)
        self.assertIn(f"{TRIALS} proposals", out)
        print(out)


if __name__ == "__main__":
    unittest.main()
