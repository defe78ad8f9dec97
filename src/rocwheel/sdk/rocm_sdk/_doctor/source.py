"""Where the packages came from, for the commands that install them again."""

from __future__ import annotations

import json
import os
import shlex
from importlib.metadata import PackageNotFoundError
from urllib.parse import unquote, urlsplit

from .. import _build_info
from .._distributions import find_distribution

__all__ = ["UNKNOWN_INDEX", "name_source"]

UNKNOWN_INDEX = "--index-url URL  # URL is the index that you installed from"


def name_source(remedy: str) -> str:
    """Return a remedy that says where pip finds the packages, if it is a command of pip; any other as it is.

    Installers don't note which index a package is from. A file they do: the others are looked for in its folder.
    """
    if not remedy.startswith("pip install "):
        return remedy
    folder = next(filter(None, map(_folder_of_file, ("meta", "core"))), "")
    return f"{remedy} {f'--find-links {shlex.quote(folder)}' if folder else UNKNOWN_INDEX}"


def _folder_of_file(logical: str) -> str:
    """Return the folder of the file that a package was installed from; empty when it wasn't, or the folder is gone.

    direct_url.json: https://packaging.python.org/specifications/direct-url/.
    """
    try:
        text = find_distribution(_build_info.PACKAGES[logical]["dist"]).read_text("direct_url.json")
        noted = json.loads(text or "{}")
        parts = urlsplit(noted["url"])
        folder = os.path.dirname(unquote(parts.path))  # noqa: PTH120 (of a URL)
        is_file = parts.scheme == "file" and "archive_info" in noted
    except (PackageNotFoundError, LookupError, TypeError, ValueError, AttributeError, OSError, RecursionError):
        # The note is absent or damaged.
        return ""
    return folder if is_file and os.path.isdir(folder) else ""  # noqa: PTH112
