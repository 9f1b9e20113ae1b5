"""From a laptop to two hosts that share nothing: they see neither each other's files nor the laptop's.

The programs are those of examples/laptop_to_cluster. Each gang has a rank on each host.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import hosts  # noqa: E402
from hosts import Hosts  # noqa: E402
from support import BUILD, ROOT  # noqa: E402

LINE = BUILD / "examples/line/line"


class Laptop(Hosts):
    names = "ab"
    cpus = 1
    hidden = ("data", "laptop")

    def setUp(self):
        super().setUp()
        self.laptop = self.folder / "laptop"
        shutil.copytree(ROOT / "examples/laptop_to_cluster", self.laptop)
        self.environment.update(SECONDS_PER_STEP="0.2", OMP_NUM_THREADS="1")

    def on_laptop(self, *words):
        """Runs a command on the laptop, which must succeed, and returns its output."""
        code, out, err = self.attune(*words, "--server", f"http://127.0.0.1:{self.ports[0]}", "--token-file",
                                     self.data / "token")
        self.assertEqual(code, 0, err)
        return out.strip()

    def await_state(self, sweep, state):
        self.await_event(lambda kind, data: kind == "sweep_changed" and data["sweep"] == sweep
                         and data["state"] == state)

    def kill_executor(self, name):
        """Kills an executor, its ranks and the host's other processes at once, as a power cut does."""
        for process, _ in self.processes_on(name):
            with contextlib.suppress(ProcessLookupError):  # others end when the executor ends
                os.kill(process, signal.SIGKILL)
        self.executors[name].popen.wait()

    def train(self, file):
        """Creates a sweep, kills a host and the server while it trains, and returns its id after its end."""
        sweep = self.on_laptop("sweep", "create", self.laptop / file)
        _, report = self.await_event(lambda kind, data: kind == "trial_reported" and data["sweep"] == sweep)
        ranks = self.get(f"/sweeps/{sweep}/trials/{report['trial']}")["attempts"][-1]["ranks"]
        self.assertEqual({rank["executor"] for rank in ranks}, {"a", "b"})
        self.kill_executor("b")
        self.start_host("b")
        self.await_event(lambda kind, data: kind == "trial_reported" and data["sweep"] == sweep
                         and data["seq"] > report["seq"])
        self.server.popen.kill()
        self.server.popen.wait()
        self.serve()
        self.await_state(sweep, "completed")
        return sweep

    def check_results(self, sweep, file):
        """Fetches the best checkpoint and the code of its trial to the laptop."""
        best = self.get(f"/sweeps/{sweep}")["best"]
        self.on_laptop("checkpoint", "get", sweep, "--best", "--out", self.laptop / "model")
        manifest = json.loads((self.laptop / "model/manifest.json").read_text())
        self.assertEqual(manifest["step"], best["step"])
        self.on_laptop("trial", "checkout", f"{sweep}/{best['trial']}", self.laptop / "again")
        self.assertEqual((self.laptop / "again" / file).read_bytes(), (self.laptop / file).read_bytes())
        trial = self.get(f"/sweeps/{sweep}/trials/{best['trial']}")
        self.assertEqual(json.loads((self.laptop / "again/attune-trial/config.json").read_text()), trial["config"])

    def test_a_python_program(self):
        self.begin()
        self.check_results(self.train("sweep.yaml"), "train.py")

    def test_a_compiled_program(self):
        if not LINE.exists():
            self.skipTest("the example line is not built")
        shutil.copy(LINE, self.laptop)
        self.begin()
        self.check_results(self.train("sweep-cpp.yaml"), "line")


if __name__ == "__main__":
    hosts.main()
