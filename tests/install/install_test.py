"""The installed SDK, and a project outside this repository that finds and links it."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["ATTUNE_BUILD_DIR"])
CMAKE = os.environ.get("ATTUNE_CMAKE", "cmake")


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.prefix = cls.folder / "prefix"
        cls.project = cls.folder / "line"
        shutil.copytree(ROOT / "examples/line", cls.project)
        done = run(CMAKE, "--install", BUILD, "--component", "sdk", "--prefix", cls.prefix)
        assert done.returncode == 0, done.stderr

    def configure(self, build, *options, project=None):
        return run(CMAKE, "-S", project or self.project, "-B", self.folder / build,
                   f"-DCMAKE_PREFIX_PATH={self.prefix}",
                   f"-DCMAKE_CXX_COMPILER_LAUNCHER={os.environ.get('ATTUNE_LAUNCHER', '')}",
                   *options)

    def test_an_outside_program_is_built_and_trains(self):
        configured = self.configure("build")
        self.assertEqual(configured.returncode, 0, configured.stderr)
        built = run(CMAKE, "--build", self.folder / "build")
        self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
        trained = run(self.folder / "build/line", "--config", "lr=0.1", "--workers", "2",
                      "--max-step", "2")
        self.assertEqual(trained.returncode, 0, trained.stderr)
        self.assertIn("loss", trained.stdout)
        needed = run("readelf", "-d", self.folder / "build/line").stdout
        self.assertIn("libtorch_cpu", needed)
        self.assertNotIn("libcurl", needed)  # it takes 15 ms to load and is only needed for downloads

    def test_an_outside_program_downloads(self):
        project = self.folder / "fetch"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            (self.project / "CMakeLists.txt").read_text().replace("line", "fetch"))
        (project / "fetch.cc").write_text(
            "#include <attune/download.h>\n"
            "int main(int, char** argv) { attune::Download(argv[1], argv[2], argv[3]); }\n")
        source, target = project / "source", project / "data/target"
        source.write_text("hello\n")
        configured = self.configure("fetch-build", project=project)
        self.assertEqual(configured.returncode, 0, configured.stderr)
        built = run(CMAKE, "--build", self.folder / "fetch-build")
        self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
        fetched = run(self.folder / "fetch-build/fetch", source.as_uri(),
                      hashlib.sha256(b"hello\n").hexdigest(), target)
        self.assertEqual(fetched.returncode, 0, fetched.stderr)
        self.assertEqual(target.read_text(), "hello\n")

    def test_installed_files_name_no_file_of_the_build(self):
        targets = "".join(file.read_text() for file in self.prefix.rglob("attune-targets*.cmake"))
        self.assertIn("attune::trainable", targets)
        self.assertNotIn(str(BUILD), targets)
        self.assertNotIn(str(ROOT / "trainable"), targets)

    def test_a_different_libtorch_is_refused(self):
        other = self.folder / "torch"
        headers = other / "include/torch/headeronly"
        headers.mkdir(parents=True)
        (headers / "version.h").write_text("".join(
            f"#define TORCH_VERSION_{part} {number}\n"
            for part, number in (("MAJOR", 99), ("MINOR", 1), ("PATCH", 0))))
        (other / "lib").mkdir()
        (other / "lib/libtorch_cpu.so").touch()
        refused = self.configure("other", f"-DATTUNE_TORCH_DIR={other}")
        self.assertNotEqual(refused.returncode, 0)
        said = " ".join(refused.stderr.split())
        self.assertIn(" 99.1.0, ", said)
        self.assertIn("-DATTUNE_TORCH_DIR=DIR", said)

    def test_an_incompatible_release_is_not_found(self):
        text = (self.project / "CMakeLists.txt").read_text()
        project = self.folder / "newer"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(text.replace("attune 0.1", "attune 0.99"))
        shutil.copy(self.project / "line.cc", project)
        refused = run(CMAKE, "-S", project, "-B", project / "build",
                      f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("0.99", refused.stderr)


if __name__ == "__main__":
    unittest.main()
