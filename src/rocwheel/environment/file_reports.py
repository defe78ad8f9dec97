"""Reports on device code, and on Windows DLLs and programs, for the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.binary.bounded_bytes import viewing
from rocwheel.binary.bundles.device_code import read_device_code
from rocwheel.binary.bundles.sequence import iter_entry
from rocwheel.binary.bundles.wrappers import PE_MARKER_NAMES
from rocwheel.binary.code_objects import CodePlace, is_code_object, read_code_object
from rocwheel.binary.elf.facts import is_linker, read_compilers
from rocwheel.binary.kernel_metadata import TARGET_KEY, iter_metadata_notes
from rocwheel.binary.kind import is_kpack
from rocwheel.binary.kpack.archive import KpackArchive, KpackError, read_archive
from rocwheel.binary.kpack.markers import SplitUnit, read_split_library
from rocwheel.binary.pe.facts import Pe, read_pe
from rocwheel.binary.pe.header import AMD64, PeBytes, PeError, read_identity
from rocwheel.binary.pe.layout import LayoutFault, find_layout_faults
from rocwheel.core.errors import InputError
from rocwheel.core.reading import join_data, load, release_pages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.binary.bundles.sequence import Bundle
    from rocwheel.binary.code_objects import CodeObject
    from rocwheel.core.reading import Data


_DEEP_LIMIT = 64 << 20
_FIRST_VERSION_WITH_TARGET = 4


class BundleReport(msgspec.Struct, frozen=True):
    """The targets of the code in a bundle, in order. Sizes are in bytes."""

    targets: tuple[str, ...]
    size: int
    is_compressed: bool


class MetadataFault(msgspec.Struct, frozen=True):
    """A fault in kernel metadata. ``found`` completes a sentence that begins with the file.

    ``facts`` distinguish the fault from other faults.
    """

    found: str
    facts: tuple[str, ...]


class DeviceReport(msgspec.Struct, frozen=True):
    """The device code of one file."""

    bundles: tuple[BundleReport, ...] = ()
    targets: tuple[str, ...] = ()
    """All distinct targets."""
    versions: tuple[int, ...] = ()
    """The sorted code object versions. Compressed bundles are included only if they decompress to at most 64 MiB."""
    faults: tuple[MetadataFault, ...] = ()
    compilers: tuple[tuple[str, ...], ...] = ()
    """The compilers in the ``.comment`` sections of the code objects in ``versions``. Each set occurs only once.

    A code object that was linked with device libraries also lists the compiler of those libraries.
    """
    units: tuple[SplitUnit, ...] = ()
    """The references from a split file to kpack archives."""
    archive: KpackArchive | None = None
    """The contents of the file if it is a kpack archive."""
    kpack_fault: str = ""
    """The reason that runtimes can't find a file's archives, based on the data in the file."""


def read_device_report(data: Data, *, name: str, headers_only: bool = False) -> DeviceReport | None:
    """Return a report on the device code in the file ``name``, or `None` if the file has no device code.

    With ``headers_only``, bundles aren't decompressed, so versions, faults, and compilers stay empty. Raises
    `InputError` for damaged device code in the parts that are read.
    """
    if is_kpack(data):
        archive = read_archive(data, name=name)
        return DeviceReport(targets=archive.targets, archive=archive)
    code = read_device_code(data, name=name)
    if code is None:
        return None
    if (one := code.code_object) is not None:
        return DeviceReport(
            targets=(str(one.target),) if one.target else (),
            versions=(one.version,),
            faults=tuple(_faults(data, one, CodePlace(name))),
            compilers=tuple(_compilers(data, name)),
        )
    view, found, bundles = code.view(data), _CodeObjects(name), []
    for bundle in code.iter_bundles(data):
        bundles.append(BundleReport(tuple(map(str, bundle.targets)), bundle.size, bundle.compressed is not None))
        if not headers_only:
            found.read(view, bundle)
        release_pages(data)
    units, kpack_fault = _read_units(data, name) if code.fat_binary and code.fat_binary.is_kpacked else ((), "")
    targets = tuple(dict.fromkeys(target for bundle in bundles for target in bundle.targets))
    return DeviceReport(
        tuple(bundles),
        targets,
        tuple(sorted(found.versions)),
        tuple(dict.fromkeys(found.faults)),
        compilers=tuple(dict.fromkeys(found.compilers)),
        units=units,
        kpack_fault=kpack_fault,
    )


def _read_units(data: Data, name: str) -> tuple[tuple[SplitUnit, ...], str]:
    try:
        split = read_split_library(data, name=name)
    except KpackError as e:
        return (), e.fault
    return (split.units if split else ()), ""


class _CodeObjects:
    """Collects data about the code objects in a file, bundle by bundle."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.versions: set[int] = set()
        self.faults: list[MetadataFault] = []
        self.compilers: list[tuple[str, ...]] = []

    def read(self, view: Data, bundle: Bundle) -> None:
        """Read the code objects in a bundle."""
        for payload in _payloads(view, bundle):
            code = read_code_object(payload, place=bundle.place)
            self.versions.add(code.version)
            self.faults += _faults(payload, code, bundle.place)
            self.compilers += _compilers(payload, self.name)


