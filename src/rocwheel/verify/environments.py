"""Compares the files in an installed environment with each distribution's RECORD."""

from __future__ import annotations

import os
import stat
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from rocwheel.core.decoding import decode_json
from rocwheel.core.hashing import hash_rest
from rocwheel.core.reading import open_unchanged, read_regular
from rocwheel.core.workers import serialized
from rocwheel.environment.read_tree import find_prefix
from rocwheel.verify.files import Fault, Verified, reading_faults, row_fault, size_of
from rocwheel.wheels.record import RecordEntry, parse_record

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterator, Sequence
    from concurrent.futures import Executor

    from rocwheel.core.progress import Progress

_OWN = "_rocm_*"
_BYTECODE = "__pycache__"
_STATE = ".expanded.json"
_NOTES = ".device_links"
"""The notes that ``rocm_sdk`` writes in the tree of development files.

They identify the archive from which the tree was expanded and, for each folder, list the linked files from device
packages. RECORD lists the tree as a whole.
"""


class AddedFiles(msgspec.Struct, frozen=True):
    """The files that no RECORD lists."""

    extra: tuple[Path, ...] = ()
    """The files whose origin is unknown."""
    linked: dict[Path, Path] = {}
    """The files in device packages that are the targets of links in the development tree, keyed by the link.

    RECORD lists them.
    """
    unchecked: int = 0
    """The number of files that ``rocm_sdk`` itself wrote, plus the number of links to removed files."""


def find_added(site: Path, listed: Container[Path]) -> AddedFiles:
    """Return the files in the folders of ROCm's packages that aren't in ``listed``, except for bytecode.

    A listed folder is a tree that is expanded on demand, in which ``rocm_sdk`` may have created files. Raises `OSError`
    if a folder can't be read.
    """
    folders = [Path(os.path.normpath(path)) for path in sorted(site.glob(_OWN))]
    found = [_find_in(folder, folders, listed) for folder in folders]
    return AddedFiles(
        tuple(path for one in found for path in one.extra),
        {path: source for one in found for path, source in one.linked.items()},
        sum(one.unchecked for one in found),
    )


def _find_in(folder: Path, folders: Sequence[Path], listed: Container[Path]) -> AddedFiles:
    files = list(_files_below(folder))
    unlisted = [path for path in files if path not in listed]
    if folder not in listed:
        return AddedFiles(tuple(unlisted))
    if len(unlisted) == len(files):  # the tree is being created, and its files are added to RECORD last
        return AddedFiles(unchecked=len(files))
    noted = frozenset(path for note in (folder / _NOTES).glob("*.json") for path in _read_note(note))
    own = [path for path in unlisted if _is_of_rocm_sdk(path.relative_to(folder).as_posix(), noted)]
    linked = {path: source for path in own if (source := _source_of(path, folder, folders, listed))}
    return AddedFiles(tuple(path for path in unlisted if path not in own), linked, len(own) - len(linked))


