"""Code snapshots of `attune.client`: the same as those of the C++ module `code`."""

import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

from code_folder import Folder

from attune import _code, _code_manifest
from attune._code_manifest import Link
from attune._code_patterns import Patterns
from attune.client import Error

DATA = pathlib.Path(__file__).resolve().parents[2] / "data"


def shared_cases(name):
    return json.loads((DATA / name).read_text(encoding="utf-8"))


class PatternsOfPaths(unittest.TestCase):
    def test_match_the_files_of_gitignore(self):
        for lines, matching, others in shared_cases("code_patterns.json")["cases"]:
            patterns = Patterns.from_list(lines)
            for path in matching:
                self.assertTrue(patterns.matches_file(path), (lines, path))
            for path in others:
                self.assertFalse(patterns.matches_file(path), (lines, path))

    def test_malformed_ones_are_refused(self):
        for line in shared_cases("code_patterns.json")["malformed"]:
            with self.assertRaises(ValueError):
                Patterns.from_list([line])

    def test_lines_may_be_empty_or_comments_or_end_with_blanks(self):
        patterns = Patterns.from_lines("\ufeff# a comment\r\n\r\n\n*.log  \r\nkept\\ \nlast")
        for path, matches in (("x.log", True), ("kept ", True), ("last", True), ("# a comment", False)):
            self.assertEqual(patterns.matches_file(path), matches, path)

    def test_no_pattern_takes_exponential_time(self):
        self.assertFalse(Patterns.from_list(["*a" * 100 + "b"]).matches_file("a" * 200))
        self.assertFalse(Patterns.from_list(["**/a*" * 20 + "/b"]).matches_file("/".join(["a" * 10] * 40)))

    def test_brackets_with_empty_ranges_match_nothing(self):
        self.assertFalse(Patterns.from_list(["a[z-a]"]).matches_file("az"))
        self.assertTrue(Patterns.from_list(["a[!z-a]"]).matches_file("az"))


class Manifests(unittest.TestCase):
    def refusal(self, files, links=()):
        """Returns the message with which a manifest is refused; empty if it is valid."""
        try:
            _code_manifest.check(files, links)
        except Error as error:
            return str(error)
        return ""

    def link_refusal(self, *links):
        return self.refusal(["a/b/c.py", "top.py"], [Link(path, target) for path, target in links])

    def test_paths_that_differ_between_systems_are_refused(self):
        longest = "a" * _code_manifest.PATH_BYTES_MAX
        for paths in (["../a"], ["a/../b"], ["/a"], ["a//b"], ["."], [""], ["a\nb"], ["a\x7f"], ["\udcff"],
                      ["Net.py", "net.py"], ["Lib/a", "lib/b"], ["a", "a/b"], ["a", "a"], [longest + "a"]):
            self.assertTrue(self.refusal(paths), paths)
        self.assertEqual(self.refusal([longest, "é/ü x.py", "É/ü x.py"]), "")

    def test_links_stay_inside(self):
        for path, target in (("l", "a"), ("l", "a/b/c.py"), ("l", "./a/../top.py"), ("a/b/l", "../.."), ("a/l", "..")):
            self.assertEqual(self.link_refusal((path, target)), "")
        for path, target in (("l", "/etc/passwd"), ("l", "../x"), ("a/l", "../../x"), ("l", "missing"), ("l", ""),
                             ("l", "l"), ("l", "top.py/x"), ("top.py/l", "a"), ("l", "\udcff"), ("l", "a\n")):
            self.assertTrue(self.link_refusal((path, target)), (path, target))

    def test_links_are_followed_on_the_way_of_a_link(self):
        self.assertEqual(self.link_refusal(("l", "m/c.py"), ("m", "a/b")), "")
        # `m/..` is the folder a and not the top, because the kernel follows m first.
        self.assertEqual(self.link_refusal(("l", "m/../b"), ("m", "a/b")), "")
        self.assertIn("leads out", self.link_refusal(("a/l", "m/../../../x"), ("a/m", "b")))
        self.assertIn("circle", self.link_refusal(("l", "m"), ("m", "l")))

    def test_have_a_limit_of_entries(self):
        paths = [f"{number:05}" for number in range(_code_manifest.ENTRIES_MAX)]
        self.assertEqual(self.refusal(paths), "")
        self.assertIn("20000", self.refusal([*paths, "one"]))


