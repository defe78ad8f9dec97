"""Reads the file facts that planning needs: the operating system, ELF or PE facts, device code, and digests."""

from __future__ import annotations

import logging
import re
from collections import Counter
from functools import cached_property
from itertools import groupby
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from rocwheel.artifacts.artifact import ANY_EXECUTE, FileKind
from rocwheel.artifacts.catalog import Entry
from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.elf.facts import Elf, ElfKind, read_elf
from rocwheel.binary.elf.header import ElfError
from rocwheel.binary.kind import (
    HEAD_SIZE,
    is_bundle,
    is_cut_elf,
    is_elf,
    is_elf64,
    is_empty_library,
    is_library_name,
    is_pe,
)
from rocwheel.binary.pe.facts import Pe, read_pe
from rocwheel.binary.pe.header import PeError, machine_name
from rocwheel.binary.platform import LINUX_HOSTS, Platform, platform_of
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.reading import FileRange
from rocwheel.core.workers import map_waiting
from rocwheel.targets.kernel_files import kpack_target
from rocwheel.wheels.content import FileContent, digest_content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    from rocwheel.artifacts.catalog import Catalog
    from rocwheel.binary.code_objects import TargetId
    from rocwheel.core.reading import Data

    _Known: TypeAlias = tuple[Entry, "FileFacts"]


_WINDOWS_SUFFIXES = frozenset([".dll", ".exe"])
_DEBUG_SUFFIX = ".debug"
_ONE_BUILD = "Put the artifacts of each system's build into a separate folder, and build them separately."


class PlatformSign(msgspec.Struct, frozen=True):
    """A program or library in an artifact, and the operating system that it is for."""

    entry: Entry
    platform: Platform

    @property
    def is_sure(self) -> bool:
        """Whether the entire tree must be for that system.

        Windows loads DLLs from the folders of programs, which are named ``bin``. In other folders, DLLs and EXEs can be
        data on any system, such as the launchers that pip uses for console scripts.
        """
        return self.platform is Platform.LINUX or is_in_bin(self.entry.path)

    def __str__(self) -> str:
        """Return the location of the file."""
        return f"{self.entry.path} from {self.entry.artifact}"


def is_in_bin(path: str) -> bool:
    """Return whether a file is in or below a folder named ``bin``, regardless of case."""
    return "bin" in PurePosixPath(path.lower()).parts[:-1]


def is_windows_name(path: str) -> bool:
    """Return whether a file has the name of a Windows DLL or program."""
    return PurePosixPath(path).suffix.lower() in _WINDOWS_SUFFIXES


def decide_platform(root: str, signs: Iterable[PlatformSign], given: Platform | None = None) -> Platform:
    """Return the operating system of a tree.

    The result must match ``given``, which is also the fallback if no file reveals the system.

    The default is Linux. Raises `InputError` if the tree has files for several systems, or for a system other than
    ``given``.
    """
    found: dict[Platform, PlatformSign] = {}
    unsure: list[PlatformSign] = []
    for sign in signs:
        if sign.is_sure:
            found.setdefault(sign.platform, sign)
        else:
            unsure.append(sign)
    if len(found) > 1:
        raise _mixed(root, found)
    if not found:
        found = {sign.platform: sign for sign in reversed(unsure)}
    for platform, sign in found.items():
        if given is not None and given is not platform:
            expected = f"{platform}, because {sign} is for {platform.label}"
            option = "--platform"
            raise InputError(option, f"is {given}", expected=expected, remedy="Omit the option.")
        return platform
    return given or Platform.LINUX


def glance_platform(entries: Iterable[Entry], given: Platform | None = None) -> Platform:
    """Return the operating system of a tree from the first program or library that reveals it.

    Use this function only before the facts are read. Afterward, use `decide_platform`. Raises `InputError` if a file
    can't be read.
    """
    sign = _first_sign(entries)
    return sign.platform if sign else given or Platform.LINUX


def check_one_platform(folders: Mapping[Path, Iterable[Entry]]) -> None:
    """Raise `InputError` if folders that are used together contain files for different systems, based on a quick check.

    Other errors in the folders would only be consequences of that mix.
    """
    found: dict[Platform, str] = {}
    for folder, entries in folders.items():
        if sign := _first_sign(entries):
            found.setdefault(sign.platform, f"{sign} in {folder}")
    if len(found) > 1:
        raise _mixed(" and ".join(map(str, folders)), found)


def _first_sign(entries: Iterable[Entry]) -> PlatformSign | None:
    for entry in entries:
        if entry.source and entry.source.size >= HEAD_SIZE and not entry.path.endswith(_DEBUG_SUFFIX):
            head = entry.source.part(0, HEAD_SIZE).read()
            if is_pe(head) and is_in_bin(entry.path) and is_windows_name(entry.path):
                return PlatformSign(entry, Platform.WINDOWS)
            if is_elf64(head) and int.from_bytes(head[18:20], "little") in LINUX_HOSTS:
                return PlatformSign(entry, Platform.LINUX)
    return None


