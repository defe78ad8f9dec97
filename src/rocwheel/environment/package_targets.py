"""The GPU targets of wheels and selectors: of the code in them, and as they declare."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.artifacts.from_deb import unfinished_packages
from rocwheel.binary.kind import has_facts, is_ar_archive, is_kpack
from rocwheel.core.decoding import parse_python
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.messages import shortened
from rocwheel.core.progress import SILENT, Progress, tracked
from rocwheel.core.workers import map_skipping, raise_all
from rocwheel.environment.coherence import (
    DebFacts,
    WheelFacts,
    check_coherence,
    deb_package_targets,
    find_code_gaps,
    read_deb_facts,
    read_requirements,
    wheel_package_targets,
)
from rocwheel.environment.library_code import FileCode, named_code, read_file_code
from rocwheel.targets.declaration import DECLARATION_NAME, decode_declaration
from rocwheel.targets.target_set import id_sort_key
from rocwheel.wheels.binaries import installed_place
from rocwheel.wheels.metadata import CoreMetadataError, parse_core_metadata
from rocwheel.wheels.requirements import read_requirement
from rocwheel.wheels.tar import read_sdist_file
from rocwheel.wheels.zip_directory import find_metadata, read_directory
from rocwheel.wheels.zip_reader import ZipMember, member_head, open_unpacked, read_member

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from packaging.metadata import RawMetadata

    from rocwheel.binary.code_objects import TargetId
    from rocwheel.environment.coherence import CoherenceReport, PackageTargets
    from rocwheel.targets.target_set import TargetSet


def read_wheel_facts(path: Path) -> WheelFacts:
    """Read a wheel's requirements and the targets of every binary in it, one member at a time.

    Raises `InputError` for a file that is not a wheel, is damaged or has no name, for a requirement that can't be read,
    and for a declaration that differs from what the binaries hold.
    """
    members = {member.name: member for member in read_directory(path)}
    info = find_metadata(path, members)
    metadata = _parse_metadata(members[info])
    if not metadata.get("name"):
        raise InputError(path, f"its {info} has no Name, or several", expected="the name of its package, once")
    requirements = tuple(metadata.get("requires_dist", ()))
    read_requirements(str(path), requirements)
    name = canonicalize_name(metadata["name"])
    found = [code for member in members.values() if (code := _read_code(member, name)) is not None]
    targets = {target for code in found for target in code.own_targets}
    declaration = members.get(info.removesuffix("METADATA") + DECLARATION_NAME)
    if declaration:
        _check_declaration(path, declaration, targets)
    roots = {name.partition("/")[0] for name in members if "/" in name}
    return WheelFacts(
        str(path),
        name,
        requirements,
        tuple(sorted(targets, key=id_sort_key)),
        frozenset(root for root in roots if not root.endswith((".dist-info", ".data"))),
        metadata.get("version", ""),
        code=tuple(found),
        places=tuple(map(installed_place, members)),
    )


def _parse_metadata(member: ZipMember) -> RawMetadata:
    try:
        return parse_core_metadata(read_member(member))[0]
    except CoreMetadataError as e:
        raise InputError(member.source, f"can't be read: {e}") from e


def _read_code(member: ZipMember, package: str) -> FileCode | None:
    head, place = member_head(member), installed_place(member.name)
    if has_facts(head) or is_kpack(head) or is_ar_archive(head):
        with open_unpacked(member) as (unpacked, _), unpacked.view() as data:
            return read_file_code(data, place=place, source=member.source, package=package)
    return named_code(FileCode(place=place, source=member.source, package=package))


def _check_declaration(path: Path, declaration: ZipMember, targets: set[TargetId]) -> None:
    declared = set(decode_declaration(read_member(declaration), source=declaration.source).targets)
    if declared != targets:
        found = f"declares {_words(declared)}, but its binaries carry {_words(targets)}"
        raise InputError(
            path, shortened(found), remedy="Build it again: the declaration has to be read from the binaries."
        )


def _words(targets: Iterable[TargetId]) -> str:
    return ", ".join(map(str, sorted(targets, key=id_sort_key))) or "no target"


class _BuildInfo(msgspec.Struct, frozen=True, rename="upper"):
    """The literals about requirements; ``src/rocwheel/sdk/README.md`` describes each."""

    version: str
    layout: str
    families: dict[str, object]
    packages: dict[str, dict[str, str]]
    requires: list[str]
    extras: dict[str, list[tuple[str, str]]]
    selected: dict[str, str]


def find_selectors(folders: Iterable[Path]) -> list[Path]:
    """Return the sdists below ``folders`` that choose packages; others say nothing about GPUs until they are built."""
    paths = [path for folder in folders for path in sorted(folder.rglob("*.tar.gz")) if path.is_file()]
    return [path for path in paths if _read_build_info(path)]


def read_selector_facts(path: Path) -> WheelFacts:
    """Return what the sdist requires for any of the GPUs that its release has packages for.

    Raises `InputError` for another sdist and for a damaged file.
    """
    text = _read_build_info(path)
    if not text:
        raise InputError(path, "has no rocm_sdk/_build_info.py", expected="a wheel, or the sdist of rocm")
    try:
        info = msgspec.convert(parse_literals(text), _BuildInfo)
        facts = _facts(path, info)
    except (SyntaxError, ValueError, KeyError, RecursionError, MemoryError) as e:
        raise InputError(path, f"its _build_info.py can't be read ({e})", remedy="Build or fetch it again.") from e
    read_requirements(facts.path, facts.requirements)
    return facts


def _facts(path: Path, info: _BuildInfo) -> WheelFacts:
    chosen = {
        extra: [text.replace("{family}", family) for family in info.families] for extra, text in info.selected.items()
    }
    by_extra = [(extra, text, marker) for extra, pairs in info.extras.items() for text, marker in pairs]
    by_extra += [(extra, text, "") for extra, texts in chosen.items() for text in texts]
    alternatives = {read_requirement(text).name for texts in chosen.values() for text in texts}
    return WheelFacts(
        str(path),
        canonicalize_name(info.packages["meta"]["dist"], validate=True),
        (*info.requires, *(_conditional(*row) for row in by_extra)),
        (),
        frozenset(),
        info.version,
        # In the neutral layout, device packages complete the libraries that all GPUs share.
        frozenset(map(canonicalize_name, alternatives)) if info.layout == "per-family" else frozenset(),
    )


def _conditional(extra: str, requirement: str, marker: str) -> str:
    condition = f"({marker}) and " if marker else ""
    return f"{requirement}; {condition}extra == '{extra}'"


def parse_literals(text: bytes) -> dict[str, Any]:
    """Return what a module of literals assigns, without running it.

    Raises `SyntaxError`, `ValueError`, `RecursionError` or `MemoryError` for any other text.
    """
    statements = [node for node in parse_python(text).body if isinstance(node, ast.Assign)]
    named = {target.id: node.value for node in statements for target in node.targets if isinstance(target, ast.Name)}
    try:
        return {name: ast.literal_eval(value) for name, value in named.items()}
    except TypeError as e:  # a set within a set, a list as a key
        raise ValueError(str(e)) from e


def _read_build_info(path: Path) -> bytes:
    """Return the module's text, empty for an sdist without one."""
    return (
        read_sdist_file(path, "src/rocm_sdk/_build_info.py") or read_sdist_file(path, "rocm_sdk/_build_info.py") or b""
    )


def compare_packages(
    paths: Sequence[Path],
    required: TargetSet,
    *,
    unread: list[RocwheelError],
    progress: Progress = SILENT,
) -> tuple[list[PackageTargets], CoherenceReport]:
    """Return for which GPUs packages have code, and whether those agree that need one another.

    Packages are wheels, the selector or Debian packages, given by themselves or by folders. What can't be read is added
    to ``unread``; what keeps the others from being compared is raised together with it.
    """
    found = _find_packages(paths)
    sizes = [path.stat().st_size if path.exists() else 0 for path in found]
    facts = map_skipping("packages", _read_facts, tracked(progress, "reading", found, sizes), unread)
    packages = _package_targets(facts, unread)
    packed = [one for one in facts if one.places]
    misdeclared = [one.misdeclared for one in facts if isinstance(one, DebFacts) and one.misdeclared]
    unfinished = unfinished_packages([one for one in facts if isinstance(one, DebFacts)])
    return packages, check_coherence(packages, required, find_code_gaps(packed, unfinished), misdeclared)


def _find_packages(paths: Sequence[Path]) -> list[Path]:
    empty = [path for path in paths if path.is_dir() and not _expand(path)]
    expected = "a folder of files *.whl or *.deb"
    raise_all("packages", [InputError(path, "holds no wheel and no .deb", expected=expected) for path in empty])
    found = [package for path in paths for package in _expand(path)]
    return [*found, *find_selectors([path for path in paths if path.is_dir()])]


def _expand(path: Path) -> list[Path]:
    """Return the file itself, or the packages below the folder."""
    found = [package for pattern in ("*.whl", "*.deb") for package in _expand_folders([path], pattern)]
    return list(dict.fromkeys(found))


def _read_facts(path: Path) -> WheelFacts | DebFacts:
    if path.suffix == ".deb":
        return read_deb_facts(path)
    if path.name.endswith(".tar.gz"):
        return read_selector_facts(path)
    if path.suffix != ".whl":
        raise InputError(path, "is not a package", expected="a wheel, rocm's sdist or a .deb file")
    return read_wheel_facts(path)


def _package_targets(facts: Sequence[WheelFacts | DebFacts], unread: Sequence[RocwheelError]) -> list[PackageTargets]:
    """Return what is compared; raise what keeps it from being compared together with the packages not read."""
    try:
        wheels = wheel_package_targets([one for one in facts if isinstance(one, WheelFacts)])
        return [*wheels, *deb_package_targets([one for one in facts if isinstance(one, DebFacts)])]
    except RocwheelError as e:
        raise_all("packages", [*unread, e])
        raise


def _expand_folders(paths: Sequence[Path], pattern: str) -> list[Path]:
    """Return the files themselves, and of folders those below that match; raise `InputError` for a pipe or device."""
    others = [path for path in paths if not (path.is_file() or path.is_dir())]
    expected = "a file or a folder"
    raise_all("paths", [InputError(path, "is not a regular file", expected=expected) for path in others])
    found = [[path] if path.is_file() else sorted(path.rglob(pattern)) for path in paths]
    return [path for group in found for path in group if path.is_file()]
