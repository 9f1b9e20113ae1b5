"""Pilots on a real control plane of Kubernetes: their start, their work and the ways in which they end."""

import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import cluster as kubernetes  # noqa: E402
from cluster import NAMESPACE, NODE_CPUS, Pilots, setUpModule  # noqa: E402, F401
from support import ROOT  # noqa: E402


class Life(Pilots):
    def test_a_gang_of_two_from_zero_and_down_to_none(self):
        up = self.up()
        began = time.monotonic()
        self.create(workers=2, trials=1)
        self.await_report(trial=0, step=1)
        print(f"from `sweep create` to the first step of a gang of two: {time.monotonic() - began:.2f} s")
        names = set(self.jobs())
        self.assertEqual(len(names), 2)
        self.completed()
        (attempt,) = self.attempts()
        self.assertEqual({rank["executor"] for rank in attempt["ranks"]}, names)
        ended = time.monotonic()
        self.until(lambda: not self.jobs(), "pilots are left")
        print(f"from the sweep's end to no job, --idle 2s: {time.monotonic() - ended:.2f} s")
        up.await_stderr("nobody needed", times=2)
        self.down()
        self.down()  # again, without pilots
        self.assertEqual(up.wait(), 0)

    def test_a_gang_on_a_pilot_of_two_nodes_is_promoted_and_resumes(self):
        self.up("--nodes-per-pilot", 2)
        self.create(workers=2, trials=2, scheduler={
            "name": "asha", "mode": "promote", "min": 1, "max": 4, "reduction_factor": 2})
        self.completed()
        (name,) = self.jobs()
        executors = {rank["executor"] for trial in (0, 1) for attempt in self.attempts(trial)
                     for rank in attempt["ranks"]}
        self.assertEqual(executors, {f"{name}.0", f"{name}.1"})
        code, out, err = self.attune("kubernetes", "status", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.assertIn("n1,n2", out)

    def test_logs(self):
        self.up()
        self.create(workers=1, trials=1)
        self.await_report(trial=0, step=1)
        code, out, err = self.attune("kubernetes", "logs", "1", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        self.assertIn(f"executor {next(iter(self.jobs()))}: {NODE_CPUS} CPUs", out)

    def test_status_shows_why_a_pilot_is_not_placed(self):
        def need_gpu(job):
            job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 1
        up = self.up(template=self.template(need_gpu))
        self.create(workers=1, trials=1)
        up.await_stderr("^submitted ")
        waiting = self.until(lambda: next((w for w in [self.get("/sweeps/s1")["waiting_reason"]]
                                           if "Insufficient" in w), None), "the sweep does not say why")
        self.assertIn("Insufficient nvidia.com/gpu", waiting)
        (pilot,) = self.status()
        self.assertEqual(pilot["state"], "Pending")
        self.assertIn("Insufficient nvidia.com/gpu", pilot["reason"])
        self.down()

    def test_status_shows_an_exceeded_quota(self):
        kubernetes.cluster.create({"apiVersion": "v1", "kind": "ResourceQuota",
                                   "metadata": {"name": "small", "namespace": NAMESPACE},
                                   "spec": {"hard": {"limits.cpu": "1"}}})
        self.up()
        self.create(workers=1, trials=1)
        self.until(lambda: any("exceeded quota" in pilot["reason"] for pilot in self.status()),
                   "no pilot names the quota")
        kubernetes.cluster.kubectl("delete", "resourcequota", "small", "-n", NAMESPACE)

    def test_status_shows_an_image_that_cannot_be_pulled(self):
        self.up(template=self.template(image="missing"))
        self.create(workers=1, trials=1)
        self.until(lambda: any("ImagePullBackOff" in pilot["reason"] for pilot in self.status()),
                   "no pilot names the image")
        self.down()

    def test_a_suspended_pilot_waits_for_its_queue(self):
        """Kueue suspends a job, and resumes it when its quota allows."""
        self.up(template=self.template(suspend=True))
        self.create(workers=1, trials=1)
        (pilot,) = self.until(self.status, "no pilot")
        self.assertEqual(pilot["state"], "Suspended")
        kubernetes.cluster.kubectl("patch", "job", pilot["name"], "-n", NAMESPACE, "-p", '{"spec": {"suspend": false}}')
        self.completed()


class Faults(Pilots):
    def check_resumes(self, end, nodes=1, saves=True, **spec):
        """Checks that a trial continues on another pilot, without a restart, after `end(job, pod)`.

        `saves`: the gang has time to save, and its checkpoint goes from pod to pod. `spec`: more fields of the Job's spec.
        """
        gate = self.close_gate(3)
        cpus = NODE_CPUS // 2  # so that two pilots fit at once
        self.up("--nodes-per-pilot", nodes, nodes="0..4", template=self.template(cpus=cpus, **spec))
        self.create(workers=nodes, trials=1, cpus=cpus, scheduler={"name": "fifo", "max": 1000})
        self.await_report(trial=0, step=2)
        (job,) = self.jobs()
        pod = sorted(self.pods())[-1]
        began = time.monotonic()
        end(job, pod)
        if saves:
            self.await_event(lambda kind, data: kind == "trial_yielding")
            gate.close()
        self.until(lambda: len(self.attempts()) == 2, "no second attempt", 120)
        print(f"  a pilot runs it again after {time.monotonic() - began:.2f} s")
        gate.close()
        self.completed()
        first, second = self.attempts()
        self.assertNotEqual(first["outcome"], "finished")
        self.assertEqual(second["outcome"], "finished")
        if saves:
            self.assertGreaterEqual(second["resumed_from"], 2)

    def evict(self, job, pod):
        kubernetes.cluster.kubectl(
            "create", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction", "-f", "-",
            text=json.dumps({"apiVersion": "policy/v1", "kind": "Eviction",
                             "metadata": {"name": pod, "namespace": NAMESPACE}}))

    def test_an_evicted_pod_costs_no_restart(self):
        self.check_resumes(self.evict)

    def test_an_evicted_pod_of_two_costs_no_restart(self):
        self.check_resumes(self.evict, nodes=2)

    def test_a_deleted_pod_costs_no_restart(self):
        self.check_resumes(lambda job, pod: kubernetes.cluster.kubectl(
            "delete", "pod", pod, "-n", NAMESPACE, "--wait=false"))

    def test_a_deleted_job_costs_no_restart(self):
        self.check_resumes(lambda job, pod: kubernetes.cluster.kubectl(
            "delete", "job", job, "-n", NAMESPACE, "--wait=false"))

    def test_a_preempted_pod_costs_no_restart(self):
        def preempt(job, pod):
            kubernetes.cluster.create(
                {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "important", "namespace": NAMESPACE},
                 "spec": {"priorityClassName": "high",
                          "nodeSelector": {"kubernetes.io/hostname": self.pods()[pod]["spec"]["nodeName"]},
                          "containers": [{"name": "main", "image": "any", "command": ["sleep", "600"],
                                          "resources": {"limits": {"cpu": str(NODE_CPUS)}}}]}})
        kubernetes.cluster.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                                   "metadata": {"name": "high"}, "value": 1000})
        self.addCleanup(kubernetes.cluster.kubectl, "delete", "priorityclass", "high")
        self.check_resumes(preempt)

    def test_a_deadline_costs_no_restart(self):
        self.check_resumes(lambda job, pod: None, grace=15, activeDeadlineSeconds=20)

    def test_a_node_that_is_gone_costs_no_restart(self):
        def lose(job, pod):
            node = self.pods()[pod]["spec"]["nodeName"]
            kubernetes.cluster.kill(node)
            self.addCleanup(self.until, lambda: len(kubernetes.cluster.ready_nodes()) == 2, "the node is not back")
            self.addCleanup(kubernetes.cluster.start_node, node)
        self.check_resumes(lose, saves=False)

    def test_trials_continue_while_the_api_server_is_down(self):
        gate = self.close_gate(3)
        up = self.up()
        self.create(workers=1, trials=1)
        self.await_report(trial=0, step=2)
        kubernetes.cluster.kill("apiserver")
        up.await_stderr("Kubernetes does not answer")
        gate.close()
        self.completed()
        self.create(workers=2, trials=1)
        kubernetes.cluster.start_component("apiserver")
        kubernetes.cluster.await_api()
        self.completed("s2")

    def test_a_new_manager_finds_old_pilots(self):
        address = self.serve()
        gate = self.close_gate(3)
        up = self.up("--executors", address)
        self.create(workers=1, trials=1)
        self.await_report(trial=0, step=2)
        names = set(self.jobs())
        up.kill()
        self.up("--executors", address).await_stderr("has joined")
        self.assertEqual(set(self.jobs()), names)
        gate.close()
        self.completed()
        self.assertEqual(len(self.attempts()), 1)
        self.down()

    def test_a_killed_manager_creates_no_pilot_twice(self):
        """The first manager dies after it has created a job, the second between its number on disk and the job."""
        moment = self.folder / "moment"
        tool = self.folder / "bin/kubectl"
        tool.parent.mkdir()
        tool.write_text(f"""#!/bin/sh
            for word; do file=${{word#--filename=}}; done
            if [ -e {moment} ] && grep -q '"kind":"Job"' "$file" 2>/dev/null && ! echo "$@" | grep -q dry-run; then
              [ "$(cat {moment})" = before ] || {kubernetes.cluster.bin}/kubectl "$@"
              rm {moment}
              kill -9 $PPID
              exit 1
            fi
            exec {kubernetes.cluster.bin}/kubectl "$@"
        """)
        tool.chmod(0o755)
        self.environment["PATH"] = f"{tool.parent}:{self.environment['PATH']}"
        address = self.serve()
        gate = self.close_gate(2)
        self.create(workers=1, trials=2)
        for when in ("after", "before"):
            moment.write_text(when)
            self.assertLess(self.up("--executors", address, nodes="0..4").wait(), 0)
            self.assertEqual(len(self.jobs()), 1)
        # The new manager cannot know whether pilot 2 will appear, so it waits for a while before it creates pilot 3.
        began = time.monotonic()
        self.up("--executors", address, nodes="0..4")
        self.until(lambda: len(self.online() & set(self.jobs())) == 2, "no two pilots")
        self.assertEqual(sorted(int(name.rsplit("-", 1)[1]) for name in self.jobs()), [1, 3])
        self.assertGreater(time.monotonic() - began, 20)
        gate.close()
        self.completed()

    def test_pilots_wait_for_a_new_server(self):
        address = self.serve()
        gate = self.close_gate(3)
        up = self.up("--executors", address, "--give-up", "60s")
        self.create(workers=1, trials=1)
        self.await_report(trial=0, step=2)
        names = set(self.jobs())
        self.server.kill()
        up.await_stderr("the server does not answer")
        self.serve(address.rsplit(":", 1)[1])
        gate.close()
        self.completed()
        self.assertEqual({rank["executor"] for rank in self.attempts()[-1]["ranks"]}, names)