def _mixed(root: str, found: Mapping[Platform, object]) -> InputError:
    listed = ", ".join(f"{found[platform]} is for {platform.label}" for platform in Platform)
    return InputError(
        root, f"contains files for two systems: {listed}", expected="artifacts for one system", remedy=_ONE_BUILD
    )


_BIN: Final = re.compile(r"(?<![^/])(?!bin(?:/|$))(?i:bin)(?=/|$)")
"""A path component that is ``bin`` in a different case, such as ``Bin``."""


def with_plain_bin(catalog: Catalog, given: Platform | None = None) -> Catalog:
    """Return a catalog for Windows with all ``bin`` folders in lowercase; return other catalogs unchanged.

    Recipes, packages, and linkers use the lowercase name. ``given`` is the system that the user specified. Raises
    `InputError` if a file can't be read.
    """
    spelled = tuple(_spell(entry) for entry in catalog.entries)
    if spelled == catalog.entries or glance_platform(catalog.entries, given) is not Platform.WINDOWS:
        return catalog
    entries = sorted(spelled, key=lambda entry: (entry.path, entry.artifact))
    return msgspec.structs.replace(catalog, entries=tuple(entries))


def _spell(entry: Entry) -> Entry:
    folder, slash, name = entry.path.rpartition("/")
    path = _plain(entry.path) if entry.kind is FileKind.DIRECTORY else f"{_plain(folder)}{slash}{name}"
    link = entry.link and _plain(entry.link)
    if (path, link) == (entry.path, entry.link):
        return entry
    return msgspec.structs.replace(entry, path=path, link=link)


def _plain(path: str) -> str:
    return _BIN.sub("bin", path)


logger = logging.getLogger(__name__)


class FileFacts(msgspec.Struct, frozen=True):
    """The facts about one file."""

    elf: Elf | None = None
    pe: Pe | None = None
    bad_pe: PeError | None = None
    """The reason that the file can't be read as a PE file, even though its name or first bytes indicate a PE file."""
    begins_as_pe: bool = False
    """Whether the file begins like a Windows DLL or program."""
    targets: tuple[str, ...] = ()
    """The GPU targets of the file's device code."""
    is_script: bool = False
    """Whether the file is an executable that Linux can run, judging by its first bytes, and isn't a 64-bit ELF file."""


def read_file_facts(entry: Entry) -> FileFacts | InputError:
    """Return the facts about an entry, or the error if the entry can't be read or is a damaged ELF file."""
    is_named = is_windows_name(entry.path) or is_library_name(entry.path)
    is_read = entry.source and (entry.source.size >= HEAD_SIZE or entry.mode & ANY_EXECUTE or is_named)
    if entry.source is None or not is_read:
        return FileFacts()
    name = f"{entry.artifact}: {entry.path}"
    if entry.path.endswith(".kpack"):
        return FileFacts(targets=_read_or_none(lambda: (kpack_target(entry.path, source=name),)))
    try:
        with entry.source.view() as data:
            return _facts_of(entry, data, name)
    except InputError as e:
        return e


def _facts_of(entry: Entry, data: Data, name: str) -> FileFacts:
    if is_empty_library(entry.path, data):
        raise ElfError(name, "is empty", expected="a shared library")
    if (len(data) >= HEAD_SIZE and is_elf64(data)) or (is_library_name(entry.path) and is_cut_elf(data)):
        return FileFacts(read_elf(data, name=name), targets=_targets(data, name))
    if is_pe(data):
        return _facts_of_pe(data, name)
    can_run = bytes(data[:2]) == b"#!" or (is_elf(data) and ".so" not in PurePosixPath(entry.path).suffixes)
    is_script = bool(entry.mode & ANY_EXECUTE) and can_run
    bad_pe = _facts_of_pe(data, name).bad_pe if is_windows_name(entry.path) else None
    return FileFacts(bad_pe=bad_pe, targets=_targets(data, name) if is_bundle(data) else (), is_script=is_script)


def _facts_of_pe(data: Data, name: str) -> FileFacts:
    try:
        pe = read_pe(data, name=name)
    except PeError as e:
        return FileFacts(bad_pe=e, begins_as_pe=is_pe(data))
    return FileFacts(pe=pe, begins_as_pe=True, targets=_targets(data, name))


def _targets(data: Data, name: str) -> tuple[str, ...]:
    return _read_or_none(lambda: device_targets(data, name=name))


def _read_or_none(find: Callable[[], Iterable[TargetId]]) -> tuple[str, ...]:
    # Unreadable device code is shipped unchanged, but the packages don't claim to support its targets.
    try:
        return tuple(str(target) for target in find())
    except InputError as e:
        logger.warning("%s", e)
        return ()


_X86_64 = 62
_CHUNK = 64
"""The number of files per task.

Most files are small, and a separate task for each would cost more than reading the file.
"""


