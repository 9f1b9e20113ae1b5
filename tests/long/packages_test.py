"""The packages of `make package` on bare Debian 12 systems, for this machine's architecture and for aarch64."""

import email
import hashlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import markdown_pages as markdown  # noqa: E402

PACKAGES = pathlib.Path(os.environ["ATTUNE_PACKAGES"])
CHROOTS = ROOT / "build-chroots"
TO_FIRST_SWEEP_S = 60  # from `pip install FILE` to the end of the example
MAKE_ENVIRONMENT = "python3 -m venv env\nPATH=$HOME/env/bin:$PATH\n"
PATIENCE_S = 1800  # programs for other architectures are emulated

SWEEP = """
command: [python3, -c, "import attune; attune.init(); attune.report({'loss': attune.config['x']})"]
metric: {name: loss, mode: min}
parameters: {x: {values: [1.0, 2.0]}}
searcher: {name: grid}
resources: {workers: 2}
"""


def setUpModule():
    for name, options in {"amd64": [], "arm64": ["--arch", "arm64"]}.items():
        subprocess.run([ROOT / "scripts/chroot", "new", *options, CHROOTS / name, "python3-venv"], check=True)


def examples():
    """Returns {file: a program of the documentation that starts a local server}."""
    found = {}
    for file in ROOT / "docs/reference/python.md", ROOT / "clients/python/PYPI.md":
        for block in markdown.code(file.read_text(), "python", None):
            if "with LocalServer(" in block:
                found[file.name] = block
    return found


class System(unittest.TestCase):
    """A bare Debian 12 with Python."""

    chroot, machine, debian = "amd64", "x86_64", "amd64"
    binds = [f"{PACKAGES}:/packages"]
    prepare = ""  # commands before a sweep

    def run_in(self, script, *binds):
        """Runs a script in the system, which it cannot change, and returns its output."""
        command = [ROOT / "scripts/chroot", "run"]
        for bind in (*self.binds, *binds):
            command += ["--bind", bind]
        running = subprocess.Popen([*command, CHROOTS / self.chroot, "bash", "-euo", "pipefail", "-c",
                                    "cd /root\n" + script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        try:
            said, errors = running.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            self.fail(f"not done after {PATIENCE_S} s: {script}")
        self.assertEqual(running.returncode, 0, said + errors)
        return said

    def install(self):
        return f"{MAKE_ENVIRONMENT}pip install --quiet --no-index /packages/*manylinux*_{self.machine}.whl\n"


class Installed:
    def test_the_examples_of_the_documentation_run(self):
        self.assertIn("PYPI.md", examples())
        self.assertGreater(len(examples()), 1)
        for name, program in examples().items():
            with self.subTest(name):
                said = self.run_in(f"{self.install()}cat >tune.py <<'END'\n{program}\nEND\n"
                                   f"{self.prepare}python3 tune.py\n")
                self.assertRegex(said.splitlines()[-1], r"^\{'lr': [\d.e-]+, 'width': \d+\}$")

    def test_the_program_of_the_wheel_runs_workers_in_python(self):
        said = self.run_in(f"{self.install()}cat >sweep.yaml <<'END'{SWEEP}END\n{self.prepare}"
                           "attune run sweep.yaml --quiet -o json\n")
        self.assertIn('"metrics":{"loss":1.0}', said)

    def test_the_archive_runs_from_any_folder(self):
        said = self.run_in(f"tar -xzf /packages/attune-*-linux-{self.machine}.tar.gz\nattune-*/bin/attune version\n")
        self.assertRegex(said, r"^attune \d")

    def test_the_debian_package_installs_with_its_dependencies(self):
        said = self.run_in("apt-get update >&2\n"
                           f"apt-get install -y --no-install-recommends /packages/attune_*_{self.debian}.deb >&2\n"
                           "/usr/bin/attune version\nls /usr/lib/systemd/system/attune.service\n")
        self.assertRegex(said, r"^attune \d")


class OnX8664(Installed, System):
    def test_the_first_sweep_is_done_within_a_minute(self):
        said = self.run_in(f"began=$(date +%s%N)\n{self.install()}"
                           f"cat >tune.py <<'END'\n{examples()['PYPI.md']}\nEND\n"
                           "python3 tune.py\necho $(($(date +%s%N) - began))\n")
        self.assertLess(int(said.splitlines()[-1]) / 1e9, TO_FIRST_SWEEP_S)


class OnAarch64(Installed, System):
    chroot, machine, debian = "arm64", "aarch64", "arm64"
    prepare = "export LD_PRELOAD=/programs/subreaper.so\n"

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.binds = [*cls.binds, f"{folder.name}:/programs"]
        subprocess.run([ROOT / "scripts/chroot", "run", "--bind", f"{ROOT / 'tests/long/programs'}:/source",
                        "--bind", f"{folder.name}:/programs", CHROOTS / "cross-aarch64", "aarch64-linux-gnu-gcc",
                        "-shared", "-fPIC", "-o", "/programs/subreaper.so", "/source/subreaper.c"], check=True)


class Files(System):
    def test_setuptools_packs_the_same_files_and_metadata(self):
        said = self.run_in(MAKE_ENVIRONMENT + "cp -rL /package copy\npip wheel --quiet --no-deps --wheel-dir . ./copy\n"
                           "python3 -m zipfile -e attune_hpo-*.whl made\n(cd made && ls attune)\n"
                           "echo ----\ncat made/*.dist-info/METADATA\n",
                           f"{ROOT / 'clients/python'}:/package", f"{ROOT / 'LICENSE'}:/LICENSE")
        with zipfile.ZipFile(next(PACKAGES.glob("*-none-any.whl"))) as packed:
            name, = (name for name in packed.namelist() if name.endswith("/METADATA"))
            ours = email.message_from_bytes(packed.read(name))
            files = [name.split("/")[1] for name in packed.namelist() if name.startswith("attune/")]
        listed, _, said = said.partition("----\n")
        self.assertEqual(sorted(listed.split()), sorted(files))
        self.assertIn("_contract.pyi", files)
        theirs = email.message_from_string(said)
        for metadata in ours, theirs:
            del metadata["Metadata-Version"], metadata["Dynamic"]
        self.assertEqual(sorted(ours.items()), sorted(theirs.items()))
        self.assertEqual(ours.get_payload().strip(), theirs.get_payload().strip())

    def test_checksums_cover_all_packages(self):
        listed = dict(reversed(line.split()) for line in (PACKAGES / "SHA256SUMS").read_text().splitlines())
        files = {file.name: file for file in PACKAGES.iterdir() if file.name != "SHA256SUMS"}
        self.assertEqual(listed, {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()})
        for ending in ("linux-x86_64.tar.gz", "linux-aarch64.tar.gz", "manylinux_2_5_x86_64.whl",
                       "manylinux2014_aarch64.manylinux_2_17_aarch64.whl", "none-any.whl", "_amd64.deb", "_arm64.deb"):
            self.assertEqual(len([name for name in files if name.endswith(ending)]), 1, ending)


if __name__ == "__main__":
    unittest.main()
