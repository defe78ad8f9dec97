"""A folder served to installers on this machine alone."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler
from typing import TYPE_CHECKING

from tests.support.quiet_server import QuietServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["served"]


@contextmanager
def served(folder: Path, asked: list[str] | None = None) -> Iterator[str]:
    """Serve ``folder`` while the block lasts; give its address. The paths of requests are appended to ``asked``."""

    class Silent(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:  # the name that the library calls
            if asked is not None:
                asked.append(self.path)
            super().do_GET()

    server = QuietServer(("127.0.0.1", 0), partial(Silent, directory=str(folder)))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
