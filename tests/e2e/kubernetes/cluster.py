"""A Kubernetes on this machine: a real control plane, and nodes that run pods as processes (node.py)."""

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
from pilots_case import PilotsCase  # noqa: E402
from support import ATTUNE, PATIENCE_S, ROOT, ask_server, free_port  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parent
NODE_CPUS = 4
NAMESPACE = "tests"
USERS = {"admin": "system:masters", "keeper": "", "stranger": ""}


def tool(name):
    """Returns a program of scripts/kubernetes-tools; None if it is not built."""
    done = subprocess.run([ROOT / "scripts/kubernetes-tools", "--path"], capture_output=True, text=True, check=True)
    path = pathlib.Path(done.stdout.strip()) / name
    return path if path.exists() else None


class Cluster:
    """A control plane and its nodes. Its state is in `folder`.

    `has_kubelets`: pods have service accounts, and the caller starts nodes with real kubelets.
    """

    def __init__(self, program, nodes=2, has_kubelets=False):
        self.program, self.node_count, self.has_kubelets = program, nodes, has_kubelets
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="attune-kubernetes-"))
        self.processes, self.nodes = {}, {}
        self.etcd, self.port = free_port(), free_port()
        self.server = f"https://127.0.0.1:{self.port}"
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        # The component `kubectl` of the program, or another release, under the name that Attune looks for.
        kubectl = os.environ.get("ATTUNE_TEST_KUBECTL", f"{program} kubectl")
        (self.bin / "kubectl").write_text(f'#!/bin/sh\nexec {kubectl} "$@"\n')
        (self.bin / "kubectl").chmod(0o755)
        self._write_keys()

    def _write_keys(self):
        for words in (["genrsa", "-out", "sa.key"], ["rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub"],
                      ["req", "-x509", "-newkey", "rsa:2048", "-noenc", "-keyout", "node.key", "-out", "node.crt",
                       "-subj", "/CN=node"]):
            subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True)
        (self.folder / "tokens.csv").write_text("".join(
            f'{user}-token,{user},{user},"{group}"\n' if group else f"{user}-token,{user},{user}\n"
            for user, group in USERS.items()))
        entry = {"apiVersion": "v1", "kind": "Config", "current-context": "admin",
                 "clusters": [{"name": "test", "cluster": {"server": self.server, "insecure-skip-tls-verify": True}},
                              {"name": "away", "cluster": {"server": "https://127.0.0.1:1"}}],
                 "users": [{"name": user, "user": {"token": f"{user}-token"}} for user in USERS],
                 "contexts": [{"name": user, "context": {"cluster": "test", "user": user}} for user in USERS]
                 + [{"name": "away", "context": {"cluster": "away", "user": "admin"}}]}
        (self.folder / "kubeconfig").write_text(json.dumps(entry))

    def environment(self):
        return {"KUBECONFIG": str(self.folder / "kubeconfig"), "HOME": str(self.folder),
                "PATH": f"{self.bin}:{os.environ['PATH']}"}

    def start(self, name, *words):
        path = f"{pathlib.Path(ATTUNE).parent}:{os.environ['PATH']}"  # pods run `attune`
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(words, cwd=self.folder, stdout=log, stderr=log,
                                                    env=dict(os.environ, HOME=str(self.folder), PATH=path))

    def start_component(self, name):
        address = f"http://127.0.0.1:{self.etcd}"
        control = ["--kubeconfig=kubeconfig", "--leader-elect=false", "--secure-port=0"]
        accounts = [] if self.has_kubelets else ["--disable-admission-plugins=ServiceAccount"]
        self.start(name, self.program, name, *{
            "etcd": ["--data-dir=etcd", f"--listen-client-urls={address}", f"--advertise-client-urls={address}",
                     "--listen-peer-urls=http://127.0.0.1:0", "--unsafe-no-fsync"],
            "apiserver": [f"--etcd-servers={address}", "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
                          f"--secure-port={self.port}", "--cert-dir=certificates", "--token-auth-file=tokens.csv",
                          "--authorization-mode=RBAC", "--service-account-issuer=https://test",
                          "--service-account-key-file=sa.pub", "--service-account-signing-key-file=sa.key",
                          "--service-cluster-ip-range=10.96.0.0/24", "--endpoint-reconciler-type=none",
                          "--kubelet-preferred-address-types=InternalIP", *accounts, "--default-unreachable-toleration-seconds=1",
                          "--default-not-ready-toleration-seconds=1"],
            "scheduler": control,
            "controllers": [*control, "--service-account-private-key-file=sa.key",
                            "--root-ca-file=certificates/apiserver.crt", "--node-monitor-period=500ms",
                            "--node-monitor-grace-period=5s", "--use-service-account-credentials=false"],
        }[name])

    def await_api(self):
        deadline = time.monotonic() + PATIENCE_S
        while self.kubectl("get", "--raw", "/readyz", check=False) != "ok":
            if time.monotonic() > deadline:
                raise AssertionError("no API server:\n" + (self.folder / "apiserver.log").read_text()[-3000:])
            time.sleep(0.1)  # no event tells when it listens

    def up(self):
        for name in ("etcd", "apiserver"):
            self.start_component(name)
        self.await_api()
        for name in ("scheduler", "controllers"):
            self.start_component(name)
        self.kubectl("create", "namespace", NAMESPACE)
        for i in range(self.node_count):
            self.start_node(f"n{i + 1}")
        deadline = time.monotonic() + PATIENCE_S
        while len(self.ready_nodes()) < self.node_count:
            if time.monotonic() > deadline:
                raise AssertionError("no nodes")
            time.sleep(0.1)  # the controllers make nodes usable a moment after they are ready

    def start_node(self, name):
        self.start(name, sys.executable, "-B", FOLDER / "node.py", name, self.server, "admin-token",
                   self.folder / name, str(NODE_CPUS))

    def ready_nodes(self):
        nodes = self.list("nodes")
        return [node["metadata"]["name"] for node in nodes
                if {"type": "Ready", "status": "True"}.items() <= {k: v for c in node["status"].get("conditions", [])
                                                                  if c["type"] == "Ready" for k, v in c.items()}.items()
                and not node["spec"].get("taints")]

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def kubectl(self, *words, check=True, text=None):
        done = subprocess.run([self.bin / "kubectl", *words], env=dict(os.environ, **self.environment()), input=text,
                              capture_output=True, text=True)
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {words}: {done.stderr}")
        return done.stdout

    def list(self, kind, name_space=None):
        place = ["-n", name_space] if name_space else []
        return json.loads(self.kubectl("get", kind, *place, "-o", "json"))["items"]

    def create(self, *objects):
        self.kubectl("apply", "-f", "-", text="\n---\n".join(json.dumps(each) for each in objects))

    def end(self):
        for process in self.processes.values():
            process.send_signal(signal.SIGKILL)
        for process in self.processes.values():
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def setUpModule():
    program = tool("control-plane")
    if program is None:
        print("SKIPPED: the control plane is not built; scripts/kubernetes-tools builds it")  # CTest looks for this word
        raise unittest.SkipTest("no control plane")
    global cluster
    cluster = Cluster(program)
    unittest.addModuleCleanup(cluster.end)
    began = time.monotonic()
    cluster.up()
    print(f"a cluster of {cluster.node_count} nodes after {time.monotonic() - began:.2f} s")


