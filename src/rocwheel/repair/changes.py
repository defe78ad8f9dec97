"""What a repair changes in a wheel, one by one, for people to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.installed.check_record import wheel_record_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rocwheel.installed.tree import Distribution, InstalledFile
    from rocwheel.linking.run_path_choice import SetRunpath

__all__ = ["Change", "header_changes", "metadata_changes", "record_changes", "run_path_changes", "signature_changes"]

_VOID = "dropped, since it signs another RECORD: sign the repaired wheel"
_AGAIN = "written again"


class Change(msgspec.Struct, frozen=True):
    """One change: where, what, from what to what."""

    file: str
    what: str
    before: str
    after: str


def run_path_changes(files: Sequence[InstalledFile], edits: Mapping[str, SetRunpath]) -> list[Change]:
    """Return the changes that edits, by the member's name, make to the run paths and segments of a wheel's files."""
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
    """Return the change of a run path; a file that has one under each tag is shown with both."""
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
    """Yield the changes to METADATA and WHEEL: requirements that are added, new tags, ``Root-Is-Purelib: false``."""
    info = owner.dist_info
    for requirement in requires:
        yield Change(f"{info}/METADATA", "Requires-Dist", "", requirement)
    if tags:
        yield Change(f"{info}/WHEEL", "Tag", " ".join(owner.tags), " ".join(tags))
    if is_platlib:
        yield Change(f"{info}/WHEEL", "Root-Is-Purelib", "true", "false")


def record_changes(owner: Distribution, files: Sequence[InstalledFile]) -> list[Change]:
    """Return what is wrong in RECORD by itself. It is written again whenever anything changes."""
    name = f"{owner.dist_info}/RECORD"
    if not owner.record:
        return [Change(name, _AGAIN, "none that can be read", "")]
    return [Change(name, _AGAIN, problem.found, "") for problem in wheel_record_problems(owner, files)]


def header_changes(owner: Distribution) -> list[Change]:
    """Return what installers refuse in the headers of the wheel's archive, which are all written again."""
    return [Change(owner.label, _AGAIN, problem.found, "") for problem in owner.refused]


def signature_changes(dropped: Sequence[str]) -> list[Change]:
    """Return the changes for members that are dropped since they sign another RECORD."""
    return [Change(name, _VOID, "a signature of RECORD", "") for name in dropped]
