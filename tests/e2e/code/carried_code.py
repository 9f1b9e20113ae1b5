"""A server, executors with separate data folders, and a folder with a program that a sweep carries."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import EndToEnd, free_port, sweep  # noqa: E402

TRAIN = """
import fcntl, json, os, sys
from lib import net
config = json.loads(open(sys.argv[1]).read())
place = {"cwd": os.getcwd(), "file": os.path.realpath(__file__), "files": sorted(os.listdir("."))}
open(os.environ["PLACES"] + f"/{os.environ['ATTUNE_TRIAL']}-{os.environ['RANK']}", "w").write(json.dumps(place))
with open("result.txt", "w") as out:
    out.write("mine")
with open(os.environ["GATES"] + "/step-1", "a") as gate:
    fcntl.flock(gate, fcntl.LOCK_SH)
if os.environ["RANK"] == "0":
    print(f"score={net.score(config['x'])}", flush=True)
"""


class Code(EndToEnd):
    def setUp(self):
        super().setUp()
        self.port = free_port()
        self.code = self.folder / "code"
        self.places = self.folder / "places"
        self.places.mkdir()
        (self.code / "lib").mkdir(parents=True)
        (self.code / "train.py").write_text(TRAIN)
        (self.code / "lib/net.py").write_text("def score(x):\n    return x\n")
        (self.code / "lib/__init__.py").write_text("")

    def serve(self):
        self.server = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", self.port, "--lease", 2)
        self.server.await_stderr("executors ")

    def executor(self, name):
        """Starts an executor and returns it."""
        process = self.start("executor", "--server", f"127.0.0.1:{self.port}", "--name", name, "--cpus", 2,
                             "--data-dir", self.home(name), "--token-file", self.data / "join", "--interface", "lo")
        self.await_event(lambda kind, data: kind == "executor_changed" and data["executor"] == name
                         and data["state"] == "online")
        return process

    def home(self, name):
        return self.folder / "hosts" / name

    def spec(self, **changes):
        by_lines = {} if "env" in changes else {"reports": {"pattern": r"score=(?P<score>\S+)"}}
        return sweep(**{"command": [sys.executable, "-B", "train.py", "${config}"], "code": ".",
                        "env": {"PLACES": str(self.places)}, **by_lines, "scheduler": {"name": "fifo"},
                        "stop": {"max_trials": 1}, "failure": {"max_restarts": 0, "backoff": "0s"},
                        "checkpoint": {"every": 0}, **changes})

    def create(self, **changes):
        """Creates a sweep and returns its id."""
        (self.code / "sweep.yaml").write_text(json.dumps(self.spec(**changes)))
        code, out, err = self.attune("sweep", "create", self.code / "sweep.yaml", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        return out.strip()

    def completed(self, id="s1"):
        self.await_event(lambda kind, data: kind == "sweep_changed" and data["sweep"] == id
                         and data["state"] == "completed")

    def place(self, trial=0, rank=0):
        return json.loads((self.places / f"{trial}-{rank}").read_text())

    def copies(self, name):
        """Returns the folders with snapshots on a host."""
        return [path for path in (self.home(name) / f"executors/{name}/code").glob("*") if path.name[0] != "."]

    def stored_files(self):
        return sorted(path.name for path in (self.data / "code/files").glob("*"))
