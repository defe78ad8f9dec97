"""Maps the members of a wheel to their installed paths and back (:pep:`427`)."""

from __future__ import annotations

import posixpath
import re
from functools import cache

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.wheels.file_names import split_wheel_file_name, wheel_platforms

SITE = "/environment/lib/some-python/site-packages"
"""The assumed site-packages folder of packages that are described but not installed.

The path is so deep that run path entries can't leave it by accident.

No run path contains this folder. Only `InstalledLayout` may know the name of Python's folder on a machine.
"""
PREFIX = "/environment"
_UP = "../../../"
"""The path from site-packages to the prefix of an environment, except on Windows."""


class InstalledLayout(msgspec.Struct, frozen=True):
    """The known parts of an environment's folder layout."""

    site: str = ""
    """Site-packages relative to the prefix, such as ``lib/python3.11/site-packages``.

    Empty if it depends on the Python version.
    """
    is_windows: bool = False
    python: str = ""
    """The Python version, such as ``3.11``. Empty if several versions match."""

    def scheme_folder(self, scheme: str, name: str) -> str | None:
        """Return the folder of a scheme (:pep:`427`), relative to site-packages, or `None` if the scheme is unknown.

        Headers of the distribution ``name`` are put where pip and uv put them in virtual environments.
        """
        up = "../../" if self.is_windows else _UP
        programs = "Scripts/" if self.is_windows else "bin/"
        headers = f"include/site/python{self.python or 'X.Y'}/{name}/"
        folders = {"purelib": "", "platlib": "", "scripts": up + programs, "data": up, "headers": up + headers}
        return folders.get(scheme)

    def inside(self, place: str) -> str:
        """Simplify a path, relative to site-packages, that leaves site-packages and enters it again by name."""
        below = f"{place}/".removeprefix(f"{_UP}{self.site}/") if self.site else f"{place}/"
        return below.rstrip("/")

    def spell(self, folder: str, origin: str) -> str | None:
        """Return the run path entry that a file in ``origin`` needs for a folder.

        Both paths are relative to site-packages.

        Return `None` if the entry depends on the Python version, because a program can reach site-packages only by
        name.
        """
        goes_in = origin.startswith("..") and not folder.startswith("..")
        if goes_in and not self.site:
            return None
        top = posixpath.join(PREFIX, self.site) if goes_in else SITE
        relative = posixpath.relpath(posixpath.join(top, folder), posixpath.normpath(posixpath.join(SITE, origin)))
        return "$ORIGIN" if relative == "." else f"$ORIGIN/{relative}"


_ONE_PYTHON = re.compile(r"(cp|pp)3(\d+)")


@cache
def wheel_layout(file_name: str) -> InstalledLayout:
    """Return the layout of the environments that a wheel can be installed in, to the extent its tags determine it."""
    python, abi, _ = split_wheel_file_name(file_name).tags
    is_windows = any(tag.system == "windows" for tag in wheel_platforms(file_name))
    match = _ONE_PYTHON.fullmatch(python)
    if match is None or abi == "abi3" or "." in abi:
        return InstalledLayout(is_windows=is_windows)
    kind, version = "python" if match[1] == "cp" else "pypy", f"3.{match[2]}"
    folder = f"{kind}{version}{'t' if abi.endswith('t') else ''}"
    return InstalledLayout("" if is_windows else f"lib/{folder}/site-packages", is_windows, version)


_POSIX = InstalledLayout()
_WAY_OUT = re.compile(r"\A(?:\.\./)+")


def installed_path(member: str, layout: InstalledLayout = _POSIX) -> str:
    """Return the installed path of a member, relative to site-packages (:pep:`427`, "The .data directory")."""
    top, _, rest = member.partition("/")
    scheme, _, below = rest.partition("/")
    name = canonicalize_name(top.partition("-")[0])
    folder = layout.scheme_folder(scheme, name) if top.endswith(".data") and below else None
    return member if folder is None else folder + below


def path_in_package(path: str, source: str) -> str:
    """Return a path relative to site-packages.

    For a path outside site-packages, return the name of the wheel member, or the path relative to the environment.

    >>> path_in_package("../../../bin/tool", "x/demo-1.0-py3-none-any.whl!demo-1.0.data/scripts/tool")
    'demo-1.0.data/scripts/tool'
    >>> path_in_package("../../../bin/tool", "env/bin/tool")
    'bin/tool'
    """
    if not path.startswith("../"):
        return path
    _, is_member, member = source.rpartition(".whl!")
    return member if is_member else _WAY_OUT.sub("", path)
