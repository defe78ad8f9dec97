"""Offers code for one target to another target that runs the same instructions, in bundles and kernel files.

An unmodified runtime distinguishes targets by the entry ID in the bundle and by ``e_flags`` in the code object. Tools
read the target from the metadata notes. Nothing else in a code object depends on the target. Tables of kernel files
also contain the target.
"""

from __future__ import annotations

import posixpath
import re
import zlib
from collections import Counter
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.device_code import iter_code_sources
from rocwheel.binary.bundles.plain import BundlePart
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import (
    BundleEntryId,
    CodePlace,
    DeviceCodeError,
    TargetId,
    encode_flags,
    is_code_object,
    read_code_object,
)
from rocwheel.binary.elf.header import E_FLAGS
from rocwheel.binary.kernel_metadata import rename_target
from rocwheel.binary.kind import is_bundle
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.patch import write_data
from rocwheel.core.reading import FileRange, iter_pieces, join_data, load
from rocwheel.device.edit_file import FileRewrite, RewriteOrder
from rocwheel.targets.kernel_files import Difference, processors_of_name
from rocwheel.targets.retarget_pairs import TargetPair
from rocwheel.targets.target_set import id_sort_key
from rocwheel.wheels.binaries import is_wheel, read_binaries
from rocwheel.wheels.zip_directory import read_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rocwheel.core.reading import Data
    from rocwheel.targets.kernel_files import Shared
    from rocwheel.wheels.binaries import Binary


_OLDEST_VERSION = 4


def retarget_code_object(data: Data, old: TargetId, new: TargetId, *, place: CodePlace) -> tuple[Data, ...]:
    """Return a code object for ``new`` as buffers, made from ``data`` with new ``e_flags`` and new targets in notes.

    Raises `DeviceCodeError` if the code object isn't for ``old``, has a version before 4, or lacks room for the name of
    ``new``.
    """
    code = read_code_object(data, place=place)
    if code.version < _OLDEST_VERSION:
        raise DeviceCodeError(
            place, f"a code object with version {code.version}", expected=f"version {_OLDEST_VERSION} or later"
        )
    if code.target != old:
        raise DeviceCodeError(
            place, f"a code object for {code.target}", expected=f"a code object for {old}, as its entry declares"
        )
    flags = encode_flags(new, place=place).to_bytes(4, "little")
    try:
        edits = [(E_FLAGS, flags), *rename_target(data, code, old, new, place=place)]
    except DeviceCodeError as e:
        raise DeviceCodeError(place, f"the code for {old}: {e.found}", expected=e.expected, remedy=e.remedy) from e
    buffers, position = [], 0
    for offset, replacement in edits:
        buffers += [data[position:offset], memoryview(replacement)]
        position = offset + len(replacement)
    return (*buffers, data[position:])


def same_code(one: BundlePart, other: BundlePart, *, place: CodePlace) -> bool:
    """Return whether two entries have identical code after the first entry is relabeled for the second entry's target.

    Raises the same errors as `retarget_code_object`.
    """
    old, new = one.target, other.target
    if old is None or new is None or one.size != other.size:
        return False
    mine = retarget_code_object(_joined(one), old, new, place=place)
    return join_data(mine) == join_data(other.payload)


class Retarget(msgspec.Struct, frozen=True):
    """Adds an entry for each pair whose code is in the bundle, unless the bundle has an entry for the pair's agent.

    With ``verify``, raises `DeviceCodeError` if a bundle has entries for both targets of a pair and their code differs.
    """

    pairs: tuple[TargetPair, ...]
    verify: bool = False

    def __call__(self, parts: tuple[BundlePart, ...], *, place: CodePlace) -> tuple[BundlePart, ...]:
        """Return the entries, including the new entries in order."""
        result = list(parts)
        for pair in self.pairs:
            for part in parts:
                target = part.target
                agent = pair.agent_of(target) if target else None
                if target is None or agent is None or not part.size:
                    continue
                present = [other for other in result if other.target == agent]
                if present and self.verify and not same_code(part, present[0], place=place):
                    raise DeviceCodeError(
                        place,
                        f"its code for {agent} differs from its code for {target}",
                        expected="the same instructions",
                    )
                if not present:
                    spelling = str(BundleEntryId.parse(part.spelling).retargeted(agent))
                    code = retarget_code_object(_joined(part), target, agent, place=place)
                    result = _insert(result, BundlePart(spelling, code), place)
        return parts if len(result) == len(parts) else tuple(result)


