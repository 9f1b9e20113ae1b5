"""A client without a token that keeps thousands of connections of every kind open.

It uses a separate source address and reopens each connection that the server closes.
It prints `open` when all connections are open, and exits at the end of its standard input.
"""

import argparse
import errno
import os
import select
import socket
import ssl
import struct
import sys
import time

ADDRESS = "127.0.0.2"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"  # the preface and an empty SETTINGS frame
STREAMS = 4
MESSAGE_BYTES = (16 << 20) - 16


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """Returns an HPACK header field without indexing and compression."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


HEADERS = b"".join(literal(name, value) for name, value in (
    (b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/attune.v1.Executors/Connect"),
    (b":authority", b"localhost"), (b"te", b"trailers"), (b"content-type", b"application/grpc")))


def streams():
    """Returns streams that each start a message of 16 MiB, as far as flow control allows."""
    said = PREFACE
    for number in range(STREAMS):
        stream = 2 * number + 1
        said += frame(1, 4, stream, HEADERS)
        said += frame(0, 0, stream, b"\0" + struct.pack(">I", MESSAGE_BYTES) + b"\n" + bytes(15_000))
    return said


def kinds(arguments):
    """Returns (port, whether it uses TLS, data to send) for each kind of connection."""
    hello = b" HTTP/1.1\r\nHost: localhost\r\n"
    chunked = hello + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab"
    yield arguments.http, False, b""
    yield arguments.http, False, b"GET /version" + hello + b"\r\n"
    yield arguments.http, False, b"GET /version HTTP/1.1\r\nHost: loc"
    yield arguments.http, False, b"POST /nothing" + chunked
    yield arguments.http, False, b"POST /%61pi/v1/sweeps" + chunked
    yield arguments.http, False, b"GET /api/v1/sweeps" + hello + b"Authorization: Bearer x\r\n\r\n"
    if arguments.https:
        yield arguments.https, False, b""
        yield arguments.https, True, b"GET /version" + hello + b"\r\n"
    yield arguments.rpc, False, b""
    yield arguments.rpc, arguments.rpc_tls, PREFACE
    yield arguments.rpc, arguments.rpc_tls, streams()


class Connection:
    def __init__(self, kind, context):
        self.port, self.tls, self.left = kind
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.bind((ADDRESS, 0))
        self.socket.connect_ex(("127.0.0.1", self.port))
        self.context = context
        self.shaken = not self.tls

    def step(self):
        """Sends and receives as much as possible. Returns False if the connection is closed."""
        try:
            if self.tls and not isinstance(self.socket, ssl.SSLSocket):
                self.socket = self.context.wrap_socket(self.socket, do_handshake_on_connect=False)
            if not self.shaken:
                self.socket.do_handshake()
                self.shaken = True
            while self.left:
                self.left = self.left[self.socket.send(self.left):]
            return bool(self.socket.recv(65536))
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
            return True
        except OSError as error:
            return error.errno in (errno.EAGAIN, errno.EINPROGRESS, errno.ENOTCONN)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("http", type=int, metavar="HTTP_PORT")
    parser.add_argument("rpc", type=int, metavar="RPC_PORT")
    parser.add_argument("--https", type=int, default=0, metavar="PORT")
    parser.add_argument("--rpc-tls", action="store_true", help="the executors' port speaks TLS")
    parser.add_argument("--connections", type=int, default=5000, metavar="N", help="that are kept open")
    parser.add_argument("--rate", type=int, default=500, metavar="N", help="that are opened in a second")
    arguments = parser.parse_args()
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    every = list(kinds(arguments))
    poll = select.epoll()
    poll.register(sys.stdin.fileno(), select.EPOLLIN | select.EPOLLHUP)
    connections = {}
    opened = 0
    allowance = 0.0
    before = time.monotonic()
    told = False
    while True:
        now = time.monotonic()
        allowance = min(allowance + (now - before) * arguments.rate, 50)
        before = now
        while allowance >= 1 and len(connections) < arguments.connections:
            allowance -= 1
            try:
                connection = Connection(every[opened % len(every)], context)
            except OSError:
                break
            opened += 1
            connections[connection.socket.fileno()] = connection
            poll.register(connection.socket.fileno(), select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
        if not told and opened >= arguments.connections:
            told = True
            print("open", flush=True)
        for descriptor, _ in poll.poll(0.02):
            if descriptor == sys.stdin.fileno():
                if not os.read(descriptor, 4096):
                    return
                continue
            connection = connections[descriptor]
            if not connection.step():
                del connections[descriptor]
                connection.socket.close()


main()
