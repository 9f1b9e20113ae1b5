"""Code snapshots of `attune.client`: the same as those of the C++ module `code`, and sent to a fake server."""

import hashlib
import io
import json
import math
import os
import pathlib
import subprocess
import tempfile
import unittest
import urllib.parse
from unittest import mock

from fake_server import SWEEP, Client, FakeServer, problem

from attune import _code, _code_manifest, _code_upload
from attune._code_manifest import Link
from attune._code_patterns import Patterns
from attune.client import Error, Server

DATA = pathlib.Path(__file__).resolve().parents[2] / "data"
NO_GIT_CONFIG = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def shared_cases(name):
    return json.loads((DATA / name).read_text(encoding="utf-8"))


class Folder:
    """The part of a test that makes a folder of code."""

    def make_folder(self, folder):
        self.code = folder / "code"
        self.code.mkdir()
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            del os.environ[name]
        os.environ.update(NO_GIT_CONFIG)

    def write(self, path, text="text\n"):
        file = self.code / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def git(self, *arguments, folder=""):
        command = ["git", "-C", self.code / folder, "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        subprocess.run(command, check=True, capture_output=True)

    def collect(self, include=(), exclude=(), bytes_max=10**6):
        return _code.collect(self.code, list(include), list(exclude), bytes_max)

    def paths(self, include=(), exclude=()):
        lines = self.collect(include, exclude).manifest.decode().splitlines()[1:]
        return [line.split("\t")[-1] + ("->" if line.startswith("link") else "") for line in lines]

    def assert_refused(self, *words, **options):
        with self.assertRaises(Error) as caught:
            self.collect(**options)
        for word in words:
            self.assertIn(word, str(caught.exception))


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


class FakeCode:
    """The part of a server that keeps code snapshots, by the contract of docs/openapi.yaml.

    `piece_actions` has an action for each of the next pieces: None takes it, "lose" takes it and breaks the connection,
    and an answer refuses it.
    """

    def __init__(self, fake, code):
        self.fake, self.code = fake, code
        self.files, self.snapshots, self.packs = {}, {}, []
        self.piece_actions, self.deletions = [], 0
        self.before_get = lambda: None

    def answer(self, path):
        request = self.fake.asked[-1]
        path, _, query = path.partition("?")
        query = dict(urllib.parse.parse_qsl(query))
        parts = path.split("/")[3:]
        if parts == ["sweeps"]:
            return self._create(query)
        snapshot = self.snapshots.setdefault(
            parts[1], {"manifest": b"", "pack": b"", "missing": [], "complete": False})
        if request.method == "GET":
            self.before_get()
            return self._state(parts[1])
        action = self.piece_actions.pop(0) if self.piece_actions else None
        if action not in (None, "lose"):
            return action
        part, offset = parts[2], int(query["offset"])
        if snapshot["complete"] or offset != len(snapshot[part]):
            return refusal("conflict", 409)
        snapshot[part] += request.body
        if part == "pack":
            self.packs.append((offset, request.body))
        self._complete(parts[1], snapshot, query.get("last") == "true")
        return FakeServer.BREAK if action == "lose" else self._state(parts[1])

    def _create(self, query):
        digest = query.get("code_digest", "").partition(":")[2]
        if self.snapshots.get(digest, {}).get("complete"):
            if not self.deletions:
                return 201, SWEEP
            self.deletions -= 1
            del self.snapshots[digest]
        status, document = refusal("code-required", 422)
        return status, {**document, "code": self.code}

    def _complete(self, digest, snapshot, is_last):
        lines = [line.split("\t") for line in snapshot["manifest"].decode().splitlines()]
        sizes = {line[3]: int(line[2]) for line in lines if line[0] == "file"}
        if is_last:
            assert hashlib.sha256(snapshot["manifest"]).hexdigest() == digest
            snapshot["missing"] = [sha256 for sha256 in sizes if sha256 not in self.files]
        elif not snapshot["missing"]:
            return
        if len(snapshot["pack"]) == sum(sizes[sha256] for sha256 in snapshot["missing"]):
            pack = io.BytesIO(snapshot["pack"])
            for sha256 in snapshot["missing"]:
                self.files[sha256] = pack.read(sizes[sha256])
                assert hashlib.sha256(self.files[sha256]).hexdigest() == sha256
            snapshot.update(complete=True, missing=[])

    def _state(self, digest):
        snapshot = self.snapshots[digest]
        return {"digest": "sha256:" + digest, "complete": snapshot["complete"], "missing": snapshot["missing"],
                "manifest_bytes": len(snapshot["manifest"]), "pack_bytes": len(snapshot["pack"])}


def refusal(name, status):
    status, document = problem(status, f"detail of {name}")
    return status, {**document, "type": f"urn:attune:problem:{name}"}


class Uploading(Folder, Client):
    def setUp(self):
        super().setUp()
        self.make_folder(self.folder)
        self.server_code = FakeCode(self.fake, {"path": "code", "include": [], "exclude": [], "digest": "", "bytes_max": 1000})
        self.fake.answers = self.server_code.answer
        self.write("train.py", "print('train')\n")
        self.write("model.py", "class Model:\n    pass\n")
        patch = mock.patch.object(_code_upload, "_PAUSE_S_MIN", 0)
        patch.start()
        self.addCleanup(patch.stop)

    def create(self, sweep="code: code\nname: test\n", **options):
        self.fake.asked.clear()
        return Server(self.fake.url, token="secret").create(sweep, **{"directory": self.folder, **options})

    def refused(self):
        with self.assertRaises(Error) as caught:
            self.create()
        return caught.exception

    def small_pieces(self, size=16):
        patch = mock.patch.object(_code_upload, "_PIECE_BYTES", size)
        patch.start()
        self.addCleanup(patch.stop)

    def parts(self):
        """Returns the last part of the path of each request."""
        return [f"{each.method} {each.path.partition('?')[0].split('/')[-1]}".replace(self.digest(), "CODE")
                for each in self.fake.asked]

    def digest(self):
        return self.collect().digest.partition(":")[2]

    def sent(self):
        """Returns the contents that the pieces of the pack had."""
        return b"".join(piece for _, piece in self.server_code.packs).decode()

    def test_sends_the_snapshot_that_the_server_requires_and_repeats_the_request(self):
        file = self.folder / "sweep.yaml"
        file.write_text("code: code\n")
        for sweep in file, "code: code\nname: x\n", {"code": "code"}:
            self.server_code.files.clear()
            self.server_code.snapshots.clear()
            self.assertEqual(self.create(sweep, directory=None if sweep == file else self.folder).id, "s1")
            self.assertEqual(self.parts(), ["POST sweeps", "GET CODE", "POST manifest", "POST pack", "POST sweeps"])
            first, last = self.fake.asked[0], self.fake.asked[-1]
            self.assertEqual(first.body, last.body)
            self.assertEqual(last.path, f"{first.path}&code_digest=sha256%3A{self.digest()}&code_dirty=false")
            self.assertNotEqual(first.headers["Idempotency-Key"], last.headers["Idempotency-Key"])
            self.assertEqual(self.fake.asked[2].headers["Content-Type"], "application/octet-stream")

    def test_names_the_commit(self):
        self.git("init")
        self.git("add", ".")
        self.git("commit", "-m", "first")
        self.create()
        self.assertRegex(self.fake.asked[-1].path, "code_dirty=false&code_commit=[0-9a-f]{40}$")
        self.write("new.py")
        self.create()
        self.assertIn("code_dirty=true", self.fake.asked[-1].path)

    def test_sends_nothing_that_the_server_has(self):
        self.create()
        self.create()
        self.assertEqual(self.parts(), ["POST sweeps", "GET CODE", "POST sweeps"])

    def test_sends_only_the_file_that_changed(self):
        self.create()
        self.server_code.packs.clear()
        self.write("train.py", "print('better')\n")
        self.create()
        self.assertEqual(self.sent(), "print('better')\n")

    def test_sends_equal_files_once(self):
        self.write("copy.py", "print('train')\n")
        self.write("empty.py", "")
        self.create()
        self.assertEqual(self.sent().count("train"), 1)

    def test_empty_files_need_no_pack(self):
        for file in self.code.iterdir():
            file.write_bytes(b"")
        self.create()
        self.assertEqual(self.parts(), ["POST sweeps", "GET CODE", "POST manifest", "POST sweeps"])

    def test_a_server_gets_only_files_that_the_sweep_names(self):
        self.server_code.code["include"] = [".ssh/id_ed25519"]
        with self.assertRaisesRegex(Error, "does not name"):
            self.create()
        self.assertEqual(self.parts(), ["POST sweeps"])

    def test_pieces_have_a_limit(self):
        self.small_pieces()
        self.create()
        sizes = [len(each.body) for each in self.fake.asked[1:-1]]
        self.assertEqual(max(sizes), 16)
        self.assertEqual([offset for offset, _ in self.server_code.packs], [0, 16, 32])
        self.assertEqual(len(self.server_code.files), 2)
        last = [dict(urllib.parse.parse_qsl(each.path.partition("?")[2]))["last"]
                for each in self.fake.asked if "/manifest" in each.path]
        self.assertEqual(set(last[:-1]), {"false"})
        self.assertEqual(last[-1], "true")

    def test_continues_an_interrupted_upload(self):
        self.small_pieces()
        rest_of_manifest = math.ceil(len(self.collect().manifest) / 16) - 3
        for pieces in (3, rest_of_manifest + 1):
            self.server_code.piece_actions = [None] * pieces + [refusal("internal", 500)]
            self.assertEqual(self.refused().status, 500)
        self.assertEqual(self.sent(), "class Model:\n   ")
        self.create()
        self.assertEqual([offset for offset, _ in self.server_code.packs], [0, 16, 32])

    def test_continues_if_the_answer_to_each_piece_is_lost(self):
        self.small_pieces()
        self.server_code.piece_actions = ["lose", None] * 100
        self.create()
        self.assertEqual([offset for offset, _ in self.server_code.packs], [0, 16, 32])
        self.assertEqual(len(self.server_code.files), 2)

    def test_accepts_that_another_client_sends_the_same(self):
        other = refusal("conflict", 409)
        self.server_code.piece_actions = [None, other, other]
        self.create()
        self.assertEqual(self.parts()[3:], ["POST pack", "GET CODE"] * 2 + ["POST pack", "POST sweeps"])

    def test_gives_up_if_the_server_gets_no_further(self):
        self.server_code.piece_actions = [None] + [refusal("conflict", 409)] * 100
        error = self.refused()
        self.assertEqual((error.status, str(error)), (409, "detail of conflict"))
        self.assertEqual(self.parts().count("POST pack"), _code_upload._ROUNDS_MAX)

    def test_damaged_code_means_that_a_file_changed(self):
        self.server_code.piece_actions = [None, refusal("code-damaged", 422)]
        error = self.refused()
        self.assertEqual(str(error), f"a file of the code in {self.code} changed while it was sent: try again")
        self.assertEqual(error.status, 422)

    def test_a_file_of_another_size_is_not_sent(self):
        file = self.code / "train.py"

        def remove():
            file.unlink(missing_ok=True)

        for change in (lambda: file.write_text("longer than it was before\n"), lambda: file.write_text("x"), remove):
            file.write_text("print('train')\n")
            self.server_code.before_get = change
            self.assertEqual(str(self.refused()), f"{file} changed while it was read: try again")
        self.assertEqual(self.server_code.packs, [])

    def test_uploads_again_if_the_snapshot_was_deleted_meanwhile(self):
        self.server_code.deletions = 1
        self.create()
        self.assertEqual(self.parts().count("POST manifest"), 2)
        self.server_code.deletions = 100
        error = self.refused()
        self.assertEqual(str(error), "detail of code-required")
        self.assertEqual(self.parts().count("POST sweeps"), 3)

    def test_other_refusals_have_the_message_of_the_server(self):
        self.server_code.piece_actions = [refusal("code-too-large", 422)]
        self.assertEqual(str(self.refused()), "detail of code-too-large")

    def test_a_file_that_looks_like_a_secret_is_not_sent(self):
        self.write("id_rsa")
        self.assertIn("id_rsa", str(self.refused()))
        self.assertEqual(len(self.fake.asked), 1)


if __name__ == "__main__":
    unittest.main()
