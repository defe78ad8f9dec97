"""A web server that answers as it is told, also as no good one would."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

import pytest

from tests.support.quiet_server import QuietServer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["JSON", "Reply", "Server", "Start", "impatient", "server", "start_server"]

JSON = "application/vnd.pypi.simple.v1+json"


class Reply:
    """An answer: its status, headers and bytes, of which only some are sent where it is cut."""

    def __init__(self, data: bytes = b"", kind: str = "text/html", status: int = 200, **headers: str) -> None:
        self.data, self.status = data, status
        self.headers = {"Content-Type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
        self.cut_at: int | None = None
        self.takes_ranges = True


class Server:
    """Replies by path; those in a list are given one after the other, the last of them for ever."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.replies: dict[str, list[Reply]] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []

    def add(self, path: str, *replies: Reply) -> str:
        """Answer a path so, and return its URL."""
        self.replies[path] = list(replies)
        return self.address + path


Start = Callable[[], Server]


class _Handler(BaseHTTPRequestHandler):
    known: Server

    def do_GET(self) -> None:
        self.known.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        waiting = self.known.replies.get(self.path) or [Reply(b"", status=404)]
        reply = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        data, status = reply.data, reply.status
        start, _, last = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
        if start and reply.takes_ranges and status == 200:
            data, status = data[int(start) : int(last) + 1 if last else None], 206
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{int(start) + len(data) - 1}/{len(reply.data)}")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data if reply.cut_at is None else data[: reply.cut_at])

    do_HEAD = do_GET  # noqa: N815  # the standard library's name

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def start_server() -> Iterator[Start]:
    """Return a function that starts a server."""
    running: list[QuietServer] = []

    def start() -> Server:
        handler = type("Handler", (_Handler,), {})
        server = QuietServer(("127.0.0.1", 0), handler)
        handler.known = Server(f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined]
        running.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return handler.known  # type: ignore[attr-defined,no-any-return]

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


@pytest.fixture
def server(start_server: Start) -> Server:
    """Return a server without any page."""
    return start_server()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let attempts follow each other at once; return the seconds that they would have waited."""
    waited: list[float] = []
    monkeypatch.setattr("rocwheel.stores.retry.time.sleep", waited.append)
    return waited
