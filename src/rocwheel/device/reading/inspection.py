"""Facts about binaries wherever they are: a file, a folder, or a wheel, whose members are unpacked one at a time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.binary.bundles.compressed import RAW_SIZE_LIMIT
from rocwheel.binary.elf.facts import ElfKind, read_elf
from rocwheel.binary.kind import is_binary, is_coff_object, is_elf, is_pe, is_thin_archive
from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.pe.header import PeBytes, bits_of_pe, machine_name
from rocwheel.binary.pe.object_file import read_object_file
from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import Readers, Told
from rocwheel.device.reading.device_facts import DeviceFacts
from rocwheel.device.reading.facts import read_device_facts
from rocwheel.device.reading.kpack.given_archives import GivenArchives
from rocwheel.device.reading.payload_facts import Look
from rocwheel.device.reading.target_facts import summarize_targets
from rocwheel.wheels.binaries import Binary, find_all_binaries, tracked_binaries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from rocwheel.core.reading import Data

__all__ = ["ElfFacts", "FileFacts", "PeFacts", "file_document", "inspect_paths"]


_BITS_OF_OLD = 32


class ElfFacts(msgspec.Struct, frozen=True):
    """What is of use about a host ELF file."""

    kind: str
    machine: int
    soname: str | None
    needed: tuple[str, ...]
    rpath: str | None
    runpath: str | None
    build_id: str | None


class PeFacts(msgspec.Struct, frozen=True):
    """What is of use about a DLL or program of Windows."""

    kind: str
    """``DLL``, ``program`` or ``object file``.

    ``32-bit`` for the first two, of which nothing else is said: no ROCm program loads them.
    """
    machine: str = ""
    name: str | None = None
    """What it was called when it was linked, by its export table."""
    imports: tuple[str, ...] = ()
    """DLLs that are loaded with it."""
    delay_imports: tuple[str, ...] = ()
    """DLLs that are loaded when one of their functions is first called."""
    exports: int = 0
    """How many names it exports."""
    version: str | None = None
    """That of the file, by its resources: four numbers with dots."""
    is_signed: bool = False


class FileFacts(msgspec.Struct, frozen=True):
    """One binary: its path (``wheel!member`` in a wheel), size in bytes, and what it is; or the error that it gave."""

    path: str
    size: int
    """In bytes; 0 of a file that is not there or can't be asked."""
    elf: ElfFacts | None = None
    pe: PeFacts | None = None
    device: DeviceFacts | None = None
    error: InputError | None = None


def file_document(facts: FileFacts) -> dict[str, Any]:
    """Return the facts as JSON has them, device code with its targets summed up."""
    device: dict[str, Any] | None = None
    if facts.device:
        targets = summarize_targets(facts.device)
        device = {
            **msgspec.to_builtins(facts.device),
            "size": facts.device.size,
            "raw_size": facts.device.raw_size,
            "targets": msgspec.to_builtins(targets),
            "targets_in_all_bundles": [target.target for target in targets if not target.missing],
        }
    return {
        "path": facts.path,
        "size": facts.size,
        "elf": msgspec.to_builtins(facts.elf),
        "pe": msgspec.to_builtins(facts.pe),
        "error": str(facts.error) if facts.error else None,
        "device": device,
    }


def inspect_paths(
    paths: Iterable[Path],
    *,
    deep: bool = False,
    limit: int = RAW_SIZE_LIMIT,
    readers: Readers | None = None,
    progress: Progress = SILENT,
) -> Iterator[FileFacts]:
    """Yield the facts of every binary among ``paths``: files, folders with all that is below, and wheels.

    No member of a wheel that unpacks to more than ``limit`` bytes is read, nor, with ``deep``, a bundle that
    decompresses to more. A split library gets its code of the archives beside it, and of those in all that is given
    with it, as if folders and wheels were laid over each other. A path that can't be read, is damaged or is not a
    binary comes with its error; the rest follows. ``readers`` read, by default this thread, one file after the other.
    """
    binaries = list(find_all_binaries(paths))
    if readers is not None:
        binaries = [found if isinstance(found, InputError) else found.for_any_machine() for found in binaries]
    inspect = partial(_inspect, Look(deep=deep, limit=limit), GivenArchives(binaries))
    good = [found for found in binaries if not isinstance(found, InputError)]
    read = map(inspect, good) if readers is None else readers.map(inspect, good, _tell)
    for found in tracked_binaries(binaries, "inspecting", progress):
        yield FileFacts(str(found.source), 0, error=found) if isinstance(found, InputError) else next(read)


def _tell(binary: Binary) -> Told:
    return Told(binary.name, binary.size, binary.member.packed.path if binary.member else binary.name)


def _inspect(look: Look, archives: GivenArchives, binary: Binary) -> FileFacts:
    try:
        with binary.view(limit=look.limit) as data:
            if is_binary(data):
                return _read_facts(data, binary, look, archives)
            found = "a thin archive" if is_thin_archive(data) else "not a binary"
            expected = "an ELF or PE file, an archive, a bundle, a kpack archive, a folder or a wheel"
            return FileFacts(binary.name, binary.size, error=InputError(binary.name, found, expected=expected))
    except InputError as e:
        return FileFacts(binary.name, binary.size, error=e)


def _read_facts(data: Data, binary: Binary, look: Look, archives: GivenArchives) -> FileFacts:
    name = binary.name
    try:
        beside = archives.beside(binary)
        device = read_device_facts(data, name=name, look=look, folder=binary.folder, beside=beside)
        return FileFacts(name, len(data), _read_elf_facts(data, name), _read_pe_facts(data, name), device)
    except InputError as e:
        return FileFacts(name, len(data), error=e)


def _read_elf_facts(data: Data, name: str) -> ElfFacts | None:
    if not is_elf(data):
        return None
    elf = read_elf(data, name=name)
    if elf.kind is ElfKind.CODE_OBJECT:
        return None
    return ElfFacts(elf.kind.value, elf.machine, elf.soname, elf.needed, elf.rpath, elf.runpath, elf.build_id)


def _read_pe_facts(data: Data, name: str) -> PeFacts | None:
    if is_coff_object(data):
        return PeFacts("object file", machine_name(read_object_file(PeBytes(data, name)).machine))
    if not is_pe(data):
        return None
    if bits_of_pe(data) == _BITS_OF_OLD:
        return PeFacts("32-bit")
    pe = read_pe(data, name=name)
    return PeFacts(
        kind="DLL" if pe.is_dll else "program",
        machine=machine_name(pe.header.machine),
        name=(pe.exports.dll or None) if pe.exports else None,
        imports=tuple(dll.name for dll in pe.imports),
        delay_imports=tuple(dll.name for dll in pe.delay_imports),
        exports=len(pe.exports.names) if pe.exports else 0,
        version=".".join(map(str, pe.version.file)) if pe.version else None,
        is_signed=pe.certificate is not None,
    )