def _joined(part: BundlePart) -> Data:
    return part.payload[0] if len(part.payload) == 1 else memoryview(join_data(part.payload))


def _insert(parts: list[BundlePart], new: BundlePart, place: CodePlace) -> list[BundlePart]:
    """Insert the entry in order if the bundle is sorted, or otherwise at the end.

    Readers use the first compatible entry, so no existing entry may be compatible with a GPU of the new target.
    Therefore, each feature must be set either in all entries for a processor or in none of them.
    """
    target = new.target
    for part in parts:
        other = part.target
        if other and target and other.processor == target.processor and set(other.features) != set(target.features):
            raise DeviceCodeError(
                place,
                f"has code for {other}, which would make {target} ambiguous",
                expected="targets that set the same features",
            )
    device = [part.spelling for part in parts if part.target]
    if device != sorted(device):
        return [*parts, new]
    index = next((i for i, p in enumerate(parts) if p.target and p.spelling > new.spelling), len(parts))
    return [*parts[:index], new, *parts[index:]]


def find_gaps(path: Path, pairs: Sequence[TargetPair]) -> tuple[str, ...]:
    """Return the targets in ``pairs`` for which bundles in the file will lack code, with the number of these bundles.

    In a wheel, the function checks each file with code for a pair. Raises `InputError` if the file has device code, but
    no code for any pair. Also raises the same errors as `iter_code_sources`.
    """
    files = dict(_list_files(path))
    bundles = tuple(targets for listed in files.values() for targets in listed)
    if bundles and not any(_offers(targets, pair) for targets in bundles for pair in pairs):
        targets = dict.fromkeys(target for bundle in bundles for target in bundle)
        wanted = ", ".join(dict.fromkeys(str(pair.code) for pair in pairs))
        raise InputError(
            path, f"no code for {wanted} to offer to other GPUs", expected=_expected(tuple(targets), pairs)
        )
    return tuple(
        f"{name}: {gap}"
        for name, listed in files.items()
        for pair in pairs
        if any(_offers(targets, pair) for targets in listed) or not is_wheel(path)
        if (gap := bundles_without(listed, pair))
    )


def why_unchanged(path: Path, pairs: Sequence[TargetPair]) -> str:
    """Return the reason why retargeting doesn't change a file, wheel, or folder, including the targets of its code."""
    bundles = [targets for _, listed in _list_files(path) for targets in listed]
    carried = ", ".join(map(str, sorted({target for bundle in bundles for target in bundle}, key=id_sort_key)))
    asked = ", ".join(f"{pair.code}={pair.agent}" for pair in pairs)
    offered = any(_offers(targets, pair) for targets in bundles for pair in pairs)
    code = f"the code is {'already ' if offered else ''}for {carried}"
    return f"nothing to do for {asked} in {path}: {code if carried else 'it has no bundles of device code'}"


def _list_files(path: Path) -> Iterator[tuple[str, tuple[Sequence[TargetId], ...]]]:
    """Yield each file with its bundles' targets; skip damaged files in a wheel, because the edit reports them."""
    for name, listed in read_binaries(path, _list_bundles):
        if not isinstance(listed, InputError):
            yield name, listed


def _list_bundles(data: Data, found: Binary) -> tuple[Sequence[TargetId], ...]:
    return tuple(source.bundle.targets for source in iter_code_sources(data, name=found.name))


def _expected(targets: Sequence[TargetId], pairs: Sequence[TargetPair]) -> str:
    needed = {
        f"code that doesn't set {name}, which is off on {pair.agent.processor}": None
        for pair in pairs
        for name in pair.unnamed
        if any(target.processor == pair.code.processor and target.features.get(name) for target in targets)
    }
    offered = ", ".join(map(str, sorted(targets, key=id_sort_key)))
    return " and ".join(needed) or (f"one of its targets {offered}" if targets else "")


def _offers(targets: Sequence[TargetId], pair: TargetPair) -> bool:
    return any(pair.agent_of(target) for target in targets)


