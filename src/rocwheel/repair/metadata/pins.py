"""Requirements that a repair adds, with the versions of the packages at hand (:pep:`440`, "Version matching")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from rocwheel.core.errors import InputError
from rocwheel.linking.known.sdk_layout import layout_releases
from rocwheel.linking.known.sdk_names import is_sdk_package
from rocwheel.wheels.requirements import prefix_match

if TYPE_CHECKING:
    from rocwheel.installed.tree import Distribution, Tree
    from rocwheel.repair.options import Pin

__all__ = ["locked_requirement", "sdk_version_to_match"]

_MINOR = 2
_SDK = ("rocm-sdk-core", "rocm-sdk-libraries")
"""The packages by one of which ``_rocm_init.py`` checks the SDK's version."""


def locked_requirement(tree: Tree, owner: Distribution, name: str, pin: Pin) -> str:
    """Return the requirement of a distribution that ``owner`` uses, with the version that ``pin`` asks for.

    With ``release``, a package of the SDK that is not at hand is one of the release whose layout is assumed. A
    pre-release at hand is named as the oldest one: installers pass over pre-releases that no requirement names.
    Raises `InputError` where ``pin`` asks for the version of a package that is not at hand or has no valid one.
    """
    is_given = any(other.name == name for other in tree.distributions)
    if pin == "release":
        pin = "minor"
        if not is_given:
            return f"{name}{_assumed_release(tree, owner)}" if is_sdk_package(name) else name
    if pin != "none" and not is_given:
        raise _absent_error(owner, name, pin)
    matched = _version_to_match(tree, name, pin)
    if not matched:
        return name
    version = _version(tree, name)
    is_early = pin == "minor" and version is not None and version.is_prerelease
    return f"{name}=={matched},>={version.public}" if version and is_early else f"{name}=={matched}"


def _assumed_release(tree: Tree, owner: Distribution) -> str:
    """Return the specifier of the releases of ROCm that have, by the known layout, what a wheel needs of the SDK."""
    needed = {name for file in tree.files_of[owner.source] if file.elf for name in file.elf.wanted}
    releases = layout_releases(needed) or layout_releases()
    return f"=={releases[0]}.*" if len(releases) == 1 else f">={releases[0]},<{releases[-1] + 1}"


def sdk_version_to_match(tree: Tree, owner: Distribution, pin: Pin, *, is_needed: bool) -> str:
    """Return what the SDK's version has to match; empty where ``pin`` asks for none, or for a release only.

    Raises `InputError` for an SDK at hand with an invalid version, and for none at hand though one ``is_needed``.
    """
    if pin == "release":
        return ""
    version = next(filter(None, (_version_to_match(tree, name, pin) for name in _SDK)), "")
    if pin != "none" and not version and is_needed:
        raise _absent_error(owner, _SDK[0], pin)
    return version


def _absent_error(owner: Distribution, name: str, pin: Pin) -> InputError:
    found = f"uses {name}, but that package is not at hand for --pin {pin} to take a version from"
    return InputError(owner.source, found, expected="it among the packages given with --with")


def _version_to_match(tree: Tree, name: str, pin: Pin) -> str:
    version = None if pin == "none" else _version(tree, name)
    if version is None:
        return ""
    return prefix_match(version, _MINOR) if pin == "minor" else str(version)


def _version(tree: Tree, name: str) -> Version | None:
    found = next((other for other in tree.distributions if other.name == name), None)
    if found is None or not found.version:
        return None
    try:
        return Version(found.version)
    except ValueError as e:
        raise InputError(found.source, f"has the version {found.version!r}", expected="one that follows PEP 440") from e
