"""The files of a split, checked: libraries that another tool has split with units missing or under wrong indices."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.wrappers import is_host_file
from rocwheel.binary.kpack.markers import SplitLibrary, read_split_library
from rocwheel.binary.kpack.write import FileSink, Storing, recompress_archive, select_entries
from rocwheel.core.errors import InputError
from rocwheel.core.patch import write_patch
from rocwheel.core.reading import FileRange
from rocwheel.core.scratch import no_room, open_temporary, path_of
from rocwheel.core.workers import convert_all, open_workers
from rocwheel.device.reading.images import require_sound_image
from rocwheel.device.splitting.files import NamedFile
from rocwheel.device.splitting.joining.check_indices import IndexCheck, check_indices
from rocwheel.device.splitting.joining.find_code import archives_of, needs_archives
from rocwheel.device.splitting.joining.join_library import plan_join
from rocwheel.device.splitting.joining.library import plan_library_join
from rocwheel.device.splitting.joining.plan_joins import read_archive_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from rocwheel.device.splitting.joining.find_code import ArchiveFile

__all__ = ["CheckedFiles", "checked_files"]


class CheckedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a tree, with libraries that were mended in place of the old ones, and what was found wrong."""

    files: tuple[NamedFile, ...]
    warnings: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()
    """The libraries that were mended, by their paths."""


class _Fault(msgspec.Struct, frozen=True):
    file: NamedFile
    library: SplitLibrary
    check: IndexCheck


@contextmanager
def checked_files(files: Sequence[NamedFile], subject: str, *, mend: bool) -> Iterator[CheckedFiles]:
    """Yield ``files`` and what is wrong with the libraries among them that are split already.

    With ``mend``, such libraries are joined, in nameless files while the block lasts, to be split again; their
    code leaves archives, and archives that hold nothing else are left out.
    Raises `InputError`, or `ProblemsError` for several, for one that can't be mended since its code objects can't be
    told apart, and as `plan_library_join` and `plan_join` do.
    """
    archives = [archive for found in convert_all(subject, read_archive_file, files) for archive in found]
    libraries = [found for libraries in convert_all(subject, _read_library, files) for found in libraries]
    lost = tuple(text for file, library in libraries for text in _lost_archives(file, library, archives))
    found = convert_all(subject, lambda pair: _find_fault(*pair, archives), libraries)
    faults = [fault for fault in found if not fault.check.is_sound]
    if not mend:
        texts = (text for fault in faults for text in fault.check.texts())
        yield CheckedFiles(files=tuple(files), warnings=(*lost, *texts))
        return
    with ExitStack() as stack:
        joined = convert_all(subject, lambda fault: _joined(fault, archives, stack), faults)
        names = {unit.marker.kernel_name for fault in faults for unit in fault.library.units}
        replaced = {file.path: file for file in joined}
        gone = {file.path for file in archives if {entry.binary for entry in file.archive.entries} <= names}
        others = [file for file in archives if file.path not in gone]
        parts = convert_all(subject, lambda file: _without(file, names, stack), others)
        replaced |= {file.path: file for found in parts for file in found}
        kept = tuple(replaced.get(file.path, file) for file in files if file.path not in gone)
        yield CheckedFiles(files=kept, warnings=lost, mended=tuple(file.path for file in joined))


def _without(file: ArchiveFile, names: Collection[str], stack: ExitStack) -> list[NamedFile]:
    """Return an archive without code of the libraries ``names``, in a nameless file; none if it has none of it."""
    part = select_entries(file.archive, [entry for entry in file.archive.entries if entry.binary not in names])
    if len(part.entries) == len(file.archive.entries):
        return []
    storing = Storing(part.scheme)
    try:
        made = stack.enter_context(open_temporary(buffering=-1))
        with file.content.view() as data, open_workers(1) as executor:
            recompress_archive(data, part, FileSink(made), storing, executor)
        made.flush()
        size = made.seek(0, 2)
    except OSError as e:
        raise no_room(file.archive.name, "what is left of it", e) from e
    return [NamedFile(file.path, FileRange(path_of(made), 0, size), file.archive.name)]


def _read_library(file: NamedFile) -> list[tuple[NamedFile, SplitLibrary]]:
    with file.content.view() as data:
        require_sound_image(data, name=file.name)
        library = read_split_library(data, name=file.name) if is_host_file(data) else None
    return [] if library is None else [(file, library)]


def _lost_archives(file: NamedFile, library: SplitLibrary, archives: Sequence[ArchiveFile]) -> Iterator[str]:
    """Yield what markers of a library lead nowhere, where some of its code ought to be."""
    lost = (unit for unit in library.units if needs_archives(unit) and not archives_of(file.path, unit, archives))
    paths = dict.fromkeys(path for unit in lost for path in unit.marker.search_paths)
    if paths:
        yield f"{file.name}: was split before, and none of these archives of its code is there: {', '.join(paths)}"


def _find_fault(file: NamedFile, library: SplitLibrary, archives: Sequence[ArchiveFile]) -> _Fault:
    return _Fault(file, library, check_indices(file.path, library, archives, name=file.name))


def _joined(fault: _Fault, archives: Sequence[ArchiveFile], stack: ExitStack) -> NamedFile:
    """Return the library with its code, in a nameless file that ``stack`` closes."""
    path, name = fault.file.path, fault.file.name
    if not fault.check.can_be_mended:
        found = f"units are missing from {', '.join(fault.check.doubtful)}, and indices in it may be wrong"
        expected = "an archive with all units, and kernels of different names in each"
        raise InputError(name, found, expected=expected, remedy="Leave out --mend, or split the original again.")
    join = plan_library_join(path, fault.library, archives, renumbered=fault.check.renumbered)
    with fault.file.content.view() as data, plan_join(data, join.units, join.links, name=name) as patch:
        try:
            made = stack.enter_context(open_temporary(buffering=-1))
            write_patch(made, data, patch)
            made.flush()
        except OSError as e:
            raise no_room(name, "the library with its code", e) from e
    return NamedFile(path, FileRange(path_of(made), 0, patch.size), fault.file.name)
