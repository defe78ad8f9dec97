"""Files that several packages hold with the same content."""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING

from rocwheel.distributions.zip.reader import ZipMember
from rocwheel.foundation.errors import InputError, WorkError
from rocwheel.foundation.files.reading.file_view import iter_pieces
from rocwheel.foundation.progress import SILENT, Progress, tracked
from rocwheel.foundation.workers import map_sized, open_workers
from rocwheel.report.values.duplicates import Copies, Copy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.diffing.values import Item

__all__ = ["find_duplicates"]

_Held = tuple[int, "Item"]


def find_duplicates(held: Iterable[_Held], progress: Progress = SILENT) -> tuple[Copies, ...]:
    """Return the contents that files of several packages have, the most wasteful first; each file with its package.

    Of members of wheels the hashes in RECORD are compared, others are read. Empty files and links don't count, nor
    what can't be read. Raises `WorkError` where the system is at fault.
    """
    by_size: dict[int, list[_Held]] = defaultdict(list)
    for number, item in held:
        if item.size and item.link is None and item.content is not None:
            by_size[item.size].append((number, item))
    candidates = [one for group in by_size.values() if _is_shared(group) for one in group]
    hashes = _hashes_of([item for _, item in candidates], progress)
    by_content: dict[tuple[int, str], list[_Held]] = defaultdict(list)
    for one, text in zip(candidates, hashes, strict=True):
        if text:
            by_content[one[1].size, text].append(one)
    found = [_copies(size, group) for (size, _), group in by_content.items() if _is_shared(group)]
    return tuple(sorted(found, key=lambda copies: (-copies.wasted, copies.files[0].path)))


def _is_shared(group: Sequence[_Held]) -> bool:
    return len({number for number, _ in group}) > 1


def _hashes_of(items: Sequence[Item], progress: Progress) -> list[str]:
    """Return the SHA-256 of each as RECORD spells it; empty for what can't be read."""
    unknown = [item for item in items if not _is_hash_known(item)]
    with open_workers() as executor:
        read = map_sized(executor, _hash_of, unknown, lambda item: item.size)
        hashes = list(tracked(progress, "looking for duplicates", read, [item.size for item in unknown]))
    rest = iter(hashes)
    return [item.hash if _is_hash_known(item) else next(rest) for item in items]


def _is_hash_known(item: Item) -> bool:
    return isinstance(item.content, ZipMember) and item.hash.startswith("sha256=")


def _hash_of(item: Item) -> str:
    digest = hashlib.sha256()
    try:
        with item.view() as data:
            for piece in iter_pieces(data):
                digest.update(piece)
    except WorkError:
        raise
    except InputError:
        return ""
    return f"sha256={base64.urlsafe_b64encode(digest.digest()).rstrip(b'=').decode()}"


def _copies(size: int, group: Sequence[_Held]) -> Copies:
    files = tuple(sorted((Copy(number, item.path) for number, item in group), key=lambda one: (one.package, one.path)))
    return Copies(size, size * (len({one.package for one in files}) - 1), files)
