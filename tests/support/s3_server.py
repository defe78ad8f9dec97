"""moto's S3 server in a process of its own, on this machine alone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BUCKET", "S3Server", "s3", "s3_server", "started_s3_server"]

BUCKET = "rocwheel-test"


class S3Server(NamedTuple):
    """A running server."""

    address: str

    @property
    def environ(self) -> dict[str, str]:
        """The usual variables, for whoever is to use it."""
        return {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }

    def make_bucket(self, name: str) -> None:
        """Create a bucket."""
        request = urllib.request.Request(f"{self.address}/{name}", method="PUT")
        urllib.request.urlopen(request, timeout=30).close()

    def reset(self) -> None:
        """Forget all buckets."""
        urllib.request.urlopen(urllib.request.Request(f"{self.address}/moto-api/reset", method="POST")).close()


@contextmanager
def started_s3_server() -> Iterator[S3Server]:
    """Run the server while the block lasts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(process, port)
        yield S3Server(f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(600):
        assert process.poll() is None, "moto's server has ended"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """Return a server for all tests of this process."""
    pytest.importorskip("moto.server", reason="moto is not installed")
    with started_s3_server() as server:
        yield server


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """Return a server with one empty bucket, which the environment leads to."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in s3_server.environ.items():
        monkeypatch.setenv(name, value)
    s3_server.reset()
    s3_server.make_bucket(BUCKET)
    return s3_server
