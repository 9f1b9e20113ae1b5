"""A node of a Kubernetes cluster for tests: it runs the containers of its pods as plain processes.

    node.py NAME SERVER TOKEN FOLDER CPUS

SERVER is the URL of the API server, and FOLDER gets the pods' volumes and logs. The processes end with this one.
An image named `missing` cannot be pulled. node.crt and node.key in the working directory are the certificate and the
key of the server that answers `kubectl logs`.
"""

import base64
import contextlib
import ctypes
import http.server
import json
import os
import pathlib
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

BEAT_S = 1
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def die_with_node():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Api:
    def __init__(self, server, token):
        self.server, self.token = server, token
        self.tls = ssl._create_unverified_context()

    def open(self, method, path, body=None, kind="application/json", timeout_s=10):
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        return urllib.request.urlopen(request, context=self.tls, timeout=timeout_s)

    def call(self, *arguments):
        with self.open(*arguments) as answer:
            return json.load(answer)

    def patch_status(self, path, status):
        self.call("PATCH", path + "/status", {"status": status}, "application/strategic-merge-patch+json")


class Pod:
    """A pod on this node. `start` and `end` run on threads of the pod."""

    def __init__(self, node, pod):
        self.node, self.api, self.pod = node, node.api, pod
        metadata = pod["metadata"]
        self.name = metadata["name"]
        self.path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{self.name}"
        self.folder = node.folder / metadata["uid"]
        self.container = pod["spec"]["containers"][0]
        self.process = None
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self.is_ending = False
        self.started = now()

    def report(self, phase, state, ready=False, **more):
        status = {**more, "phase": phase, "hostIP": "127.0.0.1", "podIP": "127.0.0.1", "startTime": self.started,
                  "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
                  "containerStatuses": [{"name": self.container["name"], "image": self.container["image"],
                                         "imageID": "", "ready": ready, "restartCount": 0, "state": state}]}
        for _ in range(600):
            try:
                return self.api.patch_status(self.path, status)
            except urllib.error.HTTPError:
                return None  # the pod is gone
            except OSError:
                time.sleep(0.1)  # the API server is away, and nothing tells when it is back

    def environment(self):
        result = dict(os.environ)
        metadata = self.pod["metadata"]
        for variable in self.container.get("env", []):
            value = variable.get("value", "")
            field = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
            if match := re.fullmatch(r"metadata\.(annotations|labels)\['(.*)'\]", field):
                value = metadata.get(match[1], {}).get(match[2], "")
            elif field == "metadata.name":
                value = self.name
            result[variable["name"]] = value
        return result

    def mount(self):
        """Creates the pod's volumes. Returns their folders by the paths at which containers see them."""
        mounts = {}
        volumes = {volume["name"]: volume for volume in self.pod["spec"].get("volumes", [])}
        for mount in self.container.get("volumeMounts", []):
            folder = self.folder / mount["name"]
            folder.mkdir(parents=True, exist_ok=True)
            if secret := volumes[mount["name"]].get("secret"):
                path = f"/api/v1/namespaces/{self.pod['metadata']['namespace']}/secrets/{secret['secretName']}"
                for name, value in self.api.call("GET", path)["data"].items():
                    (folder / name).write_bytes(base64.b64decode(value))
            mounts[mount["mountPath"]] = str(folder)
        return mounts

    def command(self, environment, mounts):
        words = []
        for word in self.container["command"] + self.container.get("args", []):
            word = re.sub(r"\$\$|\$\((\w+)\)",
                          lambda match: environment.get(match[1], match[0]) if match[1] else "$", word)
            for path, folder in mounts.items():
                if word == path or word.startswith(path + "/"):
                    word = folder + word[len(path):]
            words.append(word)
        return words

    def start(self):
        if self.container["image"] == "missing":
            return self.report("Pending", {"waiting": {
                "reason": "ImagePullBackOff", "message": 'Back-off pulling image "missing"'}})
        try:
            environment = self.environment()
            command = self.command(environment, self.mount())
            with self.lock, open(self.node.folder / f"{self.name}.log", "w") as log:
                if self.is_ending:
                    return self.ended.set()
                self.process = subprocess.Popen(command, env=environment, start_new_session=True, stdout=log,
                                                stderr=log, preexec_fn=die_with_node)
        except OSError as error:
            self.ended.set()
            return self.report("Failed", {"terminated": {"exitCode": 128, "reason": "StartError",
                                                         "message": str(error), "finishedAt": now()}})
        self.report("Running", {"running": {"startedAt": now()}}, ready=True)
        spec, late = self.pod["spec"], {}
        try:
            self.process.wait(spec.get("activeDeadlineSeconds"))
        except subprocess.TimeoutExpired:
            late = {"reason": "DeadlineExceeded", "message": "Pod was active on the node longer than the specified deadline"}
            self.stop_process(self.process, spec["terminationGracePeriodSeconds"])
        code = self.process.wait()
        self.report("Failed" if code or late else "Succeeded", {"terminated": {
            "exitCode": code & 255, "startedAt": self.started, "finishedAt": now(),
            "reason": "Error" if code else "Completed"}}, **late)
        self.ended.set()

    @staticmethod
    def stop_process(process, grace_s):
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            process.wait(grace_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def end(self, grace_s):
        """Ends the process as a kubelet does, and then removes the pod."""
        with self.lock:
            self.is_ending = True
            process = self.process
        if process is not None:
            self.stop_process(process, grace_s)
            self.ended.wait()
        for _ in range(600):
            try:
                self.api.call("DELETE", self.path, {"kind": "DeleteOptions", "apiVersion": "v1",
                                                    "gracePeriodSeconds": 0})
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.1)  # the API server is away, and nothing tells when it is back


