"""Folders that belong to one distribution alone, so that all of their files are known.

Packages share others, such as ``nvidia/cu13/lib``: there may be more on a user's machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from rocwheel.audit.symbol_scopes import has_init_function
from rocwheel.linking.tree_disk import SITE

if TYPE_CHECKING:
    from rocwheel.audit.subject import Subject
    from rocwheel.installed.tree import InstalledFile

__all__ = ["has_nothing_to_open", "is_own_folder"]

_LIBS = ".libs"


def is_own_folder(subject: Subject, folder: str) -> bool:
    """Return whether one distribution has an absolute folder for itself.

    That is a folder in a package whose ``__init__.py`` says something (an empty one is what distributions share that
    add to each other's packages, as ``nvidia`` is), and ``NAME.libs`` as auditwheel makes it for a wheel ``NAME``.
    """
    top = folder.removeprefix(f"{SITE}/").partition("/")[0]
    owners = subject.tree.owners_of_tops.get(top, frozenset())
    module = subject.tree.by_path.get(f"{top}/__init__.py")
    is_package = module is not None and module.size > 0
    is_named = top.endswith(_LIBS) and canonicalize_name(top.removesuffix(_LIBS)) in owners
    return len(owners) == 1 and (is_package or is_named) and subject.disk.is_folder(folder)


def has_nothing_to_open(subject: Subject, folder: str, opener: str) -> bool:
    """Return whether the file at the place ``opener`` can open nothing by name in a folder of one distribution.

    Modules that Python imports are opened by their whole paths.
    """
    held = (file for file in subject.tree.files if f"{SITE}/{file.folder}" == folder)
    return is_own_folder(subject, folder) and not any(_is_openable(file, opener) for file in held)


def _is_openable(file: InstalledFile, opener: str) -> bool:
    return file.is_loadable and file.path != opener and not has_init_function(file)
