"""Gathers facts about binaries in files, folders, and wheels, and adds them up for each target."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.binary.bundles.compressed import RAW_SIZE_LIMIT
from rocwheel.binary.elf.facts import ElfKind, read_elf
from rocwheel.binary.kind import is_binary, is_coff_object, is_elf, is_pe, unread_archive
from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.pe.header import PeBytes, bits_of_pe, machine_name
from rocwheel.binary.pe.object_file import read_object_file
from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import ReadContext, Readers
from rocwheel.device.device_facts import DeviceFacts, Look, read_device_facts
from rocwheel.device.kpack_code import GivenArchives
from rocwheel.targets.target_set import text_sort_key
from rocwheel.wheels.binaries import Binary, find_all_binaries, read_found, tracked_binaries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rocwheel.core.reading import Data
    from rocwheel.device.device_facts import EntryFacts


class TargetFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The code for one target in all bundles of a file; ``missing`` counts the bundles without code for the target."""

    target: str
    bundles: int
    missing: int
    size: int
    stored_size: int | None
    kernels: int | None


def summarize_targets(facts: DeviceFacts) -> tuple[TargetFacts, ...]:
    """Add up the code for each target, in canonical order.

    ``missing`` is 0 if every bundle has code for the target.
    """
    groups = facts.groups
    by_target: dict[str, list[tuple[int, EntryFacts]]] = defaultdict(list)
    for number, entries in enumerate(groups):
        for entry in entries:
            by_target[entry.target].append((number, entry))
    return tuple(_sum_up(target, by_target[target], len(groups)) for target in sorted(by_target, key=text_sort_key))


def add_up_targets(files: Iterable[DeviceFacts]) -> tuple[TargetFacts, ...]:
    """Add up the code for each target across files, in canonical order.

    ``missing`` is always 0, because each file might be for only one target.
    """
    by_target: dict[str, list[TargetFacts]] = defaultdict(list)
    for facts in files:
        for found in summarize_targets(facts):
            by_target[found.target].append(found)
    return tuple(
        TargetFacts(
            target=target,
            bundles=sum(one.bundles for one in found),
            missing=0,
            size=sum(one.size for one in found),
            stored_size=_sum_known(one.stored_size for one in found),
            kernels=_sum_known(one.kernels for one in found),
        )
        for target in sorted(by_target, key=text_sort_key)
        for found in (by_target[target],)
    )


def _sum_up(target: str, found: list[tuple[int, EntryFacts]], groups: int) -> TargetFacts:
    numbers = {number for number, _ in found}
    return TargetFacts(
        target=target,
        bundles=len(numbers),
        missing=groups - len(numbers),
        size=sum(entry.size for _, entry in found),
        stored_size=_sum_known(entry.stored_size for _, entry in found),
        kernels=_sum_known(entry.kernels for _, entry in found),
    )


