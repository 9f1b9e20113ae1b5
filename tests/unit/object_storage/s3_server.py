"""moto's S3 server, with faults in front of it, for tests of object storage.

    s3_server.py FOLDER      FOLDER has moto; prints the port, then one line of JSON for each command on stdin

A command is one line of JSON; a request is written `METHOD /bucket/key?query`.

["bucket", NAME]                  creates a bucket
["put", BUCKET, KEY, TEXT]        stores an object
["keys", BUCKET]                  the keys of its objects
["parts", BUCKET]                 the keys of unfinished uploads in parts
["fault", KIND, PATTERN, COUNT]   the next COUNT requests that match PATTERN, a regular expression, fail like KIND
["expire", KEY]                   requests that are signed with this access key fail from now on, like `expired`
["requests"]                      the requests since the last time
["begin", BUCKET, KEY]            begins an upload in parts
["await", PATTERN]                waits until a request that matches is answered or held; if `hold` has seen the end of
                                  its client, it is also written `gone METHOD …`

KINDS below has the faults. `cut` closes the connection after half of the answer, `hold` without an answer when the
client has gone, `slow` waits before the answer and between its pieces.
"""

import contextlib
import io
import json
import logging
import re
import socket
import sys
import threading
import time

sys.path.insert(0, sys.argv[1])

from moto.moto_server.werkzeug_app import create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.test import create_environ

PIECE_BYTES = 64 << 10
DELAY_S = 0.1
KINDS = {
    "busy": ("503 Service Unavailable", "SlowDown"),
    "broken": ("500 Internal Server Error", "InternalError"),
    "expired": ("400 Bad Request", "ExpiredToken"),
    "denied": ("403 Forbidden", "AccessDenied"),
    "full": ("403 Forbidden", "QuotaExceeded"),
    "cut": None,
    "hold": None,
    "slow": None,
}

moto = create_backend_app("s3")
changed = threading.Condition()
faults = []  # [KIND, PATTERN, COUNT]
expired_keys = []
requests = []
answered = []


def next_fault(request, signature):
    with changed:
        requests.append(request)
        if any(f"Credential={key}/" in signature for key in expired_keys):
            return "expired"
        for fault in faults:
            if fault[2] > 0 and re.search(fault[1], request):
                fault[2] -= 1
                return fault[0]
    return None


def has_answered(request):
    with changed:
        answered.append(request)
        changed.notify_all()


def backend():
    return next(iter(s3_backends.values()))["aws"]


def serve(environ, start_response):
    query = environ["QUERY_STRING"]
    request = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}{'?' * bool(query)}{query}"
    kind = next_fault(request, environ.get("HTTP_AUTHORIZATION", ""))
    connection = environ["werkzeug.socket"]
    if kind == "hold":
        has_answered(request)
        with contextlib.suppress(ConnectionError):
            while connection.recv(PIECE_BYTES):
                pass
        has_answered("gone " + request)
        raise ConnectionAbortedError
    length = int(environ.get("CONTENT_LENGTH") or 0)
    content = environ["wsgi.input"].read(length)
    if len(content) < length:  # the client was killed; moto would store the part
        raise ConnectionAbortedError
    environ["wsgi.input"] = io.BytesIO(content)
    if kind and KINDS[kind]:
        status, code = KINDS[kind]
        body = f"<Error><Code>{code}</Code><Message>{code} by the test</Message></Error>".encode()
        start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        has_answered(request)
        yield body
        return
    if kind == "slow":
        time.sleep(DELAY_S)
    pieces = moto(environ, start_response)
    has_answered(request)
    body = b"".join(pieces)
    if kind == "cut":
        yield body[:len(body) // 2]
        connection.shutdown(socket.SHUT_RDWR)
        raise ConnectionAbortedError
    if kind == "slow":
        for at in range(0, len(body), PIECE_BYTES):
            yield body[at:at + PIECE_BYTES]
            time.sleep(DELAY_S)
    else:
        yield body


class Commands:
    def bucket(self, name):
        backend().create_bucket(name, "us-east-1")

    def put(self, bucket, key, text):
        backend().put_object(bucket, key, text.encode())

    def keys(self, bucket):
        return sorted(key for key in backend().get_bucket(bucket).keys)

    def parts(self, bucket):
        return sorted(upload.key_name for upload in backend().get_bucket(bucket).multiparts.values())

    def begin(self, bucket, key):
        b"".join(moto(create_environ(f"/{bucket}/{key}?uploads", method="POST"), lambda *_: None))

    def fault(self, kind, pattern, count):
        assert kind in KINDS, kind
        with changed:
            faults.append([kind, pattern, count])

    def expire(self, key):
        with changed:
            expired_keys.append(key)

    def requests(self):
        with changed:
            taken = requests[:]
            requests.clear()
        return taken

    def await_(self, pattern):
        with changed:
            changed.wait_for(lambda: any(re.search(pattern, each) for each in answered))


class Quiet(WSGIRequestHandler):
    def log(self, *_):
        pass


logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
server = make_server("127.0.0.1", 0, serve, threaded=True, request_handler=Quiet)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.port, flush=True)
for line in sys.stdin:
    name, *arguments = json.loads(line)
    print(json.dumps(getattr(Commands(), name + "_" * (name == "await"))(*arguments)), flush=True)
