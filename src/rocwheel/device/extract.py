"""Extracts code objects for a GPU from files, by exact name or according to a runtime's selection rules."""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.compressed import RAW_SIZE_LIMIT, WrongHashError
from rocwheel.binary.bundles.device_code import iter_code_sources
from rocwheel.binary.bundles.sequence import iter_entries, require_size
from rocwheel.binary.code_objects import (
    CodePlace,
    DeviceCodeError,
    TargetId,
    is_code_object,
    parse_target_id,
    read_code_object,
)
from rocwheel.binary.kind import unread_archive
from rocwheel.core.errors import InputError, RocwheelError, WorkError, write_error
from rocwheel.core.messages import quoted
from rocwheel.core.reading import FileRange, iter_pieces, load
from rocwheel.core.scratch import scratch_folder
from rocwheel.core.workers import attempt_all, map_collecting, raise_all
from rocwheel.core.writing import atomic_file, no_folder_left
from rocwheel.device.kpack_code import GivenArchives, each_once, is_named_archive, open_kpack_code
from rocwheel.targets.compatibility import Runtime, choose
from rocwheel.targets.spelling import file_name_spelling
from rocwheel.targets.target_set import id_sort_key, text_sort_key
from rocwheel.wheels.binaries import Binary, find_all_binaries, is_wheel
from rocwheel.wheels.zip_refusals import outside_reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.bundles.device_code import CodeSource
    from rocwheel.binary.bundles.plain import BundleEntry
    from rocwheel.binary.bundles.sequence import Bundle
    from rocwheel.binary.code_objects import TargetId
    from rocwheel.core.reading import Data
    from rocwheel.core.writing import AtomicFile
    from rocwheel.device.kpack_code import CodeUnit, KpackCode, StoredCode


_SUFFIXES = {b"BC\xc0\xde": ".bc", b"\x03\x02\x23\x07": ".spv"}
"""The first bytes of code that isn't a code object: LLVM bitcode and SPIR-V, little-endian."""


class MatchRule(str, Enum):
    """The rule that selects a bundle's entry for a target."""

    EXACT = "exact"
    """The entry with this ID."""
    STOCK = "stock"
    """The entry that an unmodified runtime loads on such a GPU."""
    EXTENDED = "extended"
    """The entry that a runtime with the distributions' extended compatibility rule loads."""


class ExtractedCode(msgspec.Struct, frozen=True):
    """Code that was written to ``path``, with its bundle, target, and size in bytes.

    ``found_in`` is the file, or the static library member, that contained the code.
    """

    path: str
    bundle: int
    target: str
    size: int
    found_in: str


@contextmanager
def staging(dest_dir: Path, name: str) -> Iterator[Path]:
    """Create a folder in ``dest_dir`` for incomplete files, which is removed after the block.

    After an error, ``dest_dir`` is also removed if it is new.
    """
    with no_folder_left(dest_dir), ExitStack() as stack:
        try:
            dest_dir.mkdir(parents=True, exist_ok=True)
            folder = stack.enter_context(scratch_folder(dest_dir / name))
        except OSError as e:
            raise write_error(dest_dir, e) from e
        yield folder


def placed(codes: Sequence[ExtractedCode], folder: Path, dest_dir: Path) -> tuple[ExtractedCode, ...]:
    """Move the files from ``folder`` to their places in ``dest_dir``, after checking that nothing else is there.

    Raises `WorkError` if something else exists there, or if a file can't be moved.
    """
    moves = {Path(code.path): dest_dir / Path(code.path).relative_to(folder) for code in codes}
    for path in moves.values():
        if path.exists() and not path.is_file():
            raise WorkError(path, "isn't a regular file, so it can't be replaced", remedy="Specify another folder.")
    try:
        for old, new in moves.items():
            new.parent.mkdir(parents=True, exist_ok=True)
            old.replace(new)
    except OSError as e:
        raise write_error(dest_dir, e) from e
    return tuple(msgspec.structs.replace(code, path=str(moves[Path(code.path)])) for code in codes)


def suffix_of(head: Data) -> str:
    """Return the file suffix for code that begins with ``head``."""
    return _SUFFIXES.get(bytes(head[:4]), ".co")


