"""Files of kernel libraries for another GPU: code relabeled, and tables that name the new target."""

from __future__ import annotations

import posixpath
import re
import zlib
from collections import Counter
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.plain import BundlePart
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import BundleEntryId, Place, is_code_object, read_code_object
from rocwheel.binary.kind import is_bundle
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.reading import FileRange, iter_pieces, join_data, load
from rocwheel.device.edit_file import FileRewrite, RewriteOrder
from rocwheel.device.retarget import retarget_code_object
from rocwheel.targets.kernel_files import Difference, processors_of_name
from rocwheel.targets.retarget_pairs import TargetPair
from rocwheel.wheels.zip_directory import read_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rocwheel.core.reading import Data
    from rocwheel.targets.kernel_files import Shared


class NotRelabeledError(InputError):
    """A file whose code can't be offered to another GPU, though nothing is wrong with it."""


class AddedFile(msgspec.Struct, frozen=True):
    """A new file for a target: relabeled code, or what names it."""

    path: str
    origin: str
    """The path of the file that it was made of."""
    processor: str
    """Whose file the origin is."""
    agent: str
    """The processor that it is for."""
    content: FileRange


class RetargetedTree(msgspec.Struct, frozen=True):
    """What was made: new contents by path, new files, and why code in other files isn't offered."""

    edited: dict[str, FileRange]
    added: tuple[AddedFile, ...]
    refused: tuple[InputError, ...]
    lacking: dict[str, tuple[str, ...]] = {}
    """By processor, the files that leave it without code: theirs could not be offered to it."""
    warnings: tuple[str, ...] = ()
    """Which libraries could not be trimmed, and why."""


def renamed(path: str, processor: str, agent: str) -> str:
    """Return a path with ``agent`` wherever it names ``processor``; the same path if it names others."""
    return re.sub(rf"(?<![0-9a-zA-Z]){re.escape(processor)}(?![0-9a-zA-Z])", agent, path)


def unknown_file(path: str, pairs: Sequence[TargetPair]) -> Iterator[tuple[str, InputError]]:
    """Yield for which processors a kernel file that is named for a target gets no copy, and why."""
    named = processors_of_name(path)
    for pair in pairs:
        agent = pair.agent.processor
        if pair.code.processor in named and agent not in named:
            reason = "no rule says how its library looks for it"
            yield agent, InputError(path, f"not offered to {agent}: {reason}")


def shared_file(path: str, data: Data, row: Shared, pairs: Sequence[TargetPair]) -> Iterator[tuple[str, InputError]]:
    """Yield which processors a file for all GPUs does not name, though it names those whose code they run.

    Lists of files are not looked up, and so they may lack some.
    """
    for pair in () if row.differs is Difference.LINES else pairs:
        code, agent = pair.code.processor, pair.agent.processor
        if _contains(data, code) and not _contains(data, agent):
            yield agent, InputError(path, f"names {code} and not {agent}: {row.reason}")


def _contains(data: Data, text: str) -> bool:
    """Return whether a text stands in a file as a word; memory holds a few megabytes of it."""
    word = re.compile(rb"(?<![0-9a-zA-Z])" + text.encode() + rb"(?![0-9a-zA-Z])")
    end = b""
    for piece in iter_pieces(data):
        joined = end + piece
        if word.search(joined):
            return True
        end = joined[-len(text) - 2 :]
    return False


def find_named_members(wheel: Path, pairs: Sequence[TargetPair]) -> tuple[str, ...]:
    """Return a line for each folder of archives or kernel files that a retargeted wheel has for its old targets alone.

    Another target's files belong to a device wheel of its own, which an edit of one wheel can't make.
    Raises `InputError` for a file that is no wheel.
    """
    processors = {pair.code.processor for pair in pairs}
    found: Counter[tuple[str, str]] = Counter()
    for member in read_directory(wheel):
        for target in processors_of_name(member.name) & processors:
            found[posixpath.dirname(member.name), target] += 1
    return tuple(_line(wheel, folder, target, number) for (folder, target), number in sorted(found.items()))


