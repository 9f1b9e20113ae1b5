"""Checkpoints as docs/reference/worker-channel.md has them: folders with a manifest of hashes."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import os
import pathlib
import shutil
import tempfile
import typing

_FORMAT = "attune-checkpoint/1"
MANIFEST = "manifest.json"
_CONFIG = "attune-config.json"
_RESERVED_NAME = "Attune writes a file of this name into every checkpoint; give the program's file another name"
_DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)
_PROBE_BYTES = 1 << 20

Save = typing.Callable[[pathlib.Path], typing.Any]  # writes files into a folder


class CheckpointError(RuntimeError):
    """A checkpoint is not what its manifest says, or cannot be written."""


class DiskFull(CheckpointError):
    """A checkpoint cannot be written, because a disk or a quota of this host is full.

    If it ends the rank, the host is to blame and not the trial: no restart is spent.
    """


class Checkpoint:
    """The content of a folder, as the argument `checkpoint` of `attune.report`.

    `path` is the folder. It has to exist until `report` returns, and may be deleted then.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = os.fsdecode(path)
        if not name:
            raise ValueError("the path of the checkpoint is empty; give the folder that has its files")
        self.path = os.path.abspath(name)

    @classmethod
    def from_directory(cls, path: str | os.PathLike[str]) -> Checkpoint:
        """Returns the Checkpoint of the folder `path`. It has the name and the argument of Ray's."""
        return cls(path)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"Checkpoint(path={self.path!r})"


def make_save_function(checkpoint: Save | str | os.PathLike[str] | None, trials: str | None) -> Save | None:
    """Returns the function that writes a checkpoint into a folder, or None without a checkpoint.

    `trials` is the folder of the trial's checkpoints, if it has one. Raises ValueError if `checkpoint` is neither a
    function nor a folder, or is a folder that contains more than the checkpoint.
    """
    if checkpoint is None or callable(checkpoint):
        return checkpoint
    try:
        source = pathlib.Path(Checkpoint(checkpoint))
    except TypeError:
        raise ValueError(f"checkpoint is {checkpoint!r} and must be a folder (a path or an attune.Checkpoint), or a "
                         "function that writes files into the folder that it gets") from None
    if not source.is_dir():
        problem = "is a file; give the folder that contains it" if source.exists() else "does not exist"
        raise ValueError(f"checkpoint is {os.fspath(checkpoint)!r}, which {problem}")
    if held := _name_of_folder_inside(source.resolve(), trials):
        raise ValueError(f"checkpoint is {os.fspath(checkpoint)!r}, which is or contains {held}; write the files of the "
                         "checkpoint into a new folder, as tempfile.TemporaryDirectory() makes it, and give that")
    return functools.partial(_copy, source)


def _name_of_folder_inside(source: pathlib.Path, trials: str | None) -> str:
    """Names a folder that `source` is or contains, although it belongs to no checkpoint. Empty: there is none."""
    places = {"the folder of the trial's checkpoints": trials}
    with contextlib.suppress(FileNotFoundError):  # the folder has been deleted
        places["the working directory"] = os.getcwd()
    for name, place in places.items():
        if place and source in (folder := pathlib.Path(place).resolve(), *folder.parents):
            return name
    return ""


def _copy(source: pathlib.Path, target: pathlib.Path) -> None:
    """Copies the files of a folder into a checkpoint that is being written, except those that Attune adds to each.

    Links to files become files.
    """
    added = (MANIFEST, _CONFIG) if _is_complete(source) else ()
    for folder, folders, names in os.walk(source, onerror=_raise_error):
        place = target / os.path.relpath(folder, source)
        place.mkdir(exist_ok=True)
        for name in folders:
            if os.path.islink(os.path.join(folder, name)):
                raise CheckpointError(f"{os.path.join(folder, name)}: is a link to a folder, and a checkpoint has files "
                                      "and folders only; copy the folder there")
        for name in names:
            if place != target or name not in added:
                _write_new(place / name, b"", "another rank has written a file of this name; each rank's files need "
                                              "names of their own")
                shutil.copyfile(os.path.join(folder, name), place / name)


def _raise_error(error: OSError) -> typing.NoReturn:
    raise error


def _is_complete(folder: pathlib.Path) -> bool:
    """Whether the folder is a checkpoint that finish() has made, or a copy of one."""
    try:
        return bool(json.loads((folder / MANIFEST).read_bytes())["format"] == _FORMAT)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def is_disk_full(error: BaseException, folder: str | os.PathLike[str]) -> bool:
    """Whether a checkpoint could not be written for lack of room in `folder`, the folder that it is written into.

    Libraries often do not say why a file could not be written. What they wrote so far still fills the disk then.
    """
    if any(isinstance(each, OSError) and each.errno in _DISK_FULL_ERRNOS for each in exception_chain(error)):
        return True
    return not has_free_space(folder)


def exception_chain(error: BaseException | None) -> typing.Iterator[BaseException]:
    """An exception and those that it comes from."""
    while error:
        yield error
        error = error.__cause__ or error.__context__


