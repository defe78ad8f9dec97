"""Finds installed distributions, and determines from their metadata where they came from."""

from __future__ import annotations

import json
import os
import shlex
from importlib.metadata import PackageNotFoundError, distributions
from urllib.parse import unquote, urlsplit

from . import _build_info
from ._packages import trusted_entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import Distribution


def find_distribution(name: str) -> Distribution:
    """Return the distribution with this name. Raises `PackageNotFoundError` if it isn't installed."""
    found = next(iter(distributions(name=name, path=trusted_entries())), None)
    if found is None:
        raise PackageNotFoundError(name)
    return found


def list_distributions() -> list[Distribution]:
    """Return all distributions."""
    return list(distributions(path=trusted_entries()))


def name_origin() -> str:
    """Return the pip option that specifies the folder with the file from which ``rocm`` or the core was installed.

    Returns an empty string if the folder is unknown. Installers record the file from which a package was installed, but
    not the index. The other packages are probably in the same folder as that file.
    """
    folder = next(filter(None, map(_folder_of_file, ("meta", "core"))), "")
    return f"--find-links {shlex.quote(folder)}" if folder else ""


def _folder_of_file(logical: str) -> str:
    """Return the folder of the file that a package was installed from, or an empty string if there is no such folder.

    direct_url.json: https://packaging.python.org/specifications/direct-url/.
    """
    try:
        text = find_distribution(_build_info.PACKAGES[logical]["dist"]).read_text("direct_url.json")
        noted = json.loads(text or "{}")
        parts = urlsplit(noted["url"])
        folder = os.path.dirname(unquote(parts.path))  # noqa: PTH120 (of a URL)
        is_file = parts.scheme == "file" and parts.path.startswith("/") and "archive_info" in noted
    except (PackageNotFoundError, LookupError, TypeError, ValueError, AttributeError, OSError, RecursionError):
        # The file is missing or damaged.
        return ""
    return folder if is_file and os.path.isdir(folder) else ""  # noqa: PTH112