class Refused(Pilots):
    """Wrong input. Nothing is left in the cluster."""

    def refused(self, *more, template=None, name_space=NAMESPACE):
        code, _, err = self.attune("kubernetes", "up", "--namespace", name_space, "--nodes", "0..2", "--data-dir",
                                   self.data, "--template", template or self.template(), *more)
        self.assertNotEqual(code, 0)
        for kind in ("jobs", "secrets"):
            self.assertEqual(kubernetes.cluster.list(kind, NAMESPACE), [])
        return err

    def test_without_kubectl(self):
        self.environment["PATH"] = "/nonexistent"
        self.assertIn("install kubectl", self.refused())

    def test_wrong_context(self):
        self.assertIn("kubectl config get-contexts", self.refused("--context", "nowhere"))

    def test_an_api_server_that_does_not_answer(self):
        self.assertIn("127.0.0.1:1", self.refused("--context", "away"))

    def test_a_user_without_rights(self):
        self.assertIn("packaging/kubernetes/attune.yaml", self.refused("--context", "stranger"))

    def test_missing_namespace(self):
        self.assertIn("kubectl create namespace", self.refused(name_space="nowhere"))

    def test_templates(self):
        def two_containers(job):
            containers = job["spec"]["template"]["spec"]["containers"]
            containers.append(dict(containers[0], name="other"))

        def command(job):
            job["spec"]["template"]["spec"]["containers"][0]["command"] = ["sh"]

        def no_cpus(job):
            del job["spec"]["template"]["spec"]["containers"][0]["resources"]

        def name(job):
            job["metadata"] = {"name": "mine"}

        def unknown(job):
            job["spec"]["template"]["spec"]["containers"][0]["imagee"] = "x"

        for change, words in ((two_containers, "containers: there are 2"), (command, "containers[0].command"),
                              (no_cpus, "limits.cpu"), (name, "metadata.name"), (unknown, "imagee")):
            with self.subTest(change.__name__):
                self.assertIn(words, self.refused(template=self.template(change)))
        with self.subTest("kind"):
            pod = self.write(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {
                "containers": [{"name": "x", "image": "x"}]}}), "pod.json")
            self.assertIn("it is a v1 Pod", self.refused(template=pod))
        self.assertIn("cannot be read", self.refused(template="nowhere.yaml"))


