"""Packaging: ELF headers, wheels and the Python package in them. The tests need no built binary."""

import base64
import csv
import email
import hashlib
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "clients/python"
X86_64, AARCH64 = 62, 183
PATIENCE_S = 60

sys.path.insert(0, str(ROOT / "packaging"))
import elf  # noqa: E402
import wheel  # noqa: E402

# Imports the package on a simulated system without these names, and trains without a server.
ELSEWHERE = """
import os, select, signal, socket, sys
import attune.client, attune.function, attune.launcher, attune.tensorboard
for name in [name for name in sys.modules if name.partition(".")[0] == "attune"]:
    del sys.modules[name]
for name in "fcntl", "grp", "pwd", "resource", "termios":
    sys.modules[name] = None
for module, names in {
        os: "sched_getaffinity fork waitpid WNOHANG pidfd_open killpg setpgid setsid getppid geteuid getuid uname",
        socket: "AF_UNIX SO_PEERCRED MSG_DONTWAIT MSG_CMSG_CLOEXEC SCM_RIGHTS send_fds recv_fds",
        select: "poll epoll", signal: "SIGKILL SIGCHLD SIGHUP pthread_sigmask"}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
import attune, attune.client, attune.function, attune.launcher, attune.tensorboard
assert attune.init({"lr": 0.5})["lr"] == 0.5
attune.report({"loss": 1.0})
print(attune.cpus, attune.by_hand)
"""


def program(machine, needed, interpreter=None):
    """Returns the smallest ELF file with these headers. Its only segment is the whole file."""
    base, names = 0x400000, b"\0" + b"".join(name.encode() + b"\0" for name in needed)
    headers = 3 if interpreter else 2
    strings = 64 + 56 * headers
    loader = strings + len(names)
    dynamic = loader + len(interpreter or "") + 1
    entries, place = [(5, base + strings)], 1
    for name in needed:
        entries.append((1, place))
        place += len(name) + 1
    entries.append((0, 0))
    size = dynamic + 16 * len(entries)
    segments = [(1, 4, 0, base, base, size, size, 4096),
                (2, 4, dynamic, base + dynamic, base + dynamic, 16 * len(entries), 16 * len(entries), 8)]
    if interpreter:
        segments.append((3, 4, loader, base + loader, base + loader, len(interpreter) + 1, len(interpreter) + 1, 1))
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, base, 64, 0, 0, 64, 56,
                                                             headers, 0, 0, 0)
    return (header + b"".join(struct.pack("<IIQQQQQQ", *each) for each in segments) + names
            + (interpreter or "").encode() + b"\0" + b"".join(struct.pack("<QQ", *each) for each in entries))


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


class Elf(Folder):
    def test_reads_a_program_of_another_architecture(self):
        read = elf.Elf(self.file("program", program(AARCH64, ["libm.so.6", "libc.so.6"], "/lib/ld-linux-aarch64.so.1")))
        self.assertEqual((read.machine, read.interpreter, read.needed),
                         ("aarch64", "/lib/ld-linux-aarch64.so.1", ["libm.so.6", "libc.so.6"]))

    def test_finds_indirect_libraries_of_the_right_architecture(self):
        binary = self.file("program", program(AARCH64, ["libone.so"], "/lib/ld-linux-aarch64.so.1"))
        self.file("a/libone.so", program(X86_64, ["libother.so"]))
        self.file("b/libone.so", program(AARCH64, ["libtwo.so", "ld-linux-aarch64.so.1"]))
        self.file("b/libtwo.so", program(AARCH64, ["libone.so"]))
        found = elf.libraries(binary, [self.folder / "a", self.folder / "b"])
        self.assertEqual(found, {name: self.folder / "b" / name for name in ("libone.so", "libtwo.so")})

    def test_finds_libraries_that_the_program_opens(self):
        binary = self.file("program", program(X86_64, ["libone.so"], "/lib64/ld-linux-x86-64.so.2"))
        for name, needed in ("one", []), ("two", ["libthree.so"]), ("three", ["libone.so"]):
            self.file(f"lib/lib{name}.so", program(X86_64, needed))
        found = elf.libraries(binary, [self.folder / "lib"], ["libtwo.so"])
        self.assertEqual(sorted(found), ["libone.so", "libthree.so", "libtwo.so"])

    def test_names_the_library_that_is_missing(self):
        binary = self.file("program", program(X86_64, ["libnone.so"]))
        with self.assertRaisesRegex(elf.Error, "libnone.so for x86_64"):
            elf.libraries(binary, [self.folder])

    def test_refuses_incomplete_elf_files(self):
        whole = program(X86_64, ["libc.so.6"], "/lib64/ld-linux-x86-64.so.2")
        for content in b"", b"#!/bin/sh\n", whole[:70], whole[:130], whole[:-20], program(3, []):
            with self.subTest(len(content)), self.assertRaises(elf.Error):
                elf.Elf(self.file("program", content))

    def test_finds_the_same_libraries_as_the_loader(self):
        tar = shutil.which("tar")
        said = subprocess.run(["ldd", tar], capture_output=True, text=True, check=True).stdout
        found = elf.libraries(tar, elf.library_folders())
        self.assertGreater(len(found), 1)
        self.assertEqual({name: file.resolve() for name, file in found.items()},
                         {name: pathlib.Path(file).resolve() for name, file in re.findall(r"(\S+) => (/\S+)", said)})

    def test_reads_folders_of_includes(self):
        conf = self.file("ld.so.conf", "# comment\ninclude conf.d/*.conf\n/last\n")
        self.file("conf.d/b.conf", "/second\n")
        self.file("conf.d/a.conf", "/first  # why\n")
        self.assertEqual([str(folder) for folder in elf.library_folders(conf)[:3]], ["/first", "/second", "/last"])


