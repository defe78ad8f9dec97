"""What one file is, from its bytes: ELF facts and traits, and device code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.facts import Elf, ElfTraits, read_elf, read_elf_traits
from rocwheel.binary.kind import has_facts, is_cut_elf, is_elf, is_empty_library, is_kpack, is_mach_o, is_pe
from rocwheel.core.errors import InputError, WorkError
from rocwheel.installed.device_report import read_device_report
from rocwheel.installed.pe_report import read_pe_report
from rocwheel.installed.reading.mentions import mentioned_in_binary
from rocwheel.linking.obstacles import find_obstacle

if TYPE_CHECKING:
    from rocwheel.core.progress import Progress
    from rocwheel.core.reading import Data
    from rocwheel.installed.tree import InstalledFile

__all__ = ["advanced", "begin_large", "is_worth_reading", "with_binary_facts", "with_head"]


def begin_large(progress: Progress, label: str, total: int) -> Progress:
    """Begin a step of ``total`` bytes to read, and return where to report it; one that is over soon is not shown."""
    progress.begin(label, total)
    return progress


def advanced(progress: Progress, file: InstalledFile) -> InstalledFile:
    """Return a file, which has been read."""
    progress.advance(file.size)
    return file


def with_head(file: InstalledFile, head: bytes) -> InstalledFile:
    """Return the file with what its first `HEAD_SIZE` bytes tell: what stops the loader, or what kind of file it is."""
    problem = "is empty; expected a shared library" if is_empty_library(file.path, head) else file.problem
    return msgspec.structs.replace(
        file,
        obstacle=find_obstacle(head),
        problem=problem,
        is_mach_o=is_mach_o(head),
        is_script=head.startswith(b"#!"),
    )


def is_worth_reading(head: bytes | Data) -> bool:
    """Return whether `with_binary_facts` may find something in a file, by its first bytes."""
    return has_facts(head) or is_cut_elf(head) or is_kpack(head)


def with_binary_facts(
    file: InstalledFile, data: Data, *, headers_only: bool = False, whole: bool = True
) -> InstalledFile:
    """Return the file with what its bytes tell; what is damaged, the file itself or its device code, is a problem.

    With ``headers_only``, of device code only that is read. Without ``whole``, nothing is read only to be summed up.
    """
    try:
        if is_pe(data):
            file = msgspec.structs.replace(file, windows=read_pe_report(data, name=file.source, whole=whole))
        elf, traits = _read_host_facts(data, file.source)
        if elf is not None and elf.imports_dlopen:
            file = msgspec.structs.replace(file, mentions=mentioned_in_binary(data))
        file = msgspec.structs.replace(file, elf=elf, traits=traits)
        device = read_device_report(data, name=file.source, headers_only=headers_only)
        return msgspec.structs.replace(file, device=device)
    except WorkError:
        raise
    except InputError as e:
        return msgspec.structs.replace(file, problem=e.fault)


def _read_host_facts(data: Data, name: str) -> tuple[Elf | None, ElfTraits | None]:
    if not is_elf(data):
        return None, None
    elf = read_elf(data, name=name)
    return elf, read_elf_traits(data, name=name) if elf.is_host_code else None
