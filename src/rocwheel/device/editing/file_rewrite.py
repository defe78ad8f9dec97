"""The device code of one file, edited bundle by bundle with several workers, and written to an open file."""

from __future__ import annotations

from functools import partial
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, TypeAlias

from rocwheel.binary.bundles.compressed import find_inner_magic
from rocwheel.binary.bundles.runtimes import find_faults, find_runtime
from rocwheel.binary.bundles.wrappers import is_host_file
from rocwheel.binary.code_objects import NoRoomError, Place, is_code_object, read_code_object
from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.kind import is_ar_archive, is_elf, is_kpack, is_pe, is_thin_archive
from rocwheel.binary.kpack.markers import read_split_library
from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.pe.header import is_pe64
from rocwheel.binary.pe.rewrite import SignedFileError, write_edited_image
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.patch import write_patched
from rocwheel.core.reading import iter_pieces
from rocwheel.core.workers import open_workers
from rocwheel.device.editing.bundle import edit_code_object
from rocwheel.device.editing.kpack_rewrite import KpackRewrite
from rocwheel.device.editing.patch import iter_changes
from rocwheel.device.editing.places import BundlePlaces, list_places
from rocwheel.device.editing.rewrite_order import RewriteOrder, RewriteReport
from rocwheel.device.reading.images import is_signed_image, require_sound_image
from rocwheel.device.trimming.library import require_trimmable
from rocwheel.device.trimming.spool import spool_changes
from rocwheel.device.trimming.static_library import plan_archive_trim
from rocwheel.device.trimming.trim import plan_trim

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rocwheel.binary.bundles.device_code import DeviceCode
    from rocwheel.binary.bundles.runtimes import HipRuntime
    from rocwheel.binary.bundles.sequence import Bundle
    from rocwheel.binary.bundles.storage import BundleChange, BundleSlot
    from rocwheel.core.progress import Progress
    from rocwheel.core.reading import Data

    Editing: TypeAlias = Callable[[Data, DeviceCode, Sequence[BundleSlot]], Iterator[BundleChange]]

__all__ = ["FileRewrite", "is_binary"]


def is_binary(data: Data) -> bool:
    """Return whether a file is a binary, in which bundles have a place, and not just bundles or an archive of code."""
    return is_elf(data) or is_pe(data) or is_ar_archive(data)


