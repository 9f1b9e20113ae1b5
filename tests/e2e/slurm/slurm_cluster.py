"""A real Slurm of three nodes on this machine (slurm_cluster.sh), and the base class of its tests."""

import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from pilots_case import PilotsCase, WORKER  # noqa: E402, F401
from support import PATIENCE_S, ROOT, free_port  # noqa: E402

CLUSTER = ROOT / "tests/e2e/programs/slurm_cluster.sh"
LOGIN = "10.78.0.254"
CLONE_NEWNET = 0x40000000
NEEDED = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel", "sinfo", "ip", "unshare")


def missing():
    """Returns why this machine cannot run a cluster; empty if it can."""
    if os.geteuid() != 0:
        return "only root can make the cluster's namespaces"
    lacking = [tool for tool in NEEDED if not shutil.which(tool)]
    if lacking:
        return (f"{', '.join(lacking)} missing: apt-get install --no-install-recommends slurmctld slurmd "
                "slurm-client slurm-wlm-basic-plugins munge iproute2")
    if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode != 0:
        return "namespaces cannot be made here"
    return ""


class Cluster:
    def __init__(self, nodes=3):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="attune-slurm-"))
        self.folder.chmod(0o755)
        self.environment = dict(os.environ, SLURM_CONF=str(self.folder / "slurm.conf"))
        self.nodes = nodes
        self.log = open(self.folder / "log", "w")
        self.process = subprocess.Popen(
            ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc",
             CLUSTER, self.folder, str(nodes)], stdout=self.log, stderr=self.log)
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.libc = ctypes.CDLL(None, use_errno=True)

    def enter(self):
        """Moves this thread, and the processes that it starts, to the login node."""
        deadline = time.monotonic() + PATIENCE_S
        pid = self.process.pid
        while True:  # no event tells when a namespace has its bridge or a node its slurmd
            with contextlib.suppress(OSError, IndexError):
                child = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
                with open(f"/proc/{child}/ns/net") as namespace:
                    if self.libc.setns(namespace.fileno(), CLONE_NEWNET) == 0 and self.is_idle():
                        return
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise AssertionError("no cluster:\n" + (self.folder / "log").read_text())
            time.sleep(0.05)

    def is_idle(self):
        return self.run("sinfo", "-h", "-t", "idle", "-p", "main", "-o", "%D") == str(self.nodes)

    def run(self, *words):
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True)
        return done.stdout.strip()

    def kill_controller(self):
        """Kills the controller. Another one starts half a second later."""
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                ours = f"SLURM_CONF={self.environment['SLURM_CONF']}".encode()
                if (folder / "comm").read_text() == "slurmctld\n" and ours in (folder / "environ").read_bytes():
                    os.kill(int(folder.name), signal.SIGKILL)

    def end(self):
        self.libc.setns(self.home, CLONE_NEWNET)
        os.close(self.home)
        self.process.kill()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def setUpModule():
    if why := missing():
        print("SKIPPED:", why)  # CTest looks for this word
        raise unittest.SkipTest(why)
    global cluster
    cluster = Cluster()
    unittest.addModuleCleanup(cluster.end)
    began = time.monotonic()
    cluster.enter()
    print(f"a cluster of {cluster.nodes} nodes after {time.monotonic() - began:.2f} s")


class Pilots(PilotsCase):
    engine = "slurm"
    node_cpus = 16

    def setUp(self):
        super().setUp()
        self.environment["SLURM_CONF"] = str(cluster.folder / "slurm.conf")
        self.addCleanup(self._end_jobs)

    def _end_jobs(self):
        for process in self.processes:  # a running manager would submit new jobs
            process.kill()
        cluster.run("scancel", "-u", "root")
        self.until(lambda: not self.jobs(), "jobs are left")

    def jobs(self, states="PD,CF,R,CG"):
        """Returns {name: (job, state, node)} of the jobs that have not ended."""
        lines = cluster.run("squeue", "-h", "-t", states, "-o", "%i|%j|%T|%N").splitlines()
        jobs = {}
        for line in lines:
            job, name, state, node = line.split("|")
            self.assertNotIn(name, jobs, "one name, two jobs")
            jobs[name] = (job, state, node)
        return jobs

    def all_pilots(self):
        """Returns the state of every pilot by name. Slurm forgets ended jobs after five minutes."""
        fleet = json.loads((self.data / "slurm/fleet.json").read_text())["id"]
        return {name: state for name, (_, state, _) in self.jobs("all").items() if fleet in name}

    def up(self, *more, nodes="0..3", own=True, minutes=10):
        server = ["--rpc-host", LOGIN, "--port", 0, "--rpc-port", free_port()] if own else []
        process = self.start("slurm", "up", "--data-dir", self.data, "--partition", "main", "--nodes", nodes,
                             "--idle", "2s", "--poll", "200ms", "--time", minutes, *server, *more)
        process.await_stderr(r"^pilots ")
        return process

    def serve(self):
        process = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-host", LOGIN,
                             "--rpc-port", free_port(), "--lease", 3)
        process.await_stderr(r"^executors ")
        return process