class Snapshots(Folder, unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        environment = mock.patch.dict(os.environ)
        environment.start()
        self.addCleanup(environment.stop)
        self.make_folder(pathlib.Path(folder.name))

    def test_the_snapshot_of_the_test_vector(self):
        vector = shared_cases("code_snapshot.json")
        for file in vector["files"]:
            self.write(file["path"], file["text"]).chmod(0o755 if file.get("executable") else 0o644)
        for link in vector["links"]:
            (self.code / link["path"]).symlink_to(link["target"])
        snapshot = self.collect(vector["include"], vector["exclude"])
        self.assertEqual(snapshot.manifest.decode().splitlines(), vector["manifest"])
        self.assertEqual(snapshot.digest, vector["digest"])
        self.assertEqual((snapshot.commit, snapshot.dirty), ("", False))

    def test_git_knows_what_is_ignored(self):
        self.git("init")
        self.write(".gitignore", "*.log\nbuild/\n")
        for path in "train.py", "gone.py", "a.log", "build/program":
            self.write(path)
        self.git("add", ".")
        self.git("commit", "-m", "first")
        (self.code / "gone.py").unlink()
        self.write("new.py")
        self.assertEqual(self.paths(), [".gitignore", "new.py", "train.py"])
        self.assertEqual(self.paths(["build/program"], ["new.*", ".gitignore"]), ["build/program", "train.py"])
        snapshot = self.collect()
        self.assertEqual((len(snapshot.commit), snapshot.dirty), (40, True))
        self.git("add", "-A")
        self.git("commit", "-m", "second")
        self.assertFalse(self.collect().dirty)

    def test_repositories_inside_a_git_repository_belong_to_it(self):
        self.git("init")
        for folder in "module", "other", "ignored":
            self.write(f"{folder}/x.py")
            self.write(f"{folder}/x.log")
            self.write(f"{folder}/.gitignore", "*.log\n")
            self.git("init", folder=folder)
        self.git("add", ".", folder="module")
        self.git("commit", "-m", "first", folder="module")
        self.git("add", "module")  # as a submodule
        (self.code / "empty").mkdir()  # as a submodule without its files
        self.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},empty")
        self.write(".attuneignore", "ignored/\n")
        self.assertEqual(self.paths(exclude=[".*"]), ["module/x.py", "other/x.py"])

    def test_a_folder_of_a_git_repository_has_only_its_own_files(self):
        self.git("init")
        self.write("top.py")
        self.write("deep/é.py")
        (self.code / "deep/link").symlink_to("é.py")
        self.code /= "deep"
        self.assertEqual(self.paths(), ["é.py", "link->"])

    def test_a_git_repository_without_git_is_refused(self):
        (self.code / ".git").mkdir()
        os.environ["PATH"] = str(self.code)
        self.assert_refused(str(self.code), "install git")

    def test_a_failure_of_git_is_told(self):
        self.write(".git", "no repository")
        self.assert_refused("`git ls-files` failed", str(self.code))

    def test_data_folders_and_git_are_skipped(self):
        for path in "train.py", "attune-data/attune.db", "attune-data/trials/log", "other/.git/log":
            self.write(path)
        self.assertEqual(self.paths(), ["train.py"])
        self.assertEqual(self.paths(["**/log"]), ["train.py"])
        self.git("init")
        self.assertEqual(self.paths(["**/log"]), ["train.py"])

    def test_files_that_look_like_secrets_are_refused(self):
        self.write("train.py")
        self.write("conf/.env")
        self.write("conf/.env.example")
        self.assert_refused(": conf/.env. ", "code.include")
        self.assert_refused("conf/.env", include=["conf/*"])  # a wildcard names no file
        everything = ["conf/.env", "conf/.env.example", "train.py"]
        self.assertEqual(self.paths(["conf/.env"]), everything)
        self.assertEqual(self.paths(exclude=[".env"]), everything[1:])

    def test_names_of_secrets(self):
        for path in ".ENV", "a/.env.local", "x.PEM", "a/id_rsa", ".aws/credentials", "a/.kube/config", "s.tfstate":
            self.assertTrue(_code._has_secret_name(path), path)
        for path in "env", "x.pem.sample", "credentials", "my.aws/credentials", "id_rsa.pub", "kube/config":
            self.assertFalse(_code._has_secret_name(path), path)

    def test_a_private_key_is_found_by_its_content(self):
        self.write("deploy", "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n")
        self.assert_refused("deploy", ".attuneignore")
        self.assertEqual(self.paths(["deploy"]), ["deploy"])
        self.write("deploy", "-----BEGIN CERTIFICATE-----\nno PRIVATE KEY\n")
        self.assertEqual(self.paths(), ["deploy"])

    def test_too_many_bytes_name_the_largest_files(self):
        self.write("small.py", "1")
        self.write("big.bin", "x" * 20_000)
        self.assert_refused("0.02 MB", "big.bin (0.02 MB), small.py", "code.exclude", bytes_max=20_000)
        self.collect(bytes_max=20_001)

    def test_too_large_manifests_are_refused(self):
        self.write("a.py")
        with mock.patch.object(_code_manifest, "MANIFEST_BYTES_MAX", len(self.collect().manifest)):
            self.collect()
            self.write("b.py")
            self.assert_refused("manifest", "exclude")

    def test_links_out_of_the_folder_are_refused(self):
        self.write("train.py")
        (self.code / "passwd").symlink_to("/etc/passwd")
        self.assert_refused('"passwd"', "exclude the link")
        self.assertEqual(self.paths(exclude=["passwd"]), ["train.py"])

    def test_names_that_other_systems_do_not_have_are_refused(self):
        for name, fault in ((b"\xff.py", "not valid UTF-8"), (b"a\nb.py", "control character"), (b"A.py", "case")):
            self.write("a.py")
            path = os.path.join(os.fsencode(self.code), name)
            open(path, "x").close()
            self.assert_refused(fault)
            os.unlink(path)

    def test_pipes_are_skipped(self):
        self.write("train.py")
        os.mkfifo(self.code / "pipe")
        self.assertEqual(self.paths(), ["train.py"])

    def test_an_empty_folder_is_refused(self):
        self.assert_refused(str(self.code))

    def test_a_folder_that_is_gone_is_named(self):
        self.code.rmdir()
        self.assert_refused(str(self.code))

    def test_wrong_patterns_are_named(self):
        self.assert_refused('code.include: "/"', include=["*.py", "/"])
        self.assert_refused('code.exclude: ""', exclude=[""])

    def test_a_file_that_changes_while_it_is_read_is_refused(self):
        file = self.write("train.py")
        read = os.read

        def append(*arguments):
            with open(file, "a") as opened:
                opened.write("more")
            return read(*arguments)

        def touch(*arguments):
            os.utime(file, ns=(0, 0))
            return read(*arguments)

        for change in append, touch:
            with mock.patch.object(_code.os, "read", change):
                self.assert_refused(f"{file} changed while it was read: try again")

    def test_a_file_that_vanishes_before_it_is_read_is_refused(self):
        file = self.write("train.py")
        with mock.patch.object(_code_manifest, "check", lambda *_: file.unlink()):
            self.assert_refused(f"{file} changed")


if __name__ == "__main__":
    unittest.main()