class FileRewrite:
    """The rewriting of the file ``name``, whose bytes are ``data``.

    The constructor raises `InputError` when there is nothing to edit, and as `require_sound_image`, `list_places` and,
    before any bundle is edited, `require_trimmable` do.
    """

    def __init__(self, data: Data, name: str, order: RewriteOrder) -> None:
        self._data, self._name, self._order = data, name, order
        self._is_code_object = is_code_object(data)
        self._places: tuple[BundlePlaces, ...] = ()
        self._kpack = KpackRewrite(data, name, order) if is_kpack(data) else None
        if self._kpack is not None:
            return
        if self._is_code_object:
            self._require_editable()
            return
        require_sound_image(data, name=name)
        if order.trim:
            require_trimmable(data, name=name)
        self._places = list_places(data, name=name)
        if not self._places:
            _refuse_split_library(data, name)
            found = "a thin archive" if is_thin_archive(data) else "no bundles of device code"
            raise InputError(name, found, expected="a fat binary or a file of bundles")

    def write(self, file: IO[bytes], spool_folder: Path | None = None) -> RewriteReport:
        """Write the edited file and return what was done; where bundles move, they wait in a nameless file meanwhile.

        Raises `SignedFileError` where a signature would become void, also where the code has no room: more room would
        not help. Raises `InputError` as `edit_bundle`, `edit_code_object` and `plan_trim` do, and `OSError` when
        writing fails.
        """
        if self._kpack is not None:
            return self._kpack.write(file)
        if self._is_code_object:
            return self._write_code_object(file)
        return self._write_bundles(file, spool_folder)

    def _write_bundles(self, file: IO[bytes], spool_folder: Path | None) -> RewriteReport:
        order, data = self._order, self._data
        tally = _Tally(self._name, self._places, order.progress, looks_within=order.storage.check)
        with open_workers(order.jobs) as executor:
            runtime = _runtime_of(data, self._name) if not order.storage.rocm else None
            edited = partial(iter_changes, edit=order.edit, storage=order.storage, executor=executor, jobs=order.jobs)
            try:
                if order.trim:
                    trimmed = self._write_trimmed(file, tally, edited, spool_folder)
                else:
                    trimmed = self._write_in_place(file, tally, edited)
                tally.finish()
            except NoRoomError as e:
                if is_signed_image(data, name=self._name):
                    raise SignedFileError(self._name) from e
                raise
            finally:
                order.progress.end()
        warnings = _warnings(self._name, runtime, tally.written_versions, is_dll=is_pe64(data))
        return tally.report(trimmed, warnings, _faults(order.storage.rocm, runtime))

    def _require_editable(self) -> None:
        if self._order.edit is None or self._order.storage.compress or self._order.trim:
            expected = "bundles: only these can be compressed or trimmed"
            raise InputError(self._name, "a code object by itself", expected=expected)

    def _write_code_object(self, file: IO[bytes]) -> RewriteReport:
        place = Place(self._name)
        assert self._order.edit is not None
        code = read_code_object(self._data, place=place)
        edited = edit_code_object(self._data, code, self._order.edit, place=place)
        for buffer in edited or (self._data,):
            for piece in iter_pieces(buffer):
                file.write(piece)
        size = len(self._data)
        changed = int(edited is not None)
        return RewriteReport(path=self._name, bundles=0, changed=changed, size_before=size, size_after=size)

    def _write_in_place(self, file: IO[bytes], tally: _Tally, edited: Editing) -> int:
        """Write each change as it is made; return 0, as nothing is trimmed."""
        changes = ((place, tally.count(place, edited(place.data, place.code, place.slots))) for place in self._places)
        replacements = (new for place, made in changes for change in made for new in place.replacements(change))
        if is_pe64(self._data):
            write_edited_image(file, self._data, replacements, name=self._name)
        else:
            write_patched(file, self._data, replacements)
        if not is_ar_archive(self._data):
            file.truncate(self._places[0].patched_size(tally.last))
        return 0

    def _write_trimmed(self, file: IO[bytes], tally: _Tally, edited: Editing, spool_folder: Path | None) -> int:
        """Write the file without the pages that its bundles leave free; return how many bytes these are."""
        owners: list[int] = []

        def counted() -> Iterator[BundleChange]:
            for place in self._places:
                for change in tally.count(place, edited(place.data, place.code, place.slots)):
                    owners.append(place.base)
                    yield change

        changes: dict[int, list[BundleChange]] = {place.base: [] for place in self._places}
        spooled = spool_changes(counted(), spool_folder)  # one file for all members
        for base, change in zip(owners, spooled, strict=True):
            changes[base].append(change)
        patches = {
            place.base: plan_trim(place.data, name=place.code.name, changes=changes[place.base])
            for place in self._places
        }
        patch = plan_archive_trim(self._data, patches, name=self._name) if is_ar_archive(self._data) else patches[0]
        write_patched(file, self._data, patch.replacements, size=patch.size)
        return len(self._data) - patch.size


def _refuse_split_library(data: Data, name: str) -> None:
    split = read_split_library(data, name=name) if is_host_file(data) else None
    if split is not None:
        paths = dict.fromkeys(path for unit in split.units for path in unit.marker.search_paths)
        found = f"is a split library, whose code is in {', '.join(paths)}"
        remedy = "Give such an archive, or the folder that all are in."
        raise InputError(name, found, expected="a fat binary or a file of bundles", remedy=remedy)


def _runtime_of(data: Data, source: str) -> HipRuntime | None:
    if is_pe64(data):
        return find_runtime(read_pe(data, name=source).wanted)
    return find_runtime(read_elf(data, name=source).needed) if is_elf(data) else None


