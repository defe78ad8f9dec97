"""A server whose readers may hang up: that is what many tests are about, and no news for their output."""

from __future__ import annotations

import sys
from http.server import ThreadingHTTPServer
from typing import Any

__all__ = ["QuietServer"]


class QuietServer(ThreadingHTTPServer):
    """Serve each reader in a thread; say nothing of those that hang up, and everything of other failures."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print what failed, as the standard library does, unless a reader has hung up."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)
