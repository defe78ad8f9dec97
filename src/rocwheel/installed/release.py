"""Packages that are released together: a distribution and those that it requires in one exact version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from rocwheel.installed.requirements import parse_requirements
from rocwheel.linking.entries import resolve_entry, split_run_path
from rocwheel.linking.sdk_layout import sdk_folders

if TYPE_CHECKING:
    from collections.abc import Collection

    from packaging.requirements import Requirement

    from rocwheel.installed.tree import Distribution, Tree

__all__ = ["folders_beyond", "release_folders"]


def release_folders(tree: Tree, owner: Distribution) -> frozenset[str]:
    """Return the top-level folders of a distribution and of those that it requires in one exact version."""
    pinned = {
        canonicalize_name(requirement.name) for requirement in parse_requirements(owner) if _is_exact(requirement)
    }
    release = {other.source for other in tree.distributions if other is owner or other.name in pinned}
    given = {file.path.partition("/")[0] for file in tree.files if file.distribution in release}
    return frozenset(given | {f.folder.partition("/")[0] for f in sdk_folders() if f.distribution in pinned})


def _is_exact(requirement: Requirement) -> bool:
    return any(
        s.operator == "===" or (s.operator == "==" and not s.version.endswith(".*")) for s in requirement.specifier
    )


def folders_beyond(release: Collection[str], run_path: str | None, folder: str) -> list[str]:
    """Return the folders outside of a release that the run path of a file in ``folder`` leads to, each once.

    RPATH may lead to none: ``LD_LIBRARY_PATH`` can't override it, and what is loaded from there inherits it.
    """
    found = (resolve_entry(entry, folder) for entry in split_run_path(run_path))
    return list(dict.fromkeys(place for place in found if place and place.partition("/")[0] not in release))
