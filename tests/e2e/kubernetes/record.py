"""Records the answers of a release of kubectl for the unit tests, in tests/data/kubernetes/RELEASE.

    record.py KUBECTL

KUBECTL is the program; `scripts/kubernetes-tools --path` has one, as the component `kubectl` of the control plane.
One fleet has a pilot in each state that Kubernetes explains.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cluster import ATTUNE, Cluster, NAMESPACE, NODE_CPUS, PATIENCE_S, ROOT, free_port, tool  # noqa: E402


def template(cpus=NODE_CPUS, image="attune", limits=None, **spec):
    return {"apiVersion": "batch/v1", "kind": "Job", "spec": {**spec, "template": {"spec": {
        "restartPolicy": "Never", "containers": [{
            "name": "executor", "image": image, "resources": {"limits": {"cpu": str(cpus), **(limits or {})}}}]}}}}


# For pilots 1, 2, …: the state, the template, and a text in its job, pods or events that shows the state.
STATES = [
    ("running", template(cpus=1), '"phase": "Running"'),
    ("unschedulable", template(limits={"nvidia.com/gpu": "1"}), "Insufficient nvidia.com/gpu"),
    ("image", template(cpus=1, image="missing"), "ImagePullBackOff"),
    ("suspended", template(suspend=True), '"type": "Suspended"'),
    ("quota", template(cpus=1, limits={"example.com/license": "1"}), "exceeded quota"),
    ("deadline", template(cpus=1, activeDeadlineSeconds=1), "DeadlineExceeded"),
]
QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small", "namespace": NAMESPACE},
         "spec": {"hard": {"requests.example.com/license": "0"}}}


class Recorder:
    def __init__(self, kubectl):
        self.kubectl = kubectl.split()
        self.cluster = Cluster(tool("control-plane"))
        version = json.loads(self.run("version", "--client", "--output=json")[1])["clientVersion"]["gitVersion"]
        self.folder = ROOT / "tests/data/kubernetes" / re.match(r"v(\d+\.\d+\.\d+)", version)[1]
        self.answers = {}  # by file

    def run(self, *words, text=None):
        """Runs the recorded kubectl. Returns its exit code, stdout and stderr."""
        done = subprocess.run([*self.kubectl, *words], input=text, capture_output=True, text=True,
                              env={**os.environ, **self.cluster.environment()})
        return done.returncode, done.stdout, done.stderr

    def answer(self, name, *words):
        code, out, err = self.run("--namespace", NAMESPACE, *words, "--output=json")
        assert code == 0, err
        self.answers[f"{name}.json"] = out

    def make_pilots(self):
        data, port = self.cluster.folder / "data", free_port()
        for number, (name, job, text) in enumerate(STATES, 1):
            if name == "quota":
                self.cluster.create(QUOTA)
            file = self.cluster.folder / f"{name}.json"
            file.write_text(json.dumps(job))
            manager = subprocess.Popen(
                [ATTUNE, "kubernetes", "up", "--namespace", NAMESPACE, "--data-dir", data, "--template", file,
                 "--nodes", f"{number}..{number}", "--poll", "200ms", "--rpc-host", "127.0.0.1", "--port", "0",
                 "--rpc-port", str(port)],
                env={**os.environ, **self.cluster.environment()})
            if name == "deadline":  # the manager would delete this pilot when it has ended
                self.until(lambda: len(self.cluster.list("jobs", NAMESPACE)) == number, "no job")
                manager.kill()
            self.until(lambda: self.shows(number, text), f"pilot {number} does not show {text!r}")
            if name == "deadline":
                self.until(lambda: self.shows(number, '"type": "Failed"'), "the job has not failed")
            manager.kill()
            manager.wait()

    def shows(self, number, text):
        """Returns whether the objects of a pilot have the text."""
        objects = json.loads(self.cluster.kubectl("get", "jobs,pods,events", "-n", NAMESPACE, "-o", "json"))["items"]
        return any(text in json.dumps(each) for each in objects
                   if re.search(rf"^attune-\w+-{number}\b", each.get("involvedObject", each["metadata"])["name"]))

    @staticmethod
    def until(condition, failure):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, failure
            time.sleep(0.1)  # there is no event to wait for

    def record(self):
        self.make_pilots()
        label = self.cluster.list("jobs", NAMESPACE)[0]["metadata"]["labels"]["attune.dev/fleet"]
        self.answer("jobs-and-pods", "get", "jobs,pods", f"--selector=attune.dev/fleet={label}")
        self.answer("events", "get", "events", "--field-selector=involvedObject.kind=Job")
        self.answer("version", "version")
        job = json.dumps(template())
        existing = self.cluster.list("jobs", NAMESPACE)[0]["metadata"]["name"]
        self.cluster.create({**QUOTA, "metadata": {"name": "jobs", "namespace": NAMESPACE},
                             "spec": {"hard": {"count/jobs.batch": "1"}}})
        self.until(lambda: any(quota["status"].get("used", {}).get("count/jobs.batch") == str(len(STATES))
                               for quota in self.cluster.list("resourcequotas", NAMESPACE)), "no quota of jobs")
        errors = {}
        for name, words, text in [
                ("already_exists", ["create", "-f", "-"], json.dumps(
                    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "twice"}})),
                ("quota", ["create", "-f", "-"], json.dumps({**json.loads(job), "metadata": {"name": existing}})),
                ("invalid", ["create", "-f", "-"], json.dumps(
                    {**json.loads(job), "metadata": {"name": "No capitals"}})),
                ("forbidden", ["--context=stranger", "get", "jobs"], None),
                ("unauthorized", ["--token=wrong", "get", "jobs"], None),
                ("no_namespace", ["--namespace=nowhere", "create", "-f", "-"], job.replace(
                    '"kind": "Job"', '"kind": "Job", "metadata": {"name": "x"}')),
                ("no_context", ["--context=nowhere", "get", "jobs"], None),
                ("refused", ["--context=away", "get", "jobs"], None),
                ("no_pod", ["logs", "nowhere"], None)]:
            for _ in range(2 if name == "already_exists" else 1):
                place = [] if any("--namespace" in word for word in words) else ["--namespace", NAMESPACE]
                code, _, err = self.run(*place, *words, text=text)
            assert code != 0, name
            errors[name] = err
        self.answers["errors.json"] = json.dumps(errors, indent=2) + "\n"
        for number, (name, _, text) in enumerate(STATES, 1):
            assert self.shows(number, text), f"pilot {number} is no longer in the state {name}"
        self.folder.mkdir(parents=True, exist_ok=True)
        for file, text in self.answers.items():
            (self.folder / file).write_text(text)
        print(f"recorded {self.folder}")


if __name__ == "__main__":
    recorder = Recorder(sys.argv[1])
    try:
        recorder.cluster.up()
        recorder.record()
    finally:
        recorder.cluster.end()
