"""Hosts of a fleet on this machine: network namespaces, connected by a switch whose wires can fail.

The hosts and everything that tests start on them run in namespaces of processes, mounts and networks. The namespaces
end with the test's process, even if it is killed. So no test leaves anything to clean up.
"""

import contextlib
import hashlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import support
from support import ATTUNE, EndToEnd, ROOT, free_port, sweep

SERVER = "10.79.0.254"
LEASE_S = float(os.environ.get("ATTUNE_LEASE_S", 2))
WORKER = [sys.executable, "-B", str(ROOT / "tests/e2e/programs/hosts_worker.py")]
SWITCH = [sys.executable, "-B", str(ROOT / "tests/e2e/programs/switch.py")]
INSIDE = "ATTUNE_TEST_INSIDE"
FOLDERS = "attune-hosts-"
# The first process of its namespace. It adopts orphaned processes and waits for all of them.
FIRST = """
folder=$0 group=$1
shift
[ -z "$group" ] || echo 0 >"$group/cgroup.procs"
mount -t tmpfs tmpfs "$folder" && "$@"
code=$?
umount -l "$folder"
rmdir "$folder"
[ -z "$group" ] || { echo 0 >"$group/../cgroup.procs"; find "$group" -depth -type d -exec rmdir {} + 2>/dev/null; }
exit $code
"""
HIDING = 'for each in $0; do mount -t tmpfs tmpfs "$each" || exit; done; exec "$@"'
NAMESPACES = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]


def missing():
    """Returns why this machine cannot create hosts; empty if it can."""
    lacking = [tool for tool in ("ip", "unshare", "nsenter", "mount") if not shutil.which(tool)]
    if lacking:
        return f"{', '.join(lacking)} missing: apt-get install iproute2 util-linux"
    if subprocess.run([*NAMESPACES, "true"], capture_output=True).returncode != 0:
        return "namespaces cannot be made here"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "there is no /dev/net/tun to make wires with"
    return ""


def own_cgroup():
    """Returns the folder of this process's cgroup (version 2); None if it cannot create groups below it."""
    with open("/proc/self/cgroup") as groups, open("/proc/mounts") as mounts:
        path = next((line.rstrip("\n")[4:] for line in groups if line.startswith("0::/")), None)
        root = next((words[1] for words in map(str.split, mounts) if words[2] == "cgroup2"), None)
    folder = path is not None and root and pathlib.Path(root, path)
    return folder if folder and os.access(folder / "cgroup.procs", os.W_OK) else None


def remove_leftovers(folder):
    """Removes the empty folders of tests that were killed."""
    for left in folder.glob(FOLDERS + "*"):
        if not pathlib.Path("/proc", left.name[len(FOLDERS):]).exists():
            for each in sorted(filter(pathlib.Path.is_dir, [left, *left.rglob("*")]), reverse=True):
                with contextlib.suppress(OSError):
                    each.rmdir()


def main():
    """Runs unittest.main() in new namespaces."""
    if os.environ.get(INSIDE):
        return unittest.main()
    if why := missing():
        print("SKIPPED:", why)  # CTest looks for this word
        return None
    folders = [pathlib.Path(tempfile.gettempdir()), own_cgroup()]
    for number, parent in enumerate(folders):
        if parent:
            remove_leftovers(parent)
            folders[number] = parent / f"{FOLDERS}{os.getpid()}"
            folders[number].mkdir()
    folder, group = folders
    os.environ.update({INSIDE: "1", "TMPDIR": str(folder)})
    sys.stdout.flush()
    return os.execvp("unshare", [*NAMESPACES, "sh", "-c", FIRST, str(folder), str(group or ""), sys.executable,
                                 *sys.argv])


