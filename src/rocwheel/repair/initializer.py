"""Creates ``_rocm_init.py``, the module that loads a package's ROCm libraries before the package's own libraries."""

from __future__ import annotations

import hashlib
import posixpath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.environment.sdk_layout import find_sdk_library, short_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.environment.tree import Distribution, InstalledFile

_NAME = "_rocm_init.py"
_NO_INIT = "Repair without --init."

_TEMPLATE = '''"""Loads the ROCm libraries that this package's extension modules need. Written by rocwheel."""


def initialize():
    """Load the libraries in order, and check the version of ROCm. Call this before you import the first extension."""
{imports}    import rocm_sdk
    from rocm_sdk._dist_info import ALL_LIBRARIES

    names = [
{names}    ]
{others}    rocm_sdk.initialize_process(
        # Older ROCm releases have names for fewer libraries; run paths point to the others.
        preload_shortnames=[name for name in names if name in ALL_LIBRARIES],
{version}    )
'''


class VersionCheck(msgspec.Struct, frozen=True):
    """The required version of the installed SDK."""

    text: str
    """The version in messages to users and in the call to ``rocm_sdk``, which accepts ``*`` for any version."""
    pattern: str = ""
    """A regular expression that replaces ``text`` in the check, if ``rocm_sdk`` itself doesn't support such a check."""
    fails: bool = True
    """Whether a different version causes an error instead of a warning."""


def preload_names(loadable: Iterable[InstalledFile]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the short names of the required SDK libraries in load order, and the SONAMEs without short names.

    The order is the order of the files' NEEDED entries. Each library finds its own dependencies through its own run
    path.
    """
    needed = dict.fromkeys(name for file in loadable if file.elf for name in file.elf.needed)
    named = {soname: short_name(soname) for soname in needed}
    others = (soname for soname, name in named.items() if not name and find_sdk_library(soname))
    return tuple(name for name in named.values() if name), tuple(others)


def initializer_member(
    owner: Distribution, files: Sequence[InstalledFile], check: VersionCheck | None = None
) -> dict[str, str]:
    """Return the module's text, keyed by its member name.

    Return an empty dictionary if the wheel already contains the module.

    Raises `InputError` for a wheel without a Python package for the module, and for a wheel with a different module of
    that name.
    """
    loadable = [file for file in files if file.is_loadable]
    folder = _package_folder(loadable)
    if loadable and not folder:
        found = "has no library in a Python package"
        raise InputError(
            owner.source,
            found,
            expected=f"a Python package with a library, to which a repair adds {_NAME}",
            remedy=_NO_INIT,
        )
    names, others = preload_names(loadable)
    text = render_initializer(names, check, others)
    there = next((file for file in files if file.path == f"{folder}/{_NAME}"), None)
    if there is not None and there.sha256 != hashlib.sha256(text.encode()).digest():
        remedy = "Build the wheel without this file, or repair without --init."
        raise InputError(there.source, "differs from the file that a repair adds", remedy=remedy)
    return {f"{folder}/{_NAME}": text} if loadable and there is None else {}


def _package_folder(loadable: Iterable[InstalledFile]) -> str:
    """Return the folder of the first package with a library, where the module is added, or an empty string."""
    folders = (posixpath.dirname(file.path) for file in loadable)
    packages = (folder for folder in folders if all(part.isidentifier() for part in folder.split("/")))
    return min(packages, key=lambda folder: (folder.count("/"), folder), default="")


def render_initializer(names: Sequence[str], check: VersionCheck | None = None, others: Sequence[str] = ()) -> str:
    """Return the module's text.

    ``others`` are libraries that have no short name in ``rocm_sdk``. A comment in the module lists them.
    """
    lines = "".join(f'        "{name}",\n' for name in names)
    left = (
        f"    # Run paths point to these libraries, because rocm_sdk has no names for them: {', '.join(others)}\n"
        if others
        else ""
    )
    imports = "    import re\n\n" if check and check.pattern else ""
    return _TEMPLATE.format(names=lines, others=left, version=_check_arguments(check), imports=imports)


def _check_arguments(check: VersionCheck | None) -> str:
    if check is None:
        return ""
    wanted = f'"{check.text}"'
    if check.pattern:
        wanted = f'"*" if re.match(r"{check.pattern}", rocm_sdk.__version__) else {wanted}'
    return f"        check_version={wanted},\n        fail_on_version_mismatch={check.fails},\n"
