"""What makes a path or a symlink inside an artifact unsafe."""

from __future__ import annotations

import posixpath

__all__ = ["ancestors", "link_fault", "path_fault"]


def path_fault(path: str) -> str | None:
    """Return what is wrong with a relative path from outside, or None when it stays in the folder it is joined to."""
    segments = path.split("/")
    if not path:
        return "is empty"
    if path.startswith("/"):
        return "is absolute"
    if ".." in segments:
        return "climbs with '..'"
    if "" in segments or "." in segments:
        return "is not in its shortest form"
    if "\0" in path:
        return "holds a NUL character"
    return None if _is_utf8(path) else "is not valid UTF-8 text"


def link_fault(path: str, link: str) -> str | None:
    """Return what is wrong with the text of the symlink at ``path``, or None when it stays below the root."""
    if not link:
        return "points nowhere"
    if not _is_utf8(link):
        return "points to a name that is not valid UTF-8 text"
    if link.startswith("/"):
        return f"points to the absolute path {link!r}"
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    if target == ".." or target.startswith("../"):
        return f"leaves the tree through {link!r}"
    return None


def ancestors(path: str) -> list[str]:
    """Return the folders above ``path``, the outermost first: ``a`` and ``a/b`` for ``a/b/c``."""
    segments = path.split("/")
    return ["/".join(segments[:depth]) for depth in range(1, len(segments))]


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