def _sum_known(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


_LOOK = Look(strict=False)


class MemberFacts(msgspec.Struct, frozen=True):
    """The device code in one file. ``path`` is its path in the wheel or folder, or its name among several inputs."""

    path: str
    device: DeviceFacts


class FolderFacts(msgspec.Struct, frozen=True):
    """The files with device code in a wheel or folder, their problems, and the unreadable files."""

    files: tuple[MemberFacts, ...]
    problems: tuple[str, ...]
    unreadable: tuple[str, ...] = ()
    """The paths of the unreadable files."""


def list_folder_device_code(path: Path, *, limit: int = RAW_SIZE_LIMIT, progress: Progress = SILENT) -> FolderFacts:
    """Return facts about every file with device code in a wheel, or in a folder and the wheels below it.

    The code of split libraries includes the code in archives there. Wheel members that unpack to more than ``limit``
    bytes are reported as problems. Raises `InputError` if no file has device code.
    """
    found = list_all_device_code([path], limit=limit, progress=progress)
    start = f"{path}!" if path.is_file() else f"{str(path).rstrip('/')}/"
    files = tuple(
        MemberFacts(file.path.removeprefix(start), file.device) for file in found.files
    )  # names don't begin with ./
    return FolderFacts(files, found.problems, tuple(name.removeprefix(start) for name in found.unreadable))


def list_all_device_code(
    paths: Sequence[Path], *, limit: int = RAW_SIZE_LIMIT, progress: Progress = SILENT
) -> FolderFacts:
    """Return facts about every file with device code at ``paths`` (files, folders, and wheels), sorted by name.

    The code of split libraries includes the code in archives among all inputs. Raises `InputError` for a single
    unreadable path, and if no file has device code.
    """
    binaries = list(find_all_binaries(paths))
    archives = GivenArchives(binaries)
    files: list[MemberFacts] = []
    problems, unreadable = list[str](), list[str]()

    def read(data: Data, found: Binary) -> DeviceFacts | None:
        return read_device_facts(data, name=found.name, look=_LOOK, folder=found.folder, beside=archives.beside(found))

    for name, facts in read_found(tracked_binaries(binaries, "reading device code", progress), read, limit=limit):
        if isinstance(facts, InputError):
            if [name] == [str(path) for path in paths]:
                raise facts
            problems.append(str(facts))
            unreadable.append(name)
        elif facts is not None:
            files.append(MemberFacts(name, facts))
            problems += facts.problems
    if not files and not problems:
        listed = ", ".join(map(str, paths))
        raise InputError(listed, "no device code", expected="a wheel or a folder with device code")
    return FolderFacts(tuple(files), tuple(dict.fromkeys(problems)), tuple(unreadable))


_BITS_OF_OLD = 32


class ElfFacts(msgspec.Struct, frozen=True):
    """Facts about a host ELF file."""

    kind: str
    machine: int
    soname: str | None
    needed: tuple[str, ...]
    rpath: str | None
    runpath: str | None
    build_id: str | None


class PeFacts(msgspec.Struct, frozen=True):
    """Facts about a Windows DLL or program."""

    kind: str
    """``DLL``, ``program``, or ``object file``.

    For a 32-bit DLL or program, this is ``32-bit``, and there are no other facts, because no ROCm program loads the
    file.
    """
    machine: str = ""
    name: str | None = None
    """The name in the export table, which is the file's name at link time."""
    imports: tuple[str, ...] = ()
    """The DLLs that are loaded together with the file."""
    delay_imports: tuple[str, ...] = ()
    """The DLLs that are loaded when one of their functions is first called."""
    exports: int = 0
    """The number of exported names."""
    version: str | None = None
    """The file version from the resources: four numbers with dots."""
    is_signed: bool = False


class FileFacts(msgspec.Struct, frozen=True):
    """A binary: its path (``wheel!member`` in a wheel), its size in bytes, and either facts or an error."""

    path: str
    size: int
    """The size in bytes, or 0 for a file that doesn't exist or can't be read."""
    elf: ElfFacts | None = None
    pe: PeFacts | None = None
    device: DeviceFacts | None = None
    error: InputError | None = None


def file_document(facts: FileFacts) -> dict[str, Any]:
    """Return the facts as a JSON document, with totals for each target."""
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
    """Yield facts about every binary among ``paths``: files, folders with everything below them, and wheels.

    Wheel members that unpack to more than ``limit`` bytes aren't read. With ``deep``, bundles that exceed this limit
    when decompressed aren't read either. A split library's code comes from the archives next to it and among all
    inputs, as if folders and wheels were installed together. A path that is unreadable, damaged, or not a binary yields
    an error, and the iteration continues. By default, this thread reads the files one at a time. To read several at a
    time, pass ``readers``.
    """
    binaries = list(find_all_binaries(paths))
    if readers is not None:
        binaries = [found if isinstance(found, InputError) else found.for_any_machine() for found in binaries]
    inspect = partial(_inspect, Look(deep=deep, limit=limit), GivenArchives(binaries))
    good = [found for found in binaries if not isinstance(found, InputError)]
    read = map(inspect, good) if readers is None else readers.map(inspect, good, _tell)
    for found in tracked_binaries(binaries, "inspecting", progress):
        yield FileFacts(str(found.source), 0, error=found) if isinstance(found, InputError) else next(read)


def _tell(binary: Binary) -> ReadContext:
    return ReadContext(binary.name, binary.size, binary.member.packed.path if binary.member else binary.name)


def _inspect(look: Look, archives: GivenArchives, binary: Binary) -> FileFacts:
    try:
        with binary.view(limit=look.limit) as data:
            unread = unread_archive(data)
            if is_binary(data) and not unread:
                return _read_facts(data, binary, look, archives)
            found = unread or "not a binary"
            expected = "an ELF or PE file, an archive, a bundle, a kpack archive, a folder, or a wheel"
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