def _line(wheel: Path, folder: str, target: str, number: int) -> str:
    files = f"{count(number, 'file')} for {target} {'is' if number == 1 else 'are'} offered to no other GPU"
    remedy = "Retarget the folder that the wheel is built from."
    return f"{wheel}: {folder}: {files}: libraries look them up by name. {remedy}"


_TABLE, _PACKED = ".dat", ".dat.zlib"
_TABLE_LIMIT = 1 << 30
"""The largest table that is decompressed, in bytes."""


class KernelNames(msgspec.Struct, frozen=True):
    """Which names change in the tables of a library: the target's, and those of its files without their suffixes."""

    pair: TargetPair
    files: tuple[str, ...]

    @property
    def changes(self) -> dict[str, str]:
        """New names by old ones."""
        processor, agent = self.pair.code.processor, self.pair.agent.processor
        return {name: renamed(name, processor, agent) for name in (processor, *self.files)}


def write_kernel_file(data: Data, file: IO[bytes], names: KernelNames, *, name: str) -> None:
    """Write the file ``name`` of a library for the GPUs of ``names.pair.agent``.

    Raises `NotRelabeledError` for content of which nothing says how it names its target, and `DeviceCodeError` as
    `retarget_code_object` and `FileRewrite` do.
    """
    if is_code_object(data):
        _write(file, _relabel(data, names.pair, Place(name)))
    elif is_bundle(data):
        order = RewriteOrder(edit=_Relabel(names.pair), storage=Storage())
        FileRewrite(data, name, order).write(file)
    elif name.endswith(_PACKED):
        _write(file, (memoryview(zlib.compress(_rename(_unpacked(data, name), names, name))),))
    elif name.endswith(_TABLE):
        _write(file, (memoryview(_rename(bytes(load(data)), names, name)),))
    else:
        raise NotRelabeledError(name, "is no code object, bundle or table", expected="a file that Tensile writes")


def _relabel(data: Data, pair: TargetPair, place: Place) -> tuple[Data, ...]:
    old = read_code_object(data, place=place).target
    new = pair.agent_of(old) if old else None
    if old is None or new is None:
        expected = f"code that {pair.agent} runs as {pair.code}"
        raise NotRelabeledError(str(place), f"has code for {old}", expected=expected)
    return retarget_code_object(data, old, new, place=place)


class _Relabel(msgspec.Struct, frozen=True):
    """Puts relabeled entries in the place of those that the pair is about."""

    pair: TargetPair

    def __call__(self, parts: tuple[BundlePart, ...], *, place: Place) -> tuple[BundlePart, ...]:
        """Return the entries of the new bundle."""
        return tuple(self._relabeled(part, place) for part in parts)

    def _relabeled(self, part: BundlePart, place: Place) -> BundlePart:
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
        raise NotRelabeledError(name, found, expected="a whole table")
    return table


def _rename(table: bytes, names: KernelNames, name: str) -> bytes:
    """Return a table of Tensile with other names; each is a whole text in it, so that its length may change."""
    _require_table(table, name)
    for old, new in names.changes.items():
        table = table.replace(_text(old), _text(new))
    _require_table(table, name)
    return table


def _require_table(table: bytes, name: str) -> None:
    try:
        msgspec.msgpack.decode(table)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise NotRelabeledError(name, f"can't be read ({e})", expected="a table in MessagePack") from e


def _text(text: str) -> bytes:
    """Return a text as Tensile's writer encodes it: MessagePack's shortest form."""
    return msgspec.msgpack.encode(text)


def _write(file: IO[bytes], buffers: Iterable[Data]) -> None:
    for buffer in buffers:
        for piece in iter_pieces(buffer):
            file.write(piece)
