"""Finds a Python environment with torch: on this machine, or installed by scripts/setup."""

import json
import os
import subprocess
import sys
import unittest

from support import EndToEnd, PATIENCE_S, ROOT, sweep

sys.path.insert(0, str(ROOT / "scripts"))
import markdown_pages as markdown  # noqa: E402
import python_torch  # noqa: E402


def environment_with_torch():
    """Returns the environment variables with which this Python imports torch and the package; None if it cannot."""
    for environment in os.environ, python_torch.environment():
        path = f"{ROOT / 'clients/python'}:{environment.get('PYTHONPATH', '')}"
        environment = {**environment, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": path}
        # This also compiles the largest modules, so that no gang has to wait for it.
        if subprocess.run([sys.executable, "-c", "import torch.distributed, torch._dynamo"], env=environment,
                          capture_output=True).returncode == 0:
            return environment
    return None


ENVIRONMENT = environment_with_torch()
NO_TORCH = f"no torch for {sys.executable}: pip install torch, or run scripts/setup with Python 3.11"
needs_torch = unittest.skipUnless(ENVIRONMENT, NO_TORCH)


def run_block(heading, prelude, folder):
    """Runs the Python code of a section of docs/reference/python.md without a server. `prelude` defines the names that it uses."""
    [block] = markdown.code((ROOT / "docs/reference/python.md").read_text(), "python", heading=heading)
    path = f"{ROOT / 'tests/e2e/programs'}:{ENVIRONMENT['PYTHONPATH']}"
    return subprocess.run([sys.executable, "-c", prelude + block], env={**ENVIRONMENT, "PYTHONPATH": path},
                          cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S)


class Trainers(EndToEnd):
    """Tests of scripts whose training loop belongs to a library."""

    def setUp(self):
        super().setUp()
        self.environment.update(ENVIRONMENT)

    def pause_and_go_on(self, modules, script, *words, metric, rates):
        """Runs two trials and returns the best report.

        The better trial runs first. It pauses at step 1 and resumes when the other one has reached that step.
        """
        run = self.run_sweep(self.write(sweep(
            command=[sys.executable, "-m", "attune.launcher", "--import", modules, script, *words],
            metric={"name": metric, "mode": "min"}, parameters={"lr": {"values": rates}},
            searcher={"name": "grid"}, max_concurrent_trials=1, stop={"max_trials": 2},
            scheduler={"name": "asha", "min": 1, "max": 2, "reduction_factor": 2, "mode": "promote"},
            resources={"workers": 2, "cpus_per_worker": 1})), "-o", "json")
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertEqual(self.rows("SELECT trial, resumed_from FROM attempts ORDER BY decided"),
                         [(0, None), (1, None), (0, 1)])
        return json.loads(run.stdout)["best"]

    def check_logged_twice_an_epoch(self):
        """Checks the logs of 4 batches on each of 2 ranks, also for the attempt that resumed."""
        self.assertEqual(self.rows("SELECT trial, step FROM logged ORDER BY trial, step"),
                         [(0, 0.5), (0, 1), (0, 1.5), (0, 2), (1, 0.5), (1, 1)])


def main(*modules):
    """Runs unittest.main() for a file whose tests need torch and these modules.

    Skips all tests if torch is missing. It is an error if only the modules are missing, because scripts/setup installs
    both.
    """
    if not ENVIRONMENT:
        print("SKIPPED:", NO_TORCH)  # CTest looks for this word
        return
    if modules:
        subprocess.run([sys.executable, "-c", f"import {','.join(modules)}"], env=ENVIRONMENT, check=True)
    unittest.main()
