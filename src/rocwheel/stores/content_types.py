"""What kind of content a file has, by its name: installers read no page that a server calls anything else."""

from __future__ import annotations

__all__ = ["content_type"]

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".whl": "application/zip",
    ".gz": "application/gzip",
    ".metadata": "text/plain; charset=utf-8",
    ".toml": "application/toml",
}


def content_type(name: str) -> str:
    """Return the content type to store a file with."""
    return next((kind for suffix, kind in _TYPES.items() if name.endswith(suffix)), "application/octet-stream")
