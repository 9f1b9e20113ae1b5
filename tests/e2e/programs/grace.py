"""A rank that starts a child. Each notes in a file of the folder NOTES that it got SIGTERM.

    grace.py leave    both leave then
    grace.py stay     both stay

`NOTES/ready` gets the numbers of both processes once SIGTERM would be noted.
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
