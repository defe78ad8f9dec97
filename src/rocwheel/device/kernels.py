"""Lists the facts that compilers record for each kernel in a code object: its name, registers, memory, and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.compressed import RAW_SIZE_LIMIT, WrongHashError
from rocwheel.binary.bundles.device_code import iter_code_sources
from rocwheel.binary.bundles.sequence import require_size
from rocwheel.binary.code_objects import CodePlace, is_code_object, read_code_object
from rocwheel.binary.kernel_metadata import kernel_symbols, read_metadata
from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import release_pages
from rocwheel.device.device_facts import iter_payloads
from rocwheel.device.kpack_code import CodeUnit, each_once, find_inconsistencies, open_kpack_code
from rocwheel.wheels.binaries import Binary, find_all_binaries, read_found, tracked_binaries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rocwheel.binary.bundles.device_code import CodeSource
    from rocwheel.binary.code_objects import CodeObject
    from rocwheel.binary.kernel_metadata import Kernel
    from rocwheel.core.reading import Data

_KINDS = "a fat binary, bundles, a code object, an archive, a wheel, or a folder"
_VERSION_OF_YAML = 2
_YAML = "code object version 2 describes kernels in YAML, which isn't supported; the kernel names are from the symbols"


class KernelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel and its requirements; sizes are in bytes. Values that its code object doesn't record are `None`.

    The field names are shortened from https://llvm.org/docs/AMDGPUUsage.html#code-object-metadata.
    """

    name: str
    symbol: str = ""
    vgprs: int | None = None
    agprs: int | None = None
    sgprs: int | None = None
    vgpr_spills: int | None = None
    sgpr_spills: int | None = None
    lds: int | None = None
    """The declared group segment size; a launch can add more."""
    scratch: int | None = None
    """The private segment size of one work-item."""
    has_dynamic_stack: bool = False
    """Whether the kernel may use more scratch memory than it declares."""
    kernarg: int | None = None
    wavefront: int | None = None
    max_workgroup: int | None = None


class CodeKernels(msgspec.Struct, frozen=True, kw_only=True):
    """The kernels in one code object in ``file``, such as ``wheel!member`` or ``archive(member)``."""

    file: str
    bundle: int | None
    """The number of the bundle in the file, or `None` for code outside bundles."""
    target: str
    version: int
    """The code object version."""
    kernels: tuple[KernelFacts, ...]


class KernelListing(msgspec.Struct, frozen=True):
    """The kernels in all code objects of a file or wheel, and the problems with unreadable or unreliable parts."""

    codes: tuple[CodeKernels, ...]
    problems: tuple[str, ...]


def list_kernels(path: Path, *more: Path, limit: int = RAW_SIZE_LIMIT, progress: Progress = SILENT) -> KernelListing:
    """List the kernels in every code object in files, wheels, and folders, in file order.

    Bundles and wheel members larger than ``limit`` bytes are reported as problems, and so are damaged code objects. If
    there are several files, damaged files are also reported as problems. Raises `InputError` for a single damaged file,
    and if no file has device code.
    """
    lister = _Lister(limit, is_single=not more)
    binaries = tracked_binaries(list(find_all_binaries((path, *more))), "reading", progress)
    for name, error in read_found(binaries, lister.add_file, limit=limit):
        if error and not more and name == str(path):
            raise error
        lister.problems += [str(error)] if error else []
    if not lister.seen and not lister.problems:
        raise InputError(path, "no device code", expected=_KINDS)
    return KernelListing(tuple(lister.codes), tuple(lister.problems))


class _Lister:
    def __init__(self, limit: int, *, is_single: bool) -> None:
        self.limit, self.is_single = limit, is_single
        self.seen = 0
        self.codes: list[CodeKernels] = []
        self.problems: list[str] = []

    def add_file(self, data: Data, found: Binary) -> None:
        """Add the code objects in a file; raise `InputError` for damage outside the code objects."""
        # In a folder or a wheel, archives are found as separate files.
        folder = None if found.place or not self.is_single else found.folder
        with open_kpack_code(data, name=found.name, folder=folder) as kpack:
            if kpack is not None:
                self.problems += find_inconsistencies(found.name, kpack) if folder else ()
                for number, unit in enumerate(kpack.units):
                    self._add_unit(number, unit)
                return
        for source in iter_code_sources(data, name=found.name):
            self.add(source)
            release_pages(data)

    def _add_unit(self, number: int, unit: CodeUnit) -> None:
        """Add the code objects under one key in an archive, or for one wrapper in a split library."""
        self.seen += 1
        for stored in each_once(unit.codes):
            place = CodePlace(stored.archive.name, stored.entry.offset, number)
            try:
                payload = stored.read(self.limit)
                if is_code_object(payload):
                    self._add_code(stored.entry.target, payload, place)
            except InputError as e:
                self.problems.append(str(e))

    def add(self, source: CodeSource) -> None:
        """Add the code objects in a bundle, or other code that is represented as a bundle."""
        self.seen += 1
        try:
            require_size(source.bundle, self.limit)
            for entry, payload in iter_payloads(source.view, source.bundle):
                if is_code_object(payload):
                    self._add_code(str(entry.target), payload, source.bundle.place)
        except WrongHashError as e:
            self.problems.append(f"{source.bundle.place}: {e.found}")
        except InputError as e:
            self.problems.append(str(e))

    def _add_code(self, target: str, payload: Data, place: CodePlace) -> None:
        try:
            code = read_code_object(payload, place=place)
            kernels = tuple(_read_kernels(payload, code, place))
        except InputError as e:
            self.problems.append(f"{e.source}: the code for {target}: {e.found}")
            return
        if code.version == _VERSION_OF_YAML:
            self.problems.append(f"{place}: the code for {target}: {_YAML}")
        self.codes.append(
            CodeKernels(file=place.name, bundle=place.bundle, target=target, version=code.version, kernels=kernels)
        )


def _read_kernels(data: Data, code: CodeObject, place: CodePlace) -> Iterator[KernelFacts]:
    if code.version == _VERSION_OF_YAML:
        for name in kernel_symbols(data, place=place) or ():
            yield KernelFacts(name=name, symbol=name)
        return
    for note in read_metadata(data, code, place=place):
        yield from map(_facts, note.kernels)


def _facts(kernel: Kernel) -> KernelFacts:
    return KernelFacts(
        name=kernel.name,
        symbol=kernel.symbol,
        vgprs=kernel.vgpr_count,
        agprs=kernel.agpr_count,
        sgprs=kernel.sgpr_count,
        vgpr_spills=kernel.vgpr_spill_count,
        sgpr_spills=kernel.sgpr_spill_count,
        lds=kernel.group_segment_fixed_size,
        scratch=kernel.private_segment_fixed_size,
        has_dynamic_stack=kernel.uses_dynamic_stack,
        kernarg=kernel.kernarg_segment_size,
        wavefront=kernel.wavefront_size,
        max_workgroup=kernel.max_flat_workgroup_size,
    )
