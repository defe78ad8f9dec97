"""What planning needs to know about the files: ELF facts, device code, and digests where several claim one path."""

from __future__ import annotations

import logging
from collections import Counter
from functools import cached_property
from itertools import groupby
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.model.artifact import ANY_EXECUTE
from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.elf.facts import Elf, ElfKind, read_elf
from rocwheel.binary.kind import HEAD_SIZE, is_bundle, is_elf, is_elf64
from rocwheel.distributions.content.content import FileContent
from rocwheel.distributions.content.digest import digest_content
from rocwheel.foundation.errors import InputError, ProblemsError
from rocwheel.foundation.files.file_range import FileRange
from rocwheel.targets.coherence.carriers import kpack_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Executor

    from rocwheel.artifacts.catalog import Catalog, Entry
    from rocwheel.binary.code_objects.target_id import TargetId
    from rocwheel.foundation.files.file_view import Data

__all__ = ["Facts", "read_facts"]

logger = logging.getLogger(__name__)

_X86_64 = 62
_CHUNK = 64
"""Files that a worker reads in one task: most are small, and a task for each would cost more than reading it."""


class Facts(msgspec.Struct, frozen=True, dict=True):
    """ELF facts by file, and SHA-256 digests of the files that share their path with others."""

    elves: dict[FileRange, Elf]
    digests: dict[FileRange, bytes]
    targets: dict[FileRange, tuple[str, ...]]
    """GPU targets of the device code in each file that holds any."""
    scripts: frozenset[FileRange] = frozenset()
    """Executable files that are not 64-bit ELF files and that the kernel can run, by their first bytes."""

    @cached_property
    def machine(self) -> int:
        """The ELF machine of most host files; stubs for scripts, and wheels without ELF files, are made for it."""
        counts = Counter(elf.machine for elf in self.elves.values() if elf.kind is not ElfKind.CODE_OBJECT)
        return counts.most_common(1)[0][0] if counts else _X86_64

    def elf(self, entry: Entry) -> Elf | None:
        """Return the ELF facts of an entry, none when it is not an ELF file."""
        return self.elves.get(entry.source) if entry.source else None

    def is_program(self, entry: Entry) -> bool:
        """Return whether the kernel can run a file; data that is merely marked executable is not a program."""
        elf = self.elf(entry)
        return elf.kind is ElfKind.EXECUTABLE if elf else entry.source in self.scripts


def read_facts(catalog: Catalog, executor: Executor) -> Facts:
    """Read the facts of every file of a catalogue; only headers and dynamic sections are touched.

    Raises `ProblemsError` with every file that can't be read or is a broken ELF file.
    """
    files = [entry for entry in catalog.entries if entry.source]
    problems: list[InputError] = []
    known: dict[FileRange, _FileFacts] = {}
    chunks = [files[start : start + _CHUNK] for start in range(0, len(files), _CHUNK)]
    read = (facts for chunk in executor.map(_read_chunk, chunks) for facts in chunk)
    for entry, facts in zip(files, read, strict=True):
        if isinstance(facts, InputError):
            problems.append(facts)
        elif entry.source:
            known[entry.source] = facts
    if problems:
        raise ProblemsError(catalog.root, problems)
    return Facts(
        elves={source: facts.elf for source, facts in known.items() if facts.elf},
        digests=_digests(files, executor),
        targets={source: facts.targets for source, facts in known.items() if facts.targets},
        scripts=frozenset(source for source, facts in known.items() if facts.is_script),
    )


class _FileFacts(msgspec.Struct, frozen=True):
    elf: Elf | None = None
    targets: tuple[str, ...] = ()
    is_script: bool = False


def _read_chunk(entries: Sequence[Entry]) -> list[_FileFacts | InputError]:
    return [_read_file_facts(entry) for entry in entries]


def _read_file_facts(entry: Entry) -> _FileFacts | InputError:
    if entry.source is None or not (entry.source.size >= HEAD_SIZE or entry.mode & ANY_EXECUTE):
        return _FileFacts()
    name = f"{entry.artifact}: {entry.path}"
    if entry.path.endswith(".kpack"):
        return _FileFacts(targets=_read_or_none(lambda: (kpack_target(entry.path, source=name),)))
    try:
        with entry.source.view() as data:
            return _facts_of(entry, data, name)
    except InputError as e:
        return e


def _facts_of(entry: Entry, data: Data, name: str) -> _FileFacts:
    if len(data) >= HEAD_SIZE and is_elf64(data):
        return _FileFacts(read_elf(data, name=name), _targets(data, name))
    is_script = bool(entry.mode & ANY_EXECUTE) and _can_run(entry, data)
    return _FileFacts(targets=_targets(data, name) if is_bundle(data) else (), is_script=is_script)


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


def _digests(files: Iterable[Entry], executor: Executor) -> dict[FileRange, bytes]:
    groups = (tuple(group) for _, group in groupby(files, key=lambda entry: entry.path))
    shared = [entry.source for group in groups if len(group) > 1 for entry in group if entry.source]
    return dict(zip(shared, executor.map(_sha256, shared), strict=True))


def _sha256(source: FileRange) -> bytes:
    return digest_content(FileContent(source)).sha256
