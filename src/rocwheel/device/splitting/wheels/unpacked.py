"""The members of a wheel that may hold device code, unpacked one behind the other into one nameless file."""

from __future__ import annotations

import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rocwheel.binary.kind import is_binary, is_kpack
from rocwheel.core.reading import FileRange
from rocwheel.core.scratch import no_room, open_temporary, path_of, require_room, write_all
from rocwheel.core.workers import attempt_all, raise_all
from rocwheel.targets.kernel_files.classify import classify_path, is_unknown_kernel_file
from rocwheel.wheels.compression import STORED
from rocwheel.wheels.zip_reader import check_member, iter_member, member_head

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import IO

    from rocwheel.core.errors import RocwheelError
    from rocwheel.wheels.zip_reader import ZipMember

__all__ = ["unpack_code"]


@contextmanager
def unpack_code(members: Sequence[ZipMember], source: str) -> Iterator[dict[str, FileRange]]:
    """Yield where the bytes of each member are that is a binary or by its name a kernel file; symlinks are neither.

    Stored members stay where they are. Raises `InputError` for a damaged member, `ProblemsError` for several, and
    `WorkError` when there is no room.
    """
    problems: list[RocwheelError] = []
    wanted = [member for members_ in attempt_all(_as_code, members, problems) for member in members_]
    raise_all(source, problems)
    size = sum(member.size for member in wanted if member.method != STORED)
    try:
        with open_temporary() as spool:
            require_room(spool, size)
            places = attempt_all(lambda member: (member.name, _unpack(member, spool)), wanted, problems)
            raise_all(source, problems)
            yield dict(places)
    except OSError as e:
        raise no_room(source, f"its {size} unpacked bytes", e) from e


def _as_code(member: ZipMember) -> tuple[ZipMember, ...]:
    if stat.S_ISLNK(member.mode):
        return ()
    if classify_path(member.name) is not None or is_unknown_kernel_file(member.name):
        return (member,)
    head = member_head(member)
    return (member,) if is_binary(head) or is_kpack(head) else ()


def _unpack(member: ZipMember, spool: IO[bytes]) -> FileRange:
    if member.method == STORED:
        check_member(member)
        return member.packed
    start = spool.tell()
    for piece in iter_member(member):
        write_all(spool, piece)
    spool.seek(0, 2)
    return FileRange(path_of(spool), start, member.size)
