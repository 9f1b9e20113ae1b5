"""The dashboard of a real server, in Chromium."""

import os
import shutil
import subprocess
import unittest

from support import EndToEnd, PATIENCE_S, ROOT, ask_server, sweep

CHROMIUM = os.environ.get("ATTUNE_CHROMIUM", "/usr/bin/chromium")
NODE = os.environ.get("ATTUNE_NODE") or shutil.which("node")


@unittest.skipUnless(NODE and os.path.exists(CHROMIUM), "needs Node and Chromium")
class Page(EndToEnd):
    def test_curves_grow_without_a_reload(self):
        gate = self.close_gate(3)
        run = self.run_sweep(self.write(sweep(stop={"max_trials": 1})))
        run.await_stderr(r"http://")
        self.await_report(trial=0, step=2)
        url = ask_server(self.data)["http"]
        token = (self.data / "token").read_text().strip()
        watcher = subprocess.Popen([NODE, ROOT / "tests/e2e/programs/page_watcher.mjs", url, token, "s1", "4"],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(watcher.stdout.close)
        self.addCleanup(watcher.kill)
        self.assertEqual(watcher.stdout.readline(), "2\n")
        last = self.close_gate(4)
        gate.close()
        self.assertEqual(watcher.stdout.readline(), "3\n")
        last.close()
        self.assertEqual(watcher.stdout.readline(), "4\n")
        self.assertEqual(watcher.wait(PATIENCE_S), 0)


if __name__ == "__main__":
    unittest.main()