def _payloads(view: Data, bundle: Bundle) -> Iterator[Data]:
    if bundle.compressed is not None and bundle.raw_size > _DEEP_LIMIT:
        return
    for entry in bundle.plain.device_entries:
        pieces = list(iter_entry(view, bundle, entry))
        payload = pieces[0] if len(pieces) == 1 else memoryview(join_data(pieces))
        if is_code_object(payload):
            yield payload


def _compilers(payload: Data, name: str) -> list[tuple[str, ...]]:
    """Return the compilers in a code object's ``.comment`` section, except for the linker."""
    try:
        found = sorted(text for text in read_compilers(payload, name=name) if not is_linker(text))
    except InputError:
        return []
    return [tuple(found)] if found else []


def _faults(data: Data, code: CodeObject, place: CodePlace) -> Iterator[MetadataFault]:
    for start, stop in iter_metadata_notes(data, code, place):
        try:
            note = msgspec.msgpack.decode(load(data[start:stop]))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
            yield MetadataFault(f"has a metadata note that isn't MessagePack ({e})", ("note",))
            continue
        if not isinstance(note, dict):
            yield MetadataFault("has a metadata note that isn't a map", ("map",))
            continue
        if TARGET_KEY not in note and code.version >= _FIRST_VERSION_WITH_TARGET:
            yield _no_target(code)
        yield from _ill_names(note)


def _no_target(code: CodeObject) -> MetadataFault:
    """Return the fault for a note that has no target. If the ELF header also has no target, the target is unknown."""
    found = f"has a metadata note without {TARGET_KEY}"
    if code.target is None:
        return MetadataFault(f"{found}, and no known processor in its ELF header", (TARGET_KEY, "e_flags"))
    return MetadataFault(found, (TARGET_KEY,))


def _ill_names(note: dict[Any, Any]) -> Iterator[MetadataFault]:
    """Yield the names in kernel metadata that aren't strings, because such names make the runtime abort.

    YAML reads the plain words y, n, yes, no, on, and off as booleans, null and ~ as nil, and 1 as an integer.
    """
    kernels = note.get("amdhsa.kernels")
    if not isinstance(kernels, list | None) or not all(isinstance(kernel, dict) for kernel in kernels or ()):
        yield MetadataFault("has a metadata note whose amdhsa.kernels isn't a list of maps", ("kernels",))
        return
    for number, kernel in enumerate(kernels or ()):
        name, arguments = kernel.get(".name"), kernel.get(".args")
        for key in (".name", ".symbol"):
            if key in kernel and not isinstance(kernel[key], str):
                found = f"has a kernel, number {number}, whose {key} is {_type_word(kernel[key])}, not a string"
                yield MetadataFault(found, (str(number), key))
        if not isinstance(arguments, list | None) or not all(isinstance(found, dict) for found in arguments or ()):
            yield MetadataFault(f"has a kernel {name!r} whose .args isn't a list of maps", (str(name), ".args"))
            continue
        for index, argument in enumerate(arguments or ()):
            for key in (".name", ".type_name"):
                if key in argument and not isinstance(argument[key], str):
                    what = f"{key} of argument {index} is {_type_word(argument[key])}, not a string"
                    yield MetadataFault(f"has a kernel {name!r} in which {what}", (str(name), str(index), key))


