"""A gang whose ranks are forked from the test, so that they do not import torch again. The test is the executor."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import sys
import threading

PATIENCE_S = 60


class Gang:
    """An attempt whose ranks are forked from this process and call `script`.

    `places` has (local rank, number of ranks on its host) for each rank. `start` has more fields of the start message,
    and `action` is the verdict at each milestone. The constructor returns when the gang has ended. Then `found` has the
    results of `script` (None if it raised), `messages` has all messages to the executor, and `log` is the output.
    """

    def __init__(self, places, script, folder, action="stop", **start):
        self.messages, self.found = [], []
        self._log, self._action, size = pathlib.Path(folder) / "log", action, len(places)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._channels, children = [], []
        for rank, (local_rank, local_size) in enumerate(places):
            ours, theirs = socket.socketpair()
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                self._be_rank(script, writing, {
                    "ATTUNE_TRIAL_DIR": pathlib.Path(folder) / "files", "ATTUNE_CHANNEL_FD": theirs.fileno(),
                    "RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": local_rank, "LOCAL_WORLD_SIZE": local_size,
                    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo"})
            theirs.close()
            os.close(writing)
            ours.settimeout(PATIENCE_S)
            self._send(ours, type="start", protocol=1, sweep="s1", trial=4, rank=rank, world_size=size, seed=7,
                       local_rank=local_rank, local_world_size=local_size, **start)
            self._channels.append(ours)
            children.append((child, reading))
        threads = [threading.Thread(target=self._listen, args=(channel,)) for channel in self._channels]
        for thread in threads:
            thread.start()
        for child, reading in children:
            with open(reading) as pipe:
                self.found.append(json.loads(pipe.read() or "null"))
            os.waitpid(child, 0)
        for thread, channel in zip(threads, self._channels):
            thread.join()
            channel.close()

    @property
    def log(self):
        return self._log.read_text()

    def of_type(self, kind):
        return [message for message in self.messages if message["type"] == kind]

    def _be_rank(self, script, writing, environment):
        signal.alarm(PATIENCE_S)  # a limit, because a rank may wait for a failed rank
        try:
            log = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.environ.update({name: str(value) for name, value in environment.items()})
            from attune import _trial  # here, because the path of the package is set later than this module's imports
            found = script()
            _trial.current()._peers.leave()  # does the same as the end of a script
            with open(writing, "w") as pipe:
                json.dump(found, pipe)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(0)

    @staticmethod
    def _send(channel, **message):
        channel.sendall(json.dumps(message).encode() + b"\n")

    def _listen(self, channel):
        with contextlib.suppress(OSError):
            for line in channel.makefile("rb"):
                message = json.loads(line)
                self.messages.append(message)
                if message["type"] == "rendezvous":
                    for other in self._channels:
                        if other is not channel:
                            self._send(other, **message)
                elif message["type"] == "report" and message["waits"]:
                    self._send(channel, type="verdict", step=message["step"], action=self._action)
