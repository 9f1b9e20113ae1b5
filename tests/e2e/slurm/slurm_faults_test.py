"""One sweep of two-worker trials on pilots of a real Slurm, with one fault after another.

    FAULTS=50 TRIALS=40 ATTUNE_SEED=7 python3 tests/e2e/slurm/slurm_faults_test.py
"""

import collections
import os
import pathlib
import random
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import slurm_cluster  # noqa: E402
from slurm_cluster import LOGIN, Pilots, setUpModule  # noqa: E402, F401
from support import ROOT, free_port  # noqa: E402

FAULTS = int(os.environ.get("FAULTS", 7))
TRIALS = int(os.environ.get("TRIALS", 6))
STEPS = 10
CONCURRENT_GANGS = 6   # gangs of two that fit on three nodes
FAULT_S = 3.5  # approximate duration of a fault and its repair
LEASE_S = 3
PATIENCE_S = 600

# Two ranks report as one. The steps are long enough that trials run during all faults.
SCRIPT = """import time, attune
attune.init()
for step in range(attune.step + 1, 1 << 30):
    time.sleep(attune.config["pause"])
    attune.report({"score": step}, step, checkpoint=lambda folder: (folder / "state").touch())
"""


class Faults(Pilots):
    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("ATTUNE_SEED") or random.randrange(1 << 32))
        print("ATTUNE_SEED", self.seed)
        self.draw = random.Random(self.seed)
        self.ports = [free_port(), free_port()]

    def serve_and_keep(self):
        self.server = self.start("serve", "--data-dir", self.data, "--port", self.ports[0], "--rpc-host", LOGIN,
                                 "--rpc-port", self.ports[1], "--lease", LEASE_S)
        self.server.await_stderr(r"^executors ")

    def keep(self):
        """Starts the manager like a service manager. Retries if Slurm refuses, because its controller may be starting."""
        def comes_up():
            self.repair_nodes()
            try:
                self.manager = self.up("--server", f"http://127.0.0.1:{self.ports[0]}", own=False)
                return True
            except AssertionError:
                return False
        self.until(comes_up, "no manager")

    # ---- faults; each repairs the damage that would not repair itself

    def any_pilot(self):
        """Returns (job, node) of a random running pilot."""
        running = [(job, node) for name, (job, _, node) in self.jobs("R").items() if name.startswith("attune-")]
        return self.draw.choice(running) if running else None

    def a_pilot_is_cancelled(self):
        if pilot := self.any_pilot():
            slurm_cluster.cluster.run("scancel", pilot[0])

    def a_pilot_is_told_that_its_time_is_over(self):
        if pilot := self.any_pilot():
            slurm_cluster.cluster.run("scancel", "--batch", "--signal=TERM", pilot[0])

    def a_pilots_time_runs_out(self):
        if pilot := self.any_pilot():
            slurm_cluster.cluster.run("scontrol", "update", f"job={pilot[0]}", "timelimit=1")

    def a_pilot_is_preempted(self):
        """A job in a partition with higher priority takes the whole node for a moment."""
        if pilot := self.any_pilot():
            slurm_cluster.cluster.run("sbatch", "--partition=urgent", "--exclusive", "--time=1", "--output=/dev/null",
                                   f"--nodelist={pilot[1]}", f"--job-name=urgent-{time.monotonic_ns()}",
                                   "--wrap=sleep 1")

    def all_processes_of_a_pilot_are_killed(self):
        if pilot := self.any_pilot():
            slurm_cluster.cluster.run("scancel", "--full", "--signal=KILL", pilot[0])

    def a_node_goes_down_and_comes_back(self):
        node = f"node=n{self.draw.randint(1, 3)}"
        slurm_cluster.cluster.run("scontrol", "update", node, "state=down", "reason=test")
        time.sleep(self.draw.uniform(0, 2))
        self.repair_nodes()

    def repair_nodes(self):
        """Repairs nodes. A killed controller forgets its last orders, so a node may be down again."""
        for node in slurm_cluster.cluster.run("sinfo", "-h", "-N", "-t", "down", "-p", "main", "-o", "%N").split():
            slurm_cluster.cluster.run("scontrol", "update", f"node={node}", "state=resume")

    def a_nodes_link_is_cut_and_heals(self):
        link = f"node{self.draw.randint(1, 3)}"
        slurm_cluster.cluster.run("ip", "link", "set", link, "down")
        time.sleep(self.draw.uniform(0, 3 * LEASE_S))
        slurm_cluster.cluster.run("ip", "link", "set", link, "up")

    def slurms_controller_is_killed(self):
        slurm_cluster.cluster.kill_controller()

    def the_server_is_killed(self):
        self.server.kill()
        time.sleep(self.draw.uniform(0, 2 * LEASE_S))
        self.serve_and_keep()

    def the_manager_is_killed(self):
        self.manager.kill()
        time.sleep(self.draw.uniform(0, 2))
        self.keep()

    # ---- the test

    def test_every_trial_ends_without_a_restart(self):
        self.serve_and_keep()
        self.keep()
        script = self.write(SCRIPT, "train.py")
        pause = max(0.02, FAULTS * FAULT_S * min(CONCURRENT_GANGS, TRIALS) / (TRIALS * STEPS))
        self.create(workers=2, trials=TRIALS, cpus=4, command=[sys.executable, "-B", script],
                    parameters={"pause": {"value": pause}}, scheduler={"name": "fifo", "max": STEPS})
        self.until(lambda: self.any_pilot(), "no pilot")
        kinds = [self.a_pilot_is_cancelled, self.a_pilot_is_told_that_its_time_is_over,
                 self.a_pilots_time_runs_out, self.a_pilot_is_preempted,
                 self.all_processes_of_a_pilot_are_killed, self.a_node_goes_down_and_comes_back,
                 self.a_nodes_link_is_cut_and_heals, self.slurms_controller_is_killed,
                 self.the_server_is_killed, self.the_manager_is_killed]
        began, done = time.monotonic(), collections.Counter()
        for fault in range(FAULTS):
            # Every kind of fault happens once before any happens twice.
            kind = self.draw.choice([k for k in kinds if done[k.__name__] == min(done[k.__name__] for k in kinds)])
            done[kind.__name__] += 1
            kind()
            time.sleep(self.draw.uniform(0, FAULT_S / 2))  # faults come at random times, not after events
        faults_s = time.monotonic() - began
        deadline = time.monotonic() + PATIENCE_S
        while self.get("/sweeps/s1")["state"] == "running" and time.monotonic() < deadline:
            self.repair_nodes()
            time.sleep(1)
        if time.monotonic() > deadline:
            self.fail("the sweep does not end:\n" + self.scene())
        print(f"{FAULTS} faults in {faults_s:.0f} s, the sweep of {TRIALS} trials in "
              f"{time.monotonic() - began:.0f} s: {dict(done)}")
        self.completed()
        self.check_trials()
        code, _, err = self.attune("slurm", "down", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.until(lambda: not any(name.startswith("attune-") for name in self.jobs()), "jobs are left")
        self.until(lambda: not self.processes_of(script), "ranks are left")

    def scene(self):
        """Describes the pilots and processes, for failure messages."""
        lines = [f"manager {self.manager.popen.poll()}, server {self.server.popen.poll()}"]
        for trial in self.get("/sweeps/s1/trials")["trials"]:
            if trial["state"] != "completed":
                detail = self.get(f"/sweeps/s1/trials/{trial['number']}")
                lines.append(f"{trial['number']} {trial['state']} {trial['step']} {trial['waiting']} "
                             f"{detail['attempts'][-1:]}")
        lines += [str(executor) for executor in self.get("/executors")["executors"]]
        lines += [f"{name} {job}" for name, job in self.jobs().items()]
        return "\n".join([*lines, "manager:", *self.manager.stderr[-20:]])

    def check_trials(self):
        trials = self.check_histories_are_whole()
        self.assertEqual(len(trials), TRIALS)
        self.assertEqual({(trial["state"], trial["step"]) for trial in trials}, {("completed", STEPS)})
        attempts = 0
        for trial in trials:
            detail = self.get(f"/sweeps/s1/trials/{trial['number']}")
            attempts += len(detail["attempts"])
            self.assertEqual(len(detail["history"]), STEPS)
            for checkpoint in detail["checkpoints"]:
                if not checkpoint["dropped"]:
                    self.assertTrue(pathlib.Path(checkpoint["path"], "manifest.json").is_file(), checkpoint)
        print(f"{attempts} attempts; max_restarts is 0, so that none was charged to a trial")

    def processes_of(self, script):
        """Returns the processes with `script` in their command line."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if script.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                pass  # the process has ended
        return found


if __name__ == "__main__":
    unittest.main()
