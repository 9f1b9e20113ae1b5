"""Pilots on a real Slurm: their start, their work and the ways in which they end."""

import datetime
import pathlib
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import slurm_cluster  # noqa: E402
from slurm_cluster import Pilots, setUpModule  # noqa: E402, F401
from support import PATIENCE_S, sweep  # noqa: E402


class Life(Pilots):
    def test_a_gang_of_two_on_two_nodes(self):
        self.up()
        began = time.monotonic()
        self.create(workers=2, trials=1)
        self.await_report(trial=0, step=1)
        print(f"from `sweep create` to the first step of a gang over two nodes: "
              f"{time.monotonic() - began:.2f} s")
        self.completed()
        began = time.monotonic()
        self.create(workers=2, trials=1)
        self.await_event(lambda kind, data: kind == "trial_reported" and data["sweep"] == "s2")
        print(f"the same of a second sweep, on pilots that run: {time.monotonic() - began:.2f} s")
        self.completed("s2")
        (attempt,) = self.attempts()
        self.assertEqual(attempt["outcome"], "finished")
        self.assertEqual(len({rank["executor"] for rank in attempt["ranks"]}), 2)
        self.assertEqual(len(self.all_pilots()), 2, "as many as it needed, and the second no more")
        name = attempt["ranks"][0]["executor"]
        self.assertRegex(name, r"^attune-[0-9a-f]{8}-[12]$")
        code, out, err = self.attune("slurm", "logs", name.rsplit("-", 1)[1], "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.assertIn(f"pilot {name}: job ", out)

    def test_up_to_three_pilots_and_down_to_none(self):
        gate = self.close_gate(2)
        up = self.up("--gres", "gpu:2")
        self.create(workers=1, trials=5)
        self.until(lambda: len(self.online()) == 3, "three pilots")
        self.assertEqual({e["cpus"] for e in self.get("/executors")["executors"]}, {16})
        self.assertEqual({e["gpus"] for e in self.get("/executors")["executors"]}, {2})
        self.assertEqual({node for _, _, node in self.jobs().values()}, {"n1", "n2", "n3"})
        self.until(lambda: sum(t["state"] == "running" for t in self.get("/sweeps/s1/trials")["trials"]) == 3,
                   "three trials")
        pilots = self.status()
        self.assertEqual({(p["state"], p["executors"][0]["cpus_free"]) for p in pilots}, {("RUNNING", 0)})
        gate.close()
        self.completed()
        ended = time.monotonic()
        self.until(lambda: not self.jobs(), "pilots are left")
        print(f"from the sweep's end to no job, --idle 2s: {time.monotonic() - ended:.2f} s")
        self.assertEqual(list(self.all_pilots().values()), ["COMPLETED"] * 3, "and nothing was submitted in between")
        for _ in range(3):
            up.await_stderr("nobody needed")

    def check_interruption(self, end, minutes=10, patience_s=PATIENCE_S, outcome="failed", why="was stopped"):
        """Checks that a trial resumes on another pilot, without a restart, after `end(job, node)` ends its pilot."""
        gate = self.close_gate(3)
        self.up(minutes=minutes)
        self.create(workers=1, trials=1)
        self.await_report(trial=0, step=2)
        ((name, (job, _, node)),) = self.jobs().items()
        began = time.monotonic()
        end(job, node)
        self.until(lambda: len(self.attempts()) == 2, "a second attempt", patience_s)
        print(f"  another pilot runs it after {time.monotonic() - began:.2f} s")
        gate.close()
        self.completed()
        first, second = self.attempts()
        self.assertEqual(first["outcome"], outcome)
        self.assertIn(why, first["failure"])  # max_restarts is 0, so the loss does not count as a failure
        self.assertEqual(second["outcome"], "finished")
        self.assertEqual(second["resumed_from"], 2)
        self.assertNotEqual(second["executor"], name)
        return self.all_pilots()[name]

    def test_a_cancelled_pilot_costs_no_restart(self):
        self.check_interruption(lambda job, node: slurm_cluster.cluster.run("scancel", job))

    def test_a_node_that_goes_down_costs_no_restart(self):
        def set_down(job, node):
            slurm_cluster.cluster.run("scontrol", "update", f"node={node}", "state=down", "reason=test")
            self.addCleanup(slurm_cluster.cluster.run, "scontrol", "update", f"node={node}", "state=resume")
        self.check_interruption(set_down)

    def test_a_node_whose_link_is_cut_costs_no_restart(self):
        def cut(job, node):
            self.addCleanup(self.until, slurm_cluster.cluster.is_idle, "the node is not back")
            self.addCleanup(slurm_cluster.cluster.run, "ip", "link", "set", f"node{node[1:]}", "up")
            slurm_cluster.cluster.run("ip", "link", "set", f"node{node[1:]}", "down")
        self.assertEqual(self.check_interruption(cut, patience_s=120, outcome="lost", why=""), "NODE_FAIL")

    def test_a_trial_saves_before_the_end_of_its_pilot_and_resumes_on_another(self):
        self.up(minutes=2)  # one of them is reserved for leaving
        script = self.write("import time, attune\nattune.init()\n"
                            "for step in range(attune.step + 1, 1 << 30):\n"
                            "    time.sleep(0.1)\n"
                            "    attune.report({'score': step}, step, checkpoint=lambda folder: None)\n", "train.py")
        self.create(workers=1, trials=1, command=[sys.executable, "-B", script],
                    scheduler={"name": "fifo", "max": 1 << 30})
        self.await_report(trial=0, step=2)
        self.until(lambda: len(self.attempts()) == 2, "a second attempt", 120)
        first, second = self.attempts()
        self.assertEqual((first["outcome"], first["failure"]), ("paused", ""))
        self.assertNotEqual(first["executor"], second["executor"])
        history = self.get("/sweeps/s1/trials/0")["history"]
        self.assertEqual(max(report["step"] for report in history if report["attempt"] == 1),
                         second["resumed_from"], "no step is lost")
        decided, ended = (datetime.datetime.fromisoformat(each.replace("Z", "+00:00"))
                          for each in (second["decided"], first["ended"]))
        print(f"  another pilot runs it after {(decided - ended).total_seconds():.2f} s")
        self.assertLess((decided - ended).total_seconds(), 2, "the other was there before")

    def test_a_pilot_without_a_server_ends(self):
        self.data.mkdir()
        up = self.up("--give-up", "2s", nodes="1..1")
        self.until(lambda: len(self.online()) == 1, "a pilot")
        up.kill()
        began = time.monotonic()
        self.until(lambda: not self.jobs(), "the pilot goes on")
        print(f"from the server's death to the pilot's end, --give-up 2s: {time.monotonic() - began:.2f} s")


class SeveralNodes(Pilots):
    """Pilots with two nodes, and gangs that span both."""

    def up(self, *more, **options):
        return super().up("--nodes-per-pilot", 2, *more, **options)

    def gang(self, trial=0):
        """Returns the executors of a trial's newest attempt with ranks."""
        return [rank["executor"] for rank in self.attempts(trial)[-1]["ranks"]]

    def running(self, steps=4):
        """Starts a gang of two on a pilot and returns the name and the job of the pilot."""
        self.create(workers=2, trials=1, scheduler={"name": "fifo", "max": steps})
        self.await_report(trial=0, step=2)
        ((name, (job, state, nodes)),) = self.jobs().items()
        self.assertEqual((state, nodes), ("RUNNING", "n[1-2]"))
        self.assertEqual(self.gang(), [f"{name}.0", f"{name}.1"])
        return name, job

    def check_resumes(self, end, why="was stopped", steps=4):
        """Checks that the trial resumes without a restart after `end(name, job)` ends its pilot."""
        gate = self.gate = self.close_gate(3)
        up = self.up()
        name, job = self.running(steps)
        began = time.monotonic()
        end(name, job)
        self.until(lambda: len(self.attempts()) == 2, "a second attempt", 120)
        print(f"  another pilot runs it after {time.monotonic() - began:.2f} s")
        saved = 2 if not gate.closed else max(report["step"] for report in self.get("/sweeps/s1/trials/0")["history"]
                                              if report["attempt"] == 1)
        gate.close()
        self.completed()
        first, second = self.attempts()
        self.assertIn(why, first["failure"])  # max_restarts is 0, so the loss does not count as a failure
        self.assertEqual((second["outcome"], second["resumed_from"]), ("finished", saved))
        self.assertEqual([rank["executor"].rsplit(".", 1)[0] for rank in second["ranks"]],
                         [name.removesuffix("-1") + "-2"] * 2)
        return up

    def test_a_gang_on_two_nodes_uses_one_job_which_ends_as_a_whole(self):
        self.environment["GATES"] = str(self.gates)
        gate = self.close_gate(3)
        up = self.up()
        name, job = self.running()
        (pilot,) = self.status()
        self.assertEqual((pilot["nodes"], [e["cpus_free"] for e in pilot["executors"]]), (2, [0, 0]))
        gate.close()
        self.completed()
        ended = time.monotonic()
        self.until(lambda: not self.jobs(), "a pilot is left")
        print(f"from the sweep's end to no job, --idle 2s: {time.monotonic() - ended:.2f} s")
        self.assertEqual(self.all_pilots(), {name: "COMPLETED"}, "its executors were asked, and all left")
        up.await_stderr("nobody needed")
        code, out, err = self.attune("slurm", "logs", 1, "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        for node in (0, 1):
            self.assertIn(f"pilot {name}.{node}: job {job} on n{node + 1}", out)
        # No executor received two signals; a second one would end it at once.
        self.assertEqual([e["state"] for e in self.get("/executors")["executors"]], ["lost", "lost"])

    def test_pilots_stay_below_the_limit_and_serve_the_largest_gang_first(self):
        up = self.up(nodes="0..3")
        self.create(workers=1, trials=4)
        self.until(lambda: len(self.online()) == 2, "a pilot")
        self.completed()
        self.assertEqual(len(self.all_pilots()), 1, "a second one would be four nodes")
        self.create(workers=3, trials=1)
        up.await_stderr(r"\b2 pilots of 2 nodes\b.*\b1\b")

    def test_pilots_may_use_parts_of_nodes(self):
        self.data.mkdir()
        self.up("--cpus", 4, "--mem", 1000, "--gres", "gpu:1", nodes="4..4")
        self.until(lambda: len(self.online()) == 4, "two pilots")
        self.assertEqual({(e["cpus"], e["gpus"], e["memory_bytes"]) for e in self.get("/executors")["executors"]},
                         {(4, 1, 1000 << 20)})

    def test_a_cancelled_pilot_of_two_nodes_costs_no_restart(self):
        self.check_resumes(lambda name, job: slurm_cluster.cluster.run("scancel", job))

    def test_the_end_of_time_of_a_pilot_of_two_nodes_costs_no_restart(self):
        # Sends the signal that Slurm sends a minute before the end, without the wait of two minutes.
        def tell(name, job):
            slurm_cluster.cluster.run("scancel", "--batch", "--signal=TERM", job)
            self.await_event(lambda kind, data: kind == "trial_yielding")
            self.gate.close()
        self.check_resumes(tell, why="", steps=1000)
        self.assertEqual(sorted(self.all_pilots().items())[0][1], "COMPLETED", "it has left by itself")

    def test_a_pilot_that_loses_a_node_ends_as_a_whole(self):
        # The gangs of the pilot cannot run on its other node.
        def set_down(name, job):
            slurm_cluster.cluster.run("scontrol", "update", "node=n2", "state=down", "reason=test")
            self.until(lambda: self.all_pilots()[name] == "NODE_FAIL", "the job goes on")
            slurm_cluster.cluster.run("scontrol", "update", "node=n2", "state=resume")
        self.addCleanup(self.until, slurm_cluster.cluster.is_idle, "the node is not back")
        self.check_resumes(set_down)

    def test_a_pilot_that_loses_the_link_of_a_node_costs_no_restart(self):
        def cut(name, job):
            self.addCleanup(self.until, slurm_cluster.cluster.is_idle, "the node is not back")
            self.addCleanup(slurm_cluster.cluster.run, "ip", "link", "set", "node2", "up")
            slurm_cluster.cluster.run("ip", "link", "set", "node2", "down")
        self.check_resumes(cut, why="")
        self.assertEqual(sorted(self.all_pilots().items())[0][1], "NODE_FAIL")

    def test_a_new_manager_finds_old_pilots_and_down_ends_them(self):
        self.serve()
        arguments = ["slurm", "up", "--data-dir", self.data, "--partition", "main", "--nodes", "2..3",
                     "--nodes-per-pilot", 2, "--time", 10, "--poll", "100ms", "--idle", "1s"]
        up = self.start(*arguments)
        self.until(lambda: len(self.online()) == 2, "a pilot")
        up.kill()
        up = self.start(*arguments)
        up.await_stderr("^pilots ")
        up.await_stderr("joined from n")
        self.assertEqual(len(self.all_pilots()), 1)
        code, _, err = self.attune("slurm", "down", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.assertIn("1 pilot ", err)
        self.assertEqual(list(self.all_pilots().values()), ["COMPLETED"])


if __name__ == "__main__":
    unittest.main()
