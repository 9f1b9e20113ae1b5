"""Checkpoints: folders with a manifest of hashes. docs/reference/worker-channel.md defines the format."""

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
    """A checkpoint does not match its manifest, or cannot be written."""


class DiskFull(CheckpointError):
    """A checkpoint cannot be written, because a disk or a quota of this host is full.

    If it ends the rank, the host is blamed, and the trial does not use up a restart.
    """


class Checkpoint:
    """The content of a folder, as the argument `checkpoint` of `attune.report`.

    `path` is the folder. It must exist until `report` returns. Then it may be deleted.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = os.fsdecode(path)
        if not name:
            raise ValueError("the path of the checkpoint is empty; give the folder that has its files")
        self.path = os.path.abspath(name)

    @classmethod
    def from_directory(cls, path: str | os.PathLike[str]) -> Checkpoint:
        """Returns the Checkpoint of the folder `path`. Name and argument are the same as in Ray."""
        return cls(path)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"Checkpoint(path={self.path!r})"


def make_save_function(checkpoint: Save | str | os.PathLike[str] | None, trials: str | None) -> Save | None:
    """Returns the function that writes a checkpoint into a folder, or None without a checkpoint.

    `trials` is the folder of the trial's checkpoints, if it has one. Raises ValueError if `checkpoint` is neither a
    function nor a folder, or if the folder contains more than the checkpoint.
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
    """Describes a folder that must not be copied and that `source` is or contains. Empty: there is none."""
    places = {"the folder of the trial's checkpoints": trials}
    with contextlib.suppress(FileNotFoundError):  # the folder has been deleted
        places["the working directory"] = os.getcwd()
    for name, place in places.items():
        if place and source in (folder := pathlib.Path(place).resolve(), *folder.parents):
            return name
    return ""


def _copy(source: pathlib.Path, target: pathlib.Path) -> None:
    """Copies the files of a folder into an unfinished checkpoint, except the files that Attune adds to each checkpoint.

    Links to files are replaced by copies of these files.
    """
    added = (MANIFEST, _CONFIG) if _is_complete(source) else ()
    for folder, folders, names in os.walk(source, onerror=_raise_error):
        place = target / os.path.relpath(folder, source)
        place.mkdir(exist_ok=True)
        for name in folders:
            if os.path.islink(os.path.join(folder, name)):
                raise CheckpointError(f"{os.path.join(folder, name)}: is a link to a folder, and a checkpoint contains "
                                      "only files and folders; copy the folder instead")
        for name in names:
            if place != target or name not in added:
                _write_new(place / name, b"", "another rank has written a file of this name; put the rank into the "
                                              "names of each rank's files")
                shutil.copyfile(os.path.join(folder, name), place / name)


def _raise_error(error: OSError) -> typing.NoReturn:
    raise error


def _is_complete(folder: pathlib.Path) -> bool:
    """Returns whether the folder is a complete checkpoint, made by finish(), or a copy of one."""
    try:
        return bool(json.loads((folder / MANIFEST).read_bytes())["format"] == _FORMAT)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def is_disk_full(error: BaseException, folder: str | os.PathLike[str]) -> bool:
    """Returns whether a checkpoint could not be written into `folder` because the disk is full.

    Libraries often do not say why they could not write a file. So this also tests whether the disk is full now, while
    the incomplete files still fill it.
    """
    if any(isinstance(each, OSError) and each.errno in _DISK_FULL_ERRNOS for each in exception_chain(error)):
        return True
    return not has_free_space(folder)


def exception_chain(error: BaseException | None) -> typing.Iterator[BaseException]:
    """Yields an exception, then its cause, the cause of that, and so on."""
    while error:
        yield error
        error = error.__cause__ or error.__context__


