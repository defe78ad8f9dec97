"""Turns a description and build outputs into one wheel (binary distribution format 1.0), always with the same bytes."""

from __future__ import annotations

import posixpath
import re
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec
from packaging.metadata import ExceptionGroup, InvalidMetadata

from rocwheel.binary.elf.facts import Elf, read_elf
from rocwheel.binary.kind import is_elf
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.reading import FileRange
from rocwheel.core.workers import open_workers
from rocwheel.distributions.content.content import BytesContent, Content, FileContent
from rocwheel.distributions.formats.metadata.metadata import CoreMetadata, metadata_files
from rocwheel.distributions.formats.platforms.given_platform import check_platform_of_files
from rocwheel.distributions.formats.platforms.platform_floor import host_machines, platform_floor
from rocwheel.distributions.formats.source_date import SourceDate
from rocwheel.distributions.formats.wheel import WheelName
from rocwheel.distributions.formats.write_wheel import write_wheels
from rocwheel.frameworks.wheel.python_tags import ANY_PYTHON, is_importable_by_name, python_tag
from rocwheel.frameworks.wheel.spec import SpecError
from rocwheel.frameworks.wheel.stamps import render_commit_info, render_version

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rocwheel.frameworks.wheel.inputs import InputFiles
    from rocwheel.frameworks.wheel.spec import WheelSpec

__all__ = ["DraftMember", "WheelDraft", "draft_wheel", "write_draft"]

_EXECUTABLE = 0o755
_PLAIN = 0o644
_LIBRARY_NAME = re.compile(r"\.so(\.[0-9]+)*$")


class DraftMember(msgspec.Struct, frozen=True):
    """A file of a wheel that is not written yet."""

    place: str
    """Path in site-packages."""
    content: Content
    mode: int = _PLAIN
    elf: Elf | None = None
    origin: str = ""
    """The build output that it comes from; empty for a generated file."""


class WheelDraft(msgspec.Struct, frozen=True):
    """A wheel that is not written yet."""

    name: WheelName
    members: tuple[DraftMember, ...]
    metadata: dict[str, bytes]
    """The files of ``.dist-info`` by their path inside it, without RECORD."""
    floor_reason: str
    """The symbol version and the file that decide the platform tag; empty if the wheel fits any platform."""


def draft_wheel(
    spec: WheelSpec,
    inputs: InputFiles,
    *,
    commits: Mapping[str, str] | None = None,
    python: str = "",
    platform_tag: str = "",
) -> WheelDraft:
    """Return the wheel that a description makes of the inputs, with its tags and metadata.

    Raises `InputError` for an input that is missing or damaged, and `ProblemsError` with everything
    that would make the wheel wrong.
    """
    members = sorted([*_outputs(spec, inputs), *_texts(spec, commits or {})], key=lambda member: member.place)
    licenses = {place: path.read_bytes() for text in spec.license_files for place, path in inputs.texts(text).items()}
    if problems := [*_problems(spec, members), *_damaged(members)]:
        raise ProblemsError(spec.name, problems)
    floor = platform_floor((member.place, member.elf) for member in members if member.elf)
    if platform_tag:
        check_platform_of_files(platform_tag, floor)
    else:
        _check_machines(members)
    modules = [member.place for member in members if _is_extension(member)]
    tags = python_tag(modules, python, spec.requires_python)
    tag = f"{tags}-{platform_tag or (floor.tag if floor else 'any')}"
    is_purelib = tag == f"{ANY_PYTHON}-any"
    name = WheelName(spec.name, spec.version, tag)
    metadata = _metadata_files(spec, tag, licenses, is_purelib=is_purelib)
    return WheelDraft(name, tuple(members), metadata, floor.reason if floor else "")


def write_draft(draft: WheelDraft, path: Path, source_date: SourceDate = SourceDate()) -> None:  # noqa: B008 (a value)
    """Write the wheel to ``path``, which appears only when whole; raise `WorkError` if it can't."""
    with open_workers() as executor, write_wheels(executor, source_date.zip_time) as packer:
        wheel = packer.open(path, dist_info=draft.name.dist_info)
        for member in draft.members:
            wheel.add(member.place, member.mode, member.content)
        wheel.close(draft.metadata)


