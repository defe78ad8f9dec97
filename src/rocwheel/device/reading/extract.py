"""Taking code objects out of files, for a GPU, by the rule of exact names or by that of a runtime."""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import ExitStack
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from rocwheel.binary.bundles.compressed import RAW_SIZE_LIMIT, WrongHashError
from rocwheel.binary.bundles.device_code import iter_code_sources
from rocwheel.binary.bundles.sequence import iter_entries, require_size
from rocwheel.binary.code_objects import Place, is_code_object, read_code_object
from rocwheel.binary.kind import is_thin_archive
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.reading import FileRange, iter_pieces
from rocwheel.core.workers import attempt_all, convert_all, raise_all
from rocwheel.core.writing import atomic_file
from rocwheel.device.reading.choose_code import CodeChoice
from rocwheel.device.reading.extraction import ExtractedCode, MatchRule, placed, staging, suffix_of
from rocwheel.device.reading.kpack.code import open_kpack_code
from rocwheel.device.reading.kpack.extract import require_archives, write_stored
from rocwheel.device.reading.kpack.given_archives import GivenArchives, is_named_archive
from rocwheel.targets.spelling.spellings import file_name_spelling
from rocwheel.wheels.binaries import Binary, find_all_binaries, is_wheel
from rocwheel.wheels.zip_directory import outside_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.binary.bundles.device_code import CodeSource
    from rocwheel.binary.bundles.plain import BundleEntry
    from rocwheel.binary.code_objects import TargetId
    from rocwheel.core.reading import Data
    from rocwheel.core.writing import AtomicFile
    from rocwheel.device.reading.kpack.code import KpackCode

__all__ = ["extract_code"]

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
    """Write the code of a source, or of several, for each of ``targets`` (for all, if there are none) to ``dest_dir``.

    Files are named after the source, the number of the bundle and the target of the entry; of several for one target,
    the second and later ones have their number, too. The images of an object file, and a code object by itself, count
    as a bundle; in a static library, bundles are numbered through, and so are the keys of a kpack archive and the
    wrappers of a split library, whose archives are found from where it is. Compressed bundles are streamed, each once.
    Of a folder or a wheel, every file with device code is taken, into folders as there; files that have code for none
    of ``targets`` are passed over, if others have some. Split libraries get the code of the archives in all that is
    given, which then don't come by themselves.
    Raises `InputError` when there is no device code or it is damaged, when a bundle decompresses to more than
    ``limit`` bytes or its hash is wrong (a warning in the log, with ``accept_wrong_hash``), when bundles have no code
    for a target (`ProblemsError` for several), unless ``allow_missing``, and `WorkError` when writing fails. The files
    appear when all are whole, so that an error leaves none.
    """
    choosing = CodeChoice(targets, rule, allow_missing=allow_missing)
    paths = [sources] if isinstance(sources, Path) else [*sources]
    binaries = _archives_last(find_all_binaries(paths))
    source = paths[0]
    with staging(dest_dir, source.name) as folder:
        writer = _Writer(folder, limit, GivenArchives(binaries), accept_wrong_hash=accept_wrong_hash)
        codes = convert_all(str(source), lambda found: writer.write_file(found, choosing), binaries)
        if not choosing.has_code:
            raise_all(str(source), writer.unfollowed)
            raise _no_code(source)
        if not any(codes):
            raise_all(str(source), choosing.passed_over)
        return placed([code for group in codes for code in group], folder, dest_dir)


def _archives_last(binaries: Iterable[Binary | InputError]) -> list[Binary | InputError]:
    """Return archives behind the libraries whose code they hold."""
    return sorted(binaries, key=lambda found: not isinstance(found, InputError) and is_named_archive(found))


def _no_code(source: Path) -> InputError:
    kinds = "a fat binary, a file of bundles, a kpack archive, a code object, an object file or a static library"
    if source.is_dir() or is_wheel(source):
        return InputError(source, "no device code for AMD GPUs", expected=f"{kinds} in it")
    with FileRange.whole(source).view() as data:
        if is_code_object(data):
            flags = read_code_object(data, place=Place(str(source))).flags
            found = f"a code object whose flags {flags:#x} name no processor"
            return InputError(source, found, expected="one for a processor that is known")
        found = "a thin archive" if is_thin_archive(data) else "no device code for AMD GPUs"
    return InputError(source, found, expected=kinds)


class _Writer:
    """Writes code to files in ``folder``, named after the files it is from."""

    def __init__(self, folder: Path, limit: int, given: GivenArchives, *, accept_wrong_hash: bool) -> None:
        self.folder, self.limit, self.given = folder, limit, given
        self.accept_wrong_hash = accept_wrong_hash
        self.unfollowed: list[RocwheelError] = []
        """What is said of split libraries none of whose archives is there."""
        self._stems: dict[Path, str] = {}
        self._followed: dict[str, set[str]] = {}
        """By archive, the binaries whose code was taken out of it already."""

    def write_file(self, found: Binary | InputError, choosing: CodeChoice) -> list[ExtractedCode]:
        """Write the code of a binary that is chosen, each bundle in one pass."""
        if isinstance(found, InputError):
            raise found
        if reason := outside_reason(found.place) if found.place else "":
            raise InputError(found.name, reason, expected="a name below the folder of the wheel")
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
            self._note(kpack)
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

    def _note(self, library: KpackCode) -> None:
        binaries = {unit.key.rpartition("#")[0] for unit in library.units}
        for archive in library.archives:
            self._followed.setdefault(str(Path(archive.name).resolve()), set()).update(binaries)

    def _is_followed(self, code: KpackCode) -> bool:
        """Return whether an archive holds only what libraries have led to."""
        [archive] = code.archives
        known = self._followed.get(str(Path(archive.name).resolve()), set())
        return {entry.binary for entry in archive.entries} <= known

    def _claim(self, stem: Path, name: str, is_written: bool) -> None:
        """Raise `InputError` where the code of two files would be written under one name."""
        if is_written and self._stems.setdefault(stem, name) != name:
            found = f"its code would be written over that of {self._stems[stem]}"
            raise InputError(name, found, remedy="Extract from one at a time.")

    def _write(
        self, stem: Path, number: int, source: CodeSource, entries: Sequence[BundleEntry]
    ) -> list[ExtractedCode]:
        names = _names(entries)
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


def _names(entries: Sequence[BundleEntry]) -> dict[int, str]:
    """Name the entry at each offset by its target."""
    names, counts = {}, Counter[str]()
    for entry in entries:
        assert entry.target is not None
        name = file_name_spelling(entry.target)
        counts[name] += 1
        names[entry.offset] = f"{name}.{counts[name]}" if counts[name] > 1 else name
    return names
