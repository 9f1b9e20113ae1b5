"""Sends requests to a server's REST API (docs/reference/rest-api.md), over connections that stay open."""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import secrets
import socket
import struct
import threading
import time
import typing
import urllib.parse
import weakref

UNFINISHED_STATES = ("pending", "running", "paused")  # states of sweeps and trials that have not ended

_SOCKET_TIMEOUT_S = 2
_TIMEOUT_S = 40  # the server needs up to 20 s if a program that asks for a trial waits for a searcher
_PAUSE_S_MAX = 2.0
FoundServer = typing.Tuple[str, typing.Optional[str], typing.Any]  # URL, token, and the source of the URL

_PROBLEM_PREFIX = "urn:attune:problem:"
_NOT_ATTUNE = "the answer is not from an Attune server; check the address"


class Error(Exception):
    """A server refused a request or did not answer, or a sweep failed.

    Its text is the server's message. For a sweep file, it has a line for each fault with its position, such as
    `sweep.yaml:9:10: parameters.lr.max: 0.001 is below min 0.1`. `status` is the HTTP status, or None without an
    answer. `errors` are the faults: dicts with `pointer`, `line`, `column` and `message`.
    """

    def __init__(self, message: str, status: int | None = None,
                 errors: typing.Sequence[dict[str, typing.Any]] = ()) -> None:
        super().__init__(message)
        self.status, self.errors = status, list(errors)
        self._problem: dict[str, typing.Any] = {}


def problem_of(error: Error) -> dict[str, typing.Any]:
    """Returns the problem document (RFC 9457) with which a server refused a request; empty if there is none."""
    return error._problem


def is_problem(error: Error, name: str) -> bool:
    """Returns whether a server refused a request with the problem of this name, such as "code-required"."""
    return bool(error._problem.get("type") == _PROBLEM_PREFIX + name)


def find_server(server: str | None, token: str | None, token_file: str | os.PathLike[str] | None,
                data_dir: str | os.PathLike[str]) -> FoundServer:
    """Returns (URL, token or None, source of the URL), by the same rules as the CLI (docs/reference/cli.md)."""
    folder = pathlib.Path(data_dir)
    named_by = "server" if server else "ATTUNE_SERVER"
    server = server or os.environ.get("ATTUNE_SERVER")
    running: str | None = None
    try:
        running = _url_of_running_server(folder)
    except Error:
        if not server:
            raise
    url = _url(server) if server else running or ""
    if token_file:
        token = _first_line(token_file)
    else:
        token = token or os.environ.get("ATTUNE_TOKEN")
        if not token and url == running:  # the folder's token must not be sent to other servers
            token = _first_line(folder / "token")
    return url, token, named_by if server else folder


def find_server_of_folder(data_dir: str | os.PathLike[str]) -> FoundServer:
    """Returns the same for the server that runs on a data folder."""
    folder = pathlib.Path(data_dir)
    return _url_of_running_server(folder), _first_line(folder / "token"), folder


def _url_of_running_server(folder: pathlib.Path) -> str:
    """Returns the URL of the server that runs on a data folder, which tells it at its socket."""
    try:
        return _url(json.loads(_read_server_socket(folder))["http"])
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError, AttributeError):
        pass  # no server runs, or the system has no such sockets
    except OSError as error:
        raise Error(f"cannot ask the server of {folder}: {error.strerror or error}") from None
    except (ValueError, TypeError, KeyError):
        pass  # the server is ending
    raise Error(f"no server runs on {folder}: start one with `attune serve --data-dir {folder}`, or name another with "
                "server=URL or data_dir=DIR")


def _read_server_socket(folder: pathlib.Path) -> str:
    """Returns the text that the server of a data folder sends at its socket."""
    folder_descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_SOCKET_TIMEOUT_S)
            # The path of the folder may be too long for a socket address.
            connection.connect(f"/proc/self/fd/{folder_descriptor}/server.sock")
            _, user, _ = struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            if user not in (0, os.geteuid(), os.fstat(folder_descriptor).st_uid):
                raise Error(f"the socket in {folder} belongs to a process of another user, who does not own the folder; "
                            "delete the socket, and start the server again")
            with connection.makefile() as answer:
                return answer.read()
    finally:
        os.close(folder_descriptor)


def _url(address: str) -> str:
    """Returns http://HOST:PORT for HOST:PORT, for :PORT (this host), or for a URL."""
    url = address
    if "://" not in url:
        url = "http://" + ("127.0.0.1" if url.startswith(":") else "") + url
    scheme, _, rest = url.rstrip("/").partition("://")
    if scheme not in ("http", "https") or not rest or "/" in rest:
        raise Error(f"{address!r} is not a server's address; write HOST:PORT, http://HOST:PORT or https://HOST:PORT")
    return f"{scheme}://{rest}"


def _first_line(file: str | os.PathLike[str]) -> str:
    try:
        return pathlib.Path(file).read_text().split("\n", 1)[0].rstrip()
    except OSError as error:
        raise Error(f"cannot read a token from {file}: {error.strerror}") from None


