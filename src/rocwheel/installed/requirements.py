"""What distributions require: Requires-Dist with extras and markers (:pep:`508`), directly and through others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from rocwheel.distributions.formats.requirements import (
    applies,
    asked_for,
    follow_requirements,
    readable_requirements,
)
from rocwheel.linking.sdk_layout import sdk_folders, sdk_selector
from rocwheel.linking.sdk_names import is_family_variant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.requirements import Requirement

    from rocwheel.installed.tree import Distribution, Tree

__all__ = [
    "packages_elsewhere",
    "release_folders",
    "required_distributions",
]


def required_distributions(tree: Tree, owner: Distribution) -> frozenset[str]:
    """Return the names of all that is installed with a distribution: what it requires, and what that requires.

    Requirements of an extra count if the extra is asked for. The SDK's selector is a source distribution that is
    rarely given: it requires what its layout says, for any target family. Markers of a wheel are judged for the
    Pythons and platforms of its tags, not for the running Python.
    """
    wheel = owner.label if owner.is_wheel else ""

    def brought_by(name: str, extra: str) -> Iterator[tuple[str, str]]:
        if name == sdk_selector().distribution:
            yield from _brought_by_selector(tree, extra)
        for other in tree.by_name.get(name, ()):
            yield from _named(other, extra, wheel)

    return follow_requirements(owner.name, brought_by)


def packages_elsewhere(tree: Tree, owner: Distribution) -> frozenset[str]:
    """Return the names of what a distribution requires and what is neither given nor of the SDK."""
    known = {other.name for other in tree.distributions} | {folder.distribution for folder in sdk_folders()}
    return required_distributions(tree, owner) - known - {sdk_selector().distribution}


def release_folders(tree: Tree, owner: Distribution) -> frozenset[str]:
    """Return the top-level folders of a release: a distribution, and those that it requires in one exact version."""
    pinned = {
        canonicalize_name(requirement.name)
        for requirement in readable_requirements(owner.requires)
        if _is_exact(requirement)
    }
    release = {other.source for other in tree.distributions if other is owner or other.name in pinned}
    given = {file.path.partition("/")[0] for file in tree.files if file.distribution in release}
    return frozenset(given | {f.folder.partition("/")[0] for f in sdk_folders() if f.distribution in pinned})


def _is_exact(requirement: Requirement) -> bool:
    return any(
        s.operator == "===" or (s.operator == "==" and not s.version.endswith(".*")) for s in requirement.specifier
    )


def _named(owner: Distribution, extra: str, wheel: str) -> Iterator[tuple[str, str]]:
    for requirement in readable_requirements(owner.requires):
        if applies(requirement, (extra,), wheel):
            yield from asked_for(requirement)


def _brought_by_selector(tree: Tree, extra: str) -> set[tuple[str, str]]:
    selector = sdk_selector()
    names = selector.extras.get(extra, ()) if extra else selector.requires
    families = {
        other.name for other in tree.distributions if any(is_family_variant(other.name, name) for name in names)
    }
    return {(name, "") for name in (*names, *families)}
