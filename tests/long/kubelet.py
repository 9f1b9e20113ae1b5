"""A node of Kubernetes on this machine: the kubelet with containerd, and what pods need around it.

The caller must run in new namespaces for the network, mounts and processes.
"""

import contextlib
import hashlib
import io
import json
import pathlib
import socket
import struct
import subprocess
import sys
import tarfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "tests/e2e/kubernetes")]
from support import PATIENCE_S  # noqa: E402

NAME = "n1"
SERVICES = "10.96.0.0/24"  # as in cluster.py
API_SERVICE, DNS_SERVICE = "10.96.0.1", "10.96.0.10"
PODS, NODE_ADDRESS = "10.201.0.0/16", "10.201.0.1"
IMAGE = "docker.io/library/attune:test"
PAUSE_IMAGE = "docker.io/library/pause:test"


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.stderr}")
    return done.stdout


def pack_images(layer, user, archive):
    """Packs a file system, the archive `layer`, as the image of Attune and as the image of sandboxes."""
    with open(layer, "rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    manifest = []
    with tarfile.open(archive, "w") as tar:
        def add(name, content):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))

        tar.add(layer, "layer.tar")
        for name, settings in (IMAGE, {"User": user, "Entrypoint": ["attune"]}), (PAUSE_IMAGE, {"Cmd": ["sleep", "inf"]}):
            config = json.dumps({
                "architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
                "config": {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"], **settings}}).encode()
            file = f"{hashlib.sha256(config).hexdigest()}.json"
            add(file, config)
            manifest.append({"Config": file, "RepoTags": [name], "Layers": ["layer.tar"]})
        add("manifest.json", json.dumps(manifest).encode())


def set_up_network():
    """Gives the machine an address for pods, and makes all addresses of services local."""
    run("ip", "link", "set", "lo", "up")
    run("ip", "address", "add", f"{API_SERVICE}/{SERVICES.split('/')[1]}", "dev", "lo")
    # Without an address of its own, the bridge takes that of a pod, and loses it when the pod ends.
    run("ip", "link", "add", "pods", "address", "02:00:00:00:00:01", "type", "bridge")
    run("ip", "address", "add", f"{NODE_ADDRESS}/{PODS.split('/')[1]}", "dev", "pods")
    run("ip", "link", "set", "pods", "up")
    run("ip", "route", "add", "default", "dev", "pods")


def serve_names(addresses):
    """Answers DNS questions for the names in `addresses`, as a cluster's DNS does for its services."""
    def answer(question):
        name, at = [], 12
        while length := question[at]:
            name.append(question[at + 1:at + 1 + length].decode())
            at += 1 + length
        end = at + 5  # the type and the class follow
        address = addresses.get(".".join(name).lower())
        is_ipv4 = question[at + 1:at + 3] == b"\0\1"
        record = b"\xc0\x0c" + question[at + 1:end] + struct.pack("!IH", 5, 4) + socket.inet_aton(address) \
            if address and is_ipv4 else b""
        flags = 0x8180 if address else 0x8183  # 3: no such name
        return question[:2] + struct.pack("!HHHHH", flags, 1, 1 if record else 0, 0, 0) + question[12:end] + record

    def serve():
        while True:
            question, client = server.recvfrom(512)
            server.sendto(answer(question), client)

    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((DNS_SERVICE, 53))
    threading.Thread(target=serve, daemon=True).start()


def _copy(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def _join(client, target):
    """Passes bytes between a client and an address until both directions have ended."""
    with client, contextlib.suppress(OSError), socket.create_connection(target()) as server:
        back = threading.Thread(target=_copy, args=(server, client))
        back.start()
        _copy(client, server)
        back.join()


def forward(service, target):
    """Forwards connections to the address of a service, as a node's proxy does. `target` returns an address."""
    def serve():
        while True:
            threading.Thread(target=_join, args=(listener.accept()[0], target), daemon=True).start()

    listener = socket.create_server(service)
    threading.Thread(target=serve, daemon=True).start()


def start_containerd(cluster, images):
    folder = cluster.folder
    (folder / "cni").mkdir()
    (folder / "cni/pods.conflist").write_text(json.dumps({
        "cniVersion": "0.4.0", "name": "pods", "plugins": [
            {"type": "bridge", "bridge": "pods", "isGateway": True, "ipam": {
                "type": "host-local", "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "0.0.0.0/0"}],
                "dataDir": str(folder / "addresses")}}]}))
    (folder / "containerd.toml").write_text(f"""
version = 2
root = "{folder}/containerd"
state = "{folder}/containerd-state"
[grpc]
address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE_IMAGE}"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{folder}/cni"
""")
    cluster.start("containerd", "containerd", "--config", "containerd.toml")
    ctr = ["ctr", "--address", folder / "containerd.sock", "--namespace", "k8s.io"]
    deadline = time.monotonic() + PATIENCE_S
    while subprocess.run([*ctr, "version"], capture_output=True).returncode != 0:
        if time.monotonic() > deadline:
            raise AssertionError((folder / "containerd.log").read_text()[-3000:])
        time.sleep(0.1)  # no event tells when it listens
    run(*ctr, "images", "import", images)


def start_kubelet(cluster):
    folder = cluster.folder
    (folder / "kubelet.json").write_text(json.dumps({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"}, "cgroupDriver": "cgroupfs", "failCgroupV1": False,
        "containerRuntimeEndpoint": f"unix://{folder}/containerd.sock", "failSwapOn": False,
        "evictionHard": {"memory.available": "1%", "nodefs.available": "1%", "imagefs.available": "1%"},
        "makeIPTablesUtilChains": False, "enforceNodeAllocatable": [], "podLogsDir": str(folder / "pod-logs"),
        "clusterDNS": [DNS_SERVICE], "clusterDomain": "cluster.local",
        "nodeStatusUpdateFrequency": "1s", "healthzPort": 0}))
    cluster.start("kubelet", cluster.program, "kubelet", "--config=kubelet.json", "--kubeconfig=kubeconfig",
                  f"--hostname-override={NAME}", f"--node-ip={NODE_ADDRESS}", f"--root-dir={folder}/kubelet",
                  f"--cert-dir={folder}/kubelet-certificates")
    deadline = time.monotonic() + PATIENCE_S
    while cluster.ready_nodes() != [NAME]:
        if time.monotonic() > deadline:
            raise AssertionError((folder / "kubelet.log").read_text()[-5000:])
        time.sleep(0.2)  # the controllers make nodes usable a moment after they are ready