class Facts(msgspec.Struct, frozen=True, dict=True):
    """The facts about binaries, and SHA-256 digests of files whose path occurs in several artifacts, keyed by file."""

    elves: dict[FileRange, Elf]
    digests: dict[FileRange, bytes]
    targets: dict[FileRange, tuple[str, ...]]
    """The GPU targets of each file with device code."""
    scripts: frozenset[FileRange] = frozenset()
    """Executables that are not 64-bit ELF files, but that Linux can run, judging by their first bytes."""
    platform: Platform = Platform.LINUX
    """The operating system that the entire tree is for."""
    images: dict[FileRange, Pe] = {}
    """The facts about each DLL and program of a tree for Windows."""
    foreign: tuple[str, ...] = ()
    """The paths of DLLs and programs that ship as data: on Linux, all of them; on Windows, files for other machines."""

    @cached_property
    def machine(self) -> int:
        """The ELF machine of most host files. Script stubs and wheels without ELF files also use it."""
        counts = Counter(elf.machine for elf in self.elves.values() if elf.kind is not ElfKind.CODE_OBJECT)
        return counts.most_common(1)[0][0] if counts else _X86_64

    def elf(self, entry: Entry) -> Elf | None:
        """Return the ELF facts about an entry, or `None` if it is not an ELF file."""
        return self.elves.get(entry.source) if entry.source else None

    def pe(self, entry: Entry) -> Pe | None:
        """Return the facts about a Windows DLL or program, or `None` for other files and in trees for Linux."""
        return self.images.get(entry.source) if entry.source else None

    def codes(self, entry: Entry) -> tuple[str, ...]:
        """Return the GPU targets of the device code in an entry."""
        return self.targets.get(entry.source, ()) if entry.source else ()

    def is_program(self, entry: Entry) -> bool:
        """Return whether the kernel can run a file. Data that merely has the executable bit is not a program.

        On Windows, the result is always `False`. Links become copies there, because most programs are not larger than a
        stub.
        """
        if self.platform is Platform.WINDOWS:
            return False
        elf = self.elf(entry)
        return elf.kind is ElfKind.EXECUTABLE if elf else entry.source in self.scripts


def read_facts(catalog: Catalog, executor: Executor, platform: Platform | None = None) -> Facts:
    """Read the facts about every file of a catalog. Only headers and the tables that the loader uses are read.

    ``platform`` is the system that the user specified.

    Raises `ProblemsError` with every file that can't be read or is a damaged ELF file, and with every DLL or program
    that a tree for Windows can't contain. Raises `InputError` if the tree has files for several systems, or for a
    system other than ``platform``.
    """
    files = [entry for entry in catalog.entries if entry.source]
    chunks = [files[start : start + _CHUNK] for start in range(0, len(files), _CHUNK)]
    chunks_read = map_waiting(executor, lambda chunk: list(map(read_file_facts, chunk)), chunks)
    read = [facts for chunk in chunks_read for facts in chunk]
    known = [(entry, facts) for entry, facts in zip(files, read, strict=True) if isinstance(facts, FileFacts)]
    # Trees for two systems are reported first, because other errors may be consequences.
    decided = decide_platform(catalog.root, _signs(known), platform)
    if problems := [facts for facts in read if isinstance(facts, InputError)]:
        raise ProblemsError(catalog.root, problems)
    is_windows = decided is Platform.WINDOWS
    if is_windows and (problems := list(_windows_problems(known))):
        raise ProblemsError(catalog.root, problems)
    by_source = {entry.source: facts for entry, facts in known if entry.source}
    groups = (tuple(group) for _, group in groupby(files, key=lambda entry: entry.path))
    shared = [entry.source for group in groups if len(group) > 1 for entry in group if entry.source]
    digests = executor.map(lambda source: digest_content(FileContent(source)).sha256, shared)
    return Facts(
        elves={source: facts.elf for source, facts in by_source.items() if facts.elf},
        digests=dict(zip(shared, digests, strict=True)),
        targets={source: facts.targets for source, facts in by_source.items() if facts.targets},
        scripts=frozenset(source for source, facts in by_source.items() if facts.is_script),
        platform=decided,
        images={source: facts.pe for source, facts in by_source.items() if facts.pe and is_windows},
        foreign=tuple(entry.path for entry, facts in known if facts.pe and not (is_windows and facts.pe.is_amd64)),
    )


def _signs(known: Sequence[_Known]) -> Iterator[PlatformSign]:
    for entry, facts in known:
        if facts.elf and (platform := platform_of(facts.elf)):
            yield PlatformSign(entry, platform)
        elif facts.pe or (facts.begins_as_pe and is_windows_name(entry.path)):
            yield PlatformSign(entry, Platform.WINDOWS)


def _windows_problems(known: Sequence[_Known]) -> Iterator[InputError]:
    """Yield an error for each file that Windows can't load or run even though its folder is for DLLs and programs."""
    for entry, facts in known:
        if not is_in_bin(entry.path):
            continue
        if facts.bad_pe and is_windows_name(entry.path):
            yield facts.bad_pe
        elif facts.pe and not facts.pe.is_amd64:
            found = f"is for {machine_name(facts.pe.header.machine)}"
            expected = "x86-64, the only architecture that ROCm for Windows supports"
            yield InputError(f"{entry.artifact}: {entry.path}", found, expected=expected)
