"""What wheels say and hold about GPU targets: read from their binaries, and compared with their declaration."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING
from zipfile import BadZipFile, ZipFile

import msgspec
from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from rocwheel.binary.device_code import device_targets
from rocwheel.binary.target_id import TargetId, parse_target_id
from rocwheel.errors import InputError
from rocwheel.files import FileRange
from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.coherence import Carrier
from rocwheel.targets.declaration import DECLARATION_NAME, decode_declaration
from rocwheel.targets.errors import UnknownTargetError
from rocwheel.targets.target_set import id_sort_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["WheelFacts", "carriers_of", "kpack_target", "read_wheel_facts"]

_PIECE = 1 << 20
_MAGICS = (b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")


class WheelFacts(msgspec.Struct, frozen=True):
    """What coherence needs of one wheel."""

    path: str
    name: str
    """The distribution's name, normalised."""
    requirements: tuple[str, ...]
    targets: tuple[TargetId, ...]
    roots: frozenset[str]
    """Its top-level directories, without ``.dist-info`` and ``.data``."""


def read_wheel_facts(path: Path) -> WheelFacts:
    """Read a wheel's requirements and the targets of every binary in it.

    Raises `InputError` for what is no wheel, and for a declaration that differs from what the binaries hold.
    """
    try:
        with ZipFile(path) as archive:
            return _read_facts(path, archive)
    except (BadZipFile, OSError, EOFError) as e:
        raise InputError(path, f"cannot be read as a wheel ({e})") from e


def _read_facts(path: Path, archive: ZipFile) -> WheelFacts:
    names = archive.namelist()
    info = next((name for name in names if name.endswith(".dist-info/METADATA") and name.count("/") == 1), None)
    if info is None:
        raise InputError(path, "has no .dist-info/METADATA", expected="a wheel")
    metadata, _ = parse_email(archive.read(info))
    targets = {target for name in names for target in _member_targets(path, archive, name)}
    _check_declaration(path, archive, info.replace("METADATA", DECLARATION_NAME), targets)
    roots = {name.partition("/")[0] for name in names if "/" in name}
    return WheelFacts(
        str(path),
        canonicalize_name(metadata.get("name", "")),
        tuple(metadata.get("requires_dist", ())),
        tuple(sorted(targets, key=id_sort_key)),
        frozenset(root for root in roots if not root.endswith((".dist-info", ".data"))),
    )


def _member_targets(path: Path, archive: ZipFile, name: str) -> tuple[TargetId, ...]:
    if name.endswith(".kpack"):
        return (kpack_target(name, source=f"{path}!{name}"),)
    with archive.open(name) as member:
        head = member.read(len(max(_MAGICS, key=len)))
        if not head.startswith(_MAGICS):
            return ()
        return _targets_of_stream(head, member, f"{path}!{name}")


def kpack_target(name: str, *, source: str) -> TargetId:
    """Return the one target that a kpack file holds the code of, which its name ends with.

    Raises `InputError`, led by ``source``, when that is no target of a GPU; it may be newer than the catalogue.
    """
    target = parse_target_id(name.removesuffix(".kpack").rpartition("_")[2], source=source)
    if not target.processor.startswith("gfx"):
        raise UnknownTargetError(target.processor, load_catalog().processors, source=source)
    return target


def _targets_of_stream(head: bytes, member: IO[bytes], name: str) -> tuple[TargetId, ...]:
    """Unpack a member into a temporary file, so that a huge library is never held in memory."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(head)
        shutil.copyfileobj(member, file, _PIECE)
        file.flush()
        with FileRange.whole(Path(file.name)).map() as data:
            return device_targets(data, name=name)


def _check_declaration(path: Path, archive: ZipFile, name: str, targets: set[TargetId]) -> None:
    if name not in archive.namelist():
        return
    declared = set(decode_declaration(archive.read(name), source=f"{path}!{name}").targets)
    if declared != targets:
        found = f"declares {_words(declared)}, but its binaries carry {_words(targets)}"
        raise InputError(path, found, remedy="Build it anew: the declaration has to be read back from the binaries.")


def _words(targets: Iterable[TargetId]) -> str:
    return ", ".join(map(str, sorted(targets, key=id_sort_key))) or "no target"


def carriers_of(wheels: Sequence[WheelFacts]) -> list[Carrier]:
    """Return what `check_coherence` compares: each wheel with all it needs among ``wheels``, directly or not.

    A wheel whose directories all belong to one that it needs completes that one, as the kernels of one GPU do.
    """
    by_name = {wheel.name: wheel for wheel in wheels}
    return [
        Carrier(wheel.name, wheel.targets, _needed(wheel, by_name), _completed_by(wheel, by_name)) for wheel in wheels
    ]


def _needed(wheel: WheelFacts, by_name: dict[str, WheelFacts]) -> tuple[str, ...]:
    """Follow requirements, with the extras that each asks for, through all given wheels."""
    reached: set[tuple[str, frozenset[str]]] = set()
    waiting = [(wheel.name, frozenset[str]())]
    while waiting:
        name, extras = waiting.pop()
        for requirement in _requirements(by_name[name], extras):
            step = (canonicalize_name(requirement.name), frozenset(requirement.extras))
            if step not in reached and step[0] in by_name:
                reached.add(step)
                waiting.append(step)
    return tuple(sorted({name for name, _ in reached} - {wheel.name}))


def _requirements(wheel: WheelFacts, extras: frozenset[str]) -> list[Requirement]:
    try:
        requirements = [Requirement(text) for text in wheel.requirements]
    except InvalidRequirement as e:
        raise InputError(wheel.path, f"has a malformed Requires-Dist ({e})") from e
    asked = extras or {""}
    return [r for r in requirements if r.marker is None or any(r.marker.evaluate({"extra": extra}) for extra in asked)]


def _completed_by(wheel: WheelFacts, by_name: dict[str, WheelFacts]) -> str:
    names = {canonicalize_name(requirement.name) for requirement in _requirements(wheel, frozenset())}
    owners = [by_name[name] for name in sorted(names) if name in by_name and name != wheel.name]
    return next((owner.name for owner in owners if wheel.roots and wheel.roots <= owner.roots), "")
