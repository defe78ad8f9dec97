"""Requirements that a repair adds, with the versions of the packages at hand (:pep:`440`, "Version matching")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from rocwheel.installed.tree import Tree
    from rocwheel.repair.options import Pin

__all__ = ["locked_requirement", "version_to_match"]


def locked_requirement(tree: Tree, name: str, pin: Pin) -> str:
    """Return the requirement of a distribution: by name alone, or also by the version at hand.

    A pre-release at hand is named as the oldest one: installers pass over pre-releases that no requirement names.
    Raises `InputError` for a version that is none.
    """
    matched = version_to_match(tree, name, pin)
    if not matched:
        return name
    version = _version(tree, name)
    is_early = pin == "minor" and version is not None and version.is_prerelease
    return f"{name}=={matched},>={version.public}" if version and is_early else f"{name}=={matched}"


def version_to_match(tree: Tree, name: str, pin: Pin) -> str:
    """Return what the version of a distribution has to match; nothing where it isn't at hand or not to be named.

    Raises `InputError` for a version that is none.
    """
    version = None if pin == "none" else _version(tree, name)
    if version is None:
        return ""
    epoch = f"{version.epoch}!" if version.epoch else ""
    return f"{epoch}{version.major}.{version.minor}.*" if pin == "minor" else str(version)


def _version(tree: Tree, name: str) -> Version | None:
    found = next((other for other in tree.distributions if other.name == name), None)
    if found is None or not found.version:
        return None
    try:
        return Version(found.version)
    except InvalidVersion as e:
        raise InputError(found.source, f"the version {found.version!r}", expected="one by PEP 440") from e
