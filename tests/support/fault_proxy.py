"""A proxy in front of a good server that answers some requests as a bad one would."""

from __future__ import annotations

import http.client
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from tests.support.quiet_server import QuietServer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Fault", "FaultProxy", "fault_proxy"]

_OWN = frozenset({"connection", "transfer-encoding", "date", "server"})


class Fault(NamedTuple):
    """What goes wrong with a request."""

    status: int = 0
    """The status to answer with, in place of the server's; 0 for its own answer."""
    code: str = ""
    """A code of S3, for the body."""
    cut_at: int = -1
    """Hang up after so many bytes of the server's answer."""
    missing: int = 0
    """Announce so many bytes more than there are, and hang up; fewer than there are, if negative."""
    is_mute: bool = False
    """Take the request, and never answer."""
    location: str = ""
    """Where a redirect leads."""


class FaultProxy:
    """Its address, and which faults it has: so many times, or for ever, where a path holds a text."""

    def __init__(self, address: str, target: str) -> None:
        self.address, self.target = address, target
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        """Method, path and headers."""
        self._fault, self._left, self._where = Fault(), 0, ""
        self._over = threading.Event()
        self.authorization = ""
        """The header that requests need; empty for none."""

    def break_down(self, fault: Fault, *, times: int = 1 << 30, where: str = "") -> None:
        """Have the next ``times`` requests whose paths hold ``where`` go wrong."""
        self._fault, self._left, self._where = fault, times, where

    def recover(self) -> None:
        """Have all further requests go well."""
        self._left = 0

    def next_fault(self, path: str) -> Fault | None:
        """Return what goes wrong with a request; none for nothing."""
        if self._left <= 0 or self._where not in path:
            return None
        self._left -= 1
        return self._fault

    def end(self) -> None:
        """Let go of those who wait for an answer."""
        self._over.set()

    def wait(self) -> None:
        """Wait for the end of the test, or a minute."""
        self._over.wait(60)


@contextmanager
def fault_proxy(target: str) -> Iterator[FaultProxy]:
    """Run a proxy in front of the server at an address while the block lasts."""
    proxy = FaultProxy("", target)

    class Handler(_Handler):
        known = proxy

    listening = QuietServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    proxy.address = f"http://127.0.0.1:{listening.server_port}"
    threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.end()
        listening.shutdown()
        listening.server_close()


class _Handler(BaseHTTPRequestHandler):
    known: FaultProxy
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.known.requests.append((self.command, self.path, {**self.headers}))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.known.next_fault(self.path)
        if self.known.authorization not in {"", self.headers.get("Authorization")}:
            fault = Fault(401)
        if fault and fault.is_mute:
            self.known.wait()
            self.close_connection = True
        elif fault and fault.status:
            data = f"<Error><Code>{fault.code}</Code></Error>".encode()
            self._send(fault.status, {"Location": fault.location} if fault.location else {}, data, fault)
        else:
            self._send(*self._forward(body), fault or Fault())

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815  # the standard library's names

    def _forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(urlsplit(self.known.target).netloc, timeout=60)
        try:
            connection.request(self.command, self.path, body or None, {**self.headers})
            answer = connection.getresponse()
            headers = {name: value for name, value in answer.getheaders() if name.lower() not in _OWN}
            return answer.status, headers, answer.read()
        finally:
            connection.close()

    def _send(self, status: int, headers: dict[str, str], data: bytes, fault: Fault) -> None:
        self.send_response(status)
        announced = {name.lower(): value for name, value in headers.items()}.pop("content-length", str(len(data)))
        for name, value in headers.items():
            if name.lower() != "content-length":
                self.send_header(name, value)
        self.send_header("Content-Length", str(int(announced) + fault.missing))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: fault.cut_at] if fault.cut_at >= 0 else data)
        if fault.missing or fault.cut_at >= 0:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""
