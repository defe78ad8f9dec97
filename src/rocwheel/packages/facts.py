"""What planning needs to know of the files themselves: ELF facts, and digests where several claim one path."""

from __future__ import annotations

import logging
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundle_sequence import is_bundle
from rocwheel.binary.device_code import device_targets
from rocwheel.binary.elf import Elf, is_elf, read_elf
from rocwheel.distributions.content import FileContent
from rocwheel.distributions.digest import digest_content
from rocwheel.errors import InputError, ProblemsError
from rocwheel.files import FileRange
from rocwheel.targets.wheels import kpack_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Executor

    from rocwheel.artifacts.catalog import Catalog, Entry
    from rocwheel.binary.target_id import TargetId

__all__ = ["Facts", "read_facts"]

logger = logging.getLogger(__name__)

_HEADER_SIZE = 64
# Other classes occur as data, such as a compiler's 32-bit run-time libraries, and are shipped as they are.
_ELF64_LITTLE_ENDIAN = b"\2\1"


class Facts(msgspec.Struct, frozen=True):
    """ELF facts by file, and SHA-256 digests of the files that share their path with others."""

    elves: dict[FileRange, Elf]
    digests: dict[FileRange, bytes]
    targets: dict[FileRange, tuple[str, ...]]
    """GPU targets of the device code in a file, for those that hold any."""

    def elf(self, entry: Entry) -> Elf | None:
        """Return the ELF facts of a file entry, none for any other file."""
        return self.elves.get(entry.source) if entry.source else None


def read_facts(catalog: Catalog, executor: Executor) -> Facts:
    """Read the facts of every file of a catalogue; only headers and dynamic sections are touched.

    Raises `ProblemsError` with every file that can't be read or is a broken ELF file.
    """
    files = [entry for entry in catalog.entries if entry.source]
    problems: list[InputError] = []
    elves, targets = {}, {}
    for entry, facts in zip(files, executor.map(_read_file_facts, files, chunksize=64), strict=True):
        if isinstance(facts, InputError):
            problems.append(facts)
        elif entry.source:
            elf, found = facts
            if elf is not None:
                elves[entry.source] = elf
            if found:
                targets[entry.source] = found
    if problems:
        raise ProblemsError(catalog.root, problems)
    return Facts(elves, _digests(files, executor), targets)


def _read_file_facts(entry: Entry) -> tuple[Elf | None, tuple[str, ...]] | InputError:
    if entry.source is None or entry.source.size < _HEADER_SIZE:
        return None, ()
    name = f"{entry.artifact}: {entry.path}"
    if entry.path.endswith(".kpack"):
        return None, _told_or_none(lambda: (kpack_target(entry.path, source=name),))
    try:
        with entry.source.map() as data:
            if is_elf(data) and bytes(data[4:6]) == _ELF64_LITTLE_ENDIAN:
                return read_elf(data, name=name), _targets(data, name)
            return None, _targets(data, name) if is_bundle(data) else ()
    except InputError as e:
        return e


def _targets(data: memoryview, name: str) -> tuple[str, ...]:
    return _told_or_none(lambda: device_targets(data, name=name))


def _told_or_none(find: Callable[[], Iterable[TargetId]]) -> tuple[str, ...]:
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
