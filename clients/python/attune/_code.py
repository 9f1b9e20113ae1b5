"""Makes code snapshots: lists and hashes the files of a folder that belong to a sweep's code.

`code/collect.h` of the server has the same rules. Equal folders have equal digests, as tests/data/code_snapshot.json
shows.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import subprocess
import typing

from attune import _code_manifest
from attune._code_manifest import File, Link, decode, encode, printable
from attune._code_patterns import Patterns
from attune._rest import Error

_IGNORE_FILE = ".attuneignore"
_PYTHON_CACHE = "__pycache__"
_NAMED_FILES_MAX = 5  # that a message lists
_PIECE_BYTES = 1 << 16
_KEY_BYTES = 4096  # in which a private key begins
_GIT_TIMEOUT_S = 30

_SECRET_NAMES = {".env", ".envrc", ".netrc", "_netrc", ".pypirc", ".npmrc", ".pgpass", ".htpasswd", ".git-credentials",
                 "credentials.json", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "kubeconfig", "secrets.yaml"}
_SECRET_ENDINGS = (".pem", ".key", ".p12", ".pfx", ".kdbx", ".jks", ".ppk", ".keystore", ".tfstate")
# Endings of files like .env.example, which show the names of settings without their values.
_EXAMPLE_ENDINGS = (".example", ".sample", ".template", ".dist")
_SECRET_PATHS = ("/.aws/credentials", "/.docker/config.json", "/.kube/config")


class Snapshot(typing.NamedTuple):
    folder: str
    files: list[File]  # sorted by the bytes of their paths
    manifest: bytes  # its text
    digest: str  # "sha256:" and the hash of the manifest
    commit: str  # the checked-out git commit; empty outside of a git repository
    dirty: bool  # whether a tracked file differs from the commit, or a file is new


def collect(folder: str | os.PathLike[str], include: typing.Sequence[str], exclude: typing.Sequence[str],
            bytes_max: int) -> Snapshot:
    """Returns the snapshot of the files of a folder that belong to a sweep's code:

    - In a git repository: the files below the folder that git tracks or does not ignore, also those of submodules.
      Elsewhere all files. In both cases without the files that match the patterns in the folder's .attuneignore.
    - Files of `include`, and no files of `exclude`. Both are patterns. A path without wildcards in `include` also
      includes a file that looks like a secret.
    - Never .git, __pycache__ and data folders of attune. Sockets and devices are skipped.

    Raises Error, with a message that names the file and the next step.
    """
    real = os.path.realpath(os.fsencode(folder))
    if not os.path.isdir(real):
        raise Error(f"code: there is no folder {os.fspath(folder)}")
    return _Collector(real, include, exclude, bytes_max).run()


@contextlib.contextmanager
def opened(folder: str, file: str) -> typing.Iterator[int]:
    """Opens a file of a snapshot, and no link. Yields its descriptor. Raises Error if that or a read fails."""
    path = os.path.join(encode(folder), encode(file))
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise changed(folder, file) from None
    except OSError as error:
        raise Error(f"cannot read {printable(decode(path))}: {error.strerror}") from None


def changed(folder: str, file: str) -> Error:
    """Returns the error for a file that is not the one that was listed."""
    return Error(f"{printable(folder)}/{printable(file)} changed while it was read: try again")


class _Collector:
    def __init__(self, folder: bytes, include: typing.Sequence[str], exclude: typing.Sequence[str],
                 bytes_max: int) -> None:
        self._folder, self._bytes_max = folder, bytes_max
        self._included_names = set(include)
        self._included, self._excluded = _patterns("include", include), _patterns("exclude", exclude)
        self._ignored = Patterns()
        self._paths: set[str] = set()
        self._skipped: dict[str, bool] = {"": False}  # whether a folder is not part of any snapshot
        self._commit, self._dirty = "", False

    def run(self) -> Snapshot:
        self._ignored = self._read_ignore_file()
        self._list_files()
        listed, links = self._read_states()
        self._check_size(listed)
        self._check_secret_names(listed)
        _code_manifest.check([file.path for file in listed], links)
        files = [file._replace(sha256=self._hash(file)) for file in listed]
        manifest = _code_manifest.to_text(files, links)
        digest = "sha256:" + hashlib.sha256(manifest).hexdigest()
        return Snapshot(decode(self._folder), files, manifest, digest, self._commit, self._dirty)

    def _place(self, path: str) -> bytes:
        return os.path.join(self._folder, encode(path))

    def _shown(self, path: str) -> str:
        return printable(decode(self._place(path)))

    def _read_ignore_file(self) -> Patterns:
        try:
            with open(self._place(_IGNORE_FILE), "rb") as file:
                return Patterns.from_lines(decode(file.read()))
        except FileNotFoundError:
            return Patterns()
        except OSError as error:
            raise Error(f"cannot read {self._shown(_IGNORE_FILE)}: {error.strerror}") from None

    def _list_files(self) -> None:
        if self._is_data_folder(""):
            raise Error(f"{printable(decode(self._folder))} is a data folder of attune, not the folder of a program")
        if _is_in_git_repository(self._folder):
            self._list_with_git()
            self._describe_commit()
        else:
            self._walk(for_included=False)
        if self._included:
            self._walk(for_included=True)

    def _git(self, below: str, *arguments: str) -> bytes:
        """Runs git in a folder below the folder. Returns its output."""
        folder = self._place(below).rstrip(b"/") or b"/"
        shown = printable(decode(folder))
        try:
            ran = subprocess.run(["git", "-C", folder, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                                 timeout=_GIT_TIMEOUT_S)
        except FileNotFoundError:
            raise Error(f"{shown} is in a git repository, but this machine has no git, which knows the ignored files: "
                        "install git") from None
        except subprocess.TimeoutExpired:
            raise Error(f"`git {arguments[0]}` did not end within {_GIT_TIMEOUT_S} s in {shown}: try again") from None
        except OSError as error:
            raise Error(f"cannot run git: {error.strerror}") from None
        if ran.returncode != 0:
            line = printable(decode(ran.stderr.partition(b"\n")[0]))
            raise Error(f"`git {arguments[0]}` failed in {shown}: {line}")
        return ran.stdout

    def _list_with_git(self) -> None:
        repositories = [""]  # each with a slash at its end, except the one of the folder
        while repositories:
            below = repositories.pop()
            listed = self._git(below, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
            for name in decode(listed).split("\0")[:-1]:
                path = below + name.rstrip("/")
                if self._ignored.matches_file(path) or _is_of_git(path) or self._is_skipped(path.rpartition("/")[0]):
                    continue
                if not self._is_folder(path):
                    self._paths.add(path)
                elif os.path.exists(self._place(path + "/.git")):
                    # git lists a submodule, or another repository inside this one, as one entry.
                    repositories.append(path + "/")

    def _describe_commit(self) -> None:
        try:
            commit = self._git("", "rev-parse", "--verify", "--quiet", "HEAD")
        except Error:
            return  # a repository without a commit
        self._commit = decode(commit.partition(b"\n")[0])
        others = decode(self._git("", "ls-files", "-z", "--others", "--exclude-standard")).split("\0")
        self._dirty = (bool(self._git("", "status", "--porcelain", "--untracked-files=no", "-z", "--", "."))
                       or any(path in self._paths and not self._excluded.matches_file(path) for path in others))

    def _walk(self, for_included: bool) -> None:
        """Adds the files that `include` matches, or all files that are not ignored."""
        folders = [""]  # each with a slash at its end, except the first one
        while folders:
            below = folders.pop()
            try:
                with os.scandir(self._place(below)) as entries:
                    listed = [(below + decode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in entries]
            except PermissionError if for_included else ():
                continue  # an ignored folder that this user cannot read has no file that `include` can name
            except OSError as error:
                raise Error(f"cannot read the folder {self._shown(below)}: {error.strerror}") from None
            for path, is_folder in listed:
                if _is_of_git(path) or is_folder and self._is_skipped(path):
                    continue
                if not for_included and self._ignored.matches(path, is_folder):
                    continue
                if is_folder:
                    if not self._excluded.matches(path, True):
                        folders.append(path + "/")
                elif not for_included or self._included.matches_file(path):
                    self._paths.add(path)

    def _is_data_folder(self, folder: str) -> bool:
        """Returns whether a folder is the data folder of a server or of an executor, with its tokens."""
        def has(name: str) -> bool:
            return os.path.exists(self._place(f"{folder}/{name}" if folder else name))
        return has("attune.db") or has("folder-id") and has("executors")

    def _is_folder(self, path: str) -> bool:
        try:
            return stat.S_ISDIR(os.lstat(self._place(path)).st_mode)
        except OSError:
            return False

    def _is_skipped(self, folder: str) -> bool:
        """Returns whether a folder, or one that contains it, belongs to git or to a server."""
        parents = []
        while folder not in self._skipped:
            parents.append(folder)
            folder = folder.rpartition("/")[0]
        found = self._skipped[folder]
        for parent in reversed(parents):
            found = (found or _is_of_git(parent) or parent.rpartition("/")[2] == _PYTHON_CACHE
                     or self._is_data_folder(parent))
            self._skipped[parent] = found
        return found

    def _read_states(self) -> tuple[list[File], list[Link]]:
        files, links = [], []
        for path in sorted(self._paths, key=encode):
            if self._excluded.matches_file(path):
                continue
            place = self._place(path)
            try:
                state = os.lstat(place)
                if stat.S_ISREG(state.st_mode):
                    files.append(File(path, state.st_size, "", bool(state.st_mode & stat.S_IXUSR)))
                elif stat.S_ISLNK(state.st_mode):
                    links.append(Link(path, decode(os.readlink(place))))
            except (FileNotFoundError, NotADirectoryError):
                continue  # git knows it, but it was deleted
            except OSError as error:
                raise Error(f"cannot read {self._shown(path)}: {error.strerror}") from None
        return files, links

    def _check_size(self, files: list[File]) -> None:
        total = sum(file.bytes for file in files)
        if not files:
            raise Error(f"no file in {printable(decode(self._folder))} belongs to the code: check code.path, and whether "
                        "git ignores the folder")
        if total <= self._bytes_max:
            return
        largest = sorted(files, key=lambda file: -file.bytes)[:_NAMED_FILES_MAX]
        named = _list_text([f"{file.path} ({_megabytes_text(file.bytes)})" for file in largest])
        raise Error(f"the code in {self._shown('').rstrip('/')} has {_megabytes_text(total)}, more than "
                    f"{_megabytes_text(self._bytes_max)}. The largest files are {named}. List files that training does "
                    f"not need in {_IGNORE_FILE} or in code.exclude, or raise the limit of the server")

    def _check_secret_names(self, files: list[File]) -> None:
        secrets = [file.path for file in files if _has_secret_name(file.path) and file.path not in self._included_names]
        if secrets:
            raise _secret_error(secrets)

    def _hash(self, file: File) -> str:
        """Returns the SHA-256 of a file. Raises Error if the file changes or contains a private key."""
        digest, size = hashlib.sha256(), 0
        with opened(decode(self._folder), file.path) as descriptor:
            before = os.fstat(descriptor)
            while size <= file.bytes and (piece := os.read(descriptor, _PIECE_BYTES)):
                if size == 0 and _has_secret_contents(piece[:_KEY_BYTES]) and file.path not in self._included_names:
                    raise _secret_error([file.path])
                digest.update(piece)
                size += len(piece)
            after = os.fstat(descriptor)
        if size != file.bytes or _identity(before) != _identity(after):
            raise changed(decode(self._folder), file.path)
        return digest.hexdigest()


def _patterns(key: str, lines: typing.Sequence[str]) -> Patterns:
    try:
        return Patterns.from_list(lines)
    except ValueError as error:
        raise Error(f"code.{key}: {error}") from None


def _is_of_git(path: str) -> bool:
    """Returns whether this is the folder .git, or the file .git of a submodule, which names a folder of this machine."""
    return path.rpartition("/")[2] == ".git"


def _is_in_git_repository(folder: bytes) -> bool:
    while not os.path.exists(os.path.join(folder, b".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return False
        folder = parent
    return True


def _identity(state: os.stat_result) -> tuple[int, int, int]:
    return state.st_size, state.st_mtime_ns, state.st_ino


def _megabytes_text(size: int) -> str:
    return f"{size / 1e6:.2f} MB" if size < 10_000_000 else f"{size / 1e6:.0f} MB"


def _list_text(names: list[str]) -> str:
    """Returns a text such as "a, b and 3 more"."""
    text = ", ".join(map(printable, names[:_NAMED_FILES_MAX]))
    return text + (f" and {len(names) - _NAMED_FILES_MAX} more" if len(names) > _NAMED_FILES_MAX else "")


def _secret_error(paths: list[str]) -> Error:
    return Error(f"these files look like secrets: {_list_text(paths)}. List them in {_IGNORE_FILE} or in code.exclude. "
                 "If training needs one of them, list its path in code.include")


def _has_secret_name(path: str) -> bool:
    """Returns whether a file looks like a secret because of its name, such as .env or id_ed25519."""
    lower = decode(encode(path).lower())  # bytes.lower() changes only ASCII
    name = lower.rpartition("/")[2]
    if name.endswith(_EXAMPLE_ENDINGS):
        return False
    return (name in _SECRET_NAMES or name.startswith(".env.") or name.endswith(_SECRET_ENDINGS)
            or f"/{lower}".endswith(_SECRET_PATHS))


def _has_secret_contents(first_bytes: bytes) -> bool:
    """Returns whether a file is a private key, or the word with which executors join."""
    if re.match(rb"sha256:[0-9a-f]{64}:", first_bytes):
        return True
    _, begin, rest = first_bytes.partition(b"-----BEGIN ")
    return bool(begin) and b"PRIVATE KEY" in rest.partition(b"\n")[0]