class Logs(http.server.BaseHTTPRequestHandler):
    """Answers `kubectl logs`: GET /containerLogs/NAMESPACE/POD/CONTAINER."""

    def do_GET(self):
        file = self.server.folder / f"{self.path.split('?')[0].split('/')[3]}.log"
        self.send_response(200 if file.exists() else 404)
        self.end_headers()
        if file.exists():
            self.wfile.write(file.read_bytes())

    def log_message(self, *_):
        pass

    @classmethod
    def serve(cls, folder):
        """Starts the server and returns its port."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), cls)
        server.folder = folder
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain("node.crt", "node.key")
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server.server_port


class Node:
    def __init__(self, name, server, token, folder, cpus):
        self.name, self.api, self.folder = name, Api(server, token), pathlib.Path(folder)
        self.capacity = {"cpu": cpus, "memory": "64Gi", "pods": "2000"}
        self.pods = {}  # by uid
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = Logs.serve(self.folder)
        with contextlib.suppress(urllib.error.HTTPError):  # it exists
            self.api.call("POST", "/api/v1/nodes", {
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})
        threading.Thread(target=self.beat, daemon=True).start()

    def beat(self):
        while True:
            ready = {"type": "Ready", "status": "True", "reason": "Test", "message": "",
                     "lastHeartbeatTime": now(), "lastTransitionTime": now()}
            with contextlib.suppress(OSError):
                self.api.patch_status(f"/api/v1/nodes/{self.name}", {
                    "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}},
                    "capacity": self.capacity, "allocatable": self.capacity, "conditions": [ready]})
            time.sleep(BEAT_S)  # a heartbeat is periodic

    def look(self, pod):
        uid = pod["metadata"]["uid"]
        known = self.pods.get(uid)
        is_deleted = "deletionTimestamp" in pod["metadata"]
        if known is None:
            known = self.pods[uid] = Pod(self, pod)
            if not is_deleted and pod["status"].get("phase") == "Pending":
                threading.Thread(target=known.start, daemon=True).start()
        if is_deleted and not known.is_ending:
            known.is_ending = True
            grace_s = pod["metadata"].get("deletionGracePeriodSeconds", 30)
            threading.Thread(target=known.end, args=(grace_s,), daemon=True).start()

    def run(self):
        query = f"/api/v1/pods?fieldSelector=spec.nodeName%3D{self.name}"
        while True:
            try:
                pods = self.api.call("GET", query)
                for pod in pods["items"]:
                    self.look(pod)
                version = pods["metadata"]["resourceVersion"]
                with self.api.open("GET", f"{query}&watch=1&resourceVersion={version}", None,
                                   "application/json", 3600) as events:
                    for line in events:
                        event = json.loads(line)
                        if event["type"] in ("ADDED", "MODIFIED"):
                            self.look(event["object"])
            except (OSError, ValueError):
                time.sleep(0.1)  # the API server is away


if __name__ == "__main__":
    Node(*sys.argv[1:]).run()
