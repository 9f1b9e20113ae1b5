"""Sends code snapshots to a server, and creates sweeps with them (docs/reference/rest-api.md)."""

from __future__ import annotations

import json
import os
import time
import typing

from attune import _code
from attune._code_manifest import File, printable
from attune._rest import Error, Rest, is_problem, problem_of

if typing.TYPE_CHECKING:
    from attune._contract import CodeSnapshot, SweepDetail

_PIECE_BYTES = 1 << 20  # the maximum that the server accepts
_UPLOADS_MAX = 2  # of one sweep; the server may delete a snapshot before a sweep uses it
_ROUNDS_MAX = 10  # in which the server gets no further
_PAUSE_S_MIN, _PAUSE_S_MAX = 0.05, 1.0


def create_sweep(rest: Rest, text: bytes, query: dict[str, typing.Any], document: str) -> SweepDetail:
    """Creates a sweep from the text of a sweep file. If the file has `code`, sends the snapshot that the server needs.

    `query` has the `directory` from which relative paths start. `document` names the text in messages about faults.
    """
    of_snapshot: dict[str, str] = {}
    for _ in range(_UPLOADS_MAX):
        try:
            return _post_sweep(rest, text, {**query, **of_snapshot}, document)
        except Error as error:
            code = problem_of(error).get("code")
            if not is_problem(error, "code-required") or not isinstance(code, dict) or code["digest"]:
                raise
        if not _names(text.decode(), code):
            raise Error(f"the server asks for files that {document or 'the sweep'} does not name: it may be a wrong server; "
                        "nothing was sent")
        snapshot = _code.collect(os.path.join(query["directory"], code["path"]), code["include"], code["exclude"],
                                 code["bytes_max"])
        send(rest, snapshot)
        of_snapshot = {"code_digest": snapshot.digest, "code_dirty": _boolean(snapshot.dirty)}
        if snapshot.commit:
            of_snapshot["code_commit"] = snapshot.commit
    return _post_sweep(rest, text, {**query, **of_snapshot}, document)


def _names(sweep: str, code: dict[str, typing.Any]) -> bool:
    """Returns whether the text of a sweep file names what the server requires. A server must not get other files."""
    def named(text: str) -> bool:
        return text in sweep or json.dumps(text)[1:-1] in sweep or json.dumps(text, ensure_ascii=False)[1:-1] in sweep
    return named("code") and (code["path"] == "." or named(code["path"])) and all(map(named, code["include"]))


def _post_sweep(rest: Rest, text: bytes, query: dict[str, typing.Any], document: str) -> SweepDetail:
    answer: SweepDetail = rest.post("/sweeps", text, query, "application/yaml", document)
    return answer


def send(rest: Rest, snapshot: _code.Snapshot) -> None:
    """Sends what the server does not have of a snapshot, and continues an upload that was interrupted.

    Another client may send the same snapshot at the same time. Raises Error if a file has changed.
    """
    path = "/code/" + snapshot.digest.partition(":")[2]
    sender, shown = _Sender(rest, path, snapshot), printable(snapshot.folder)
    state: CodeSnapshot = rest.get(path)
    rounds, pause = 0, _PAUSE_S_MIN
    while not state["complete"]:
        position = _position(state)
        refusal = Error(f"the server accepts no more files of the code in {shown}: try again")
        try:
            state = sender.send_piece(state)
        except Error as error:
            if is_problem(error, "code-damaged"):
                raise Error(f"a file of the code in {shown} changed while it was sent: try again",
                            error.status) from error
            if error.status != 409:
                raise
            # Another client has sent this piece, or the answer to an earlier attempt was lost.
            refusal, state = error, rest.get(path)
        if _position(state) != position:
            rounds, pause = 0, _PAUSE_S_MIN
        elif not state["complete"]:
            rounds += 1
            if rounds == _ROUNDS_MAX:
                raise refusal
            time.sleep(pause)
            pause = min(2 * pause, _PAUSE_S_MAX)


def _position(state: CodeSnapshot) -> tuple[int, int, int]:
    return state["manifest_bytes"], len(state["missing"]), state["pack_bytes"]


class _Sender:
    """Sends one piece after another. It reads files when it sends them."""

    def __init__(self, rest: Rest, path: str, snapshot: _code.Snapshot) -> None:
        self._rest, self._path, self._snapshot = rest, path, snapshot
        self._files = {file.sha256: file for file in reversed(snapshot.files)}

    def send_piece(self, state: CodeSnapshot) -> CodeSnapshot:
        """Sends the bytes that follow those that the server has. Returns the new state of the snapshot."""
        if state["missing"]:
            offset = state["pack_bytes"]
            answer = self._post("pack", self._piece_of_pack(state["missing"], offset), offset=offset)
            return {**answer, "missing": answer["missing"] or state["missing"]}  # only a changed list is sent again
        offset = state["manifest_bytes"]
        end = offset + _PIECE_BYTES
        manifest = self._snapshot.manifest
        return self._post("manifest", manifest[offset:end], offset=offset, last=_boolean(end >= len(manifest)))

    def _post(self, part: str, piece: bytes, **query: object) -> CodeSnapshot:
        answer: CodeSnapshot = self._rest.post(f"{self._path}/{part}", piece, query, "application/octet-stream")
        return answer

    def _piece_of_pack(self, missing: typing.Sequence[str], offset: int) -> bytes:
        """Returns bytes from the offset on of the contents of the missing files, one after another."""
        piece = bytearray()
        for sha256 in missing:
            file = self._files.get(sha256)
            if file is None:
                raise Error("the server requires a file that the code in "
                            f"{printable(self._snapshot.folder)} does not have: try again")
            if offset < file.bytes and len(piece) < _PIECE_BYTES:
                piece += self._read(file, offset, min(file.bytes - offset, _PIECE_BYTES - len(piece)))
            offset = max(0, offset - file.bytes)
            if len(piece) == _PIECE_BYTES:
                break
        return bytes(piece)

    def _read(self, file: File, offset: int, size: int) -> bytes:
        folder = self._snapshot.folder
        with _code.opened(folder, file.path) as descriptor:
            if os.fstat(descriptor).st_size != file.bytes:
                raise _code.changed(folder, file.path)
            os.lseek(descriptor, offset, os.SEEK_SET)
            content = bytearray()
            while len(content) < size and (piece := os.read(descriptor, size - len(content))):
                content += piece
        if len(content) < size:
            raise _code.changed(folder, file.path)
        return bytes(content)


def _boolean(value: bool) -> str:
    return "true" if value else "false"
