"""``_rocm_init.py``: the module by which a package has its ROCm libraries loaded before its own."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from rocwheel.audit.sdk_layout import find_sdk_library, short_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.audit.tree import InstalledFile

__all__ = ["INITIALIZER", "initializer_folder", "preload_names", "render_initializer"]

INITIALIZER = "_rocm_init.py"

_TEMPLATE = '''"""Loads the ROCm libraries that this package's extensions need; written by rocwheel."""


def initialize():
    """Load them, in order, and check the version of ROCm: call this before the first extension is imported."""
    import rocm_sdk

    rocm_sdk.initialize_process(
        preload_shortnames=[
{names}        ],
{others}{version}    )
'''


def preload_names(loadable: Iterable[InstalledFile]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the short names of the SDK libraries that files need, in load order, and the SONAMEs that have none.

    The order is that of the files' NEEDED entries: each library finds what it needs itself by its own run path.
    """
    needed = dict.fromkeys(name for file in loadable if file.elf for name in file.elf.needed)
    named = {soname: short_name(soname) for soname in needed}
    others = (soname for soname, name in named.items() if not name and find_sdk_library(soname))
    return tuple(name for name in named.values() if name), tuple(others)


def initializer_folder(loadable: Iterable[InstalledFile]) -> str:
    """Return the package that the module goes to: the first one with a library, relative to site-packages; or none."""
    folders = (posixpath.dirname(file.path) for file in loadable)
    packages = (folder for folder in folders if all(part.isidentifier() for part in folder.split("/")))
    return min(packages, key=lambda folder: (folder.count("/"), folder), default="")


def render_initializer(names: Sequence[str], version: str = "", others: Sequence[str] = ()) -> str:
    """Return the module's text; ``version`` is what the SDK's has to match, with ``*`` for anything.

    ``others`` are libraries that ``rocm_sdk`` has no names for; the module tells of them.
    """
    lines = "".join(f'            "{name}",\n' for name in names)
    left = f"        # Left to run paths, since rocm_sdk has no names for them: {', '.join(others)}\n" if others else ""
    check = f'        check_version="{version}",\n        fail_on_version_mismatch=True,\n' if version else ""
    return _TEMPLATE.format(names=lines, others=left, version=check)
