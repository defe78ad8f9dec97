"""A smaller kpack archive: some entries of another one, with their code objects alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.kpack.maps import decode_map
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rocwheel.binary.code_objects.errors import Place
    from rocwheel.binary.kpack.archive import KpackArchive, KpackEntry

__all__ = ["select_entries", "selected_fields", "unnamed_remark", "without_unnamed"]


def select_entries(archive: KpackArchive, kept: Iterable[KpackEntry]) -> KpackArchive:
    """Return ``archive`` with the ``kept`` ones of its entries, whose code objects are numbered anew, in their order.

    It lists the targets that are left. Code objects stay where they are: `recompress_archive` writes the new archive.
    """
    entries = tuple(kept)
    ordinals = sorted({entry.ordinal for entry in entries})
    new = {ordinal: number for number, ordinal in enumerate(ordinals)}
    left = {entry.target for entry in entries}
    return msgspec.structs.replace(
        archive,
        targets=tuple(target for target in archive.targets if target in left),
        blobs=tuple(archive.blobs[ordinal] for ordinal in ordinals),
        entries=tuple(msgspec.structs.replace(entry, ordinal=new[entry.ordinal]) for entry in entries),
    )


def _count_unnamed(archive: KpackArchive) -> int:
    """Return how many code objects of ``archive`` no key names: readers take them, and nobody finds them."""
    return len(archive.blobs) - len({entry.ordinal for entry in archive.entries})


def unnamed_remark(archive: KpackArchive) -> str:
    """Return what to report of an archive that is written without those; empty where it has none."""
    unnamed = _count_unnamed(archive)
    return f"left out {count(unnamed, 'code object')} that no key names" if unnamed else ""


def without_unnamed(archive: KpackArchive) -> KpackArchive:
    """Return ``archive`` without code objects that no key names; it lists the same targets."""
    if not _count_unnamed(archive):
        return archive
    return msgspec.structs.replace(select_entries(archive, archive.entries), targets=archive.targets)


def selected_fields(
    fields: Mapping[str, msgspec.Raw], archive: KpackArchive, place: Place
) -> dict[str, msgspec.Raw | object]:
    """Return the ``fields`` of an old table as they are for ``archive``, a part of the old one or all of it.

    What is said of each entry beside its number stays, keys that nobody knows included.
    """
    ordinals = {(entry.key, entry.target): entry.ordinal for entry in archive.entries}
    table: dict[str, dict[str, object]] = {}
    for key, raw in decode_map(fields["toc"], "toc", place).items():
        for target, entry in decode_map(raw, f"toc entry {key!r}", place).items():
            if (key, target) in ordinals:
                values = decode_map(entry, f"toc entry {key!r} for {target!r}", place)
                table.setdefault(key, {})[target] = {**values, "ordinal": ordinals[key, target]}
    return {**fields, "gfx_arches": archive.targets, "toc": table}