def _type_word(value: object) -> str:
    words = {bool: "a boolean", int: "an integer", float: "a float", type(None): "nil", list: "a list", dict: "a map"}
    return words.get(type(value), "of another type")


_SUFFIXES = (".dll", ".exe", ".pyd")


class PeReport(msgspec.Struct, frozen=True):
    """A DLL or program, for any machine."""

    machine: int
    """The machine's number in the COFF header."""
    is_dll: bool
    pe: Pe | None = None
    """The facts about the file, or `None` for a 32-bit file, which no ROCm program loads."""
    faults: tuple[LayoutFault, ...] = ()
    """Violations of the format's layout rules."""
    archives: tuple[str, ...] = ()
    """The distinct paths of the kpack archives with its device code, relative to its folder."""
    kpack_fault: str = ""
    """The reason that runtimes can't find the archives, based on the data in the file."""
    is_managed: bool = False
    """Whether the file has .NET code, which runs on any system."""

    @property
    def is_amd64(self) -> bool:
        """Whether the file is for x86-64."""
        return self.machine == AMD64

    @property
    def imports(self) -> tuple[str, ...]:
        """The distinct names of the DLLs that are loaded with the file.

        Loaders skip a DLL from which no function is imported.
        """
        return tuple(dict.fromkeys(dll.name for dll in self.pe.imports if dll.functions)) if self.pe else ()

    @property
    def delay_imports(self) -> tuple[str, ...]:
        """The DLLs that are loaded when one of their functions is first called, except for those in `imports`."""
        names = dict.fromkeys(dll.name for dll in self.pe.delay_imports) if self.pe else {}
        at_once = {name.lower() for name in self.imports}
        return tuple(name for name in names if name.lower() not in at_once)


def read_pe_report(data: Data, *, name: str, whole: bool = True) -> PeReport | None:
    """Return the report on the file ``name``, which begins with "MZ", or `None` for a DOS program or other data.

    Without ``whole``, only headers and tables are read. The checksum and signature are not compared with the file's
    bytes. Raises `PeError` for a damaged file with the name of a DLL or program.
    """
    try:
        return _read(data, name, whole=whole)
    except PeError:
        if name.lower().endswith(_SUFFIXES):
            raise
        return None


def _read(data: Data, name: str, *, whole: bool) -> PeReport:
    with viewing(data) as view:
        identity = read_identity(PeBytes(view, name))
    if not identity.is_64_bit:
        return PeReport(identity.machine, identity.is_dll, is_managed=identity.is_managed)
    pe = read_pe(data, name=name)
    faults = find_layout_faults(data, pe, name=name, whole=whole)
    archives, kpack_fault = _read_archives(data, pe, name)
    return PeReport(identity.machine, identity.is_dll, pe, faults, archives, kpack_fault, identity.is_managed)


def _read_archives(data: Data, pe: Pe, name: str) -> tuple[tuple[str, ...], str]:
    """Return the paths of a file's archives, and any fault in the data that contains these paths."""
    try:
        split = read_split_library(data, name=name)
    except KpackError as e:
        return (), e.fault
    except InputError:
        # The device code reader reports faults in the code itself.
        return (), ""
    if split is not None:
        return tuple(dict.fromkeys(path for unit in split.units for path in unit.marker.search_paths)), ""
    marked = [section.name for section in pe.sections if section.name in PE_MARKER_NAMES and section.file_size]
    return (), f"has a section {marked[0]}, but no wrapper that points to a kpack archive" if marked else ""