def has_free_space(folder: str | os.PathLike[str]) -> bool:
    """Returns whether the folder's disk, and this user's quota on it, have space for one more MiB."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            rest = memoryview(os.urandom(_PROBE_BYTES))  # random, because some file systems compress
            while rest:
                rest = rest[file.write(rest):]
    except OSError as error:
        return error.errno not in _DISK_FULL_ERRNOS
    return True


def remove_unfinished(folder: str | os.PathLike[str], attempt: int) -> None:
    """Removes unfinished checkpoints of earlier attempts, which were killed while they saved."""
    for path in pathlib.Path(folder).glob(".attempt-*-*"):
        number = path.name.split("-")[1]
        if number.isdigit() and int(number) < attempt:
            shutil.rmtree(path, ignore_errors=True)


def make_partial_folder(folder: str | os.PathLike[str], attempt: int) -> pathlib.Path:
    """Makes a hidden folder for the files of a new checkpoint, and returns its path."""
    return pathlib.Path(tempfile.mkdtemp(prefix=f".attempt-{attempt}-", dir=folder))


def finish(partial: pathlib.Path, folder: str | os.PathLike[str], step: int, time: int, attempt: int, world_size: int,
           config: dict[str, typing.Any]) -> tuple[pathlib.Path, str, int]:
    """Turns the unfinished checkpoint `partial` into a complete one in `folder`.

    Writes the manifest, syncs all files to the disk and renames the folder. Returns its path, the digest of the manifest
    and the bytes of all files.
    """
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
    final = pathlib.Path(folder) / f"step-{time}-attempt-{attempt}"  # the server uses the same name
    partial.rename(final)
    _sync(final.parent)
    return final, "sha256:" + digest, size + count


def verify(resume: typing.Mapping[str, typing.Any]) -> pathlib.Path:
    """Returns the folder of a checkpoint to resume from. Raises CheckpointError if a file does not match the manifest."""
    folder = pathlib.Path(resume["path"])
    manifest = read_manifest(folder, resume.get("digest"))
    try:
        if manifest.get("time", manifest["step"]) != resume["step"]:
            raise CheckpointError(f"{folder}: is not a checkpoint of step {resume['step']}")
        for name, listed in manifest["files"].items():
            with open(path_inside(folder, name), "rb") as file:
                digest, count = _hash(file)
            if count != listed["bytes"] or digest != listed["sha256"]:
                raise CheckpointError(f"{folder / name}: does not match the manifest, so the checkpoint is damaged")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{folder}: cannot be read: {error!r}") from error
    return folder


def read_manifest(folder: pathlib.Path, digest: str | None) -> dict[str, typing.Any]:
    """Returns the manifest of a checkpoint. Raises CheckpointError if it has another digest than `digest`, if given."""
    try:
        text = (folder / MANIFEST).read_bytes()
        if digest and digest != "sha256:" + hashlib.sha256(text).hexdigest():
            raise CheckpointError(f"{folder}: is not the checkpoint that the server knows, because its manifest has "
                                  f"another digest than {digest}")
        manifest: dict[str, typing.Any] = json.loads(text)
        if manifest["format"] != _FORMAT:
            raise CheckpointError(f"{folder}: has the format {manifest['format']}, and this package reads {_FORMAT}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{folder}: cannot be read: {error!r}") from error
    return manifest


def path_inside(folder: pathlib.Path, name: str) -> pathlib.Path:
    """Returns the path of a checkpoint's file. Raises CheckpointError if `name` leads out of the folder."""
    path = pathlib.PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise CheckpointError(f"{folder}: a file is named {name!r}, which is not inside its checkpoint")
    return folder / path


def read_step(resume: typing.Mapping[str, typing.Any]) -> int:
    """Returns the program's step after which a checkpoint was saved."""
    path = pathlib.Path(resume["path"]) / MANIFEST
    try:
        return int(json.loads(path.read_bytes())["step"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: cannot be read: {error!r}") from error


def is_present(resume: typing.Mapping[str, typing.Any]) -> bool:
    """Returns whether this host has the checkpoint, that is, a manifest with its digest."""
    try:
        text = (pathlib.Path(resume["path"]) / MANIFEST).read_bytes()
    except OSError:
        return False
    digest = resume.get("digest")
    return not digest or bool(digest == "sha256:" + hashlib.sha256(text).hexdigest())


def file_sizes(folder: pathlib.Path) -> dict[str, int]:
    """Returns the size of each file of a checkpoint by name, in bytes."""
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
            raise CheckpointError(f"{path}: is neither a file nor a folder, and a checkpoint contains only these")
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
    """Gives a folder the mode of other new folders. Folders that tempfile makes are for this user only."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(folder, 0o777 & ~mask)
