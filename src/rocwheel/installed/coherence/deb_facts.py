"""The GPU targets of a Debian package: those of the code in it, and those that it declares."""

from __future__ import annotations

import re
from functools import partial
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.artifacts.deb import Choice, DebMember, ForeignCode, open_deb
from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.binary.kind import has_facts, is_ar_archive, is_kpack
from rocwheel.core.reading import FileRange
from rocwheel.core.scratch import no_room, open_temporary, path_of, require_room, write_all
from rocwheel.core.workers import convert_all, raise_all
from rocwheel.installed.coherence.check import Misdeclared
from rocwheel.installed.library_code import FileCode, named_code, read_file_code
from rocwheel.targets.kernel_files.names import kpack_target
from rocwheel.targets.spelling.target_set import GPU_FIELD, id_sort_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rocwheel.artifacts.deb import DebContent

__all__ = ["DebFacts", "parse_gpu_field", "read_deb_facts"]

_HEAD, _PIECE = 64, 1 << 20


class DebFacts(msgspec.Struct, frozen=True):
    """What coherence needs of one Debian package."""

    path: str
    name: str
    version: str
    architecture: str
    depends: tuple[Choice, ...] = ()
    provides: tuple[Choice, ...] = ()
    targets: tuple[TargetId, ...] = ()
    """Those of its code; of a package without code, those that it declares, as Debian's own tool takes them."""
    code: tuple[FileCode, ...] = ()
    """Its files with code, and those that open a folder of kernels."""
    places: tuple[str, ...] = ()
    """Where its files are installed, without the leading slash."""
    misdeclared: Misdeclared | None = None
    """What it declares, where its code is for other processors."""
    recommends: tuple[Choice, ...] = ()
    """``Recommends`` and ``Suggests``."""

    @property
    def is_divided(self) -> bool:
        """Whether device packages bring its kernels: which ones is known by what it recommends."""
        return False


def read_deb_facts(path: Path) -> DebFacts:
    """Read a package's relations, its declared targets and the targets of every binary in it, one member at a time.

    Raises `InputError` for a file that is not a package or is damaged, or for another machine than the package;
    `WorkError` when a binary can't be unpacked.
    """
    found: list[FileCode] = []
    places: list[str] = []
    with open_deb(path) as deb:
        control = deb.control
        foreign = ForeignCode(path, control.architecture)
        for member in deb.members():
            places.append(_place(member))
            code = _read_code(path, member, control.package)
            found += [code] if code else []
            if member.content:
                foreign.note(member.path, member.content.head)
    raise_all(str(path), foreign.problems("Get it again."))
    carried = {target for code in found for target in _targets_of(code)}
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
    """Return the targets of the field's value, also those of newer compilers; raises `InputError` for other words."""
    words = [word for word in re.split(r"[\s,;]+", field) if word]
    return convert_all(str(path), partial(parse_target_id, source=f"{path}: {GPU_FIELD}"), words)


def _place(member: DebMember) -> str:
    return member.path.removeprefix("./").lstrip("/")


def _read_code(path: Path, member: DebMember, package: str) -> FileCode | None:
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


def _targets_of(code: FileCode) -> tuple[TargetId, ...]:
    if code.place.endswith(".kpack"):
        return (kpack_target(code.place, source=code.source),)
    return tuple(target for targets in code.bundles for target in targets)


def _unpack(head: bytes, content: DebContent, target: IO[bytes]) -> None:
    piece = head
    while piece:
        write_all(target, piece)
        piece = content.read(_PIECE)


def _find_misdeclared(package: str, declared: Iterable[TargetId], code: Sequence[FileCode]) -> Misdeclared | None:
    """Compare processors: the field is for build dependencies, and names features only where all code has them."""
    declared = sorted(declared, key=id_sort_key)
    carried = sorted({target for file in code for target in _targets_of(file)}, key=id_sort_key)
    named, found = ({target.processor for target in targets} for targets in (declared, carried))
    if named == found:
        return None
    others = [target for target in carried if target.processor not in named]
    holders = tuple((target, _holder(target, code)) for target in others)
    return Misdeclared(package, GPU_FIELD, tuple(declared), tuple(carried), holders)


def _holder(target: TargetId, code: Sequence[FileCode]) -> str:
    """Return the first file with code for a target, and how many of its bundles have some if it has several."""
    file = next(file for file in code if target in _targets_of(file))
    having = sum(target in targets for targets in file.bundles)
    return f"{having} of {len(file.bundles)} bundles of {file.place}" if len(file.bundles) > 1 else file.place
