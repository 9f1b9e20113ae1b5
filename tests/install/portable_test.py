"""The archive and the wheel for other distributions run without libraries of this machine."""

import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["ATTUNE_BUILD_DIR"])
CMAKE = os.environ.get("ATTUNE_CMAKE", "cmake")
PATIENCE_S = 60

SWEEP = """
command: [sh, -c, "{script}"]
metric: {{name: loss, mode: min}}
parameters: {{x: {{min: 0.0, max: 1.0}}}}
reports: {{pattern: 'epoch (?P<step>\\d+) loss=(?P<loss>\\S+)'}}
stop: {{max_trials: 1}}
"""
TUNE = """
from attune.client import LocalServer

def train(config):
    return config["x"] ** 2

if __name__ == "__main__":
    with LocalServer("data", options=["--port", "0", "--rpc-port", "0"]) as server:
        print(server.create({"name": "wheel", "metric": {"name": "loss", "mode": "min"},
                             "parameters": {"x": {"value": 0.5}}, "searcher": {"name": "grid"},
                             "resources": {"workers": 2}, "stop": {"max_trials": 1}}, train=train).wait()["best"]["value"])
"""


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=PATIENCE_S,
                          **options)


class Portable(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        for command in (
                [CMAKE, "--install", BUILD, "--component", "attune", "--strip", "--prefix", cls.folder / "prefix"],
                [sys.executable, "-B", ROOT / "packaging/portable.py", cls.folder / "prefix", cls.folder]):
            made = run(*command)
            assert made.returncode == 0, made.stderr
        packed, = cls.folder.glob("*.tar.gz")
        with tarfile.open(packed) as archive:
            archive.extractall(cls.folder)
        cls.attune = cls.folder / packed.name[:-len(".tar.gz")] / "bin/attune"
        cls.wheel, = cls.folder.glob("*manylinux*.whl")

    def sweep(self, script):
        """Returns the command that runs a sweep of one trial, in a temporary folder."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place = pathlib.Path(folder.name)
        (self.place / "sweep.yaml").write_text(SWEEP.format(script=script))
        return [self.attune, "run", self.place / "sweep.yaml", "--data-dir", self.place / "data", "--port", "0",
                "--quiet"]

    def test_loads_no_library_of_the_machine(self):
        lib = self.attune.parents[1] / "lib/attune"
        for file in "attune", "libcurl.so.4":
            loaded = run(lib / "attune-loader", "--library-path", lib, "--list", lib / file).stdout
            paths = re.findall(r"=> (/\S+)", loaded)
            self.assertIn(str(lib / "libc.so.6"), paths)
            self.assertEqual([path for path in paths if not path.startswith(f"{lib}/")], [])
        self.assertGreater(len(list((lib / "licences").iterdir())), 10)

    def test_does_not_load_libcurl_at_its_start(self):
        needed = run("readelf", "-d", self.attune.parents[1] / "lib/attune/attune").stdout
        self.assertIn("libc.so.6", needed)
        self.assertNotIn("libcurl", needed)  # it takes 15 ms to load and is only needed for downloads

    def test_contains_the_files_below_share(self):
        installed, packed = self.folder / "prefix/share", self.attune.parents[1] / "share"
        files = sorted(file.relative_to(installed) for file in installed.rglob("*") if file.is_file())
        self.assertIn(pathlib.Path("doc/attune/LICENSE"), files)
        self.assertEqual(files, sorted(file.relative_to(packed) for file in packed.rglob("*") if file.is_file()))

    def test_runs_through_a_link_and_with_foreign_libraries_in_the_environment(self):
        command = self.sweep("echo epoch 1 loss=2")
        link = self.place / "attune"
        link.symlink_to(self.attune)
        done = run(link, *command[1:], "-o", "json", env={**os.environ, "LD_LIBRARY_PATH": f"/usr/lib/{os.uname().machine}-linux-gnu"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"metrics":{"loss":2.0}', done.stdout)

    def test_its_guard_ends_its_processes(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        server = subprocess.Popen(self.sweep(f"echo $$ > {pipe}; exec sleep 1000"), stderr=subprocess.PIPE)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        worker = os.pidfd_open(int(pipe.read_text()))
        self.addCleanup(os.close, worker)
        server.send_signal(signal.SIGKILL)
        poll = select.poll()
        poll.register(worker, select.POLLIN)
        self.assertTrue(poll.poll(PATIENCE_S * 1000), "a worker outlives its executor")

    def test_the_wheel_needs_no_other_package(self):
        with tempfile.TemporaryDirectory() as name:
            prefix = pathlib.Path(name)
            installed = run(sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--ignore-installed",
                            "--disable-pip-version-check", "--prefix", prefix, self.wheel)
            self.assertEqual(installed.returncode, 0, installed.stderr)
            program, = prefix.rglob("bin/attune")
            package, = prefix.rglob("attune/client.py")
            (prefix / "tune.py").write_text(TUNE)
            done = run(sys.executable, "tune.py", cwd=prefix, env={
                **os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(package.parents[1])})
            self.assertEqual(done.stdout, "0.25\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