def require_archives(name: str, code: KpackCode) -> None:
    """Raise `InputError` if archives of a split library are unreadable, or if all of them are missing.

    Raises `ProblemsError` for several problems.
    """
    raise_all(name, [InputError(name, problem) for problem in code.problems])
    if not code.archives:
        paths = dict.fromkeys(path for wrapper in code.wrappers for path in wrapper.marker.search_paths)
        found = f"the code is in kpack archives that don't exist: {', '.join(paths)}"
        raise InputError(name, found, remedy="Install the device package for the GPU in the same environment.")


def _choose(unit: CodeUnit, wanted: TargetId, rule: MatchRule) -> StoredCode | None:
    targets = list(map(_target, unit.codes))
    if rule is MatchRule.EXACT:
        return next((stored for stored, target in zip(unit.codes, targets, strict=True) if target == wanted), None)
    choice = choose(targets, wanted, Runtime(rule.value))
    return unit.codes[choice.index] if choice else None


def _target(stored: StoredCode) -> TargetId:
    return parse_target_id(stored.entry.target, source=f"{stored.archive.name}: {quoted(stored.entry.key)}")


def _missing_stored(name: str, unit: CodeUnit, target: TargetId, rule: MatchRule) -> DeviceCodeError:
    place = CodePlace(name, unit.wrapper.offset if unit.wrapper else 0)
    found = f"has no code for {target} under {unit.key} according to the rule '{rule.value}'"
    expected = f"one of its targets {', '.join(sorted(unit.targets, key=text_sort_key))}" if unit.targets else ""
    return DeviceCodeError(place, found, expected=expected)


