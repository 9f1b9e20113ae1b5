"""A worker reports faster than the server can store: nothing is lost, and memory stays bounded."""

import os
import resource
import sys
import unittest

import support
from support import EndToEnd, ROOT, sweep

REPORTS = int(os.environ.get("ATTUNE_REPORTS", 500_000))
RESIDENT_MB_MAX = 400
support.PATIENCE_S = 600


class Flood(EndToEnd):
    def test_reports_wait_in_the_worker_and_not_in_memory(self):
        self.environment["FLOOD_REPORTS"] = str(REPORTS)
        flood = [sys.executable, str(ROOT / "tests/e2e/programs/flood.py")]
        file = self.write(sweep(command=flood, scheduler={"name": "fifo"}, stop={"max_trials": 1},
                                checkpoint={}))
        self.assertEqual(self.attune("run", file, "--data-dir", self.data, "--port", 0)[0], 0)

        self.assertEqual(self.rows("SELECT count(*) FROM events WHERE kind = 'trial_reported'"), [(REPORTS,)])
        resident_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"{REPORTS} reports, at most {resident_mb:.0f} MB resident")
        self.assertLess(resident_mb, RESIDENT_MB_MAX)


if __name__ == "__main__":
    unittest.main()
