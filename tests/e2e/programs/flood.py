"""A worker that reports FLOOD_REPORTS steps as fast as it can, without waiting for verdicts."""

import os
import socket

CHUNK = 1000

channel = socket.socket(fileno=int(os.environ["ATTUNE_CHANNEL_FD"]))
reports = int(os.environ["FLOOD_REPORTS"])
line = b'{"type":"report","step":%d,"metrics":{"score":0.5},"seconds":1,"waits":false}\n'
for first in range(1, reports + 1, CHUNK):
    last = min(first + CHUNK, reports + 1)
    channel.sendall(b"".join(line % step for step in range(first, last)))
channel.sendall(b'{"type":"done"}\n')
