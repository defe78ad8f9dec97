"""The GPU targets of a Debian package: those of the code in it, and those that it declares."""

from __future__ import annotations

import re
from functools import partial
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.artifacts.deb.gpu_field import GPU_FIELD
from rocwheel.artifacts.deb.machines import ForeignCode
from rocwheel.artifacts.deb.package import DebMember, open_deb
from rocwheel.artifacts.deb.relations import Choice
from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.code_objects.target_id import TargetId, parse_target_id
from rocwheel.binary.kind import has_facts
from rocwheel.foundation.collecting import convert_all, raise_all
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files.reading.file_range import FileRange
from rocwheel.foundation.files.temporary_file import no_room, open_temporary, path_of, require_room, write_all
from rocwheel.foundation.messages.quoting import shortened
from rocwheel.targets.coherence.carriers import kpack_target
from rocwheel.targets.spelling.target_set import id_sort_key

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rocwheel.artifacts.deb.package import DebContent

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


def read_deb_facts(path: Path) -> DebFacts:
    """Read a package's relations, its declared targets and the targets of every binary in it, one member at a time.

    Raises `InputError` for a file that is not a package or is damaged, and for a declaration that differs from the code
    in its processors, or for another machine than the package; `WorkError` when a binary can't be unpacked.
    """
    carried: set[TargetId] = set()
    with open_deb(path) as deb:
        control = deb.control
        foreign = ForeignCode(path, control.architecture)
        for member in deb.members():
            carried.update(_member_targets(path, member))
            if member.content:
                foreign.note(member.path, member.content.head)
    raise_all(str(path), foreign.problems("Get it again."))
    declared = parse_gpu_field(path, control.gpu_targets)
    if carried and declared:
        _check_declaration(path, declared, carried)
    return DebFacts(
        str(path),
        control.package,
        control.version,
        control.architecture,
        control.depends,
        control.provides,
        tuple(sorted(carried or declared, key=id_sort_key)),
    )


def parse_gpu_field(path: Path, field: str) -> list[TargetId]:
    """Return the targets of the field's value, also those of newer compilers; raises `InputError` for other words."""
    words = [word for word in re.split(r"[\s,;]+", field) if word]
    return convert_all(str(path), partial(parse_target_id, source=f"{path}: {GPU_FIELD}"), words)


def _member_targets(path: Path, member: DebMember) -> tuple[TargetId, ...]:
    source = f"{path}: {member.path}"
    if member.path.endswith(".kpack"):
        return (kpack_target(member.path, source=source),)
    if member.content is None or not has_facts(head := member.content.read(_HEAD)):
        return ()
    with open_temporary() as spool:
        try:
            require_room(spool, member.size)
            _unpack(head, member.content, spool)
        except OSError as e:
            raise no_room(source, f"its {member.size} unpacked bytes", e) from e
        with FileRange(path_of(spool), 0, member.size).view() as data:
            return device_targets(data, name=source)


def _unpack(head: bytes, content: DebContent, target: IO[bytes]) -> None:
    piece = head
    while piece:
        write_all(target, piece)
        piece = content.read(_PIECE)


def _check_declaration(path: Path, declared: Iterable[TargetId], carried: Iterable[TargetId]) -> None:
    """Compare processors: the field is for build dependencies, and names features only where all code has them."""
    named, found = ({target.processor for target in targets} for targets in (declared, carried))
    if named != found:
        message = f"declares {_words(declared)} in {GPU_FIELD}, but its binaries carry {_words(carried)}"
        raise InputError(
            path, shortened(message), remedy="Build it again: the field has to name what it was built for."
        )


def _words(targets: Iterable[TargetId]) -> str:
    return ", ".join(map(str, sorted(targets, key=id_sort_key)))