def _warnings(source: str, runtime: HipRuntime | None, versions: Iterable[int], *, is_dll: bool) -> tuple[str, ...]:
    if runtime is None or all(map(runtime.reads, versions)):
        return ()
    name = runtime.dll if is_dll else runtime.soname
    releases = f"{runtime.first} to {runtime.last}"
    found = f"needs {name}, the HIP runtime of ROCm {releases}, which doesn't read bundles compressed like this"
    return (f"{source}: {found}; use the result only with a later runtime",)


def _faults(rocm: str, runtime: HipRuntime | None) -> tuple[str, ...]:
    """Return the faults of packages of ``rocm`` and later, of ``runtime``, or of any where neither is known."""
    found = find_faults(runtime.first, runtime.last) if runtime else find_faults(rocm)
    return tuple(map(str, found))


def _has_inner_magic(place: BundlePlaces, bundle: Bundle) -> bool:
    view = place.code.view(place.data)
    return find_inner_magic(view[bundle.start : bundle.stop]) is not None


class _Tally:
    """Counts the changes of a file's bundles as they pass through."""

    def __init__(self, source: str, places: Sequence[BundlePlaces], progress: Progress, *, looks_within: bool) -> None:
        self.source, self.places, self.progress = source, places, progress
        bundles = {(place.base, slot.bundle.start): slot.bundle for place in places for slot in place.slots}
        self.bundles = len(bundles)
        self.size_before = self.size_after = sum(bundle.size for bundle in bundles.values())
        self.versions = {key: bundle.compressed.version for key, bundle in bundles.items() if bundle.compressed}
        self.changed = self.hosts_spelled = self.seen = 0
        self.written_versions: set[int] = set()
        self.inner_magics = {
            (place.base, slot.bundle.start)
            for place in places
            for slot in place.slots
            if looks_within and slot.bundle.compressed and _has_inner_magic(place, slot.bundle)
        }
        self.last: BundleChange | None = None
        progress.begin(f"rewriting {PurePath(source).name}", self.size_before)

    def count(self, place: BundlePlaces, changes: Iterable[BundleChange]) -> Iterator[BundleChange]:
        """Yield the changes of the bundles in ``place``, once counted."""
        for change in changes:
            self.seen += change.bundle.size
            self.progress.advance(change.bundle.size)
            self.size_after += change.size - change.bundle.size
            self.inner_magics.discard((place.base, change.bundle.start))
            if change.version is not None:
                if find_inner_magic(change.replacements[0].data) is not None:
                    self.inner_magics.add((place.base, change.bundle.start))
                self.versions[place.base, change.bundle.start] = change.version
                self.written_versions.add(change.version)
                self.hosts_spelled += change.bundle.plain.short_host is not None
            self.changed += 1
            self.last = change
            yield change

    def finish(self) -> None:
        """Tell of the bundles that stay as they are, too."""
        self.progress.advance(self.size_before - self.seen)

    def _magic_warnings(self) -> tuple[str, ...]:
        if not self.inner_magics:
            return ()
        bundles = count(len(self.inner_magics), "compressed bundle has", "compressed bundles have")
        return (f"{self.source}: {bundles} the bytes CCOB within, where some readers begin another bundle",)

    def report(self, trimmed: int, warnings: tuple[str, ...], faults: tuple[str, ...]) -> RewriteReport:
        """Return the sum of what was counted, with what else there is to report; ``faults`` if any is compressed."""
        return RewriteReport(
            path=self.source,
            bundles=self.bundles,
            changed=self.changed,
            size_before=self.size_before,
            size_after=self.size_after,
            versions=tuple(sorted(set(self.versions.values()))),
            warnings=(*warnings, *self._magic_warnings()),
            faults=faults if self.versions else (),
            trimmed=trimmed,
            hosts_spelled=self.hosts_spelled,
        )
