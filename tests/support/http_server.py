"""A server of one file for tests of downloads. The path of a request says how it answers.

    http_server.py FILE      prints its port, then a line for each request: PATH RANGE ("-": none)

/file       the file, by ranges too       /plain      without ranges
/stream     without its size              /login      only for ada with the password lovelace
/cut        closes halfway through what is wanted, unless that is less than a tenth of the file
/gate       sends half, then the rest once a line comes on stdin; ranges at once
/busy       503                           /recovers   503 the first time of two
/missing    404                           /moved      redirects to /file
/stalls     sends half, and nothing more as long as the client stays
"""

import base64
import http.server
import itertools
import pathlib
import re
import sys
import threading

CONTENT = pathlib.Path(sys.argv[1]).read_bytes()
turns = itertools.count()
one_line = threading.Lock()
LOGIN = "Basic " + base64.b64encode(b"ada:lovelace").decode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        wanted = self.headers.get("Range", "-")
        path = self.path.partition("?")[0]
        with one_line:
            print(path, wanted, flush=True)
        self.close_connection = True
        if path == "/busy" or path == "/recovers" and next(turns) % 2 == 0:
            return self.send_error(503)
        if path == "/missing":
            return self.send_error(404)
        if path == "/login" and self.headers.get("Authorization") != LOGIN:
            return self.send_error(401)
        if path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/file")
            return self.end_headers()
        content = CONTENT
        ranged = re.fullmatch(r"bytes=(\d+)-", wanted)
        if ranged and path not in ("/plain", "/stream"):
            first = int(ranged.group(1))
            if first >= len(CONTENT):
                return self.send_error(416)
            content = CONTENT[first:]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{len(CONTENT) - 1}/{len(CONTENT)}")
        else:
            self.send_response(200)
        if path != "/stream":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        half = len(content) // 2
        if path == "/cut" and len(content) * 10 > len(CONTENT):
            return self.wfile.write(content[:half])
        if path == "/stalls" or path == "/gate" and not ranged:
            self.wfile.write(content[:half])
            self.wfile.flush()
            if path == "/stalls":
                return self.connection.recv(1)  # returns at the end of the connection
            sys.stdin.readline()
            return self.wfile.write(content[half:])
        self.wfile.write(content)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):  # killed clients are expected
        pass


server = Server(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