def bundles_without(bundles: Sequence[Sequence[TargetId]], pair: TargetPair) -> str:
    """Return how many of a file's bundles will lack code for ``pair.agent``, or an empty string if none will.

    ``bundles`` contains the targets of each bundle.
    """
    processor = pair.agent.processor
    lacking = sum(
        not _offers(targets, pair) and all(target.processor != processor for target in targets) for targets in bundles
    )
    if not lacking:
        return ""
    found = f"{lacking} of {count(len(bundles), 'bundle')} {'has' if lacking == 1 else 'have'} no code for {pair.code}"
    return f"{found}, so no code for {pair.agent}"


class NotRelabeledError(InputError):
    """An error for a valid file whose code can't be offered to another GPU."""


class RelabeledFile(msgspec.Struct, frozen=True):
    """A new file for a target, which contains relabeled code or refers to it by name."""

    path: str
    origin: str
    """The path of the original file."""
    processor: str
    """The processor of the original file."""
    agent: str
    """The processor of the new file."""
    content: FileRange


class RetargetedTree(msgspec.Struct, frozen=True):
    """The results: new contents, keyed by path; new files; and the reasons why other files' code isn't offered."""

    edited: dict[str, FileRange]
    added: tuple[RelabeledFile, ...]
    refused: tuple[InputError, ...]
    lacking: dict[str, tuple[str, ...]] = {}
    """The files whose code can't be offered to a processor and is therefore missing there, keyed by processor."""
    warnings: tuple[str, ...] = ()
    """The libraries that couldn't be trimmed, with the reasons."""


def renamed(path: str, processor: str, agent: str) -> str:
    """Return a path with ``agent`` instead of ``processor``, or the same path if it doesn't contain ``processor``."""
    return re.sub(rf"(?<![0-9a-zA-Z]){re.escape(processor)}(?![0-9a-zA-Z])", agent, path)


def unknown_file(path: str, pairs: Sequence[TargetPair]) -> Iterator[tuple[str, InputError]]:
    """Yield each processor for which a kernel file that is named for a target isn't copied, with the reason."""
    named = processors_of_name(path)
    for pair in pairs:
        agent = pair.agent.processor
        if pair.code.processor in named and agent not in named:
            yield agent, InputError(path, f"not offered to {agent}: no rule describes how the library finds the file")


def shared_file(path: str, data: Data, row: Shared, pairs: Sequence[TargetPair]) -> Iterator[tuple[str, InputError]]:
    """Yield each processor that a file for all GPUs doesn't list, even though it lists the code's own processor.

    Lists of files may omit processors, because libraries don't look up processors in them.
    """
    for pair in () if row.differs is Difference.LINES else pairs:
        code, agent = pair.code.processor, pair.agent.processor
        if _contains(data, code) and not _contains(data, agent):
            yield agent, InputError(path, f"lists {code} but not {agent}: {row.reason}")


def _contains(data: Data, text: str) -> bool:
    """Return whether a file contains ``text`` as a word; only a few megabytes of the file are in memory."""
    word = re.compile(rb"(?<![0-9a-zA-Z])" + text.encode() + rb"(?![0-9a-zA-Z])")
    end = b""
    for piece in iter_pieces(data):
        joined = end + piece
        if word.search(joined):
            return True
        end = joined[-len(text) - 2 :]
    return False


def find_named_members(wheel: Path, pairs: Sequence[TargetPair]) -> tuple[str, ...]:
    """Return a line for each folder in a retargeted wheel whose archives or kernel files are only for the old targets.

    Files for another target belong in a separate device wheel, which an edit of one wheel can't create. Raises
    `InputError` for a file that isn't a wheel.
    """
    processors = {pair.code.processor for pair in pairs}
    found: Counter[tuple[str, str]] = Counter()
    for member in read_directory(wheel):
        for target in processors_of_name(member.name) & processors:
            found[posixpath.dirname(member.name), target] += 1
    return tuple(
        f"{wheel}: {folder}: {count(number, 'file')} for {target} {'is' if number == 1 else 'are'} not offered to "
        "any other "
        "GPU, because libraries look up these files by name. Retarget the folder that the wheel is built from."
        for (folder, target), number in sorted(found.items())
    )


_TABLE, _PACKED = ".dat", ".dat.zlib"
_TABLE_LIMIT = 1 << 30
"""The largest table to decompress, in bytes."""


