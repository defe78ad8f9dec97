"""What distributions require: Requires-Dist with extras and markers (:pep:`508`), directly and through others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.markers import UndefinedComparison
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from rocwheel.distributions.formats.markers import marker_holds
from rocwheel.linking.sdk_layout import sdk_folders, sdk_selector

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rocwheel.installed.tree import Distribution, Tree

__all__ = [
    "applies",
    "packages_elsewhere",
    "parse_requirement",
    "parse_requirements",
    "release_folders",
    "required_distributions",
]


def parse_requirements(owner: Distribution) -> list[Requirement]:
    """Return the requirements that can be read; which can't is the metadata rules' to tell."""
    return [requirement for text in owner.requires if (requirement := parse_requirement(text)) is not None]


def parse_requirement(text: str) -> Requirement | None:
    """Return a requirement; none for malformed text, and for a marker that compares what has no order."""
    try:
        requirement = Requirement(text)
        applies(requirement)
    except (InvalidRequirement, UndefinedComparison):
        return None
    return requirement


def applies(requirement: Requirement, extras: Iterable[str] = ("",), wheel: str = "") -> bool:
    """Tell whether a requirement holds with any of the extras, on this machine or wherever a ``wheel`` goes.

    A wheel is told by its file name, whose tags say which Pythons and platforms it is for; any of them will do.
    Raises `packaging.markers.UndefinedComparison`, though not for what `parse_requirement` returns.
    """
    marker = requirement.marker
    try:
        return marker is None or any(
            marker_holds(str(marker), extra, wheel) if wheel else marker.evaluate({"extra": extra}) for extra in extras
        )
    except InvalidVersion:
        # Of this machine, such as a kernel's: earlier releases of packaging don't compare it as text.
        return True


def required_distributions(tree: Tree, owner: Distribution) -> frozenset[str]:
    """Return the names of all that is installed with a distribution: what it requires, and what that requires.

    Requirements of an extra count where the extra is asked for. The SDK's selector, a source distribution that is
    rarely at hand, brings what its layout says, for any target family. Markers are judged for the Pythons and the
    platforms that the distribution is for, if it is a wheel: which Python asks is no matter.
    """
    wheel = owner.label if owner.is_wheel else ""
    reached: set[tuple[str, str]] = set()
    waiting = [(owner.name, "")]
    while waiting:
        name, extra = waiting.pop()
        brought = _brought_by_selector(tree, extra) if name == sdk_selector().distribution else set()
        for other in tree.distributions:
            if other.name == name:
                brought |= _named(other, extra, wheel)
        waiting += brought - reached
        reached |= brought
    return frozenset(name for name, _ in reached)


def packages_elsewhere(tree: Tree, owner: Distribution) -> frozenset[str]:
    """Return the names of what a distribution requires and that is neither at hand nor the SDK's."""
    known = {other.name for other in tree.distributions} | {folder.distribution for folder in sdk_folders()}
    return required_distributions(tree, owner) - known - {sdk_selector().distribution}


def release_folders(tree: Tree, owner: Distribution) -> frozenset[str]:
    """Return the top-level folders of a release: a distribution, and those that it requires in one exact version."""
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


def _named(owner: Distribution, extra: str, wheel: str) -> set[tuple[str, str]]:
    """Return name and extra of each requirement, once for each extra that it asks for and once without."""
    return {
        (str(canonicalize_name(requirement.name)), asked)
        for requirement in parse_requirements(owner)
        if applies(requirement, (extra,), wheel)
        for asked in ("", *map(canonicalize_name, requirement.extras))
    }


def _brought_by_selector(tree: Tree, extra: str) -> set[tuple[str, str]]:
    selector = sdk_selector()
    names = selector.extras.get(extra, ()) if extra else selector.requires
    families = (other.name for other in tree.distributions if _is_variant(other.name, names))
    return {(name, "") for name in (*names, *families)}


def _is_variant(name: str, neutral: Collection[str]) -> bool:
    return any(name.startswith(f"{other}-") for other in neutral)
