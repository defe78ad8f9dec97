"""The entries of RPATH and RUNPATH, and their dynamic string tokens (``ld.so(8)``, "Dynamic string tokens")."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = [
    "detours",
    "expand_entry",
    "folders_beyond",
    "goes_back",
    "is_build_folder",
    "is_host_folder",
    "is_origin_relative",
    "is_python_build_folder",
    "is_relative",
    "leads_nowhere",
    "lost_origin",
    "resolve_entry",
    "split_run_path",
]

_WORKING_FOLDER = "/the-working-folder"
"""Stands for the folder in which the process was started: what is found there is chance."""

_ORIGIN = re.compile(r"\$(?:ORIGIN\b|\{ORIGIN\})")
_ORIGIN_FIRST = re.compile(r"\$(?:ORIGIN|\{ORIGIN\})(?=/|$)")
_BACK = re.compile(r"(?:^|/)(?!\.{1,2}/|\$)[^/]+/+(?:\./+)*\.\.(?:/|$)")
_LOST_ORIGIN = re.compile(r"(/\.\.|RIGIN)(/|$)")
_BUILD_FOLDER = re.compile(
    r"(^|/)(_solib_[^/]*|[^/]*\.runfiles|external|bazel-[^/]+|execroot|sandbox|CMakeFiles|site-packages)(/|$)"
    r"|^/(home|root|tmp|build|builds|workspace|usr/src|var/lib|__w|github)(/|$)"
)
_PYTHON_BUILD = re.compile(r"(^|/)build/(lib|temp)\.[^/]+(/|$)")
_DEAD = re.compile(
    r"(^|/)(_solib_[^/]*|[^/]*\.runfiles|bazel-[^/]+|CMakeFiles)(/|$)"
    r"|^/(.*/)?(execroot|\.?bazel/(.*/)?sandbox)(/|$)"
    r"|^/(tmp|build|builds|usr/src|var/lib/jenkins|__w|github)(/|$)"
)
_DEAD_IN_PACKAGE = re.compile(r"(^|/)(execroot|sandbox|external)(/|$)")
"""Names of Bazel's folders that packages may have, too: they count below a package and above site-packages alone."""


def split_run_path(text: str | None) -> tuple[str, ...]:
    """Return the entries of a run path. An empty entry inside it stands for the working folder, as for the loader."""
    return tuple(text.split(":")) if text else ()


def is_origin_relative(entry: str) -> bool:
    """Return whether an entry begins with ``$ORIGIN`` as a whole path component."""
    return _ORIGIN_FIRST.match(entry) is not None


def is_relative(entry: str) -> bool:
    """Return whether an entry depends on the working folder, as one with a misquoted ``$ORIGIN`` does."""
    return not entry.startswith("/") and not is_origin_relative(entry) and not lost_origin(entry)


def goes_back(entry: str) -> bool:
    """Return whether an entry has ``..`` after a folder's name: the kernel follows it only if that folder exists."""
    return _BACK.search(entry) is not None


def is_build_folder(entry: str) -> bool:
    """Return whether an entry leads to a folder that only builds have, judging by its name."""
    return _BUILD_FOLDER.search(entry.replace("$ORIGIN/", "").replace("${ORIGIN}/", "")) is not None


def is_python_build_folder(folder: str) -> bool:
    """Return whether a folder, relative to site-packages, is one of setuptools: ``build/lib.linux-x86_64-...``."""
    return _PYTHON_BUILD.search(folder) is not None


def lost_origin(entry: str) -> bool:
    """Return whether an entry is what a shell or make leaves of an entry that began with ``$ORIGIN``."""
    return _LOST_ORIGIN.match(entry) is not None


def leads_nowhere(entry: str, folder: str) -> bool:
    """Return whether an entry of a file in ``folder`` is proved to lead to no library on a user's machine.

    It leads to a folder that only builds have, to the one in which the process was started, or has lost its
    ``$ORIGIN``. Weaker than `is_build_folder`, which judges by names that a user's folders may have as well
    (``/opt/site-packages``, ``/home/me/rocm/lib``, ``/workspace/rocm/lib``, or a package called ``sandbox``).
    """
    place = resolve_entry(entry, folder)
    if place is None:
        return not entry.startswith("/") or lost_origin(entry) or _DEAD.search(entry) is not None
    below = place if place.startswith("..") else place.partition("/")[2]
    return _DEAD.search(place) is not None or _DEAD_IN_PACKAGE.search(below) is not None


def detours(entry: str, folder: str) -> list[str]:
    """Return the folders that an entry of a file in ``folder`` enters and leaves again by ``..``.

    The kernel follows such an entry only if they exist. All are relative to site-packages; there are none in an entry
    that doesn't start with ``$ORIGIN``.
    """
    match = _ORIGIN_FIRST.match(entry)
    found, place, entered = [], folder, 0
    for part in entry[match.end() :].split("/") if match else ():
        if part == ".." and entered:
            found.append(place)
        if part not in {"", "."}:
            entered = max(0, entered - 1) if part == ".." else entered + 1
            place = posixpath.normpath(posixpath.join(place, part))
    return found


def is_host_folder(entry: str) -> bool:
    """Return whether an entry is an absolute path that a host may have, such as ``/opt/rocm/lib``."""
    return entry.startswith("/") and not is_build_folder(entry) and not lost_origin(entry)


def expand_entry(entry: str, origin: str) -> str:
    """Return the path that an entry of a file in ``origin`` stands for; ``..`` is left for the file system."""
    expanded = _ORIGIN.sub(lambda _: origin, entry)
    return expanded if expanded.startswith("/") else posixpath.join(_WORKING_FOLDER, expanded)


def resolve_entry(entry: str, folder: str) -> str | None:
    """Return the folder that an entry of a file in ``folder`` leads to; None unless it starts with ``$ORIGIN``.

    Both folders are relative to site-packages, which is an empty text itself.
    """
    match = _ORIGIN_FIRST.match(entry)
    if match is None:
        return None
    place = posixpath.normpath(posixpath.join(folder, entry[match.end() :].lstrip("/")))
    return "" if place == "." else place


def folders_beyond(release: Collection[str], run_path: str | None, folder: str) -> list[str]:
    """Return the folders outside of a release that the run path of a file in ``folder`` leads to, each once.

    ``release`` are top-level folders of site-packages. RPATH may lead to none outside of them: ``LD_LIBRARY_PATH``
    can't override it, and what is loaded from there inherits it. A folder of a build is no package's.
    """
    found = (resolve_entry(entry, folder) for entry in split_run_path(run_path))
    beyond = (place for place in found if place and place.partition("/")[0] not in release)
    return list(dict.fromkeys(place for place in beyond if not is_python_build_folder(place)))