class KernelNames(msgspec.Struct, frozen=True):
    """The names that change in a library's tables: the target, and the library's file names without suffixes."""

    pair: TargetPair
    files: tuple[str, ...]

    @property
    def changes(self) -> dict[str, str]:
        """The new names, keyed by old name."""
        processor, agent = self.pair.code.processor, self.pair.agent.processor
        return {name: renamed(name, processor, agent) for name in (processor, *self.files)}


def write_kernel_file(data: Data, file: IO[bytes], names: KernelNames, *, name: str) -> None:
    """Write a library's file ``name`` for the GPUs of ``names.pair.agent``.

    Raises `NotRelabeledError` for content that refers to its target in an unknown way. Raises the same errors as
    `retarget_code_object` and `FileRewrite`.
    """
    if is_code_object(data):
        for buffer in relabel_code_object(data, names.pair, CodePlace(name)):
            write_data(file, buffer)
    elif is_bundle(data):
        order = RewriteOrder(edit=_Relabel(names.pair), storage=Storage())
        FileRewrite(data, name, order).write(file)
    elif name.endswith(_PACKED):
        file.write(zlib.compress(_rename(_unpacked(data, name), names, name)))
    elif name.endswith(_TABLE):
        file.write(_rename(bytes(load(data)), names, name))
    else:
        raise NotRelabeledError(name, "isn't a code object, bundle, or table", expected="a file from Tensile")


def relabel_code_object(
    data: Data, pair: TargetPair, place: CodePlace, *, name: str = "", listed: str = ""
) -> tuple[Data, ...]:
    """Return, as buffers, a code object for the agent of ``pair``.

    In messages, the code is identified by ``name``, or by ``place`` if ``name`` is empty. ``listed`` is the target that
    a table lists for the code. Raises `NotRelabeledError` for code that doesn't match the pair. Raises the same errors
    as `retarget_code_object`.
    """
    old = read_code_object(data, place=place).target
    new = pair.agent_of(old) if old else None
    if old is None or new is None:
        raise not_relabeled(name or str(place), str(old or listed or None), pair)
    return retarget_code_object(data, old, new, place=place)


def not_relabeled(name: str, target: str, pair: TargetPair) -> NotRelabeledError:
    """Return the error for code that doesn't match a pair."""
    return NotRelabeledError(name, f"has code for {target}", expected=f"code that {pair.agent} runs as {pair.code}")


class _Relabel(msgspec.Struct, frozen=True):
    """Replaces the entries that match the pair with relabeled entries."""

    pair: TargetPair

    def __call__(self, parts: tuple[BundlePart, ...], *, place: CodePlace) -> tuple[BundlePart, ...]:
        """Return the entries of the new bundle."""
        return tuple(self._relabeled(part, place) for part in parts)

    def _relabeled(self, part: BundlePart, place: CodePlace) -> BundlePart:
        agent = self.pair.agent_of(part.target) if part.target else None
        if part.target is None or agent is None or not part.size:
            return part
        code = memoryview(join_data(part.payload))
        new = retarget_code_object(code, part.target, agent, place=place)
        return BundlePart(str(BundleEntryId.parse(part.spelling).retargeted(agent)), new)


def _unpacked(data: Data, name: str) -> bytes:
    stream = zlib.decompressobj()
    try:
        table = stream.decompress(load(data), _TABLE_LIMIT)
    except zlib.error as e:
        raise NotRelabeledError(name, f"can't be decompressed ({e})", expected="a zlib stream") from e
    if not stream.eof:
        found = f"decompresses to more than {_TABLE_LIMIT} bytes, or is truncated"
        raise NotRelabeledError(name, found, expected="a complete table")
    return table


def _rename(table: bytes, names: KernelNames, name: str) -> bytes:
    """Return a Tensile table with the new names.

    Each name is a complete string in the table, so its length can change.
    """
    _require_table(table, name)
    for old, new in names.changes.items():
        # Tensile's writer encodes strings in MessagePack's shortest form, and so does this encoder.
        table = table.replace(msgspec.msgpack.encode(old), msgspec.msgpack.encode(new))
    _require_table(table, name)
    return table


def _require_table(table: bytes, name: str) -> None:
    try:
        msgspec.msgpack.decode(table)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise NotRelabeledError(name, f"can't be read ({e})", expected="a table in MessagePack") from e