class Chart(Pilots):
    """The Helm chart, and the objects for those who do not use Helm."""

    FOLDER = ROOT / "packaging/kubernetes"
    HEADER = ("# The chart with its default values, for `kubectl apply --namespace default`. Written by\n"
              "# tests/e2e/kubernetes/kubernetes_test.py.\n")

    def objects(self):
        return list(yaml.safe_load_all((self.FOLDER / "attune.yaml").read_text()))

    def test_attune_yaml_is_the_chart(self):
        rendered = subprocess.run(
            [kubernetes.tool("helm"), "template", "attune", self.FOLDER / "chart", "--namespace", "default",
             "--kube-version", "1.24.0"], capture_output=True, text=True, check=True).stdout
        if os.environ.get("ATTUNE_WRITE_GOLDEN"):
            (self.FOLDER / "attune.yaml").write_text(self.HEADER + rendered)
        self.assertEqual((self.FOLDER / "attune.yaml").read_text(), self.HEADER + rendered,
                         "set ATTUNE_WRITE_GOLDEN=1 to write it")

    def test_the_api_server_accepts_all_objects_and_the_template(self):
        kubernetes.cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", self.FOLDER / "attune.yaml")
        (template,) = (each["data"]["job.yaml"] for each in self.objects() if each["kind"] == "ConfigMap")
        self.data.mkdir()
        self.up(nodes="1..1", template=self.write(template, "chart-job.yaml"))
        self.until(lambda: len(self.online()) == 1, "no pilot")

    def test_the_role_has_all_rights_that_pilots_need(self):
        (rules,) = (each["rules"] for each in self.objects() if each["kind"] == "Role")
        kubernetes.cluster.create(
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
             "metadata": {"name": "attune", "namespace": NAMESPACE}, "rules": rules},
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
             "metadata": {"name": "attune", "namespace": NAMESPACE},
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "attune"},
             "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "keeper"}]})
        self.up("--context", "keeper")
        self.create(workers=1, trials=1)
        self.completed()
        self.down()


if __name__ == "__main__":
    unittest.main()
