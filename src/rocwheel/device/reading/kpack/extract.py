"""Taking code objects out of kpack archives, and out of those of a split library."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from rocwheel.binary.code_objects import DeviceCodeError, Place, TargetId, parse_target_id
from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.core.reading import load
from rocwheel.core.workers import raise_all
from rocwheel.core.writing import atomic_file
from rocwheel.device.reading.extraction import ExtractedCode, MatchRule, suffix_of
from rocwheel.device.reading.kpack.code import each_once
from rocwheel.targets.compatibility import Runtime, choose
from rocwheel.targets.spelling.spellings import file_name_spelling

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rocwheel.device.reading.kpack.code import CodeUnit, KpackCode, StoredCode

__all__ = ["choose_stored", "require_archives", "write_stored"]


def require_archives(name: str, code: KpackCode) -> None:
    """Raise `InputError` when archives of a split library can't be read, or none is there; several together."""
    raise_all(name, [InputError(name, problem) for problem in code.problems])
    if not code.archives:
        paths = dict.fromkeys(path for wrapper in code.wrappers for path in wrapper.marker.search_paths)
        found = f"its code is in kpack archives that are not there: {', '.join(paths)}"
        raise InputError(name, found, remedy="Install the device package for the GPU beside it.")


def choose_stored(
    name: str, units: Sequence[CodeUnit], targets: Sequence[TargetId], rule: MatchRule
) -> tuple[dict[int, tuple[StoredCode, ...]], list[DeviceCodeError]]:
    """Return the code of each unit, by its number, for ``targets`` (all, if there are none), and what is missing.

    A code object under several targets comes once, under the least specific of them.
    """
    chosen: dict[int, tuple[StoredCode, ...]] = {}
    problems: list[DeviceCodeError] = []
    for number, unit in enumerate(units):
        found = {target: _choose(unit, target, rule) for target in targets}
        codes = each_once(stored for stored in (found.values() if targets else unit.codes) if stored)
        if codes:
            chosen[number] = codes
        problems += [_missing(name, unit, target, rule) for target, stored in found.items() if stored is None]
    return chosen, problems


def _choose(unit: CodeUnit, wanted: TargetId, rule: MatchRule) -> StoredCode | None:
    targets = list(map(_target, unit.codes))
    if rule is MatchRule.EXACT:
        return next((stored for stored, target in zip(unit.codes, targets, strict=True) if target == wanted), None)
    choice = choose(targets, wanted, Runtime(rule.value))
    return unit.codes[choice.index] if choice else None


def _target(stored: StoredCode) -> TargetId:
    return parse_target_id(stored.entry.target, source=f"{stored.archive.name}: {quoted(stored.entry.key)}")


def _missing(name: str, unit: CodeUnit, target: TargetId, rule: MatchRule) -> DeviceCodeError:
    place = Place(name, unit.wrapper.offset if unit.wrapper else 0)
    found = f"has no code for {target} under {unit.key} by the rule '{rule.value}'"
    expected = f"one of its targets {', '.join(unit.targets)}" if unit.targets else ""
    return DeviceCodeError(place, found, expected=expected)


def write_stored(stem: Path, number: int, stored: StoredCode, *, limit: int) -> ExtractedCode:
    """Write a code object to a file named after ``stem``, the number of its unit and its target.

    Memory holds a few megabytes of it. Raises `DeviceCodeError` for damage and for more than ``limit`` bytes, and
    `WorkError` when writing fails.
    """
    entry, name = stored.entry, stored.archive.name
    if entry.size > limit:
        found = f"{entry.key} for {entry.target} has {entry.size} bytes"
        remedy = "Allow more with --limit."
        raise DeviceCodeError(Place(name, entry.offset), found, expected=f"at most {limit}", remedy=remedy)
    path = stem.with_name(f"{stem.name}.{number}.{file_name_spelling(_target(stored))}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        file = None
        for piece in stored.pieces():
            file = file or stack.enter_context(atomic_file(path.with_name(path.name + suffix_of(piece))))
            file.write(load(piece))
        if file is None:
            raise DeviceCodeError(Place(name, entry.offset), f"{entry.key} for {entry.target} is empty")
    return ExtractedCode(str(file.path), number, entry.target, entry.size, name)
