"""Forwards HTTP between an agent and the server, and keeps what passes.

FOLDER/to-server has the bodies of the requests, FOLDER/from-server those of the replies, and FOLDER/exchanges a line
for each request with the status that it got.
"""

import contextlib
import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding"}


class HttpTap:
    """Listens on loopback, and forwards to the server's port."""

    def __init__(self, folder, port):
        self.folder = folder
        self.upstream = port
        self.lock = threading.Lock()
        handler = type("Bound", (Handler,), {"tap": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def record(self, name, line):
        with self.lock, open(self.folder / name, "ab") as output:
            output.write(line + b"\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    tap = None

    def log_message(self, *_):
        pass

    def handle(self):
        # An agent may end without closing its connections.
        with contextlib.suppress(ConnectionError):
            super().handle()

    def forward(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if body:
            self.tap.record("to-server", body)
        connection = http.client.HTTPConnection("127.0.0.1", self.tap.upstream)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
            connection.request(self.command, self.path, body or None, headers)
            reply = connection.getresponse()
            self.tap.record("exchanges", f"{self.command} {self.path} {reply.status}".encode())
            self.answer(reply)
        except OSError:
            # One of the two has gone; there is nobody to answer, or nobody who does.
            self.close_connection = True
        finally:
            connection.close()

    def answer(self, reply):
        self.send_response_only(reply.status)
        for name, value in reply.getheaders():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        if reply.length is None:
            self.send_header("connection", "close")
        self.end_headers()
        whole = b""
        while chunk := reply.read1(65536):
            whole += chunk
            self.wfile.write(chunk)
            self.wfile.flush()
        if whole:
            self.tap.record("from-server", whole)

    do_GET = do_POST = do_DELETE = do_HEAD = forward
