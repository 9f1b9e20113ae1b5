"""The Helm chart in containers: a kubelet with containerd runs the server and its pilots.

Run this test by hand, as root. The kubelet changes settings of the kernel; the test restores them:

    make package && scripts/kubernetes-tools
    apt-get install containerd runc containernetworking-plugins
    python3 -B tests/long/kubelet_test.py
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("ATTUNE_PACKAGES", str(ROOT / "build-release/packages"))
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "tests/e2e/kubernetes")]
import kubelet  # noqa: E402
from cluster import Cluster, tool  # noqa: E402
from image_test import CHROOT, Image, PACKAGES  # noqa: E402
from support import EndToEnd, Process, free_port  # noqa: E402

NAMESPACE = "lab"
USER = 7070
DATA = "/var/lib/attune/data"
SETTINGS = [f"/proc/sys/{name}" for name in ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic",
                                             "kernel/panic_on_oops", "kernel/keys/root_maxkeys",
                                             "kernel/keys/root_maxbytes")]
# A trial that reports a step each second.
PROGRAM = "trap 'exit 1' TERM; for step in {1..30}; do echo step=$step loss=0.$step; sleep 1 & wait $!; done"


def make_images(folder):
    image = Image((ROOT / "packaging/Containerfile").read_text())
    script = "\n".join([*image.build, "tar --one-file-system --exclude=./context --exclude=./out -cf /out/layer.tar -C / ."])
    kubelet.run(ROOT / "scripts/chroot", "run", "--bind", f"{PACKAGES}:/context", "--bind", f"{folder}:/out", CHROOT,
                "bash", "-euc", script)
    kubelet.pack_images(folder / "layer.tar", str(USER), folder / "images.tar")
    (folder / "layer.tar").unlink()
    return folder / "images.tar"


class Chart(EndToEnd):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(tool("control-plane"), nodes=0, has_kubelets=True)
        cls.addClassCleanup(cls.cluster.end)
        cls.names = {}  # the addresses of services
        kubelet.set_up_network()
        kubelet.serve_names(cls.names)
        cls.cluster.up()
        kubelet.start_containerd(cls.cluster, make_images(cls.cluster.folder))
        kubelet.start_kubelet(cls.cluster)
        kubelet.forward((kubelet.API_SERVICE, 443), lambda: ("127.0.0.1", cls.cluster.port))
        cls.kubectl = cls.cluster.kubectl

    def setUp(self):
        super().setUp()
        self.environment.update(self.cluster.environment())

    def get_one(self, kind, name):
        return json.loads(self.kubectl("get", kind, name, "-n", NAMESPACE, "-o", "json"))

    def exec(self, *words, check=True):
        return self.kubectl("exec", "attune-0", "-n", NAMESPACE, "-c", "server", "--", *words, check=check)

    def scene(self):
        words = [["get", "jobs,pods,events"], *(["logs", "attune-0", "-c", name] for name in ("server", "pilots"))]
        words += [["logs", pod["metadata"]["name"]] for pod in self.cluster.list("pods", NAMESPACE)]
        return super().scene() + "\n".join(self.kubectl(*each, "-n", NAMESPACE, check=False) for each in words)

    def helm(self, *words):
        kubelet.run(tool("helm"), *words, "--namespace", NAMESPACE, env=self.environment)

    def install(self):
        """Installs the chart with a volume of this machine and waits until the server is ready."""
        volume = self.cluster.folder / "volume"
        volume.mkdir()
        os.chown(volume, USER, USER)  # the kubelet does not change the owner of such a volume
        self.cluster.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"},
             "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"],
                      "hostPath": {"path": str(volume)}}})
        values = self.write({
            "image": kubelet.IMAGE, "pilots": {"nodes": "0..2", "idle": "3s", "arguments": ["--poll", "1s"]},
            "executor": {"resources": {"limits": {"cpu": "1", "memory": "256Mi"}}}}, "values.json")
        self.helm("install", "attune", ROOT / "packaging/kubernetes/chart", "--values", values)
        address = self.get_one("service", "attune")["spec"]["clusterIP"]
        self.names[f"attune.{NAMESPACE}.svc.cluster.local"] = address
        kubelet.forward((address, 7071), lambda: (self.get_one("pod", "attune-0")["status"]["podIP"], 7071))
        self.kubectl("rollout", "status", "statefulset/attune", "-n", NAMESPACE, "--timeout", "90s")
        restarts = [each["restartCount"] for each in self.get_one("pod", "attune-0")["status"]["containerStatuses"]]
        self.assertEqual(restarts, [0, 0])

    def test_a_sweep_in_pods(self):
        self.install()
        server = self.open_tunnel()
        file = self.write({
            "apiVersion": "attune/v1", "kind": "Sweep", "name": "pods", "command": ["bash", "-c", PROGRAM],
            "working_directory": "/tmp", "reports": {"pattern": r"step=(?P<step>\d+) loss=(?P<loss>\S+)"},
            "metric": {"name": "loss", "mode": "min"}, "parameters": {"x": {"min": 0.0, "max": 1.0}},
            "searcher": {"name": "random", "seed": 1}, "resources": {"workers": 1, "cpus_per_worker": 1},
            "stop": {"max_trials": 1}, "failure": {"max_restarts": 0}})
        self.run_command("sweep", "create", file, *server)
        pod = self.until(self.running_pod, "no pod of a pilot")
        self.until(lambda: "1 CPUs, 0 GPUs, 256 MiB" in self.pilots("logs", "1"), "the executor has other resources")
        self.assertIn(pod.rsplit("-", 2)[0], self.pilots("status"))
        self.until(lambda: self.trial(server)["step"] > 0, "the trial does not report")
        self.kubectl("delete", "pod", pod, "-n", NAMESPACE)
        self.run_command("sweep", "watch", "s1", *server)
        trial = self.trial(server)
        self.assertEqual(trial["state"], "completed")  # the deletion did not count as a restart
        self.assertEqual(len(trial["attempts"]), 2)
        self.until(lambda: not self.running_pod(), "a pilot is left")
        self.helm("uninstall", "attune")
        for kind in ("jobs", "pods", "secrets"):
            self.until(lambda: self.cluster.list(kind, NAMESPACE) == [], f"{kind} are left")

    def open_tunnel(self):
        """Returns the options with which commands reach the server."""
        self.environment["ATTUNE_TOKEN"] = self.exec("cat", f"{DATA}/token").strip()
        tunnel = Process([self.cluster.bin / "kubectl", "port-forward", "statefulset/attune", "-n", NAMESPACE,
                          f"{(port := free_port())}:7070"], env=self.environment)
        self.processes.append(tunnel)
        server = ["--server", f"http://127.0.0.1:{port}"]
        self.until(lambda: self.attune("sweep", "list", *server)[0] == 0, "the tunnel does not open")
        return server

    def run_command(self, *words):
        code, out, err = self.attune(*words)
        self.assertEqual(code, 0, out + err)
        return out

    def trial(self, server):
        return json.loads(self.run_command("trial", "get", "s1/0", *server, "-o", "json"))

    def pilots(self, *words):
        return self.exec("attune", "kubernetes", *words, "--data-dir", DATA, check=False)

    def running_pod(self):
        """Returns the name of a running pod of a pilot, if there is one."""
        return next((pod["metadata"]["name"] for pod in self.cluster.list("pods", NAMESPACE)
                     if pod["metadata"]["name"] != "attune-0" and pod["status"]["phase"] == "Running"), None)


if __name__ == "__main__":
    if "ATTUNE_TEST_INSIDE" not in os.environ:
        kubelet.run(ROOT / "scripts/chroot", "new", CHROOT, "python3-venv", "ca-certificates", "kubernetes-client")
        kept = {path: pathlib.Path(path).read_text() for path in SETTINGS}
        # All processes, mounts and interfaces end with the namespaces.
        scratch = tempfile.mkdtemp(prefix="attune-kubelet-")
        try:
            done = subprocess.run(
                ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-B",
                 *sys.argv], env={**os.environ, "ATTUNE_TEST_INSIDE": "1", "TMPDIR": scratch})
        finally:
            for path, value in kept.items():
                pathlib.Path(path).write_text(value)
            shutil.rmtree(scratch)
            for group in pathlib.Path("/sys/fs/cgroup").glob("**/kubepods"):
                subprocess.run(["find", group, "-depth", "-type", "d", "-exec", "rmdir", "{}", "+"])
        sys.exit(done.returncode)
    for folder in ("/run", "/var/log"):
        kubelet.run("mount", "-t", "tmpfs", "tmpfs", folder)
    unittest.main()
