"""What planning needs to know about one file: its first bytes, ELF or PE facts, and the targets of its device code."""

from __future__ import annotations

import logging
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.artifact import ANY_EXECUTE
from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.elf.bytes import ElfError
from rocwheel.binary.elf.facts import Elf, read_elf
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
from rocwheel.binary.pe.facts import Pe, PeError, read_pe
from rocwheel.core.errors import InputError
from rocwheel.packages.layout.tree_platform import is_windows_name
from rocwheel.targets.kernel_files.names import kpack_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rocwheel.artifacts.catalog import Entry
    from rocwheel.binary.code_objects.target_id import TargetId
    from rocwheel.core.reading import Data

__all__ = ["FileFacts", "read_file_facts"]

logger = logging.getLogger(__name__)


class FileFacts(msgspec.Struct, frozen=True):
    """What is known of one file."""

    elf: Elf | None = None
    pe: Pe | None = None
    bad_pe: PeError | None = None
    """Why what is called or begins like a DLL or program of Windows can't be read as one."""
    begins_as_pe: bool = False
    """Whether it begins like a DLL or program of Windows."""
    targets: tuple[str, ...] = ()
    """GPU targets of its device code."""
    is_script: bool = False
    """Whether it is executable, no 64-bit ELF file, and the kernel of Linux can run it, by its first bytes."""


def read_file_facts(entry: Entry) -> FileFacts | InputError:
    """Return the facts of an entry; the error of one that can't be read or is a broken ELF file."""
    if entry.source is None or not _is_read(entry, entry.source.size):
        return FileFacts()
    name = f"{entry.artifact}: {entry.path}"
    if entry.path.endswith(".kpack"):
        return FileFacts(targets=_read_or_none(lambda: (kpack_target(entry.path, source=name),)))
    try:
        with entry.source.view() as data:
            return _facts_of(entry, data, name)
    except InputError as e:
        return e


def _is_read(entry: Entry, size: int) -> bool:
    is_named = is_windows_name(entry.path) or is_library_name(entry.path)
    return size >= HEAD_SIZE or bool(entry.mode & ANY_EXECUTE) or is_named


def _facts_of(entry: Entry, data: Data, name: str) -> FileFacts:
    if is_empty_library(entry.path, data):
        raise ElfError(name, "is empty", expected="a shared library")
    if (len(data) >= HEAD_SIZE and is_elf64(data)) or (is_library_name(entry.path) and is_cut_elf(data)):
        return FileFacts(read_elf(data, name=name), targets=_targets(data, name))
    if is_pe(data):
        return _facts_of_pe(data, name)
    is_script = bool(entry.mode & ANY_EXECUTE) and _can_run(entry, data)
    bad_pe = _facts_of_pe(data, name).bad_pe if is_windows_name(entry.path) else None
    return FileFacts(bad_pe=bad_pe, targets=_targets(data, name) if is_bundle(data) else (), is_script=is_script)


def _facts_of_pe(data: Data, name: str) -> FileFacts:
    try:
        pe = read_pe(data, name=name)
    except PeError as e:
        return FileFacts(bad_pe=e, begins_as_pe=is_pe(data))
    return FileFacts(pe=pe, begins_as_pe=True, targets=_targets(data, name))


def _can_run(entry: Entry, data: Data) -> bool:
    return bytes(data[:2]) == b"#!" or (is_elf(data) and ".so" not in PurePosixPath(entry.path).suffixes)


def _targets(data: Data, name: str) -> tuple[str, ...]:
    return _read_or_none(lambda: device_targets(data, name=name))


def _read_or_none(find: Callable[[], Iterable[TargetId]]) -> tuple[str, ...]:
    # Device code that can't be read is shipped as it is: the packages only don't vouch for its targets.
    try:
        return tuple(str(target) for target in find())
    except InputError as e:
        logger.warning("%s", e)
        return ()
