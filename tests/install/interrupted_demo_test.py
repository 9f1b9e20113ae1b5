"""`make demo` on a bare Debian 12, without a network, on full disks, and interrupted at every stage.

Takes 5 minutes on an idle machine with two CPUs, and needs root, debootstrap and the network. Run it alone with
`python3 tests/install/interrupted_demo_test.py`.

The tests run in one system, in the order of their names. Each continues where the previous one was interrupted, so it
also checks that the interruption caused no later failure.
"""

import contextlib
import os
import pathlib
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SILENCE_S = 15
STEP_S = 3600
# Files that npm needs to reach its registry. scripts/chroot copies the files that apt and pip need.
NPM_FILES = ["etc/npmrc", "usr/local/etc/npmrc", "root/.npmrc"]
HOST_VARIABLES = re.compile(r"(?i)(pip_|npm_config_|https?_proxy|no_proxy|ssl_cert|requests_ca|node_extra)")


def reason_to_skip():
    if os.geteuid() != 0:
        return "needs root, for a chroot"
    if not shutil.which("debootstrap"):
        return "needs debootstrap: apt-get install debootstrap"
    return None


def call(*command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


def make_system(system):
    call(ROOT / "scripts/chroot", "new", system, "make", "git")
    for source in [pathlib.Path("/", name) for name in NPM_FILES if pathlib.Path("/", name).exists()]:
        call("install", "-D", source, system / source.relative_to("/"))
    for name in ["proc", "sys", "dev", "dev/pts", "dev/shm"]:
        call("mount", "--bind", f"/{name}", system / name)
    call("git", "clone", "--quiet", ROOT, system / "src")


@unittest.skipIf(reason_to_skip(), reason_to_skip())
class InterruptedDemo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # background processes inherit SIG_IGN
        folder = tempfile.mkdtemp(prefix="attune-demo-")
        cls.addClassCleanup(call, "rm", "-rf", "--one-file-system", folder)
        cls.system = pathlib.Path(folder, "system")
        make_system(cls.system)
        for name in ["dev", "sys", "proc"]:
            cls.addClassCleanup(call, "umount", "--recursive", "--lazy", cls.system / name)
        cls.clone = cls.system / "src"

    @contextlib.contextmanager
    def small_disk(self, folder, megabytes):
        """Mounts a disk of this size at a folder of the system."""
        place = self.system / folder
        place.mkdir(parents=True, exist_ok=True)
        call("mount", "-t", "tmpfs", "-o", f"size={megabytes}M,mode=1777", "none", place)
        try:
            yield place
        finally:
            call("umount", "--lazy", place)

    def start(self, command="make demo", network=True):
        variables = {name: value for name, value in os.environ.items() if HOST_VARIABLES.match(name)}
        return subprocess.Popen(
            [*([] if network else ["unshare", "--net"]), "chroot", self.system, "sh", "-c", f"cd /src && exec {command}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
            env={"HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", **variables})

    def follow(self, process, interrupt_when=None, by=signal.SIGINT):
        """Reads output until the command ends. Sends Ctrl-C when `interrupt_when(output)` is true. Returns status and lines."""
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        os.set_blocking(process.stdout.fileno(), False)
        output, silence, last, interrupted = b"", 0, time.monotonic(), False
        deadline = last + STEP_S
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                selector.select(0.1)
                block = process.stdout.read(65536)
                now = time.monotonic()
                if block is not None:
                    silence, last = max(silence, now - last), now
                    output += block
                    sys.stderr.write(block.decode(errors="replace"))
                    if block == b"":
                        break
                if not interrupted and interrupt_when and interrupt_when(output.decode(errors="replace")):
                    os.killpg(process.pid, by)
                    interrupted = True
                    sys.stderr.write(f"{by.name}\n")
                if now > deadline:
                    os.killpg(process.pid, signal.SIGKILL)
        self.assertLess(silence, SILENCE_S)
        self.assertEqual(interrupted, interrupt_when is not None, "it ended before it could be interrupted")
        return process.wait(), output.decode(errors="replace").splitlines()

    def check_failure(self, remedy, network=True):
        status, lines = self.follow(self.start(network=network))
        self.assertGreater(status, 0)
        last = [line for line in lines if not line.startswith("make: ")][-1]
        self.assertIn(remedy, last)

    def check_interrupt(self, when):
        status, lines = self.follow(self.start(), interrupt_when=when)
        self.assertIn(status, [-signal.SIGINT, 2, 130])
        last = [line for line in lines if not line.startswith("make: ")][-3:]
        self.assertIn("same command", "\n".join(last))

    def has_logged(self, text, file=".deps/setup.log"):
        """Returns a condition: the next command has written the text to a file of the clone."""
        path = self.clone / file
        path.unlink(missing_ok=True)
        return lambda _: path.exists() and text in path.read_text(errors="replace")

    def is_running(self, program):
        """Returns a condition: a program runs in the system."""
        def condition(_):
            for process in pathlib.Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    if (process / "comm").read_text().strip() == program and \
                            os.readlink(process / "root") == str(self.system):
                        return True
            return False
        return condition

    def test_01_no_network(self):
        self.check_failure("the network", network=False)

    def test_02_packages(self):
        with self.small_disk("var/cache/apt/archives", 40):
            self.check_failure("free")
        with self.small_disk("tmp", 1) as folder:
            (folder / "full").write_bytes(bytes(1 << 20))
            self.check_failure("disk space")
        self.check_interrupt(self.has_logged("Get:1 "))
        unpacks = self.has_logged("Unpacking gcc-12 ")
        self.follow(self.start(), unpacks, signal.SIGKILL)  # dpkg ignores SIGINT
        self.check_interrupt(self.has_logged("Setting up "))

    def test_03_wheels(self):
        with self.small_disk("src/.deps", 200):
            self.check_failure("free")
        self.check_interrupt(lambda output: "downloading LibTorch" in output)
        self.check_interrupt(lambda _: any((self.clone / ".deps/downloads").glob("pip-target-*/*")))
        self.assertEqual(list((self.clone / ".deps").glob("*.partial")), [])

    def test_04_npm(self):
        with self.small_disk("src/web/node_modules", 20):
            self.check_failure("free")
        self.check_interrupt(lambda output: "npm packages" in output)
        self.check_failure("the network", network=False)

    def test_05_configuring(self):
        with self.small_disk("src/build", 1) as folder:
            (folder / "full").write_bytes(bytes(900 << 10))
            self.check_failure("free")
        self.check_interrupt(lambda output: "configuring" in output)

    def test_06_compiling(self):
        with self.small_disk("src/build", 6):
            self.check_failure("free")
        self.check_interrupt(self.is_running("cc1plus"))
        self.check_interrupt(self.is_running("ld"))

    def test_07_sweep(self):
        status, _ = self.follow(self.start(), interrupt_when=lambda output: "accuracy" in output)
        self.assertNotEqual(status, 0)
        status, lines = self.follow(self.start())
        self.assertEqual(status, 0, lines[-5:])

    def test_08_a_clone_that_cannot_be_written(self):
        call("mount", "--bind", self.clone, self.clone)
        call("mount", "-o", "remount,ro,bind", self.clone)
        try:
            self.check_failure("writable")
        finally:
            call("umount", "--lazy", self.clone)


if __name__ == "__main__":
    # The mounts are in a mount namespace that ends with this process.
    if not reason_to_skip() and not os.environ.get("ATTUNE_IN_NAMESPACE"):
        os.environ["ATTUNE_IN_NAMESPACE"] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, __file__, *sys.argv[1:]])
    unittest.main(verbosity=2, failfast=True)
