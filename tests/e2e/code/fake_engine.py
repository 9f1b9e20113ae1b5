"""A container engine for tests: its daemon runs the programs of containers on this host, as its own children.

So these processes are neither below the executor nor below the engine's command, as those of Docker.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading

IMAGE_ID = "sha256:" + "ab" * 32
DIGEST = "sha256:" + "cd" * 32

# Passes its arguments to the daemon, and prints the answer. It forwards SIGTERM to its container.
CLIENT = f"""#!{sys.executable}
import json, os, signal, socket, sys
def ask(argv):
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.connect("SOCKET")
        daemon.sendall(json.dumps({{"argv": argv, "env": dict(os.environ), "pid": os.getpid()}}).encode() + b"\\n")
        return json.loads(daemon.makefile().readline())
name = [word[7:] for word in sys.argv if word.startswith("--name=")]
signal.signal(signal.SIGTERM, lambda *_: ask(["kill", *name]))
answer = ask(sys.argv[1:])
print(answer["output"], end="", flush=True)
sys.exit(answer["code"])
"""


class FakeEngine:
    def __init__(self, folder, name):
        folder.mkdir(exist_ok=True)
        self.images = set()
        self.pulls = True  # whether pulls succeed
        self.runs = []  # arguments of `run`, and the environments in which they came
        self.containers = {}  # the processes, by name
        self.changed = threading.Condition()
        self._listener = socket.socket(socket.AF_UNIX)
        path = folder / "daemon.sock"
        self._listener.bind(str(path))
        self._listener.listen(16)
        client = folder / name
        client.write_text(CLIENT.replace("SOCKET", str(path)))
        client.chmod(0o755)
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        self._listener.close()
        for process in list(self.containers.values()):
            self._end(process)

    def _serve(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=[connection], daemon=True).start()

    def _answer(self, connection):
        with connection:
            request = json.loads(connection.makefile().readline())
            code, output = self._handle(request)
            try:
                connection.sendall(json.dumps({"code": code, "output": output}).encode() + b"\n")
            except OSError:
                pass  # the client was killed

    def _handle(self, request):
        argv = request["argv"]
        if argv[:2] == ["image", "inspect"]:
            if argv[-1] in self.images:
                return 0, f"{IMAGE_ID} {argv[-1]}@{DIGEST}\n"
            return 1, "no such image\n"
        if argv[0] == "pull":
            if not self.pulls:
                return 1, "manifest unknown\n"
            self.images.add(argv[-1])
            return 0, "layer 1 of 1\n"
        if argv[0] == "run":
            return self._run(argv, request), ""
        if argv[0] == "kill":
            os.killpg(self.containers[argv[1]].pid, signal.SIGTERM)
            return 0, ""
        if argv[0] == "rm":
            with self.changed:
                processes = [self.containers.pop(name, None) for name in argv[3:]]
                self.changed.notify_all()
            for process in filter(None, processes):
                self._end(process)
            return (0 if all(processes) else 1), ""
        return 0, ""

    def _run(self, argv, request):
        options, rest = [], list(argv[1:])
        while rest[0].startswith("-"):
            options.append(rest.pop(0))
            if options[-1] == "--mount":
                options.append(rest.pop(0))
        values = dict(option.split("=", 1) for option in options if option.startswith("--") and "=" in option)
        environment = {"PATH": os.environ["PATH"]}
        for option in options:
            if option.startswith("--env="):
                name, given, value = option[6:].partition("=")
                environment[name] = value if given else request["env"][name]
        with self.changed, open(f"/proc/{request['pid']}/fd/1", "a") as log:
            process = subprocess.Popen([values["--entrypoint"], *rest[1:]], cwd=values["--workdir"], env=environment,
                                       stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
            self.runs.append((argv, request["env"]))
            self.containers[values["--name"]] = process
            self.changed.notify_all()
        code = process.wait()
        return code if code >= 0 else 128 - code

    @staticmethod
    def _end(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def await_containers(self, count, timeout):
        """Waits until this number of containers exist; returns whether they do."""
        with self.changed:
            return self.changed.wait_for(lambda: len(self.containers) == count, timeout)
