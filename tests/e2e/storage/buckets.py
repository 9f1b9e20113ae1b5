"""A server and executors with separate data folders, and an S3 server on this machine that can fail."""

import contextlib
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import PATIENCE_S, ROOT, WORKER, EndToEnd, free_port, sweep  # noqa: E402

PACKAGES = ROOT / ".deps/python-storage"  # of `scripts/setup tests`
S3_SERVER = ROOT / "tests/unit/object_storage/s3_server.py"
PREFIX = "tune"


def rclone():
    """Returns the path of rclone; None if it is missing."""
    given = os.environ.get("ATTUNE_RCLONE")
    return given or (shutil.which("rclone", path=PACKAGES / "bin") or shutil.which("rclone"))


def main():
    """Runs unittest.main() if rclone and moto are installed."""
    lacking = [name for name, there in (("rclone", rclone()), ("moto", (PACKAGES / "moto").is_dir())) if not there]
    if lacking:
        print(f"SKIPPED: {' and '.join(lacking)} missing; run `scripts/setup tests`")  # CTest looks for this word
        return
    unittest.main()


class S3:
    """moto's S3 server with faults in front of it. s3_server.py describes its commands."""

    def __init__(self):
        self.popen = subprocess.Popen([sys.executable, "-B", str(S3_SERVER), str(PACKAGES)], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.endpoint = "http://127.0.0.1:" + self.popen.stdout.readline().strip()

    def close(self):
        self.popen.kill()
        self.popen.wait()
        self.popen.stdin.close()
        self.popen.stdout.close()

    def __call__(self, *command):
        self.popen.stdin.write(json.dumps(command) + "\n")
        self.popen.stdin.flush()
        answers, _, _ = select.select([self.popen.stdout], [], [], PATIENCE_S)
        assert answers, f"no answer to {command}"
        return json.loads(self.popen.stdout.readline())

    def read(self, bucket, key):
        """Returns the content of an object."""
        signed = {"Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request"}
        request = urllib.request.Request(f"{self.endpoint}/{bucket}/{key}", headers=signed)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.read()


class Buckets(EndToEnd):
    count = 0

    @classmethod
    def setUpClass(cls):
        cls.s3 = S3()
        cls.addClassCleanup(cls.s3.close)

    def setUp(self):
        super().setUp()
        # No credentials but the server's secrets.
        self.environment = {name: value for name, value in self.environment.items()
                            if not name.startswith(("AWS_", "RCLONE_"))}
        self.environment.update(ATTUNE_RCLONE=rclone(), HOME=str(self.folder), PYTHONPATH=str(ROOT / "clients/python"))
        self.port = free_port()
        self.executors = {}
        self.bucket = self.make_bucket()

    def make_bucket(self):
        Buckets.count += 1
        name = f"bucket-{Buckets.count}-x"
        self.s3("bucket", name)
        self.s3("requests")  # forgets those of earlier tests
        return name

    def address(self, bucket=None):
        return f"s3://{bucket or self.bucket}/{PREFIX}?endpoint={self.s3.endpoint}"

    # ---- processes ----------------------------------------------------------------------------

    def set_secret(self, name, value):
        done = subprocess.run([self.program, "secret", "set", name, "--data-dir", self.data], input=value, text=True,
                              env=self.environment, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def set_credentials(self, key="first-key"):
        self.set_secret("AWS_SECRET_ACCESS_KEY", "secret-of-" + key)
        self.set_secret("AWS_ACCESS_KEY_ID", key)

    def serve(self, *flags):
        self.server = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-port", self.port, "--lease", 2,
                                 *flags)
        self.server.await_stderr("executors ")

    def serve_bucket(self, key="first-key"):
        self.set_credentials(key)
        self.serve("--storage-path", self.address())

    def home(self, name):
        return self.folder / "hosts" / name

    def launch_executor(self, name):
        self.executors[name] = self.start("executor", "--server", f"127.0.0.1:{self.port}", "--name", name, "--cpus", 1,
                                          "--data-dir", self.home(name), "--token-file", self.data / "join",
                                          "--interface", "lo")

    def start_executor(self, name):
        self.launch_executor(name)
        self.await_event(lambda kind, data: kind == "executor_changed" and data["executor"] == name
                         and data["state"] == "online")

    @contextlib.contextmanager
    def without_rclone(self):
        """Processes that start inside find no rclone."""
        empty = self.folder / "empty"
        empty.mkdir(exist_ok=True)
        saved = self.environment
        self.environment = {name: value for name, value in saved.items() if name != "ATTUNE_RCLONE"}
        self.environment["PATH"] = str(empty)
        yield
        self.environment = saved

    def lose_host(self, name):
        """Kills an executor and deletes its data folder."""
        self.executors[name].kill()

        def delete():
            shutil.rmtree(self.home(name), ignore_errors=True)  # ranks may write until they are killed
            return not self.home(name).exists()
        self.until(delete)

    # ---- sweeps -------------------------------------------------------------------------------

    def spec(self, **changes):
        return sweep(**{"command": WORKER, "parameters": {"x": {"value": 1.0}}, "working_directory": str(self.folder),
                        "scheduler": {"name": "fifo", "max": 4}, "stop": {"max_trials": 1},
                        "failure": {"max_restarts": 0, "backoff": "0s"},
                        "checkpoint": {"every": 1, "keep_last": 1}, **changes})

    def create(self, **changes):
        self.run_command("sweep", "create", self.write(self.spec(**changes)))

    def post(self, **changes):
        """Creates a sweep and returns the status and the answer."""
        return self.request("/api/v1/sweeps", "POST", json.dumps(self.spec(**changes)).encode(),
                            {"Content-Type": "application/json"})

    def completed(self):
        """Waits for the end of sweep s1."""
        self.await_event(lambda kind, data: kind == "sweep_changed" and data["state"] == "completed")
        self.check_histories_are_whole()

    def storage_problem(self, name):
        return next(each["storage_problem"] for each in self.get("/executors")["executors"] if each["name"] == name)

    def check_secrecy(self):
        """Checks that no output and only one file has the secret keys."""
        shown = [line for process in self.processes for line in process.stderr] + [json.dumps(self.get("/executors"))]
        self.assertNotIn("secret-of-", "\n".join(shown))
        files = [path for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink()]
        self.assertEqual([path.name for path in files if b"secret-of-" in path.read_bytes()], ["secrets.json"])

    # ---- the bucket ---------------------------------------------------------------------------

    def keys(self, part="", bucket=None):
        """Returns the keys below PREFIX, without PREFIX, that begin with `part`."""
        start = f"{PREFIX}/{part}"
        return [key[len(PREFIX) + 1:] for key in self.s3("keys", bucket or self.bucket) if key.startswith(start)]

    def manifests(self, bucket=None):
        """Returns `TRIAL/ATTEMPT-STEP` of each complete checkpoint of the bucket."""
        names = [key.split("/") for key in self.keys("checkpoints/", bucket)]
        return sorted(f"{name[2]}/{name[3].rpartition('-')[0]}" for name in names if name[4:] == ["manifest.json"])

    def read(self, key):
        return self.s3.read(self.bucket, f"{PREFIX}/{key}")

    def await_stored(self, trial, step):
        """Waits until the log says that the bucket has a checkpoint, and returns its row."""
        def stored():
            checkpoints = self.get("/sweeps/s1/checkpoints")["checkpoints"]
            return next((each for each in checkpoints
                         if each["stored"] and (each["trial"], each["step"]) == (trial, step)), None)
        return self.until(stored, f"trial {trial} has no stored checkpoint at step {step}")

    def await_results(self):
        """Waits until the bucket has the results of sweep s1, and returns their folder."""
        def folder():
            names = {key.rpartition("/")[::2] for key in self.keys("results/")}
            return next((path for path, name in names
                         if name == "sweep.json" and (path, "trials.jsonl") in names), None)
        return self.until(folder, "the bucket has no results")
