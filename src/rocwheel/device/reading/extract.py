"""Taking code objects out of files, for a GPU, by the rule of exact names or by that of a runtime."""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.compressed.content import RAW_SIZE_LIMIT, WrongHashError
from rocwheel.binary.bundles.device_code import iter_code_sources
from rocwheel.binary.bundles.sequence import Bundle, iter_entries, require_size
from rocwheel.binary.code_objects.code_object import is_code_object, read_code_object
from rocwheel.binary.code_objects.errors import DeviceCodeError, Place
from rocwheel.binary.kind import is_thin_archive
from rocwheel.distributions.binaries import Binary, find_binaries, is_wheel
from rocwheel.distributions.zip.member_names import outside_reason
from rocwheel.foundation.collecting import convert_all, raise_all
from rocwheel.foundation.errors import InputError, WorkError, write_error
from rocwheel.foundation.files.atomic_file import atomic_file
from rocwheel.foundation.files.file_range import FileRange
from rocwheel.foundation.files.file_view import iter_pieces
from rocwheel.foundation.files.scratch import scratch_folder
from rocwheel.targets.compatibility import Runtime, choose
from rocwheel.targets.spelling.spellings import file_name_spelling

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.bundles.device_code import CodeSource
    from rocwheel.binary.bundles.plain import BundleEntry
    from rocwheel.binary.code_objects.target_id import TargetId
    from rocwheel.foundation.files.atomic_file import AtomicFile
    from rocwheel.foundation.files.file_view import Data

__all__ = ["ExtractedCode", "MatchRule", "choose_entry", "extract_code"]

logger = logging.getLogger(__name__)

_SUFFIXES = {b"BC\xc0\xde": ".bc", b"\x03\x02\x23\x07": ".spv"}
"""What other code than code objects begins with: LLVM bitcode and SPIR-V, little-endian."""


class MatchRule(str, Enum):
    """Which entry of a bundle is the one for a target."""

    EXACT = "exact"
    """The one of that id."""
    STOCK = "stock"
    """The one that an unmodified runtime loads on such a GPU."""
    EXTENDED = "extended"
    """The one that a runtime with the distributions' extended compatibility rule loads."""


class ExtractedCode(msgspec.Struct, frozen=True):
    """Code that was written to ``path``: from which bundle, for which target, and its size in bytes.

    ``found_in`` is the file, or the member of a static library, in which it was.
    """

    path: str
    bundle: int
    target: str
    size: int
    found_in: str


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
    accept_wrong_hash: bool = False,
) -> tuple[ExtractedCode, ...]:
    """Write the code of ``source`` for each of ``targets`` (for all, if there are none) to ``dest_dir``.

    Files are named after the source, the number of the bundle and the target of the entry; of several for one target,
    the second and later ones have their number, too. The images of an object file, and a code object by itself, count
    as a bundle; in a static library, bundles are numbered through. Compressed bundles are streamed, each once. Of a
    folder or a wheel, every file with device code is taken, into folders as there; files that have code for none of
    ``targets`` are passed over, if others have some.
    Raises `InputError` when there is no device code or it is damaged, when a bundle decompresses to more than
    ``limit`` bytes or its hash is wrong (a warning in the log, with ``accept_wrong_hash``), when bundles have no code
    for a target (`ProblemsError` for several), unless ``allow_missing``, and `WorkError` when writing fails. The files
    appear when all are whole, so that an error leaves none.
    """
    choosing = _Choosing(targets, rule, allow_missing=allow_missing)
    with _staging(dest_dir, source.name) as folder:
        writer = _Writer(folder, limit, accept_wrong_hash=accept_wrong_hash)
        codes = convert_all(str(source), lambda found: writer.write_file(found, choosing), find_binaries(source))
        if not choosing.has_code:
            raise _no_code(source)
        if not any(codes):
            raise_all(str(source), choosing.passed_over)
        return _placed([code for group in codes for code in group], folder, dest_dir)


def _no_code(source: Path) -> InputError:
    kinds = "a fat binary, a file of bundles, a code object, an object file or a static library"
    if source.is_dir() or is_wheel(source):
        return InputError(source, "no device code for AMD GPUs", expected=f"{kinds} in it")
    with FileRange.whole(source).view() as data:
        if is_code_object(data):
            flags = read_code_object(data, place=Place(str(source))).flags
            found = f"a code object whose flags {flags:#x} name no processor"
            return InputError(source, found, expected="one for a processor that is known")
        found = "a thin archive" if is_thin_archive(data) else "no device code for AMD GPUs"
    return InputError(source, found, expected=kinds)


@contextmanager
def _staging(dest_dir: Path, name: str) -> Iterator[Path]:
    """Make a folder in ``dest_dir`` for files that are not whole yet; it goes with the block.

    An error leaves no folder that wasn't there.
    """
    made = [folder for folder in (dest_dir, *dest_dir.parents) if not folder.exists()]
    stack = ExitStack()
    try:
        dest_dir.mkdir(parents=True, exist_ok=True)
        folder = stack.enter_context(scratch_folder(dest_dir / name))
    except OSError as e:
        raise write_error(dest_dir, e) from e
    try:
        with stack:
            yield folder
    except BaseException:
        with suppress(OSError):
            for created in made:
                created.rmdir()
        raise


