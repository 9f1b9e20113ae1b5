"""Code snapshots that `attune.client` sends to a fake server."""

import hashlib
import io
import math
import unittest
import urllib.parse
from unittest import mock

from code_folder import Folder
from fake_server import SWEEP, Client, FakeServer, problem

from attune import _code_upload
from attune.client import Error, Server


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
