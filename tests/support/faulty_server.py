"""A server of a few files that fails as told: so stores are seen to try again, or to say what is wrong."""

from __future__ import annotations

import re
import threading
from collections import deque
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.support.quiet_server import QuietServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Answer", "FaultyServer", "faulty", "started_faulty_server"]

_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


class Answer(NamedTuple):
    """What to answer instead of the file."""

    status: int = 503
    code: str = ""
    """A code of S3 for the body."""
    cut_at: int = -1
    """Send the file after all, but hang up after so many bytes."""


class FaultyServer:
    """Its address, its files by path, what it answers first, and what it was asked for."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.files: dict[str, bytes] = {}
        self.first: deque[Answer] = deque()
        self.always: Answer | None = None
        self.has_ranges = True
        self.has_conditions = True
        """Whether it knows If-None-Match and If-Match in requests that store files."""
        self.identity = {"ETag": '"1"', "Last-Modified": "Sun, 22 Nov 2026 10:00:00 GMT"}
        """Headers that tell one file from another."""
        self.requests: list[tuple[str, str, str]] = []
        """Method, path, and the header Range."""
        self.headers: list[dict[str, str]] = []
        """Of each request for a file."""
        self.sent = 0
        """Bytes of files."""

    def next_answer(self) -> Answer | None:
        """Return what to answer to the next request, if not the file."""
        return self.always or (self.first.popleft() if self.first else None)


@contextmanager
def started_faulty_server() -> Iterator[FaultyServer]:
    """Run a server while the block lasts."""
    server = FaultyServer("")

    class Handler(_Handler):
        faults = server

    listening = QuietServer(("127.0.0.1", 0), Handler)
    server.address = f"http://127.0.0.1:{listening.server_port}"
    threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()


@pytest.fixture
def faulty() -> Iterator[FaultyServer]:
    """Return a server that has no files and no faults yet."""
    with started_faulty_server() as server:
        yield server


class _Handler(BaseHTTPRequestHandler):
    faults: FaultyServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(self._send_body)

    def do_HEAD(self) -> None:
        self._answer(lambda *_: None)

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.faults.requests.append(("PUT", self.path, ""))
        answer = self.faults.next_answer()
        if answer:
            self._refuse(answer)
            return
        path, files = self._file_path(), self.faults.files
        is_taken = self.headers.get("If-None-Match") == "*" and path in files
        is_other = path in files and self.headers.get("If-Match", '"1"') != '"1"'
        if self.faults.has_conditions and (is_taken or is_other):
            self._refuse(Answer(412, "PreconditionFailed"))
            return
        files[path] = body
        self._head(200, 0, {"ETag": '"1"'})

    def do_POST(self) -> None:
        """Delete files, which is all that S3 is asked for so."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        for key in re.findall("<Key>(.*?)</Key>", body):
            self.faults.files.pop(f"{self._file_path().rstrip('/')}/{key}", None)
        result = b"<DeleteResult></DeleteResult>"
        self._head(200, len(result), {})
        self.wfile.write(result)

    def _file_path(self) -> str:
        return self.path.partition("?")[0]

    def _answer(self, send: Callable[[bytes, int], None]) -> None:
        faults = self.faults
        asked = self.headers.get("Range", "")
        faults.requests.append((self.command, self.path, asked))
        faults.headers.append({**self.headers})
        answer = faults.next_answer()
        if answer and answer.cut_at < 0:
            self._refuse(answer)
            return
        data = faults.files.get(self._file_path())
        if data is None:
            self._refuse(Answer(404, "NoSuchKey"))
            return
        status, headers = 200, dict(faults.identity)
        if faults.has_ranges and (found := _RANGE.fullmatch(asked)):
            start, stop = int(found[1]), min(int(found[2] or len(data)) + 1, len(data))
            status = 206
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(data)}"
            data = data[start:stop]
        self._head(status, len(data), headers)
        send(data, answer.cut_at if answer else len(data))

    def _send_body(self, data: bytes, cut_at: int) -> None:
        self.wfile.write(data[:cut_at])
        self.faults.sent += len(data[:cut_at])
        if cut_at < len(data):
            self.wfile.flush()
            self.close_connection = True

    def _refuse(self, answer: Answer) -> None:
        body = b"" if self.command == "HEAD" else f"<Error><Code>{answer.code}</Code></Error>".encode()
        self._head(answer.status, len(body), {"Content-Type": "application/xml"})
        self.wfile.write(body)

    def _head(self, status: int, size: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(size)}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""