def _outputs(spec: WheelSpec, inputs: InputFiles) -> Iterator[DraftMember]:
    for output in spec.files:
        found = inputs.find(output.source)
        if not output.place.endswith("/") and len(found) > 1:
            where = f"{output.place}/"
            raise SpecError(spec.name, f"puts {len(found)} files at {output.place}", expected=f"a folder, {where!r}")
        for name, path in found.items():
            place = posixpath.join(output.place, name) if output.place.endswith("/") else output.place
            yield _file_member(place, path)


def _file_member(place: str, path: Path) -> DraftMember:
    source = FileRange.whole(path)
    with source.view() as data:
        elf = read_elf(data, name=str(path)) if is_elf(data) else None
    is_host = elf is not None and elf.is_host_code
    return DraftMember(place, FileContent(source), _EXECUTABLE if is_host else _PLAIN, elf, str(path))


def _texts(spec: WheelSpec, commits: Mapping[str, str]) -> Iterator[DraftMember]:
    texts = dict(spec.texts)
    if spec.stamp.version:
        texts[spec.stamp.version] = render_version(spec.version)
    if spec.stamp.commits:
        texts[spec.stamp.commits] = render_commit_info(commits)
    for place, text in texts.items():
        yield DraftMember(place, BytesContent(text.encode()))


def _is_extension(member: DraftMember) -> bool:
    is_library = member.elf is not None and member.elf.is_shared_library
    return (
        is_library
        and isinstance(member.content, FileContent)
        and is_importable_by_name(member.place, member.content.source)
    )


def _problems(spec: WheelSpec, members: Sequence[DraftMember]) -> Iterator[SpecError]:
    for one, other in pairwise(members):
        if one.place == other.place:
            origins = f"{one.origin or 'a text'} and {other.origin or 'a text'}"
            yield SpecError(spec.name, f"puts two files at {one.place}: {origins}", expected="one file")
    places = {member.place for member in members}
    for namespace in spec.namespaces:
        module = f"{namespace.replace('.', '/')}/__init__.py"
        if module in places:
            remedy = "Leave it out: it would hide the other distributions' part of the namespace."
            yield SpecError(spec.name, f"has {module}, but shares {namespace} with others", remedy=remedy)
    for group, names in spec.entry_points.items():
        for name, value in names.items():
            yield from _entry_point_problems(spec, f"{group}: {name} = {value}", value.partition(":")[0], places)


def _damaged(members: Sequence[DraftMember]) -> Iterator[InputError]:
    """Yield an error for each file that is named like a shared library but is not one."""
    for member in members:
        if _LIBRARY_NAME.search(member.place) and (member.elf is None or not member.elf.is_shared_library):
            found = (
                "is not an ELF file"
                if member.elf is None
                else f"is an ELF file of another kind ({member.elf.kind.value})"
            )
            expected = f"a shared library, to stand at {member.place}"
            yield InputError(member.origin or member.place, found, expected=expected, remedy="Build it again.")


def _check_machines(members: Iterable[DraftMember]) -> None:
    """Raise `InputError` for a program or library of a machine for which no platform tag is known."""
    for member in members:
        elf = member.elf
        if elf and elf.is_host_code and elf.machine not in host_machines():
            found = f"is for a machine that no platform tag is known for (ELF machine {elf.machine})"
            raise InputError(member.origin, found, remedy="Give --platform-tag.")


def _entry_point_problems(spec: WheelSpec, row: str, module: str, places: Collection[str]) -> Iterator[SpecError]:
    path = module.strip().replace(".", "/")
    if f"{path}.py" not in places and f"{path}/__init__.py" not in places:
        expected = f"{path}/__init__.py or {path}.py in the wheel"
        yield SpecError(spec.name, f"has the entry point {row}, but not its module", expected=expected)


def _metadata_files(spec: WheelSpec, tag: str, licenses: Mapping[str, bytes], *, is_purelib: bool) -> dict[str, bytes]:
    metadata = CoreMetadata(
        spec.name,
        spec.version,
        spec.summary,
        requires_python=spec.requires_python,
        license_expression=spec.license,
        license_files=tuple(sorted(licenses)),
        requires=spec.requires,
        extras=spec.extras,
    )
    texts = {f"licenses/{name}": data for name, data in sorted(licenses.items())}
    try:
        return texts | metadata_files(metadata, tag, is_purelib=is_purelib, entry_points=spec.entry_points)
    except (ExceptionGroup, InvalidMetadata) as e:
        problems = [SpecError(spec.name, str(problem)) for problem in getattr(e, "exceptions", [e])]
        raise ProblemsError(spec.name, problems) from e
