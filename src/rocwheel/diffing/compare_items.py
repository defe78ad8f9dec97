"""What differs between two states of one file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.code_objects.target_id import parse_target_id
from rocwheel.diffing.binary_facts import lost_symbols
from rocwheel.diffing.changes import FieldChange, FileChange, LibraryChange, Status
from rocwheel.distributions.zip.reader import ZipMember
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files.reading.file_range import FileRange
from rocwheel.foundation.files.reading.file_view import have_same_bytes
from rocwheel.targets.compatibility import covers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.binary.code_objects.target_id import TargetId
    from rocwheel.diffing.binary_facts import BinaryFacts
    from rocwheel.diffing.values import Item

__all__ = ["compare_field", "compare_items", "have_same_content", "lost_targets"]


def have_same_content(old: Item, new: Item) -> bool:
    """Return whether two files have the same bytes.

    Of two members of wheels, equal sizes, checksums and hashes in RECORD tell so; others are read. Raises `InputError`
    for what can't be read.
    """
    if old.link is not None or new.link is not None:
        return old.link == new.link
    if old.size != new.size:
        return False
    if isinstance(old.content, ZipMember) and isinstance(new.content, ZipMember):
        if old.content.crc32 != new.content.crc32:
            return False
        if old.hash and old.hash == new.hash:
            return True
    if isinstance(old.content, FileRange) and old.content == new.content:
        with old.view():
            return True  # one file, however large it is, that may be read
    with old.view() as one, new.view() as other:
        return have_same_bytes(one, other)


def compare_items(old: Item | None, new: Item | None, old_facts: BinaryFacts, new_facts: BinaryFacts) -> FileChange:
    """Return the differences of a file that has another content on each side, or that one side lacks."""
    status = Status.CHANGED if old and new else Status.WENT if old else Status.CAME
    return FileChange(
        status=status,
        old_path=old.path if old else "",
        new_path=new.path if new else "",
        old_size=old.size if old else None,
        new_size=new.size if new else None,
        old_packed=old.packed if old else None,
        new_packed=new.packed if new else None,
        old_mode=_mode(old),
        new_mode=_mode(new),
        old_link=old.link if old else None,
        new_link=new.link if new else None,
        has_other_content=old is not None and new is not None,
        library=_compare_facts(old_facts, new_facts),
    )


def compare_field(field: str, old: Iterable[str], new: Iterable[str]) -> list[FieldChange]:
    """Return what went from a field and what came to it; nothing where that is nothing."""
    before, after = dict.fromkeys(old), dict.fromkeys(new)
    went = tuple(value for value in before if value not in after)
    came = tuple(value for value in after if value not in before)
    return [FieldChange(field, went, came)] if went or came else []


def lost_targets(old: Iterable[str], new: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the targets that nothing serves any more, and those that other code serves, such as generic code."""
    after = frozenset(new)
    lost = sorted(frozenset(old) - after)
    offered = [target for text in sorted(after) if (target := _parse(text))]
    replaced = {text for text in lost if (target := _parse(text)) and covers(offered, target)}
    return tuple(text for text in lost if text not in replaced), tuple(text for text in lost if text in replaced)


def _parse(text: str) -> TargetId | None:
    try:
        return parse_target_id(text)
    except InputError:
        return None


def _mode(item: Item | None) -> int | None:
    return item.mode & 0o7777 if item and item.mode else None


def _compare_facts(old: BinaryFacts, new: BinaryFacts) -> LibraryChange | None:
    is_binary = old.elf or new.elf or old.pe or new.pe
    if not is_binary and not (old.targets or new.targets):
        return None
    is_alike = (old.elf and new.elf) or (old.pe and new.pe)
    strong, weak = lost_symbols(old, new) if is_alike else ((), ())
    came = new.linkage.definitions - old.linkage.definitions if old.elf else new.functions - old.functions
    targets_went, replaced = lost_targets(old.targets, new.targets)
    return LibraryChange(
        is_library=old.is_library or new.is_library,
        old_soname=old.soname,
        new_soname=new.soname,
        fields=(*_compare_elf(old, new), *_compare_imports(old, new)),
        symbols_went=strong,
        weak_symbols_went=weak,
        symbols_came=len(came) if old.elf or old.pe else 0,
        targets_went=targets_went,
        targets_replaced=replaced,
        targets_came=tuple(sorted(new.targets - old.targets)),
    )


def _compare_elf(old: BinaryFacts, new: BinaryFacts) -> tuple[FieldChange, ...]:
    if old.elf is None or new.elf is None:
        return ()
    return (
        *compare_field("SONAME", filter(None, [old.soname]), filter(None, [new.soname])),
        *compare_field("NEEDED", old.elf.needed, new.elf.needed),
        *_compare_path("RUNPATH", old.elf.runpath, new.elf.runpath),
        *_compare_path("RPATH", old.elf.rpath, new.elf.rpath),
    )


def _compare_imports(old: BinaryFacts, new: BinaryFacts) -> tuple[FieldChange, ...]:
    if old.pe is None or new.pe is None:
        return ()
    one, other = ([dll.name for dll in pe.imports] for pe in (old.pe, new.pe))
    later, other_later = ([dll.name for dll in pe.delay_imports] for pe in (old.pe, new.pe))
    return (*compare_field("Import", one, other), *compare_field("Delay import", later, other_later))


def _compare_path(field: str, old: str | None, new: str | None) -> list[FieldChange]:
    return compare_field(field, [] if old is None else [old], [] if new is None else [new])
