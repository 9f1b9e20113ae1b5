"""Fetches checkpoints and reports from a server or its executors to any machine."""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
import typing

from attune import _checkpoint
from attune._rest import Error, Rest

if typing.TYPE_CHECKING:
    from attune import _contract

_PIECE_BYTES = 4 << 20  # the maximum that the server sends


class Checkpoint:
    """A checkpoint of a trial. `to_directory` fetches its files.

    `name` is its name, such as "s1/7/2-900" (sweep, trial, attempt, step), `step` the time at which the trial saved it,
    `attempt` the attempt that saved it, `bytes` the size of its files, and `digest` the SHA-256 of its manifest.
    """

    def __init__(self, rest: Rest, trial_path: str, trial: str, listed: _contract.Checkpoint) -> None:
        self._rest = rest
        self.step, self.attempt = listed["step"], listed["attempt"]
        self.bytes, self.digest = listed["bytes"], listed["digest"]
        own_name = f"{self.attempt}-{self.step}"
        self.name, self._path = f"{trial}/{own_name}", f"{trial_path}/checkpoints/{own_name}/content"

    def __repr__(self) -> str:
        return f"<Checkpoint {self.name}, {self.bytes:,} bytes>"

    def to_directory(self, path: str | os.PathLike[str]) -> pathlib.Path:
        """Fetches the files into the folder `path`, from the host that has them. Returns the path.

        The folder appears when all files have arrived and each has the SHA-256 from the manifest. If the folder
        contains the checkpoint already, nothing is fetched.

        Raises FileExistsError if `path` has other content, CheckpointError if a file does not match the manifest,
        OSError if a file cannot be written, and Error if the server refuses, for example because the checkpoint has
        been deleted or its executor is not connected.
        """
        path = pathlib.Path(path).absolute()
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            try:
                return self._verified(path)
            except _checkpoint.CheckpointError as error:
                raise FileExistsError(f"{path}: exists and is not checkpoint {self.name}; give another folder "
                                      f"({error})") from error
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = pathlib.Path(tempfile.mkdtemp(prefix=f".{path.name}.part-", dir=path.parent))
        try:
            _checkpoint.apply_umask(partial)
            self._fetch(_checkpoint.MANIFEST, partial)
            for name in _checkpoint.read_manifest(partial, self.digest)["files"]:
                self._fetch(name, partial)
            self._verified(partial)
            partial.rename(path)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        return path

    def _verified(self, folder: pathlib.Path) -> pathlib.Path:
        return _checkpoint.verify({"path": folder, "digest": self.digest, "step": self.step})

    def _fetch(self, name: str, folder: pathlib.Path) -> None:
        target = _checkpoint.path_inside(folder, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "xb") as file:
            size = None
            while size is None or file.tell() < size:
                piece, size = self._rest.get_piece(self._path, file=name, offset=file.tell(), limit=_PIECE_BYTES)
                if not piece and file.tell() < size:
                    raise Error(f"checkpoint {self.name}: the server sends only {file.tell()} of {size} bytes of {name}")
                file.write(piece)


def write_new_file(path: str | os.PathLike[str], content: bytes) -> pathlib.Path:
    """Writes a file that appears when it is complete. Returns its path."""
    path = pathlib.Path(path).absolute()
    if path.exists():
        raise FileExistsError(f"{path}: exists; give another name, or remove it")
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f".{path.name}.part-", dir=path.parent))
    try:
        (folder / path.name).write_bytes(content)
        (folder / path.name).rename(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return path
