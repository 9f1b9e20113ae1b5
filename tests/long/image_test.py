"""The server image: runs the instructions of packaging/Containerfile in a bare Debian 12, without a registry.

The test knows only the instructions that the file uses and fails on others.
"""

import fcntl
import glob
import json
import os
import pathlib
import re
import shlex
import socket
import struct
import subprocess
import sys
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = pathlib.Path(os.environ["ATTUNE_PACKAGES"])
CHROOT = ROOT / "build-chroots/amd64"
PATIENCE_S = 120
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1


class Image:
    """A Containerfile: `build` has the commands that create its root; the other fields are its declarations."""

    def __init__(self, text):
        self.build, self.user, arguments = [], "root", {}
        text = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.M))
        for line in filter(None, text.splitlines()):
            name, rest = line.split(None, 1)
            rest = re.sub(r"\$\{(\w+)\}", lambda match: arguments[match.group(1)], rest)
            getattr(self, f"_{name.lower()}")(rest, arguments)

    def _from(self, rest, _):
        self.base = rest

    def _arg(self, rest, arguments):
        name, _, value = rest.partition("=")
        arguments[name] = value

    def _add(self, rest, _):
        pattern, target = rest.split()
        archive, = glob.glob(pattern, root_dir=PACKAGES)
        self.build.append(f"mkdir -p {target}; tar -xzf /context/{archive} -C {target}")

    def _run(self, rest, _):
        if not rest.startswith("apt-get "):  # the chroot has the packages, and no network
            self.build.append(rest)

    def _user(self, rest, _):
        self.user = rest

    def _volume(self, rest, _):
        self.volume = rest

    def _expose(self, rest, _):
        self.ports = [int(port) for port in rest.split()]

    def _healthcheck(self, rest, _):
        self.check = json.loads(rest.partition("CMD ")[2])

    def _entrypoint(self, rest, _):
        self.entrypoint = json.loads(rest)

    def _cmd(self, rest, _):
        self.command = json.loads(rest)

    def as_user(self, words):
        return f"setpriv --reuid={self.user} --regid={self.user} --init-groups {shlex.join(words)}"


class Server(unittest.TestCase):
    def setUp(self):
        self.image = Image((ROOT / "packaging/Containerfile").read_text())
        # Prints the exit status of the health check for each input line, and of the server at the end.
        script = "\n".join([
            *self.image.build, self.image.as_user([*self.image.entrypoint, "version"]),
            f"{self.image.as_user(self.image.entrypoint + self.image.command)} 2>&1 & server=$!",
            f"while read -r _; do status=0; {self.image.as_user(self.image.check)} >&2 || status=$?; echo $status; done",
            "kill $server; wait $server; echo ended with $?"])
        self.container = subprocess.Popen(
            [ROOT / "scripts/chroot", "run", "--bind", f"{PACKAGES}:/context", CHROOT, "bash", "-euc", script],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.container.communicate)
        self.said = []
        for line in self.container.stdout:
            self.said.append(line)
            if line.startswith("page "):  # the server is ready
                break

    def get(self, path):
        with urllib.request.urlopen(f"http://localhost:{self.image.ports[0]}{path}", timeout=PATIENCE_S) as answer:
            return answer.status

    def test_it_runs_as_a_user_and_keeps_data_in_the_volume(self):
        self.assertRegex(self.said[0], r"^attune \d", self.said)
        self.assertRegex(self.image.base, r"\bdebian:12-slim$")  # the chroot replaces this image
        self.assertEqual(self.get("/livez"), 200)
        self.assertEqual(self.get("/"), 200)
        with socket.create_connection(("localhost", self.image.ports[1])):
            pass  # the port for executors is open
        processes = [pathlib.Path(path) for path in glob.glob("/proc/[0-9]*/cmdline")]
        server, = (path for path in processes if self.image.volume.encode() in path.read_bytes()
                   and b"attune-loader" in path.read_bytes())
        self.assertNotEqual(server.stat().st_uid, 0)
        self.assertTrue((server.parent / "root" / self.image.volume[1:] / "token").exists())

    def test_its_health_check_passes_and_sigterm_ends_it(self):
        said, _ = self.container.communicate("check\n", timeout=PATIENCE_S)
        lines = said.splitlines()
        self.assertIn("0", lines)
        self.assertEqual(lines[-1], "ended with 0")


if __name__ == "__main__":
    if "ATTUNE_TEST_INSIDE" not in os.environ:  # uses a new network namespace, so that the ports of the image are free
        subprocess.run([ROOT / "scripts/chroot", "new", CHROOT, "python3-venv", "ca-certificates", "kubernetes-client"],
                       check=True)
        os.execvpe("unshare", ["unshare", "--net", sys.executable, "-B", *sys.argv], {**os.environ, "ATTUNE_TEST_INSIDE": "1"})
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
    unittest.main()
