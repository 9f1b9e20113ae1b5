"""A rank that starts a child. Each writes a file in the folder NOTES when it receives SIGTERM.

    grace.py leave    both exit after SIGTERM
    grace.py stay     both ignore SIGTERM

`NOTES/ready` gets the ids of both processes as soon as both handle SIGTERM.
"""

import os
import signal
import sys


def note(name, text=""):
    with open(os.path.join(os.environ["NOTES"], name), "w") as file:
        file.write(text)


def note_sigterm(name):
    def told(*_):
        note(name)
        if sys.argv[1] == "leave":
            os._exit(0)
    signal.signal(signal.SIGTERM, told)


note_sigterm("child")
child = os.fork()
if child:
    note_sigterm("rank")
    note("ready", f"{os.getpid()} {child}")
while True:
    signal.pause()
