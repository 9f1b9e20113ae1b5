"""A worker in Python that uses the worker channel directly (docs/reference/worker-channel.md).

The trial's configuration controls its behaviour; see `Plan`. Between steps, the worker passes gates: it waits before
step N while a test holds an exclusive lock on the file `step-N` in the folder GATES.
"""

import fcntl
import hashlib
import json
import os
import select
import signal
import socket
import sys
import time


class Channel:
    def __init__(self):
        self.socket = socket.socket(fileno=int(os.environ["ATTUNE_CHANNEL_FD"]))
        self.pending = b""

    def send(self, **message):
        self.socket.sendall((json.dumps(message) + "\n").encode())

    def receive(self):
        while b"\n" not in self.pending:
            data = self.socket.recv(65536)
            if not data:
                sys.exit(3)  # the executor has ended
            self.pending += data
        line, self.pending = self.pending.split(b"\n", 1)
        return json.loads(line)

    def has_message(self):
        return b"\n" in self.pending or bool(select.select([self.socket], [], [], 0)[0])

    def receive_verdict(self):
        while True:
            message = self.receive()
            if message["type"] == "verdict":
                return message


def pass_gate(step):
    folder = os.environ.get("GATES")
    path = folder and os.path.join(folder, f"step-{step}")
    if path and os.path.exists(path):
        with open(path) as gate:
            fcntl.flock(gate, fcntl.LOCK_SH)


def save_checkpoint(start, step):
    """Writes a folder with a manifest, renames it into place, and returns (path, digest, bytes)."""
    name = f"step-{step}-attempt-{start['attempt']}"
    final = os.path.join(start["checkpoint_dir"], name)
    partial = os.path.join(start["checkpoint_dir"], "." + name)
    os.makedirs(partial)
    state = json.dumps({"step": step}).encode()
    manifest = json.dumps({
        "format": "attune-checkpoint/1", "step": step, "world_size": start["world_size"],
        "files": {"state.json": {"bytes": len(state), "sha256": hashlib.sha256(state).hexdigest()}},
    }).encode()
    for file, content in (("state.json", state), ("manifest.json", manifest)):
        with open(os.path.join(partial, file), "wb") as out:
            out.write(content)
    os.rename(partial, final)
    return final, "sha256:" + hashlib.sha256(manifest).hexdigest(), len(state)


def misbehave(mode, channel, start):
    if mode == "exit":
        print("giving up", flush=True)
        sys.exit(1)
    if mode == "throw":
        channel.send(type="error", message="too green")
        sys.exit(1)
    if mode == "hang":
        channel.send(type="progress", step=0)
        signal.pause()
    if mode == "babble":
        channel.socket.sendall(b"hello\n")
        signal.pause()
    if mode == "nan-seconds":
        channel.send(type="report", step=1, metrics={"score": 1.0}, seconds="nan")
        signal.pause()
    if mode == "die" and start["rank"] == start["world_size"] - 1:
        os.kill(os.getpid(), signal.SIGKILL)


def main():
    channel = Channel()
    start = channel.receive()
    config = start["config"]
    misbehave(config.get("mode", ""), channel, start)

    step = start.get("resume", {}).get("step", 0)
    if step:
        with open(os.path.join(start["resume"]["path"], "state.json")) as file:
            assert json.load(file)["step"] == step
    milestone, last = start["milestone"], start["max_step"]
    began = time.monotonic()
    channel.send(type="progress", step=0)
    if start["rank"] > 0:
        signal.pause()  # rank 0 trains; its end ends the gang
    while not last or step < last:
        step += 1
        pass_gate(step)
        if config.get("mode") == "die-at" and step == config["at"] and start["attempt"] == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        asked = channel.has_message() and channel.receive()["type"] == "yield"
        decides = asked or bool(milestone and step >= milestone) or step == last
        if decides or (start["checkpoint_every"] and step % start["checkpoint_every"] == 0):
            path, digest, size = save_checkpoint(start, step)
            channel.send(type="checkpoint", step=step, path=path, digest=digest, bytes=size)
            if config.get("mode") == "die-saved" and step == config["at"] and start["attempt"] == 1:
                os.kill(os.getpid(), signal.SIGKILL)
        score = config["x"] * (1 - 0.5 ** step)
        if config.get("mode") == "logs":
            channel.send(type="log", step=step - 0.5, metrics={"halfway": score / 2})
        channel.send(type="report", step=step, metrics={"score": score},
                     seconds=time.monotonic() - began, waits=decides)
        channel.send(type="progress", step=step)
        print(f"step {step} score {score}", flush=True)
        if decides:
            verdict = channel.receive_verdict()
            if verdict["action"] != "continue":
                break
            milestone = verdict["milestone"]
    channel.send(type="done")


main()