def _placed(codes: Sequence[ExtractedCode], folder: Path, dest_dir: Path) -> tuple[ExtractedCode, ...]:
    """Move the files to their places, once it is clear that nothing else is there."""
    moves = {Path(code.path): dest_dir / Path(code.path).relative_to(folder) for code in codes}
    for path in moves.values():
        if path.exists() and not path.is_file():
            raise WorkError(path, "is not a regular file, so it can't be replaced", remedy="Name another folder.")
    try:
        for old, new in moves.items():
            new.parent.mkdir(parents=True, exist_ok=True)
            old.replace(new)
    except OSError as e:
        raise write_error(dest_dir, e) from e
    return tuple(msgspec.structs.replace(code, path=str(moves[Path(code.path)])) for code in codes)


class _Choosing:
    """Which entries are taken for ``targets``, and what was passed over so far."""

    def __init__(self, targets: Sequence[TargetId], rule: MatchRule, *, allow_missing: bool) -> None:
        self.targets, self.rule, self.allow_missing = targets, rule, allow_missing
        self.has_code = False
        self.passed_over: list[DeviceCodeError] = []

    def choose(self, name: str, sources: Sequence[CodeSource]) -> dict[int, list[BundleEntry]]:
        """Return the entries of each bundle of a file; raise `DeviceCodeError` when some bundles alone have none."""
        chosen: dict[int, list[BundleEntry]] = {}
        problems = []
        for number, bundle in enumerate(source.bundle for source in sources):
            self.has_code = True
            found = {target: choose_entry(bundle, target, self.rule) for target in self.targets}
            entries = found.values() if self.targets else [entry for entry in bundle.plain.device_entries if entry.size]
            each_once = {entry.offset: entry for entry in entries if entry}
            if each_once:
                chosen[number] = list(each_once.values())
            problems += [_missing(bundle, target, self.rule) for target, entry in found.items() if entry is None]
        if not chosen:
            self.passed_over += problems
        elif not self.allow_missing:
            raise_all(name, problems)
        return chosen


def _missing(bundle: Bundle, target: TargetId, rule: MatchRule) -> DeviceCodeError:
    is_variant = any(other.processor == target.processor for other in bundle.targets)
    return DeviceCodeError(
        bundle.place,
        f"has no code for {target} by the rule '{rule.value}'",
        expected=f"one of its targets {', '.join(map(str, bundle.targets))}" if bundle.targets else "",
        remedy="Name a variant, or choose another rule." if rule is MatchRule.EXACT and is_variant else "",
    )


class _Writer:
    """Writes code to files in ``folder``, named after the files it is from."""

    def __init__(self, folder: Path, limit: int, *, accept_wrong_hash: bool) -> None:
        self.folder, self.limit = folder, limit
        self.accept_wrong_hash = accept_wrong_hash

    def write_file(self, found: Binary | InputError, choosing: _Choosing) -> list[ExtractedCode]:
        """Write the code of a binary that is chosen, each bundle in one pass."""
        if isinstance(found, InputError):
            raise found
        if reason := outside_reason(found.place) if found.place else "":
            raise InputError(found.name, reason, expected="a name below the folder of the wheel")
        stem = self.folder / (found.place or PurePath(found.name).name)
        with found.view(limit=self.limit) as data:
            sources = tuple(iter_code_sources(data, name=found.name))
            chosen = choosing.choose(found.name, sources)
            for number in chosen:
                require_size(sources[number].bundle, self.limit)
            return [
                code
                for number, entries in chosen.items()
                for code in self._write(stem, number, sources[number], entries)
            ]

    def _write(
        self, stem: Path, number: int, source: CodeSource, entries: Sequence[BundleEntry]
    ) -> list[ExtractedCode]:
        names = _names(entries)
        files: dict[int, AtomicFile] = {}
        with ExitStack() as stack:
            for entry, piece in self._iter_pieces(source, entries):
                if entry.offset not in files:
                    path = stem.with_name(f"{stem.name}.{number}.{names[entry.offset]}{_suffix(piece)}")
                    path.parent.mkdir(parents=True, exist_ok=True)
                    files[entry.offset] = stack.enter_context(atomic_file(path))
                for part in iter_pieces(piece):
                    files[entry.offset].write(part)
        found_in = source.bundle.place.name
        return [
            ExtractedCode(str(files[entry.offset].path), number, str(entry.target), entry.size, found_in)
            for entry in entries
        ]

    def _iter_pieces(self, source: CodeSource, entries: Sequence[BundleEntry]) -> Iterator[tuple[BundleEntry, Data]]:
        try:
            yield from iter_entries(source.view, source.bundle, entries)
        except WrongHashError as e:
            if not self.accept_wrong_hash:
                raise
            logger.warning("%s: %s", e.source, e.found)


def _names(entries: Sequence[BundleEntry]) -> dict[int, str]:
    """Name the entry at each offset by its target."""
    names, counts = {}, Counter[str]()
    for entry in entries:
        assert entry.target is not None
        name = file_name_spelling(entry.target)
        counts[name] += 1
        names[entry.offset] = f"{name}.{counts[name]}" if counts[name] > 1 else name
    return names


def _suffix(head: Data) -> str:
    return _SUFFIXES.get(bytes(head[:4]), ".co")