def _source_of(link: Path, tree: Path, folders: Sequence[Path], listed: Container[Path]) -> Path | None:
    """Return the file in a device package that has the same path as a link in the tree."""
    places = (folder / link.relative_to(tree) for folder in folders if folder != tree)
    return next((place for place in places if place in listed), None)


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield files and symbolic links. If the path itself is a file or a link to a folder, yield the path."""
    if folder.is_symlink() or not folder.is_dir():
        yield folder
        return
    for root, folders, files in os.walk(folder, onerror=_raise):
        folders[:] = sorted(name for name in folders if name != _BYTECODE)
        links = [name for name in folders if Path(root, name).is_symlink()]
        yield from (Path(root, name) for name in sorted([*files, *links]))


def _raise(error: OSError) -> None:
    raise error


def _read_note(note: Path) -> tuple[str, ...]:
    """Return the recorded paths of links into device packages."""
    try:
        return decode_json(read_regular(note), tuple[str, ...])
    except (OSError, msgspec.DecodeError):
        return ()


def _is_of_rocm_sdk(name: str, noted: Collection[str]) -> bool:
    is_note = name.startswith(f"{_NOTES}/") and name.endswith((".json", ".json.new"))
    return is_note or name in noted or name in {_STATE, f"{_STATE}.new"}


_Rows: TypeAlias = "dict[Path, dict[tuple[str, str], RecordEntry]]"
"""The distinct rows of each file."""
_CODE = frozenset({".py", ".so"})
"""The extensions of files that interpreters load, for which installers and builds record hashes."""


class _Compared(msgspec.Struct, frozen=True):
    """The result for a file."""

    faults: list[Fault]
    size: int = 0
    """The number of hashed bytes."""
    is_unchecked: bool = False
    """Whether the file exists but no row has a hash for it."""


def verify_environment(path: Path, site: Path, executor: Executor, progress: Progress) -> Verified:
    """Compare the files in the environment at ``path``, whose packages are in ``site``, with RECORD.

    A file that several packages list is compared with all of its rows. Bytecode (which interpreters write), files
    outside the environment, and files without a hash aren't compared. In the folders of ROCm's packages, a file that no
    RECORD lists is a fault.
    """
    faults: list[Fault] = []
    rows, unchecked = _collect_rows(site, faults)
    added = find_added(site, rows)
    rows |= {link: rows[source] for link, source in added.linked.items() if not _is_same(link, source)}
    faults += [
        Fault("extra", str(path), "isn't in any RECORD", "only files that belong to packages") for path in added.extra
    ]
    unchecked += added.unchecked
    progress.begin(f"verifying {path}", sum(map(size_of, rows)))
    check = partial(_compare, advance=serialized(progress.advance))
    compared = list(executor.map(check, rows, (tuple(entries.values()) for entries in rows.values())))
    progress.end()
    faults += [fault for one in compared for fault in one.faults]
    unhashed = sum(one.is_unchecked for one in compared)
    size = sum(one.size for one in compared)
    return Verified(str(path), "environment", len(rows) - unhashed, size, tuple(faults), unchecked + unhashed)


def _collect_rows(site: Path, faults: list[Fault]) -> tuple[_Rows, int]:
    """Return the rows of all packages, keyed by file, and the number of rows that aren't compared."""
    rows: _Rows = {}
    unchecked = 0
    prefix = find_prefix(site)
    inside = os.path.abspath(prefix)  # noqa: PTH100
    for info in sorted(site.glob("*.dist-info")):
        if fault := _link_fault(info, prefix):
            faults.append(fault)
        for path, entry in _read_rows(info / "RECORD", site, faults):
            is_inside = Path(os.path.abspath(path)).is_relative_to(inside)  # noqa: PTH100 # symlinks are kept
            if is_inside and path.suffix != ".pyc":
                rows.setdefault(path, {}).setdefault((entry.hash, entry.size), entry)
            else:
                unchecked += 1
    return rows, unchecked


def _link_fault(info: Path, prefix: Path) -> Fault | None:
    """Return a fault for a ``.dist-info`` folder outside the environment. Its RECORD can change independently."""
    if not info.is_symlink() or Path(os.path.realpath(info)).is_relative_to(os.path.realpath(prefix)):
        return None
    return Fault("link", str(info), f"is a symlink to {os.path.realpath(info)}", "a folder in the environment")


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


def _read_rows(record: Path, site: Path, faults: list[Fault]) -> Iterator[tuple[Path, RecordEntry]]:
    """Yield the files that RECORD lists, except for RECORD itself, each with its row."""
    with reading_faults(str(record), faults):
        own = os.path.relpath(record, site)
        for entry in parse_record(read_regular(record), record):
            if entry.path != own and "\0" not in entry.path:
                yield Path(os.path.normpath(site / entry.path)), entry


def _compare(path: Path, entries: tuple[RecordEntry, ...], advance: Callable[[int], object]) -> _Compared:
    """Compare a file with its rows, and hash it once for each algorithm in the rows."""
    faults: list[Fault] = []
    place = str(path)
    with reading_faults(place, faults):
        status = path.stat()
        hashed = [entry for entry in entries if entry.hash]
        if not hashed:
            return _without_hash(path)
        if not stat.S_ISREG(status.st_mode):
            return _Compared([Fault("changed", place, "isn't a file", "a file")])
        with open_unchanged(path) as file:

            @cache
            def digest(algorithm: str) -> bytes:
                file.seek(0)
                return hash_rest(file, algorithm, advance)

            found = (row_fault(entry, place, status.st_size, digest) for entry in hashed)
            faults += [fault for fault in found if fault]
        return _Compared(faults, status.st_size)
    return _Compared(faults)


def _without_hash(path: Path) -> _Compared:
    """Return the result for an existing file whose row has no hash.

    Folders, symbolic links, and files that change during use have no hash. A code file must have a hash.
    """
    if path.suffix in _CODE and stat.S_ISREG(path.lstat().st_mode):
        return _Compared([Fault("unlisted", str(path), "has no hash in RECORD", "a sha256, sha384, or sha512 hash")])
    return _Compared([], is_unchecked=True)