class Hosts(EndToEnd):
    """A server, and executors on hosts that share no files and reach each other only through the switch."""

    names = "abc"
    cpus = 3
    steps = 6
    executor_flags = ()
    hidden = ("data",)  # folders that executors do not see, in addition to those of other hosts

    def setUp(self):
        super().setUp()
        self.traces = self.folder / "traces"
        self.traces.mkdir()
        self.environment.update(TRACES=str(self.traces), PYTHONPATH=str(ROOT / "clients/python"))
        addresses = [SERVER, *(f"10.79.0.{number}" for number in range(1, len(self.names) + 1))]
        self.switch = subprocess.Popen([*SWITCH, *addresses], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       text=True)
        self.addCleanup(self._unplug)
        ready = self.switch.stdout.readline()
        self.assertTrue(ready, "no switch")
        self.namespaces = dict(zip(["server", *self.names], json.loads(ready)))
        self.numbers = {name: number for number, name in enumerate(self.namespaces)}
        self.ports = [free_port(), free_port()]
        self.executors = {}

    def _unplug(self):
        for process in self.processes:
            process.kill()
        self.switch.stdin.close()
        self.switch.wait(support.PATIENCE_S)
        self.switch.stdout.close()

    # ---- the network

    def order(self, **words):
        self.switch.stdin.write(json.dumps(words) + "\n")
        self.switch.stdin.flush()
        self.assertEqual(self.switch.stdout.readline(), "\n", "the switch has ended")

    def wire(self, host, **how):
        """Sets the state of a host's wire: plugged, towards={…}, away={…}. Without arguments: no fault."""
        if "away" in how:
            how["from"] = how.pop("away")
        self.order(wire=self.numbers[host], **how)

    def set_apart(self, *pairs):
        self.order(apart=[[self.numbers[one], self.numbers[other]] for one, other in pairs])

    def set_all_apart(self):
        """Separates the executors from each other. The server still reaches all of them."""
        self.set_apart(*itertools.combinations(self.names, 2))

    # ---- processes

    def serve(self, lease_s=LEASE_S):
        self.server = self.start("serve", "--data-dir", self.data, "--port", self.ports[0], "--rpc-host",
                                 "0.0.0.0", "--rpc-port", self.ports[1], "--lease", lease_s)
        self.server.await_stderr(r"^executors ")

    def start_host(self, name):
        for folder in (self.folder / name, self.data):
            folder.mkdir(exist_ok=True)
        word = self.folder / name / "word"
        word.write_text((self.data / "join").read_text())
        hidden = " ".join(str(self.folder / other) for other in [*self.names, *self.hidden]
                          if other != name and (self.folder / other).exists())
        self.environment["HOST"] = name
        self.executors[name] = self.start(
            f"--net={self.namespaces[name]}", "unshare", "-m", "sh", "-c", HIDING, hidden, self.program,
            "executor", "--server", f"{SERVER}:{self.ports[1]}", "--token-file", word, "--name", name, "--cpus",
            self.cpus, "--label", f"host={name}", "--data-dir", self.folder / name, *self.executor_flags,
            program="nsenter")

    def begin(self, lease_s=LEASE_S):
        for name in self.names:
            (self.folder / name).mkdir(exist_ok=True)
        self.serve(lease_s)
        for name in self.names:
            self.start_host(name)
        for name in self.names:
            self.await_event(lambda kind, data: kind == "executor_changed" and data["executor"] == name)

    def create(self, trials=1, workers=2, requires=None, **changes):
        """Creates a sweep with gangs of two. No trial may fail."""
        resources = {"workers": workers, "cpus_per_worker": 1}
        if requires:
            resources["requires"] = {"host": list(requires)}
        spec = {"command": WORKER, "working_directory": str(self.folder),
                "parameters": {"pause": {"value": 0.1}}, "resources": resources,
                "scheduler": {"name": "fifo", "max": self.steps}, "stop": {"max_trials": trials},
                "checkpoint": {"every": 1, "keep_last": 2},
                "failure": {"max_restarts": 0, "backoff": "0s"}, **changes}
        status, answer = self.request("/api/v1/sweeps", "POST", json.dumps(sweep(**spec)).encode(),
                                      {"Content-Type": "application/json"})
        self.assertEqual(status, 201, answer)

    # ---- checks

    def await_end(self):
        _, data = self.await_event(lambda kind, data: kind == "sweep_changed" and
                                   data["state"] not in (None, "running"))
        self.assertEqual(data["state"], "completed", data)

    def ranks(self, trial=0, attempt=1):
        """Returns {rank: (host, process)} of the ranks that have started."""
        found = {}
        for path in self.traces.glob(f"{trial}.{attempt}.*"):
            with contextlib.suppress(ValueError):  # the file is not complete yet
                said = json.loads(path.read_text())
                found[int(path.name.split(".")[2])] = (said["host"], said["pid"])
        return found

    def check(self, trials):
        """Checks that every trial has completed, never ran twice at once, and left its checkpoints."""
        twice = self.traces / "twice"
        self.assertFalse(twice.exists(), twice.exists() and twice.read_text())
        listed = self.check_histories_are_whole()
        self.assertEqual(len(listed), trials)
        for trial in listed:
            detail = self.get(f"/sweeps/s1/trials/{trial['number']}")
            self.assertEqual((detail["state"], detail["step"]), ("completed", self.steps), detail)
            self.assertEqual([report["metrics"]["score"] for report in detail["history"]],
                             [sum(range(step + 1)) for step in range(1, self.steps + 1)])
            self.check_checkpoints(detail)

    def check_checkpoints(self, detail):
        kept = [each for each in detail["checkpoints"] if not each["dropped"]]
        self.assertIn(self.steps, [each["step"] for each in kept], detail)
        for checkpoint in kept:
            folder = pathlib.Path(checkpoint["path"])
            manifest = (folder / "manifest.json").read_bytes()
            self.assertEqual("sha256:" + hashlib.sha256(manifest).hexdigest(), checkpoint["digest"])
            for name, listed in json.loads(manifest)["files"].items():
                self.assertEqual(hashlib.sha256((folder / name).read_bytes()).hexdigest(), listed["sha256"])

    def processes_on(self, host):
        """Returns all processes in the host's network namespace."""
        namespace = os.stat(self.namespaces[host]).st_ino
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.stat(folder / "ns/net").st_ino == namespace:
                    found.append((int(folder.name), (folder / "cmdline").read_bytes()))
        return found

    def check_no_process_is_left(self):
        """Checks that no script is left while executors run, and no process at all after their end."""
        script = WORKER[-1].encode()
        self.until(lambda: not any(script in line.split(b"\0") for host in self.names
                                   for _, line in self.processes_on(host)), "ranks are left")
        for executor in self.executors.values():
            executor.popen.send_signal(signal.SIGTERM)
        for name, executor in self.executors.items():
            self.assertEqual(executor.wait(), 0, executor.stderr)
            self.until(lambda: not self.processes_on(name), f"processes are left on {name}")

    def check_decisions(self):
        self.server.interrupt()
        self.server.wait()
        code, out, errors = self.attune("db", "check", "--decisions", "--data-dir", self.data)
        self.assertEqual(code, 0, out + errors)

    def scene(self):
        """Describes the processes on each host, for failure messages."""
        lines = []
        with contextlib.suppress(OSError, AssertionError):
            for trial in self.get("/sweeps/s1/trials")["trials"]:
                if trial["state"] != "completed":
                    detail = self.get(f"/sweeps/s1/trials/{trial['number']}")
                    lines.append(f"{trial['number']} {trial['state']} {trial['step']} {trial['waiting']} "
                                 f"{detail['attempts'][-2:]}")
            lines += [str(executor) for executor in self.get("/executors")["executors"]]
        for host in self.names:
            lines += [f"{host}: {process}" for process in self.processes_on(host)]
            lines += [f"{host}: {line}" for line in self.executors[host].stderr[-8:]]
        return "\n".join([*lines, *self.server.stderr[-8:]])
