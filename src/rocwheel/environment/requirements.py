"""Finds direct and indirect requirements of distributions: Requires-Dist with extras and markers (:pep:`508`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from rocwheel.artifacts.sdk_names import is_family_variant, is_sdk_package
from rocwheel.environment.sdk_layout import layout_releases, sdk_folders, sdk_selector
from rocwheel.wheels.requirements import (
    applies,
    asked_for,
    follow_requirements,
    readable_requirements,
    requirements_for_extra,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from packaging.requirements import Requirement

    from rocwheel.environment.tree import Distribution, Tree


def required_distributions(tree: Tree, owner: Distribution) -> frozenset[str]:
    """Return the names of a distribution's direct and indirect requirements.

    Requirements of an extra are included if the extra is requested. The SDK's selector is a source distribution that is
    rarely given, so its requirements come from the layout, for any target family. A wheel's markers are evaluated for
    the Python versions and platforms in its tags instead of the running Python.
    """
    wheel = owner.label if owner.is_wheel else ""

    def brought_by(name: str, extra: str) -> Iterator[tuple[str, str]]:
        if name == sdk_selector().distribution:
            yield from _brought_by_selector(tree, extra)
        for other in tree.by_name.get(name, ()):
            yield from _named(other, extra, wheel)

    return follow_requirements(owner.name, brought_by)


def surely_installed(tree: Tree, owner: Distribution, added: Collection[str] = ()) -> frozenset[str]:
    """Return the distributions that are certainly installed with a distribution and with the ``added`` distributions.

    These are the results of `required_distributions`, with two exceptions: requirements that only other versions of
    given distributions have, and given distributions whose version a requirement excludes. SDK packages that aren't
    given are assumed to be from the releases with a known layout.
    """
    refused: frozenset[str] = frozenset()
    while True:
        reached = {owner.name, *added} | _reached(tree, owner.name, refused)
        reached |= {name for start in added for name in _reached(tree, start, refused)}
        now = _refused(tree, reached - refused)
        if now <= refused:
            return frozenset(reached - refused)
        refused |= now


def _reached(tree: Tree, start: str, refused: Collection[str]) -> frozenset[str]:
    """Return the direct and indirect requirements of a name, without the excluded distributions."""

    def brought_by(name: str, extra: str) -> Iterator[tuple[str, str]]:
        if name in refused:
            return
        if name == sdk_selector().distribution:
            yield from _brought_by_selector(tree, extra)
        for other in tree.by_name.get(name, ()):
            yield from _named(other, extra, other.label if other.is_wheel else "")

    return follow_requirements(start, brought_by)


def _refused(tree: Tree, names: Collection[str]) -> frozenset[str]:
    """Return the given distributions whose version a requirement of the named distributions excludes."""
    by_name = tree.by_name
    users = [other for name in names for other in by_name.get(name, ())]
    found = [
        requirement
        for user in users
        for requirement in readable_requirements(user.requires)
        if applies(requirement, file_name=user.label if user.is_wheel else "")
    ]
    given = {name for req in found for name in _versioned(tree, req) if not _allows(req, by_name[name][-1])}
    assumed = ((req, _assumed(tree, req)) for req in found)
    return frozenset(given.union(*(names for req, names in assumed if names and not _allows_layout(req))))


def _assumed(tree: Tree, requirement: Requirement) -> set[str]:
    """Return the SDK packages that aren't given and for which a requirement specifies a version."""
    name = str(canonicalize_name(requirement.name))
    sdk = {folder.distribution for folder in sdk_folders()} - {*tree.by_name}
    return sdk if name == sdk_selector().distribution else sdk & {name}


def _allows_layout(requirement: Requirement) -> bool:
    """Return whether a requirement allows a version of a ROCm release with a known layout."""
    named = [specifier.version for specifier in requirement.specifier if specifier.operator in {"==", "==="}]
    tried = [
        *(version for version in named if not version.endswith(".*")),
        *(f"{release}.{minor}{patch}" for release in layout_releases() for minor in range(100) for patch in ("", ".9")),
    ]
    return any(
        version.partition(".")[0] in map(str, layout_releases())
        and requirement.specifier.contains(version, prereleases=True)
        for version in tried
    )


def _versioned(tree: Tree, requirement: Requirement) -> list[str]:
    """Return the given distributions that must have the version in a requirement.

    The SDK's selector, which is rarely given, requires the SDK's other packages at the same version.
    """
    name = str(canonicalize_name(requirement.name))
    given = [name] if name in tree.by_name else []
    if name != sdk_selector().distribution:
        return given
    return [*given, *(other.name for other in tree.distributions if is_sdk_package(other.name))]


def _allows(requirement: Requirement, other: Distribution) -> bool:
    try:
        return requirement.specifier.contains(other.version, prereleases=True)
    except ValueError:
        return False


def packages_elsewhere(tree: Tree, owner: Distribution) -> frozenset[str]:
    """Return the names of a distribution's requirements that are neither given nor in the SDK."""
    known = {other.name for other in tree.distributions} | {folder.distribution for folder in sdk_folders()}
    return required_distributions(tree, owner) - known - {sdk_selector().distribution}


def release_folders(tree: Tree, owner: Distribution) -> frozenset[str]:
    """Return the top-level folders of a release, which is a distribution and the distributions that it pins exactly.

    A distribution that isn't given is assumed to have a folder with its name.
    """
    pinned = {
        canonicalize_name(requirement.name)
        for requirement in readable_requirements(owner.requires)
        if _is_exact(requirement)
    }
    release = {owner.source, *(other.source for name in pinned for other in tree.by_name.get(name, ()))}
    given = {file.path.partition("/")[0] for source in release for file in tree.files_of.get(source, ())}
    given |= {spelled for name in pinned - tree.by_name.keys() for spelled in (name, name.replace("-", "_"))}
    return frozenset(given | {f.folder.partition("/")[0] for f in sdk_folders() if f.distribution in pinned})


def _is_exact(requirement: Requirement) -> bool:
    return any(
        s.operator == "===" or (s.operator == "==" and not s.version.endswith(".*")) for s in requirement.specifier
    )


def _named(owner: Distribution, extra: str, wheel: str) -> Iterator[tuple[str, str]]:
    """Yield the requirements that an extra adds to a distribution's other requirements."""
    for requirement in requirements_for_extra(owner.requires, extra):
        if applies(requirement, (extra,), wheel):
            yield from asked_for(requirement)


def _brought_by_selector(tree: Tree, extra: str) -> set[tuple[str, str]]:
    selector = sdk_selector()
    names = selector.extras.get(extra, ()) if extra else selector.requires
    families = {
        other.name for other in tree.distributions if any(is_family_variant(other.name, name) for name in names)
    }
    return {(name, "") for name in (*names, *families)}