def write_stored(stem: Path, number: int, stored: StoredCode, *, limit: int) -> ExtractedCode:
    """Write a code object to a file named after ``stem``, the number of its unit, and its target.

    Only a few megabytes of the code are in memory. Raises `DeviceCodeError` for damaged code and for more than
    ``limit`` bytes, and `WorkError` if writing fails.
    """
    entry, name = stored.entry, stored.archive.name
    if entry.size > limit:
        found = f"{entry.key} for {entry.target} has {entry.size} bytes"
        remedy = "Set a higher limit with --limit."
        raise DeviceCodeError(CodePlace(name, entry.offset), found, expected=f"at most {limit}", remedy=remedy)
    path = stem.with_name(f"{stem.name}.{number}.{file_name_spelling(_target(stored))}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        file = None
        for piece in stored.pieces():
            file = file or stack.enter_context(atomic_file(path.with_name(path.name + suffix_of(piece))))
            file.write(load(piece))
        if file is None:
            raise DeviceCodeError(CodePlace(name, entry.offset), f"{entry.key} for {entry.target} is empty")
    return ExtractedCode(str(file.path), number, entry.target, entry.size, name)


class CodeChoice:
    """The entries to extract for ``targets``, and the bundles skipped so far."""

    def __init__(self, targets: Sequence[TargetId], rule: MatchRule, *, allow_missing: bool) -> None:
        self.targets, self.rule, self.allow_missing = targets, rule, allow_missing
        self.has_code = False
        self.passed_over: list[DeviceCodeError] = []

    def choose(self, name: str, sources: Sequence[CodeSource]) -> dict[int, list[BundleEntry]]:
        """Return the entries to extract, keyed by bundle number.

        Raises `DeviceCodeError` if some bundles have entries to extract and other bundles don't.
        """
        chosen: dict[int, list[BundleEntry]] = {}
        problems = []
        for number, bundle in enumerate(source.bundle for source in sources):
            self.has_code = True
            found = {target: _choose_entry(bundle, target, self.rule) for target in self.targets}
            entries = found.values() if self.targets else [entry for entry in bundle.plain.device_entries if entry.size]
            each_once = {entry.offset: entry for entry in entries if entry}
            if each_once:
                chosen[number] = list(each_once.values())
            problems += [_missing(bundle, target, self.rule) for target, entry in found.items() if entry is None]
        self._settle(name, problems, is_any_chosen=bool(chosen))
        return chosen

    def choose_stored(self, name: str, kpack: KpackCode) -> dict[int, tuple[StoredCode, ...]]:
        """Return the code to extract from an archive or split library, keyed by unit number.

        A code object with several targets occurs once, under the least specific target. Raises the same errors as
        `choose`.
        """
        self.has_code = self.has_code or any(unit.codes for unit in kpack.units)
        chosen: dict[int, tuple[StoredCode, ...]] = {}
        problems: list[DeviceCodeError] = []
        for number, unit in enumerate(kpack.units):
            found = {target: _choose(unit, target, self.rule) for target in self.targets}
            codes = each_once(stored for stored in (found.values() if self.targets else unit.codes) if stored)
            if codes:
                chosen[number] = codes
            problems += [_missing_stored(name, unit, one, self.rule) for one, stored in found.items() if stored is None]
        self._settle(name, problems, is_any_chosen=bool(chosen))
        return chosen

    def _settle(self, name: str, problems: Sequence[DeviceCodeError], *, is_any_chosen: bool) -> None:
        if not is_any_chosen:
            self.passed_over += problems
        elif not self.allow_missing:
            raise_all(name, problems)


def _choose_entry(bundle: Bundle, wanted: TargetId, rule: MatchRule) -> BundleEntry | None:
    """Return the entry of ``bundle`` that ``rule`` selects for ``wanted``, or `None` if no entry matches."""
    entries = [entry for entry in bundle.plain.device_entries if entry.size]
    if rule is MatchRule.EXACT:
        return next((entry for entry in entries if entry.target == wanted), None)
    targets = [entry.target for entry in entries if entry.target is not None]
    choice = choose(targets, wanted, Runtime(rule.value))
    return entries[choice.index] if choice else None


def _missing(bundle: Bundle, target: TargetId, rule: MatchRule) -> DeviceCodeError:
    is_variant = any(other.processor == target.processor for other in bundle.targets)
    offered = ", ".join(map(str, sorted(bundle.targets, key=id_sort_key)))
    return DeviceCodeError(
        bundle.place,
        f"has no code for {target} according to the rule '{rule.value}'",
        expected=f"one of its targets {offered}" if offered else "",
        remedy="Specify a variant, or choose another rule." if rule is MatchRule.EXACT and is_variant else "",
    )


logger = logging.getLogger(__name__)


def extract_code(
    sources: Path | Sequence[Path],
    dest_dir: Path,
    targets: Sequence[TargetId],
    *,
    rule: MatchRule = MatchRule.EXACT,
    allow_missing: bool = False,
    limit: int = RAW_SIZE_LIMIT,
    accept_wrong_hash: bool = False,
) -> tuple[ExtractedCode, ...]:
    """Write the code from one or several sources for each of ``targets`` (all if empty) to ``dest_dir``.

    A file name consists of the source, the number of the bundle, and the entry's target. If a target has several files,
    the second and later names also have a number. The images in an object file count as one bundle, and so does a
    standalone code object. The numbers continue across the bundles of a static library, the keys of a kpack archive,
    and the wrappers of a split library. A library's archives are looked up relative to its location. Each compressed
    bundle is streamed once.

    From a folder or a wheel, every file with device code is extracted into the same folder structure. If only some
    files have code for ``targets``, the other files are skipped. The code of split libraries includes the code in the
    archives among all sources; these archives then aren't extracted separately.

    Raises `InputError` if there is no device code, if the device code is damaged, or if a bundle decompresses to more
    than ``limit`` bytes. An incorrect hash also raises `InputError`, or only logs a warning with ``accept_wrong_hash``.
    Unless ``allow_missing`` is true, bundles without code for a target raise `InputError` (`ProblemsError` for several
    bundles). Raises `WorkError` if writing fails. The files appear only when all of them are complete, so an error
    leaves no files behind.
    """
    choosing = CodeChoice(targets, rule, allow_missing=allow_missing)
    paths = [sources] if isinstance(sources, Path) else [*sources]
    # Archives come after the libraries whose code they contain.
    binaries = sorted(
        find_all_binaries(paths), key=lambda found: not isinstance(found, InputError) and is_named_archive(found)
    )
    source = paths[0]
    with staging(dest_dir, source.name) as folder:
        writer = _Writer(folder, limit, GivenArchives(binaries), accept_wrong_hash=accept_wrong_hash)
        codes = map_collecting(str(source), lambda found: writer.write_file(found, choosing), binaries)
        if not choosing.has_code:
            raise_all(str(source), writer.unfollowed)
            raise _no_code(source)
        if not any(codes):
            if allow_missing and choosing.passed_over:
                found = (
                    f"nothing to extract: no bundle has code for {', '.join(map(str, targets))} according to the rule "
                )
                remedy = "To print the available targets, use rocwheel device list."
                raise InputError(source, f"{found}'{rule.value}'", remedy=remedy)
            raise_all(str(source), choosing.passed_over)
        return placed([code for group in codes for code in group], folder, dest_dir)


def _no_code(source: Path) -> InputError:
    kinds = "a fat binary, a bundle file, a kpack archive, a code object, an object file, or a static library"
    if source.is_dir() or is_wheel(source):
        return InputError(source, "no device code for AMD GPUs", expected=f"{kinds} in it")
    with FileRange.whole(source).view() as data:
        if is_code_object(data):
            flags = read_code_object(data, place=CodePlace(str(source))).flags
            found = f"a code object whose flags {flags:#x} don't identify a processor"
            return InputError(source, found, expected="a code object for a known processor")
        found = unread_archive(data) or "no device code for AMD GPUs"
    return InputError(source, found, expected=kinds)


class _Writer:
    """Writes code to files in ``folder``, named after the source files."""

    def __init__(self, folder: Path, limit: int, given: GivenArchives, *, accept_wrong_hash: bool) -> None:
        self.folder, self.limit, self.given = folder, limit, given
        self.accept_wrong_hash = accept_wrong_hash
        self.unfollowed: list[RocwheelError] = []
        """The errors for split libraries whose archives are all missing."""
        self._stems: dict[Path, str] = {}
        self._followed: dict[str, set[str]] = {}
        """The binaries whose code was already extracted from an archive, keyed by archive."""

    def write_file(self, found: Binary | InputError, choosing: CodeChoice) -> list[ExtractedCode]:
        """Write a binary's selected code, in one pass over each bundle."""
        if isinstance(found, InputError):
            raise found
        if reason := outside_reason(found.place) if found.place else "":
            raise InputError(found.name, reason, expected="a name inside the wheel's folder")
        stem = self.folder / (found.place or PurePath(found.name).name)
        with found.view(limit=self.limit) as data:
            beside = self.given.beside(found)
            with open_kpack_code(data, name=found.name, folder=found.folder, beside=beside) as kpack:
                if kpack is not None:
                    return self._write_stored(stem, found, kpack, choosing)
            sources = tuple(iter_code_sources(data, name=found.name))
            chosen = choosing.choose(found.name, sources)
            self._claim(stem, found.name, bool(chosen))
            for number in chosen:
                require_size(sources[number].bundle, self.limit)
            return [
                code
                for number, entries in chosen.items()
                for code in self._write(stem, number, sources[number], entries)
            ]

    def _write_stored(self, stem: Path, found: Binary, kpack: KpackCode, choosing: CodeChoice) -> list[ExtractedCode]:
        if kpack.is_library:
            binaries = {unit.key.rpartition("#")[0] for unit in kpack.units}
            for archive in kpack.archives:
                self._followed.setdefault(str(Path(archive.name).resolve()), set()).update(binaries)
            attempt_all(lambda code: require_archives(found.name, code), [kpack], self.unfollowed)
            if not found.place:
                raise_all(found.name, self.unfollowed)
        elif self._is_followed(kpack):
            return []
        chosen = choosing.choose_stored(found.name, kpack)
        self._claim(stem, found.name, any(chosen.values()))
        return [
            write_stored(stem, number, stored, limit=self.limit) for number, group in chosen.items() for stored in group
        ]

    def _is_followed(self, code: KpackCode) -> bool:
        """Return whether all binaries in an archive were already extracted through libraries."""
        [archive] = code.archives
        known = self._followed.get(str(Path(archive.name).resolve()), set())
        return {entry.binary for entry in archive.entries} <= known

    def _claim(self, stem: Path, name: str, is_written: bool) -> None:
        """Raise `InputError` if the code from two files would have the same file name."""
        if is_written and self._stems.setdefault(stem, name) != name:
            found = f"its code would overwrite the code from {self._stems[stem]}"
            raise InputError(name, found, remedy="Extract from one file at a time.")

    def _write(
        self, stem: Path, number: int, source: CodeSource, entries: Sequence[BundleEntry]
    ) -> list[ExtractedCode]:
        # Name the entry at each offset after its target.
        names, counts = {}, Counter[str]()
        for entry in entries:
            assert entry.target is not None
            name = file_name_spelling(entry.target)
            counts[name] += 1
            names[entry.offset] = f"{name}.{counts[name]}" if counts[name] > 1 else name
        files: dict[int, AtomicFile] = {}
        with ExitStack() as stack:
            for entry, piece in self._iter_pieces(source, entries):
                if entry.offset not in files:
                    path = stem.with_name(f"{stem.name}.{number}.{names[entry.offset]}{suffix_of(piece)}")
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