class Wheel(Folder):
    def setUp(self):
        super().setUp()
        wheel.write(self.folder, [], {})
        self.pure, = self.folder.glob("*.whl")

    def test_record_lists_each_file_with_its_hash(self):
        wheel.write(self.folder, ["linux_x86_64"], {"bin/attune": (b"#!/bin/sh\n", True), "lib/attune/a": (b"a", False)})
        for file in self.folder.glob("*.whl"):
            with zipfile.ZipFile(file) as packed:
                record, = (name for name in packed.namelist() if name.endswith("/RECORD"))
                rows = list(csv.reader(packed.read(record).decode().splitlines()))
                self.assertEqual([row[0] for row in rows], packed.namelist())
                self.assertEqual(rows[-1], [record, "", ""])
                for name, digest, size in rows[:-1]:
                    content = packed.read(name)
                    expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
                    self.assertEqual((digest, int(size)), (f"sha256={expected}", len(content)), name)

    def test_metadata_matches_pyproject(self):
        with zipfile.ZipFile(self.pure) as packed:
            read = email.message_from_bytes(packed.read(next(
                name for name in packed.namelist() if name.endswith("/METADATA"))))
            self.assertIn(f"attune_hpo-{read['Version']}.dist-info/licenses/LICENSE", packed.namelist())
        about = wheel.project()
        self.assertEqual([read[name] for name in ("Name", "Version", "Summary", "License-Expression", "Requires-Python")],
                         [about[name] for name in ("name", "version", "description", "license", "requires-python")])
        self.assertEqual(read.get_all("Classifier"), about["classifiers"])
        self.assertEqual(read["Keywords"].split(","), about["keywords"])
        self.assertEqual(read.get_all("Provides-Extra"), ["storage"])
        self.assertEqual(read.get_all("Requires-Dist"),
                         [f'{each}; extra == "storage"' for each in about["optional-dependencies"]["storage"]])
        self.assertEqual(read["Description-Content-Type"], "text/markdown")
        self.assertEqual(read.get_payload(), (PACKAGE / "PYPI.md").read_text())

    def test_the_version_matches_the_binary(self):
        stated = re.search(r"project\(attune VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
        self.assertEqual(wheel.project()["version"], stated)

    def test_equal_files_give_equal_wheels(self):
        before = self.pure.read_bytes()
        wheel.write(self.folder, [], {})
        self.assertEqual(self.pure.read_bytes(), before)

    def test_the_pure_wheel_imports_on_other_systems(self):
        self.assertTrue(self.pure.name.endswith("-py3-none-any.whl"))
        done = python(self.pure, ELSEWHERE, cwd=self.folder)
        self.assertRegex(done.stdout, r"\n[1-9]\d* True\n$", done.stderr)

    def test_without_the_program_the_client_gives_the_next_step(self):
        cases = {("linux", "x86_64"): "attune-hpo for Linux", ("darwin", "arm64"): "attune serve"}
        for (system, machine), remedy in cases.items():
            done = python(self.pure, "import platform, types\nimport attune._serve\n"
                                     "from attune.client import Error, LocalServer\n"
                                     f"attune._serve.sys = types.SimpleNamespace(platform={system!r})\n"
                                     f"platform.machine = lambda: {machine!r}\n"
                                     "try: LocalServer('data', attune='no-such-program')\n"
                                     "except Error as error: print(error)\n", cwd=self.folder)
            self.assertIn(remedy, done.stdout, done.stderr)


class Pack(unittest.TestCase):
    def test_refuses_an_architecture_before_it_builds(self):
        done = subprocess.run([ROOT / "packaging/pack", "riscv64"], capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("riscv64", done.stderr)


class OtherProject(Folder):
    """The package `attune` of PyPI in the folder of this package."""

    def setUp(self):
        super().setUp()
        shutil.copytree(PACKAGE / "attune", self.folder / "attune", ignore=shutil.ignore_patterns("__pycache__"))
        (self.folder / "attune_hpo-0.1.0.dist-info").mkdir()

    def test_a_package_with_the_same_name_can_be_imported_alone(self):
        done = python(self.folder, "import attune, attune.client")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_import_explains_the_conflict(self):
        for record in "attune-0.5.1.dist-info", "attune-0.4.egg-info":
            (self.folder / record).mkdir()
            done = python(self.folder, "import attune")
            self.assertIn("pip uninstall attune attune-hpo", done.stderr.splitlines()[-1])
            self.assertIn(f"and {record.rpartition('.')[0]}.", done.stderr)
            (self.folder / record).rmdir()

    def test_modules_explain_the_conflict_after_files_were_replaced(self):
        (self.folder / "attune-0.5.1.dist-info").mkdir()
        (self.folder / "attune/__init__.py").write_text("")
        for name in "client", "function", "launcher", "tensorboard", "torch", "lightning", "transformers":
            done = python(self.folder, f"import attune.{name}")
            self.assertIn("pip uninstall attune attune-hpo", done.stderr, name)


def python(path, text, **options):
    """Runs a program with only the package from `path`."""
    return subprocess.run([sys.executable, "-B", "-S", "-c", text], capture_output=True, text=True, timeout=PATIENCE_S,
                          env={**os.environ, "PYTHONPATH": str(path)}, **options)


if __name__ == "__main__":
    unittest.main()