class Pilots(PilotsCase):
    engine = "kubernetes"
    node_cpus = NODE_CPUS

    def setUp(self):
        super().setUp()
        self.environment.update(cluster.environment())
        self.addCleanup(self._delete_objects)

    def _delete_objects(self):
        for process in self.processes:  # a running manager would create new jobs
            process.kill()
        cluster.kubectl("delete", "jobs,secrets,resourcequotas", "--all", "-n", NAMESPACE, "--cascade=foreground")
        cluster.kubectl("delete", "pods", "--all", "-n", NAMESPACE, "--force", "--grace-period=0")

    def template(self, change=None, image="attune", cpus=NODE_CPUS, grace=30, **spec):
        job = {"apiVersion": "batch/v1", "kind": "Job",
               "spec": {**spec, "template": {"spec": {
                   "terminationGracePeriodSeconds": grace,
                   "containers": [{"name": "executor", "image": image,
                                   "resources": {"limits": {"cpu": str(cpus), "memory": "1Gi"}}}]}}}}
        if change:
            change(job)
        return self.write(json.dumps(job), "job.yaml")

    def up(self, *more, nodes="0..2", template=None, idle="2s", poll="500ms"):
        process = self.start("kubernetes", "up", "--namespace", NAMESPACE, "--data-dir", self.data,
                             "--template", template or self.template(), "--nodes", nodes, "--idle", idle,
                             "--poll", poll, "--rpc-host", "127.0.0.1", "--port", 0, "--rpc-port", free_port(), *more)
        process.await_stderr(r"^pilots ")
        return process

    def serve(self, port=0):
        """Starts a server and returns the address for executors."""
        self.server = self.start("serve", "--data-dir", self.data, "--port", 0, "--rpc-host", "127.0.0.1",
                                 "--rpc-port", port or free_port(), "--lease", 3)
        self.server.await_stderr("^executors ")
        return ask_server(self.data)["rpc"]

    def jobs(self):
        """Returns the jobs that have not ended, by name."""
        return {job["metadata"]["name"]: job for job in cluster.list("jobs", NAMESPACE)
                if not any(c["type"] in ("Complete", "Failed") for c in job["status"].get("conditions", []))}

    def pods(self):
        """Returns the running pods by name."""
        return {pod["metadata"]["name"]: pod for pod in cluster.list("pods", NAMESPACE)
                if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]}

    def down(self):
        code, _, err = self.attune("kubernetes", "down", "--data-dir", self.data)
        self.assertEqual(code, 0, err)
        for kind in ("jobs", "pods", "secrets"):
            self.assertEqual(cluster.list(kind, NAMESPACE), [], f"{kind} are left")