class Rest:
    """A client of one server. Any thread may use it, and each thread has its own connection.

    `find` is find_server with its arguments. If the connection breaks, or the server is busy or restarts, a request is
    retried for `patience_s`, but only if the server has answered before.
    """

    def __init__(self, find: typing.Callable[[], FoundServer], patience_s: float) -> None:
        self._find, self._patience_s = find, patience_s
        self._url, self._token, self._named_by = find()
        self._has_answered = False
        self._of_thread = threading.local()

    def give_up(self) -> None:
        """Disables retries."""
        self._patience_s = 0

    def get(self, path: str, **query: object) -> typing.Any:
        return _parse_json(*self._request("GET", path, query, None, {}, ""))

    def get_bytes(self, path: str) -> bytes:
        return self._request("GET", path, None, None, {}, "")[1]

    def get_piece(self, path: str, **query: object) -> tuple[bytes, int]:
        """Requests part of a file. Returns its bytes and the size of the file."""
        answer, content = self._request("GET", path, query, None, {}, "")
        try:
            return content, int(answer.headers["X-File-Size"])
        except (TypeError, ValueError):
            raise Error(_NOT_ATTUNE, answer.status) from None

    def post(self, path: str, body: typing.Any = None, query: dict[str, typing.Any] | None = None,
             content_type: str = "application/json", document: str = "") -> typing.Any:
        """Sends a POST that takes effect once, even if it is retried. `document` names the body in messages about faults."""
        if not isinstance(body, bytes):
            body = json.dumps({} if body is None else body, allow_nan=False).encode()
        headers = {"Content-Type": content_type, "Idempotency-Key": secrets.token_hex(16)}
        return _parse_json(*self._request("POST", path, query, body, headers, document))

    def delete(self, path: str, **query: object) -> None:
        """Sends a DELETE. Status 404 is a success, because the answer to an earlier attempt may have been lost."""
        try:
            self._request("DELETE", path, query, None, {}, "")
        except Error as error:
            if error.status != 404:
                raise

    def list_all(self, path: str, name: str, **query: object) -> list[typing.Any]:
        """Returns all items of a list that the server sends in pages."""
        found: list[typing.Any] = []
        while True:
            answer = self.get(path, **query)
            found += answer[name]
            query["page_token"] = answer["next_page_token"]
            if not query["page_token"]:
                return found

    def _request(self, method: str, path: str, query: dict[str, typing.Any] | None, body: bytes | None,
                 headers: dict[str, str], document: str) -> tuple[http.client.HTTPResponse, bytes]:
        """Returns the answer and its body. Raises Error if the server refuses or does not answer."""
        target = "/api/v1" + path + ("?" + urllib.parse.urlencode(query) if query else "")
        began, pause = time.monotonic(), 0.0  # the first retry is at once, because the server closes idle connections
        while True:
            try:
                answer, text = self._exchange(method, target, body, headers)
            except (OSError, http.client.HTTPException) as error:
                self._of_thread.connection = None
                failure = Error(f"no server answers at {self._url} (from {self._named_by}): "
                                f"{error or type(error).__name__}")
            except Error as error:  # no server was found
                failure = error
            else:
                if answer.status < 300:
                    return answer, text
                if answer.status != 503:
                    raise _error_of_answer(answer.status, text, document)
                failure = _error_of_answer(answer.status, text, document)
                retry_after = answer.headers.get("Retry-After", "")
                pause = max(pause, int(retry_after) if retry_after.isdigit() else 0)
            if not self._has_answered or time.monotonic() - began + pause >= self._patience_s:
                raise failure
            time.sleep(pause)
            pause = min(2 * pause + 0.05, _PAUSE_S_MAX)

    def _exchange(self, method: str, target: str, body: bytes | None,
                  headers: dict[str, str]) -> tuple[http.client.HTTPResponse, bytes]:
        connection = self._connection()
        credentials = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        connection.request(method, target, body, {**headers, **credentials})
        answer = connection.getresponse()
        text = answer.read()
        self._has_answered = True
        return answer, text

    def _connection(self) -> http.client.HTTPConnection:
        """Returns the connection of this thread. After a fork, the child opens a new one."""
        if getattr(self._of_thread, "connection", None) is None or self._of_thread.process != os.getpid():
            # A server that was restarted may have another port.
            self._url, self._token, self._named_by = self._find()
            scheme, _, host = self._url.partition("://")
            kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
            connection = kind(host, timeout=_TIMEOUT_S)
            connection.auto_open = 0  # so that a lost connection is an error here, and not opened again silently
            connection.connect()
            weakref.finalize(connection, connection.sock.close)
            self._of_thread.connection, self._of_thread.process = connection, os.getpid()
        connection = self._of_thread.connection
        return typing.cast(http.client.HTTPConnection, connection)


def _parse_json(answer: http.client.HTTPResponse, text: bytes) -> typing.Any:
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        raise Error(_NOT_ATTUNE, answer.status) from None


def _error_of_answer(status: int, text: bytes, document: str) -> Error:
    """Returns the Error for a problem document (RFC 9457)."""
    try:
        problem = json.loads(text)
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {}  # a proxy has answered
    errors = problem.get("errors") or []
    if status == 401:
        message = ("the server's token is missing or wrong; read it from the server's DATA-DIR/token, and give it with "
                   "token=, token_file= or ATTUNE_TOKEN")
    elif errors:
        message = "\n".join(_fault_line(each, document) for each in errors)
    else:
        message = problem.get("detail") or problem.get("title") or f"the server answered with HTTP {status}"
    error = Error(message, status, errors)
    error._problem = problem
    return error


def _fault_line(fault: dict[str, typing.Any], document: str) -> str:
    """Returns a fault as a line, with line and column only if a person wrote the document."""
    place = f"{document}:{fault['line']}:{fault['column']}: " if document else ""
    key = ""
    for part in fault["pointer"].split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        key += f"[{part}]" if key and part.isdigit() else f".{part}" if key else part
    return place + (f"{key}: " if key else "") + str(fault["message"])
