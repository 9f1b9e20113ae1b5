"""The tour of the Python package, on a server that it starts and by hand.

Skipped where Python has no torch. Fails where it has no pandas: scripts/setup installs both.
"""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import ATTUNE, EndToEnd, PATIENCE_S, ROOT  # noqa: E402
from torch_environment import ENVIRONMENT, main  # noqa: E402

TOUR = str(ROOT / "examples/python_tour/tour.py")

# Replaces tensorboardX, which tests do not require.
WRITER = """\
class SummaryWriter:
    def __init__(self, folder, filename_suffix):
        self._folder = folder

    def add_scalar(self, *_):
        pass

    def add_hparams(self, config, metrics, name):
        print("run", config, metrics)

    def flush(self):
        pass

    def close(self):
        pass
"""


class Tour(EndToEnd):
    def run_tour(self, *words):
        self.write(WRITER, "tensorboardX.py")
        environment = {**self.environment, **ENVIRONMENT, "TMPDIR": str(self.folder),
                       "PATH": f"{os.path.dirname(ATTUNE)}:{os.environ['PATH']}",
                       "PYTHONPATH": f"{self.folder}:{ENVIRONMENT['PYTHONPATH']}"}
        run = subprocess.run([sys.executable, TOUR, *words], env=environment, cwd=self.folder, capture_output=True,
                             text=True, timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def test_tunes_on_its_own_server(self):
        tour_output = self.run_tour()
        self.assertIn("run {'lr': 0.1} {'best/loss': ", tour_output)
        self.assertIn("run {'lr': 0.5} {'best/loss': 0.5}", tour_output)
        self.assertRegex(tour_output, r"\ns1/0/1-2: attempt 1\b.*\bstep 2, ")
        self.assertRegex(tour_output, r"\nstop: .*\bstep 1: loss 0\.2 ")
        self.assertIn("\n[<Sweep s4 asked>, <Sweep s2 asked>, <Sweep s1 tour>]\n422 ['/metric/mode']\n", tour_output)
        [log] = self.folder.glob("*/data/sweeps/s1/trials/1/attempts/1/rank-0.log")
        self.assertRegex(log.read_text(), r"\bstep 1\b.*\bstop\n")

    def test_trains_by_hand(self):
        self.assertIn("at step 1.5  batch_loss=0.01\nstep 2  loss=0.01\n", self.run_tour("--alone"))


if __name__ == "__main__":
    main("pandas")
