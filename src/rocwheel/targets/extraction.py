"""Taking code objects out of files, for a GPU, by the rule of exact names or by that of a runtime."""

from __future__ import annotations

from contextlib import ExitStack
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundle_sequence import Bundle, iter_entries
from rocwheel.binary.compressed_bundle import RAW_SIZE_LIMIT
from rocwheel.binary.device_code import read_device_code
from rocwheel.binary.device_error import DeviceCodeError
from rocwheel.errors import InputError, ProblemsError
from rocwheel.files import FileRange, atomic_file
from rocwheel.targets.compatibility import Runtime, choose
from rocwheel.targets.spellings import file_name_spelling

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rocwheel.binary.offload_bundle import BundleEntry
    from rocwheel.binary.target_id import TargetId

__all__ = ["ExtractedCode", "MatchRule", "choose_entry", "extract_code"]


class MatchRule(str, Enum):
    """Which entry of a bundle is the one for a target."""

    EXACT = "exact"
    """The one of that id."""
    STOCK = "stock"
    """The one that an unmodified runtime loads on such a GPU."""
    EXTENDED = "extended"
    """The one that a runtime with the distributions' extended compatibility rule loads."""


class ExtractedCode(msgspec.Struct, frozen=True):
    """A code object that was written to ``path``: from which bundle, for which target, and its size in bytes."""

    path: str
    bundle: int
    target: str
    size: int


def choose_entry(bundle: Bundle, wanted: TargetId, rule: MatchRule) -> BundleEntry | None:
    """Return the entry of ``bundle`` for ``wanted`` by ``rule``; none when nothing fits."""
    entries = [entry for entry in bundle.plain.device_entries if entry.size]
    if rule is MatchRule.EXACT:
        return next((entry for entry in entries if entry.target == wanted), None)
    targets = [entry.target for entry in entries if entry.target is not None]
    choice = choose(targets, wanted, Runtime(rule.value))
    return entries[choice.index] if choice else None


def extract_code(
    source: Path,
    dest_dir: Path,
    targets: Sequence[TargetId],
    *,
    rule: MatchRule = MatchRule.EXACT,
    allow_missing: bool = False,
    limit: int = RAW_SIZE_LIMIT,
) -> tuple[ExtractedCode, ...]:
    """Write the code of ``source`` for each of ``targets`` (for all, if there are none) to ``dest_dir``.

    Files are named after the source, the number of the bundle and the target of the entry. Compressed bundles are
    streamed, each once. Raises `InputError` when the file has no bundles or is damaged, when a bundle decompresses to
    more than ``limit`` bytes, and `ProblemsError` for bundles without code for a target, unless ``allow_missing``;
    nothing is written then.
    """
    with FileRange.whole(source).map() as data:
        code = read_device_code(data, name=str(source))
        bundles = tuple(code.iter_bundles(data)) if code else ()
        if code is None or not bundles:
            raise InputError(source, "no bundles of device code", expected="a fat binary or a file of bundles")
        chosen = _choose_all(source, bundles, targets, rule, allow_missing=allow_missing)
        for bundle, _ in chosen:
            _require_size(bundle, limit)
        view = code.view(data)
        return tuple(
            written for bundle, entries in chosen for written in _write_bundle(view, bundle, entries, source, dest_dir)
        )


def _require_size(bundle: Bundle, limit: int) -> None:
    if bundle.raw_size > limit:
        raise DeviceCodeError(
            bundle.place,
            f"holds a bundle of {bundle.raw_size} bytes",
            expected=f"at most {limit}, the limit set here",
            remedy="Set a higher limit if you trust the file.",
        )


def _choose_all(
    source: Path, bundles: Sequence[Bundle], targets: Sequence[TargetId], rule: MatchRule, *, allow_missing: bool
) -> list[tuple[Bundle, list[BundleEntry]]]:
    chosen: list[tuple[Bundle, list[BundleEntry]]] = []
    problems = []
    for bundle in bundles:
        found = {target: choose_entry(bundle, target, rule) for target in targets}
        entries = found.values() if targets else [entry for entry in bundle.plain.device_entries if entry.size]
        each_once = {entry.offset: entry for entry in entries if entry}
        chosen += [(bundle, list(each_once.values()))] if each_once else []
        problems += [_missing(bundle, target, rule) for target, entry in found.items() if entry is None]
    if problems and not (allow_missing and chosen):
        raise problems[0] if len(problems) == 1 else ProblemsError(str(source), problems)
    return chosen


def _missing(bundle: Bundle, target: TargetId, rule: MatchRule) -> DeviceCodeError:
    return DeviceCodeError(
        bundle.place,
        f"has no code for {target} by the rule '{rule.value}'",
        expected=f"one of its targets {', '.join(map(str, bundle.targets))}" if bundle.targets else "",
    )


def _write_bundle(
    view: memoryview, bundle: Bundle, entries: Sequence[BundleEntry], source: Path, dest_dir: Path
) -> list[ExtractedCode]:
    """Write all ``entries`` in one pass over the bundle; their files appear only when all are whole."""
    number = bundle.place.bundle or 0
    paths = {entry.offset: dest_dir / f"{source.name}.{number}.{_file_name(entry)}.co" for entry in entries}
    with ExitStack() as stack:
        files = {offset: stack.enter_context(atomic_file(path)) for offset, path in paths.items()}
        for entry, piece in iter_entries(view, bundle, entries):
            files[entry.offset].write(piece)
    return [ExtractedCode(str(paths[entry.offset]), number, str(entry.target), entry.size) for entry in entries]


def _file_name(entry: BundleEntry) -> str:
    assert entry.target is not None
    return file_name_spelling(entry.target)
