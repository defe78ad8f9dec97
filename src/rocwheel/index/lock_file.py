"""Reads, checks, and relocates lock files that every installer can read (:pep:`751`, ``pylock.toml``)."""

from __future__ import annotations

import os
import posixpath
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from rocwheel.core.decoding import LONGEST_KEY, longest_key
from rocwheel.core.errors import InputError
from rocwheel.core.messages import shortened
from rocwheel.core.names import is_utf8
from rocwheel.stores.urls import WEB_SCHEMES, hide_users, local_path, shown_url
from rocwheel.wheels.record import STRONG_HASHES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_EXTRA = "Install the requirements for locking: pip install 'rocwheel[lock]'."
_TOOL = "rocwheel"
_SINGLE = ("sdist", "archive")
"""The kinds of files that may occur only once in a package."""
_QUERY = re.compile(r"(?<=://)([^?#\s]*)\?[^#\s]*")


def check_lock_name(path: Path) -> None:
    """Raise `InputError` for a path that installers don't accept as the path of a lock file."""
    if not _library("packaging.pylock").is_valid_pylock_path(path):
        expected = "pylock.toml, or pylock.NAME.toml, where NAME contains no dots"
        raise InputError(path, "is not the name of a lock file", expected=expected, remedy="Change --output.")


class LockFile:
    """The tables of a lock file. `read` checks them."""

    def __init__(self, tables: dict[str, Any]) -> None:
        self._tables = tables

    @classmethod
    def read(cls, text: str, source: str) -> LockFile:
        """Parse a lock file. Raise `InputError` for invalid text."""
        pylock, toml = _library("packaging.pylock"), _toml()
        if (parts := longest_key(text.encode(errors="replace"))) > LONGEST_KEY:
            raise InputError(source, f"is not a lock file (a key has {parts} parts)", expected="the format of PEP 751")
        try:
            return cls(dict(pylock.Pylock.from_dict(toml.loads(text)).to_dict()))
        except RecursionError as e:
            raise InputError(
                source, "is not a lock file (it is nested too deeply)", expected="the format of PEP 751"
            ) from e
        except (pylock.PylockValidationError, toml.TOMLDecodeError) as e:
            raise InputError(
                source, f"is not a lock file ({shortened(str(e))})", expected="the format of PEP 751"
            ) from e

    @property
    def projects(self) -> dict[str, str]:
        """The versions of the locked packages, keyed by normalized name; empty for a package without a version."""
        return {package["name"]: str(package.get("version", "")) for package in self._tables["packages"]}

    @property
    def built(self) -> dict[str, str]:
        """The URLs of the sdists of packages without wheels, keyed by normalized name."""
        packages = (one for one in self._tables["packages"] if "sdist" in one and not one.get("wheels"))
        return {one["name"]: url for one in packages if (url := one["sdist"].get("url"))}

    @property
    def wheels(self) -> dict[str, tuple[str, ...]]:
        """The wheel file names of each package, keyed by normalized name."""
        return {one["name"]: tuple(map(_file_name, one.get("wheels", ()))) for one in self._tables["packages"]}

    def unhashed(self) -> tuple[str, ...]:
        """Return the packages that have a file without a secure hash."""
        found = (
            package["name"] for package in self._tables["packages"] for file in _files(package)
            if not STRONG_HASHES & file.get("hashes", {}).keys()
        )  # fmt: skip
        return tuple(dict.fromkeys(found))

    def without_users(self) -> LockFile:
        """Return the lock file without user names and passwords in the URLs of web servers.

        Other URLs remain unchanged. For example, the user in ``ssh://git@host`` is part of the address.
        """
        return LockFile({**self._tables, "packages": _without_users(self._tables["packages"])})

    def with_queries(self) -> tuple[str, ...]:
        """Return the web server URLs that have a query, in the form in which messages show them.

        A query may be a secret, such as a token, or may identify the file on the server, so it remains in the URL.
        """
        return tuple(dict.fromkeys(shown_url(url) for url in _addresses(self._tables["packages"]) if "?" in url))

    def relative_to(self, folder: Path) -> LockFile:
        """Return the lock file with relative paths instead of URLs of local files.

        ``folder`` is the lock file's folder.

        The lock file and the local files can then be moved together. URLs of servers remain unchanged. Raises
        `InputError` for a path that is not valid UTF-8, because TOML requires UTF-8.
        """
        packages = [_moved(package, folder) for package in self._tables["packages"]]
        return LockFile({**self._tables, "packages": packages})

    def noting(self, requirements: Sequence[str], targets: Sequence[str]) -> LockFile:
        """Return the lock file with a note about its purpose. Passwords and queries in the requirements are removed."""
        noted = {"requirements": [_QUERY.sub(r"\1", hide_users(text)) for text in requirements], "targets": [*targets]}
        tool = {**self._tables.get("tool", {}), _TOOL: noted}
        return LockFile({**self._tables, "created-by": _TOOL, "tool": tool})

    def render(self) -> bytes:
        """Return the text of the file. The same tables produce the same bytes."""
        text = _library("tomli_w").dumps(self._tables)
        return str(text).encode()


def _files(package: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from package.get("wheels", ())
    yield from (package[kind] for kind in _SINGLE if kind in package)


def _file_name(file: dict[str, Any]) -> str:
    """Return the name of a file. A lock file may omit the name if the URL or path contains it."""
    place = unquote(urlsplit(file["url"]).path) if "url" in file else file.get("path", "")
    return str(file.get("name") or posixpath.basename(place))


def _without_users(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_users(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_users(inner) for inner in value]
    return hide_users(value) if _is_of_web(value) else value


def _is_of_web(value: Any) -> bool:
    """Return whether a value is the URL of a web server, or of a repository on one, such as ``git+https://host``."""
    scheme, mark, _ = value.partition("://") if isinstance(value, str) else ("", "", "")
    return bool(mark) and scheme.rpartition("+")[2].lower() in WEB_SCHEMES


def _addresses(value: Any) -> Iterator[str]:
    """Yield the web server URLs in a table, without their fragments."""
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from _addresses(inner)
    if _is_of_web(value):
        yield value.partition("#")[0]


def _moved(package: dict[str, Any], folder: Path) -> dict[str, Any]:
    changed: dict[str, Any] = {kind: _moved_file(package[kind], folder) for kind in _SINGLE if kind in package}
    if "wheels" in package:
        changed["wheels"] = [_moved_file(file, folder) for file in package["wheels"]]
    return {**package, **changed}


def _moved_file(file: dict[str, Any], folder: Path) -> dict[str, Any]:
    # For a local file, uv writes a URL if it found the file itself, and a path otherwise.
    if "path" in file:
        place = str(file["path"])
    else:
        parts = urlsplit(file.get("url", ""))
        place = local_path(parts.path) if parts.scheme == "file" else ""
    if not place.startswith("/"):
        return file
    path = os.path.relpath(place, folder.resolve())
    if not is_utf8(path):
        raise InputError(place, "has a name that is not UTF-8 and can't be in a lock file", remedy="Rename it.")
    return {"path": Path(path).as_posix(), **{key: value for key, value in file.items() if key not in {"url", "path"}}}


def _toml() -> Any:
    try:
        return import_module("tomllib")
    except ModuleNotFoundError:  # needed up to Python 3.10
        return import_module("tomli")


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as e:
        source, found = "rocwheel lock", f"needs the library {name}, which is missing or too old"
        raise InputError(source, found, remedy=_EXTRA) from e
