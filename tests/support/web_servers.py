"""Stock web servers over a folder, on this machine alone: Python's, which knows no ranges, and nginx."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["NGINX", "needs_nginx", "nginx"]

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin")

needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")

_SETTINGS = """
worker_processes 1;
pid {work}/pid;
error_log {work}/error.log;
{user}
events {{ }}
http {{
    types {{ text/html html; application/json json; }}
    default_type application/octet-stream;
    access_log {work}/access.log;
    client_body_temp_path {work}/body; proxy_temp_path {work}/proxy; fastcgi_temp_path {work}/fastcgi;
    uwsgi_temp_path {work}/uwsgi; scgi_temp_path {work}/scgi;
    server {{
        listen 127.0.0.1:{port};
        {location}
    }}
}}
"""


@contextmanager
def nginx(work: Path, *, root: Path | None = None, location: str = "") -> Iterator[str]:
    """Serve ``root`` with listings of its folders, or what ``location`` says, while the block lasts.

    Its log of requests is ``work/access.log``.
    """
    assert NGINX
    work.mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    served = location or f"root {root}; location / {{ autoindex on; }}"
    user = "user root;" if work.stat().st_uid == 0 else ""
    settings = work / "nginx.conf"
    settings.write_text(_SETTINGS.format(work=work, port=port, location=served, user=user))
    command = [NGINX, "-e", str(work / "error.log"), "-c", str(settings), "-g", "daemon off;"]
    process = subprocess.Popen(command)
    try:
        _wait(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(200):
        assert process.poll() is None, "nginx has ended"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError
