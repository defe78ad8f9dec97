"""Reads the declared and actual GPU targets of wheels, selectors, and Debian packages, and checks that they agree."""

from __future__ import annotations

import ast
import re
from concurrent.futures import Future
from functools import partial
from typing import IO, TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.artifacts.deb import Alternatives, DebMember, ForeignCode, open_deb
from rocwheel.artifacts.from_deb import architecture_problems, unfinished_packages
from rocwheel.artifacts.import_table import is_rocm_package
from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.binary.kind import has_facts, is_ar_archive, is_kpack
from rocwheel.core.decoding import parse_python
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.messages import shortened
from rocwheel.core.progress import SILENT, Progress, tracked
from rocwheel.core.reading import FileRange, require_listable
from rocwheel.core.scratch import no_room, open_temporary, path_of, require_room, write_all
from rocwheel.core.workers import map_collecting, map_skipping, open_workers, raise_all
from rocwheel.environment.coherence import (
    Misdeclared,
    PackageTargets,
    WheelFacts,
    check_coherence,
    read_requirements,
    wheel_package_targets,
)
from rocwheel.environment.library_code import CodeTree, FileCode, named_code, read_file_code
from rocwheel.targets.declaration import DECLARATION_NAME, decode_declaration
from rocwheel.targets.target_set import GPU_FIELD, id_sort_key
from rocwheel.wheels.binaries import installed_place
from rocwheel.wheels.metadata import CoreMetadataError, parse_core_metadata
from rocwheel.wheels.requirements import read_requirement
from rocwheel.wheels.sdist import read_sdist_file
from rocwheel.wheels.zip_directory import find_metadata, read_directory
from rocwheel.wheels.zip_reader import ZipMember, member_head, open_unpacked, read_member

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from packaging.metadata import RawMetadata

    from rocwheel.artifacts.deb import DebContent
    from rocwheel.environment.coherence import CoherenceReport
    from rocwheel.environment.library_code import CodeGap
    from rocwheel.targets.target_set import TargetSet


def read_wheel_facts(path: Path) -> WheelFacts:
    """Read a wheel's requirements and the targets of all its binaries, one member at a time.

    Raises `InputError` for a file that isn't a wheel, is damaged, or has no name. Also raises it for an unreadable
    requirement, and for a declaration that doesn't match the binaries.
    """
    members = {member.name: member for member in read_directory(path)}
    info = find_metadata(path, members)
    metadata = _parse_metadata(members[info])
    if not metadata.get("name"):
        raise InputError(
            path, f"its {info} has no Name field, or several Name fields", expected="exactly one Name field"
        )
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
        found = f"declares {_words(declared)}, but its binaries have code for {_words(targets)}"
        raise InputError(
            path, shortened(found), remedy="Build the wheel again. The declaration must match the binaries."
        )


def _words(targets: Iterable[TargetId]) -> str:
    return ", ".join(map(str, sorted(targets, key=id_sort_key))) or "no target"


class _BuildInfo(msgspec.Struct, frozen=True, rename="upper"):
    """The module's literals about requirements, which ``src/rocwheel/sdk/README.md`` describes."""

    version: str
    layout: str
    families: dict[str, object]
    packages: dict[str, dict[str, str]]
    requires: list[str]
    extras: dict[str, list[tuple[str, str]]]
    selected: dict[str, str]
    requires_selected: list[str] = []


def find_selectors(paths: Iterable[Path]) -> list[Path]:
    """Return the sdists in ``paths``, which can be folders, that select packages.

    Other sdists have no GPU targets before the build.
    """
    found = [path for place in paths for path in ([place] if place.is_file() else sorted(place.rglob("*.tar.gz")))]
    return [path for path in found if path.is_file() and _read_build_info(path)]


def read_selector_facts(path: Path) -> WheelFacts:
    """Return the sdist's requirements for all GPUs for which its release has packages.

    Raises `InputError` for any other sdist and for a damaged file.
    """
    info = _read_info(path)
    try:
        facts = _facts(path, info)
    except (ValueError, KeyError) as e:
        raise InputError(path, f"its _build_info.py can't be read ({e})", remedy="Build or fetch it again.") from e
    read_requirements(facts.path, facts.requirements)
    return facts


def read_selector_extras(path: Path) -> tuple[str, ...]:
    """Return the extras of the sdist. Raises `InputError` for any other sdist and for a damaged file."""
    info = _read_info(path)
    return tuple(dict.fromkeys((*info.extras, *info.selected)))


def _read_info(path: Path) -> _BuildInfo:
    text = _read_build_info(path)
    if not text:
        raise InputError(path, "has no rocm_sdk/_build_info.py", expected="a wheel, or the sdist of the rocm package")
    try:
        return msgspec.convert(parse_literals(text), _BuildInfo)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        raise InputError(path, f"its _build_info.py can't be read ({e})", remedy="Build or fetch it again.") from e


def _facts(path: Path, info: _BuildInfo) -> WheelFacts:
    chosen = {
        extra: [text.replace("{family}", family) for family in info.families] for extra, text in info.selected.items()
    }
    by_extra = [(extra, text, marker) for extra, pairs in info.extras.items() for text, marker in pairs]
    by_extra += [(extra, text, "") for extra, texts in chosen.items() for text in texts]
    always = [text.replace("{family}", family) for text in info.requires_selected for family in info.families]
    alternatives = {read_requirement(text).name for texts in (always, *chosen.values()) for text in texts}
    return WheelFacts(
        str(path),
        canonicalize_name(info.packages["meta"]["dist"], validate=True),
        (*info.requires, *always, *(_conditional(*row) for row in by_extra)),
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
    """Return the values that a module with only literals assigns, without running the module.

    Raises `SyntaxError`, `ValueError`, `RecursionError`, or `MemoryError` for any other text.
    """
    statements = [node for node in parse_python(text).body if isinstance(node, ast.Assign)]
    named = {target.id: node.value for node in statements for target in node.targets if isinstance(target, ast.Name)}
    try:
        return {name: ast.literal_eval(value) for name, value in named.items()}
    except TypeError as e:  # a set inside a set, a list as a key
        raise ValueError(str(e)) from e


def _read_build_info(path: Path) -> bytes:
    """Return the text of the module, or an empty value for an sdist without the module."""
    return (
        read_sdist_file(path, "src/rocm_sdk/_build_info.py") or read_sdist_file(path, "rocm_sdk/_build_info.py") or b""
    )


_HEAD, _PIECE = 64, 1 << 20
_WORKERS = 2
"""The number of packages that are read at the same time. Decompressing a package may need a window of 128 MiB."""


class DebFacts(msgspec.Struct, frozen=True):
    """The data of a Debian package for the coherence check."""

    path: str
    name: str
    version: str
    architecture: str
    depends: tuple[Alternatives, ...] = ()
    provides: tuple[Alternatives, ...] = ()
    targets: tuple[TargetId, ...] = ()
    """The targets of the package's code. For a package without code, the declared targets, as in Debian's own tool."""
    code: tuple[FileCode, ...] = ()
    """The package's files with device code, and its files that open a kernel folder."""
    places: tuple[str, ...] = ()
    """The installed paths of the package's files, without the leading slash."""
    misdeclared: Misdeclared | None = None
    """The difference between the package's declaration and its code, if their processors differ."""
    recommends: tuple[Alternatives, ...] = ()
    """``Recommends`` and ``Suggests``."""

    @property
    def is_divided(self) -> bool:
        """Whether device packages provide its kernels. Debian packages list such packages in ``recommends`` instead."""
        return False


def read_deb_facts(path: Path) -> DebFacts:
    """Read a package's relations, its declared targets, and the targets of all its binaries, one member at a time.

    Raises `InputError` for a file that isn't a package, is damaged, or contains code for a different machine than the
    package. Raises `WorkError` if a binary can't be unpacked.
    """
    found: list[FileCode] = []
    places: list[str] = []
    with open_deb(path) as deb:
        control = deb.control
        foreign = ForeignCode(path, control.architecture)
        for member in deb.members():
            places.append(_place(member))
            code = _read_deb_code(path, member, control.package)
            found += [code] if code else []
            if member.content:
                foreign.note(member.path, member.content.head)
    raise_all(str(path), foreign.problems("Download the package again."))
    carried = {target for code in found for target in code.own_targets}
    declared = parse_gpu_field(path, control.gpu_targets)
    return DebFacts(
        str(path),
        control.package,
        control.version,
        control.architecture,
        control.depends,
        control.provides,
        tuple(sorted(carried or declared, key=id_sort_key)),
        tuple(found),
        tuple(places),
        _find_misdeclared(control.package, declared, found) if carried and declared else None,
        control.recommends,
    )


def parse_gpu_field(path: Path, field: str) -> list[TargetId]:
    """Return the targets in the field's value, including targets of newer compilers.

    Raises `InputError` for invalid words.
    """
    words = [word for word in re.split(r"[\s,;]+", field) if word]
    return map_collecting(str(path), partial(parse_target_id, source=f"{path}: {GPU_FIELD}"), words)


def _place(member: DebMember) -> str:
    return member.path.removeprefix("./").lstrip("/")


def _read_deb_code(path: Path, member: DebMember, package: str) -> FileCode | None:
    source, place = f"{path}: {member.path}", _place(member)
    named = FileCode(place=place, source=source, package=package)
    if member.content is None:
        return named if place.endswith(".kpack") else None
    head = member.content.read(_HEAD)
    if not (has_facts(head) or is_kpack(head) or is_ar_archive(head)):
        return named_code(named)
    with open_temporary() as spool:
        try:
            require_room(spool, member.size)
            _unpack(head, member.content, spool)
        except OSError as e:
            raise no_room(source, f"its {member.size} unpacked bytes", e) from e
        with FileRange(path_of(spool), 0, member.size).view() as data:
            return read_file_code(data, place=place, source=source, package=package)


def _unpack(head: bytes, content: DebContent, target: IO[bytes]) -> None:
    piece = head
    while piece:
        write_all(target, piece)
        piece = content.read(_PIECE)


def _find_misdeclared(package: str, declared: Iterable[TargetId], code: Sequence[FileCode]) -> Misdeclared | None:
    """Compare only processors. The field is for build dependencies, and contains features only if all code has them."""
    declared = sorted(declared, key=id_sort_key)
    carried = sorted({target for file in code for target in file.own_targets}, key=id_sort_key)
    named, found = ({target.processor for target in targets} for targets in (declared, carried))
    if named == found:
        return None
    others = [target for target in carried if target.processor not in named]
    holders = tuple((target, _holder(target, code)) for target in others)
    return Misdeclared(package, GPU_FIELD, tuple(declared), tuple(carried), holders)


def _holder(target: TargetId, code: Sequence[FileCode]) -> str:
    """Return the first file with code for a target.

    If it has several bundles, include the number of bundles with such code.
    """
    file = next(file for file in code if target in file.own_targets)
    having = sum(target in targets for targets in file.bundles)
    return f"{having} of {len(file.bundles)} bundles in {file.place}" if len(file.bundles) > 1 else file.place


def deb_package_targets(packages: Sequence[DebFacts]) -> list[PackageTargets]:
    """Return the input for `check_coherence`: each package with its direct and indirect requirements.

    A dependency that isn't in ``packages`` is included only if it belongs to ROCm. Raises `InputError`, or
    `ProblemsError` for several errors: for two versions of a package, and for packages with a different architecture
    than most packages.
    """
    by_name = {package.name: package for package in packages}
    foreign = architecture_problems((package.path, package.architecture) for package in packages)
    doubles = (problem for package in packages if (problem := _double(package, by_name[package.name])))
    raise_all("the packages", [*foreign, *doubles])
    relations = _Relations(packages)
    return [PackageTargets(name, package.targets, relations.needed(package)) for name, package in by_name.items()]


def _double(package: DebFacts, other: DebFacts) -> InputError | None:
    """Return an error if two packages with the same name differ."""
    if (other.version, other.targets) == (package.version, package.targets):
        return None
    found = f"is version {package.version} of {package.name}, but {other.path} is version {other.version}"
    return InputError(package.path, found, expected="one version of each package")


class _Relations:
    """The relations among the given packages."""

    def __init__(self, packages: Sequence[DebFacts]) -> None:
        self._packages = packages
        self._names = {package.name for package in packages}

    def needed(self, package: DebFacts) -> tuple[str, ...]:
        """Return the names of all packages that a package needs, and the relations that no given package satisfies."""
        found: dict[str, None] = {}
        left = [package]
        while left:
            for choice in left.pop().depends:
                satisfying = [p for p in self._packages if choice.is_met_by(p.name, p.version, p.provides)]
                left += [other for other in satisfying if other.name not in found]
                found |= dict.fromkeys(other.name for other in satisfying)
                found |= {} if satisfying else dict.fromkeys(self._missing(choice))
        return tuple(sorted(found.keys() - {package.name}))

    def _missing(self, choice: Alternatives) -> Iterator[str]:
        """Yield a relation that no given package satisfies, if it refers to a ROCm package or a given package."""
        if any(one.package in self._names or is_rocm_package(one.package) for one in choice.relations):
            yield str(choice)


def compare_packages(
    paths: Sequence[Path],
    required: TargetSet,
    *,
    unread: list[RocwheelError],
    progress: Progress = SILENT,
) -> tuple[list[PackageTargets], CoherenceReport]:
    """Compare the targets of packages with the targets of the packages that they need.

    Packages are wheels, the selector, or Debian packages, as files or in folders. Unreadable files are added to
    ``unread``. If an error prevents the comparison of the other files, this function raises it together with the errors
    in ``unread``.
    """
    found = _find_packages(paths)
    sizes = [path.stat().st_size if path.exists() else 0 for path in found]
    with open_workers(_WORKERS) as executor:
        reading = [executor.submit(_read_facts, path) for path in found]
        facts = map_skipping("packages", Future.result, tracked(progress, "reading", reading, sizes), unread)
    packages = _package_targets(facts, unread)
    packed = [one for one in facts if one.places]
    misdeclared = [one.misdeclared for one in facts if isinstance(one, DebFacts) and one.misdeclared]
    unfinished = unfinished_packages([one for one in facts if isinstance(one, DebFacts)])
    return packages, check_coherence(packages, required, find_code_gaps(packed, unfinished), misdeclared)


def find_code_gaps(packages: Sequence[WheelFacts | DebFacts], unfinished: Collection[str] = ()) -> tuple[CodeGap, ...]:
    """Return the code that libraries have but can't find after all packages are installed together.

    Packages with the kernels of ``unfinished`` packages may be missing.
    """
    files = {(package.name, file.place): file for package in packages for file in package.code}
    places = ((place, package.name) for package in packages for place in package.places)
    divided = {package.name for package in packages if package.is_divided}
    return CodeTree(files.values(), places, divided=divided, unfinished=unfinished).gaps


def _find_packages(paths: Sequence[Path]) -> list[Path]:
    empty = [path for path in paths if path.is_dir() and not _expand(path)]
    expected = "a folder with *.whl or *.deb files"
    raise_all("packages", [InputError(path, "contains no wheels or .deb files", expected=expected) for path in empty])
    found = [package for path in paths for package in _expand(path)]
    return [*found, *find_selectors([path for path in paths if path.is_dir()])]


def _expand(path: Path) -> list[Path]:
    """Return the file itself, or the packages in the folder."""
    found = [package for pattern in ("*.whl", "*.deb") for package in _expand_folders([path], pattern)]
    return list(dict.fromkeys(found))


def _read_facts(path: Path) -> WheelFacts | DebFacts:
    if path.suffix == ".deb":
        return read_deb_facts(path)
    if path.name.endswith(".tar.gz"):
        return read_selector_facts(path)
    if path.suffix != ".whl":
        raise InputError(path, "isn't a package", expected="a wheel, the rocm sdist, or a .deb file")
    return read_wheel_facts(path)


def _package_targets(facts: Sequence[WheelFacts | DebFacts], unread: Sequence[RocwheelError]) -> list[PackageTargets]:
    """Return the packages to compare. If an error prevents the comparison, raise it together with the unread files."""
    try:
        wheels = wheel_package_targets([one for one in facts if isinstance(one, WheelFacts)])
        return [*wheels, *deb_package_targets([one for one in facts if isinstance(one, DebFacts)])]
    except RocwheelError as e:
        raise_all("packages", [*unread, e])
        raise


def _expand_folders(paths: Sequence[Path], pattern: str) -> list[Path]:
    """Return the given files, and the matching files in the given folders. Raises `InputError` for other paths."""
    others = [path for path in paths if not (path.is_file() or path.is_dir())]
    expected = "a file or a folder"
    raise_all(
        "paths", [InputError(path, "is neither a regular file nor a folder", expected=expected) for path in others]
    )
    map_collecting("paths", require_listable, [path for path in paths if path.is_dir()])
    found = [[path] if path.is_file() else sorted(path.rglob(pattern)) for path in paths]
    return [path for group in found for path in group if path.is_file()]
