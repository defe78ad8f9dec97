"""Lists a repair's changes to a wheel: run paths, requirements and their pins, and modes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.version import Version

from rocwheel.artifacts.sdk_names import is_sdk_package
from rocwheel.core.errors import InputError
from rocwheel.core.writing import PERMISSIONS, UNSAFE, safe_mode
from rocwheel.environment.check_record import wheel_record_problems
from rocwheel.environment.sdk_layout import layout_releases
from rocwheel.wheels.requirements import prefix_match

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rocwheel.environment.run_path_choice import SetRunpath
    from rocwheel.environment.tree import Distribution, InstalledFile, Tree
    from rocwheel.repair.options import Pin


_VOID = "removed, because the signature is for the old RECORD: sign the repaired wheel"
_AGAIN = "rewritten"


class Change(msgspec.Struct, frozen=True):
    """A change: the file, the changed part, and the values before and after."""

    file: str
    what: str
    before: str
    after: str


def run_path_changes(files: Sequence[InstalledFile], edits: Mapping[str, SetRunpath]) -> list[Change]:
    """Return the changes to the run paths and segments of a wheel's files. The keys of ``edits`` are member names."""
    by_member = {file.member: file for file in files}
    return [change for name, edit in edits.items() for change in _changes_of(by_member[name], edit)]


def _changes_of(file: InstalledFile, edit: SetRunpath) -> Iterator[Change]:
    assert file.elf is not None
    edited = edit.applied_to(file.elf)
    if (edited.rpath, edited.runpath) != (file.elf.rpath, file.elf.runpath):
        yield _run_path_change(file, edit)
    for before, after in zip(file.elf.segments, edited.segments, strict=True):
        if before != after:
            what = f"alignment of the segment at {before.address:#x}"
            yield Change(file.member, what, f"{before.alignment:#x}", f"{after.alignment:#x}")


def _run_path_change(file: InstalledFile, edit: SetRunpath) -> Change:
    """Return the change to a run path. If a file has both an RPATH and a RUNPATH, the change shows both."""
    assert file.elf is not None
    values = {"RPATH": file.elf.rpath, "RUNPATH": file.elf.runpath}
    found = {tag: value for tag, value in values.items() if value is not None}
    tags = " and ".join(found)
    before = (
        " and ".join(f"{tag} {value}" for tag, value in found.items()) if len(found) > 1 else "".join(found.values())
    )
    after = edit.tag.name if edit.value else "none"
    return Change(file.member, after if tags in {"", after} else f"{tags} -> {after}", before, edit.value)


def metadata_changes(
    owner: Distribution, requires: Sequence[str], tags: Sequence[str], *, is_platlib: bool
) -> Iterator[Change]:
    """Yield the changes to METADATA and WHEEL: added requirements, new tags, ``Root-Is-Purelib: false``."""
    info = owner.dist_info
    for requirement in requires:
        yield Change(f"{info}/METADATA", "Requires-Dist", "", requirement)
    if tags:
        yield Change(f"{info}/WHEEL", "Tag", " ".join(owner.tags), " ".join(tags))
    if is_platlib:
        yield Change(f"{info}/WHEEL", "Root-Is-Purelib", "true", "false")


def record_changes(owner: Distribution, files: Sequence[InstalledFile]) -> list[Change]:
    """Return the hashes in RECORD that are correct but incorrectly formatted.

    A wheel with another error isn't repaired.
    """
    name = f"{owner.dist_info}/RECORD"
    return [Change(name, _AGAIN, problem.found, "") for problem in wheel_record_problems(owner, files)]


def header_changes(owner: Distribution) -> list[Change]:
    """Return the header fields in the wheel's archive that installers reject. A repair rewrites all headers."""
    return [Change(owner.label, _AGAIN, problem.found, "") for problem in owner.refused]


def signature_changes(dropped: Sequence[str]) -> list[Change]:
    """Return the changes for removed members, which are signatures of the old RECORD."""
    return [Change(name, _VOID, "a signature of RECORD", "") for name in dropped]


def mode_changes(files: Iterable[InstalledFile]) -> list[Change]:
    """Return the changes to files' unsafe modes.

    A group-writable file isn't a reason for a repair. When the wheel is rewritten, the file also loses that
    permission.
    """
    return [
        Change(file.member, "mode", f"{file.mode & PERMISSIONS:04o}", f"{safe_mode(file.mode):04o}")
        for file in files
        if file.mode & UNSAFE
    ]


_MINOR = 2
_SDK = ("rocm-sdk-core", "rocm-sdk-libraries")
"""The packages whose version ``_rocm_init.py`` can check. The module uses the first of these packages that is given."""


def locked_requirement(tree: Tree, owner: Distribution, name: str, pin: Pin) -> str:
    """Return the requirement for a distribution that ``owner`` uses, with the version that ``pin`` selects.

    With ``release``, an SDK package that isn't given gets the specifier for the release of the assumed layout. A given
    pre-release becomes the minimum version, because installers skip pre-releases that no requirement mentions. Raises
    `InputError` if ``pin`` requires the version of a package that isn't given or has no valid version.
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
    """Return the specifier for the ROCm releases whose known layout contains the libraries that a wheel needs."""
    needed = {name for file in tree.files_of[owner.source] if file.elf for name in file.elf.wanted}
    releases = layout_releases(needed) or layout_releases()
    return f"=={releases[0]}.*" if len(releases) == 1 else f">={releases[0]},<{releases[-1] + 1}"


def sdk_version_to_match(tree: Tree, owner: Distribution, pin: Pin, *, is_needed: bool) -> str:
    """Return the version that the SDK must match, or an empty string if ``pin`` selects no version or only a release.

    Raises `InputError` for a given SDK with an invalid version, and for a missing SDK if ``is_needed`` is true.
    """
    if pin == "release":
        return ""
    version = next(filter(None, (_version_to_match(tree, name, pin) for name in _SDK)), "")
    if pin != "none" and not version and is_needed:
        raise _absent_error(owner, _SDK[0], pin)
    return version


def _absent_error(owner: Distribution, name: str, pin: Pin) -> InputError:
    found = f"uses {name}, but --pin {pin} requires the version of that package, which wasn't specified"
    return InputError(owner.source, found, expected=f"{name} among the packages in --with")


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
        raise InputError(
            found.source, f"has the version {found.version!r}", expected="a version that follows PEP 440"
        ) from e