def has_free_space(folder: str | os.PathLike[str]) -> bool:
    """Whether the folder's disk, and the quota of this user there, takes a MiB more."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            rest = memoryview(os.urandom(_PROBE_BYTES))  # random, because some file systems compress
            while rest:
                rest = rest[file.write(rest):]
    except OSError as error:
        return error.errno not in _DISK_FULL_ERRNOS
    return True


def remove_unfinished(folder: str | os.PathLike[str], attempt: int) -> None:
    """Removes what earlier attempts were writing when they were killed."""
    for path in pathlib.Path(folder).glob(".attempt-*-*"):
        number = path.name.split("-")[1]
        if number.isdigit() and int(number) < attempt:
            shutil.rmtree(path, ignore_errors=True)


def make_partial_folder(folder: str | os.PathLike[str], attempt: int) -> pathlib.Path:
    """A new hidden folder for the files of a checkpoint."""
    return pathlib.Path(tempfile.mkdtemp(prefix=f".attempt-{attempt}-", dir=folder))


def finish(partial: pathlib.Path, folder: str | os.PathLike[str], step: int, time: int, attempt: int, world_size: int,
           config: dict[str, typing.Any]) -> tuple[pathlib.Path, str, int]:
    """Lists, syncs and renames what lies in `partial`: (path, digest, bytes)."""
    _write_new(partial / _CONFIG, json.dumps(config).encode())
    files, size = {}, 0
    for path in _list_files(partial):
        digest, count = _sync_and_hash(path)
        files[path.relative_to(partial).as_posix()] = {"bytes": count, "sha256": digest}
        size += count
    times = {"step": step} if time == step else {"step": step, "time": time}
    manifest = json.dumps({"format": _FORMAT, **times, "world_size": world_size, "files": files}).encode()
    _write_new(partial / MANIFEST, manifest)
    digest, count = _sync_and_hash(partial / MANIFEST)
    for each in [*(path for path in partial.rglob("*") if path.is_dir()), partial]:
        _sync(each)
    apply_umask(partial)
    final = pathlib.Path(folder) / f"step-{time}-attempt-{attempt}"  # as the server calls it
    partial.rename(final)
    _sync(final.parent)
    return final, "sha256:" + digest, size + count


def verify(resume: typing.Mapping[str, typing.Any]) -> pathlib.Path:
    """The folder of a checkpoint to resume from, all of whose files are what the manifest says."""
    folder = pathlib.Path(resume["path"])
    manifest = read_manifest(folder, resume.get("digest"))
    try:
        if manifest.get("time", manifest["step"]) != resume["step"]:
            raise CheckpointError(f"{folder}: is no checkpoint of step {resume['step']}")
        for name, listed in manifest["files"].items():
            with open(path_inside(folder, name), "rb") as file:
                digest, count = _hash(file)
            if count != listed["bytes"] or digest != listed["sha256"]:
                raise CheckpointError(f"{folder / name}: is not the file that the manifest lists")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{folder}: cannot be read: {error!r}") from error
    return folder


def read_manifest(folder: pathlib.Path, digest: str | None) -> dict[str, typing.Any]:
    """The manifest of a checkpoint, which has this digest. An empty digest, or None, is not compared."""
    try:
        text = (folder / MANIFEST).read_bytes()
        if digest and digest != "sha256:" + hashlib.sha256(text).hexdigest():
            raise CheckpointError(f"{folder}: is not the checkpoint that the server knows: its manifest has another "
                                  "digest")
        manifest: dict[str, typing.Any] = json.loads(text)
        if manifest["format"] != _FORMAT:
            raise CheckpointError(f"{folder}: has the form {manifest['format']}, and this package reads {_FORMAT}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{folder}: cannot be read: {error!r}") from error
    return manifest


def path_inside(folder: pathlib.Path, name: str) -> pathlib.Path:
    """The path of a checkpoint's file in its folder. Raises CheckpointError if the name leads out of the folder."""
    path = pathlib.PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise CheckpointError(f"{folder}: a file is named {name!r}, which is not inside its checkpoint")
    return folder / path


def read_step(resume: typing.Mapping[str, typing.Any]) -> int:
    """The step of the program after which a checkpoint was saved."""
    path = pathlib.Path(resume["path"]) / MANIFEST
    try:
        return int(json.loads(path.read_bytes())["step"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: cannot be read: {error!r}") from error


def is_present(resume: typing.Mapping[str, typing.Any]) -> bool:
    """Whether this host has that checkpoint, by the digest of its manifest."""
    try:
        text = (pathlib.Path(resume["path"]) / MANIFEST).read_bytes()
    except OSError:
        return False
    digest = resume.get("digest")
    return not digest or bool(digest == "sha256:" + hashlib.sha256(text).hexdigest())


def file_sizes(folder: pathlib.Path) -> dict[str, int]:
    """Of all files of a checkpoint, by name."""
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in _list_files(folder)}


def _write_new(path: pathlib.Path, contents: bytes, if_there: str = _RESERVED_NAME) -> None:
    try:
        with open(path, "xb") as file:
            file.write(contents)
    except FileExistsError as error:
        raise CheckpointError(f"{path}: {if_there}") from error


def _list_files(folder: pathlib.Path) -> typing.Iterator[pathlib.Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise CheckpointError(f"{path}: a checkpoint has files and folders only")
        if path.is_file():
            yield path


def _hash(file: typing.BinaryIO) -> tuple[str, int]:
    sha, count = hashlib.sha256(), 0
    for piece in iter(lambda: file.read(1 << 20), b""):
        sha.update(piece)
        count += len(piece)
    return sha.hexdigest(), count


def _sync_and_hash(path: pathlib.Path) -> tuple[str, int]:
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        return _hash(file)


def _sync(folder: str | os.PathLike[str]) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def apply_umask(folder: str | os.PathLike[str]) -> None:
    """Gives a folder that tempfile has made, for this user alone, the mode of other new folders."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(folder, 0o777 & ~mask)
