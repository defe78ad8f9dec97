"""A file of a Tensile library for another GPU: code relabelled, and tables that name the new files and target."""

from __future__ import annotations

import zlib
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.plain import BundlePart
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import BundleEntryId, Place, is_code_object, read_code_object
from rocwheel.binary.kind import is_bundle
from rocwheel.core.reading import iter_pieces, join_data, load
from rocwheel.device.editing.file_rewrite import FileRewrite
from rocwheel.device.editing.retarget import retarget_code_object
from rocwheel.device.editing.rewrite_order import RewriteOrder
from rocwheel.device.retargeting.relabelled import NotRelabelledError, renamed
from rocwheel.targets.retarget_pairs import TargetPair

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.core.reading import Data

__all__ = ["KernelNames", "write_kernel_file"]

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

    Raises `NotRelabelledError` for content of which nothing says how it names its target, and `DeviceCodeError` as
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
        raise NotRelabelledError(name, "is no code object, bundle or table", expected="a file that Tensile writes")


def _relabel(data: Data, pair: TargetPair, place: Place) -> tuple[Data, ...]:
    old = read_code_object(data, place=place).target
    new = pair.agent_of(old) if old else None
    if old is None or new is None:
        expected = f"code that {pair.agent} runs as {pair.code}"
        raise NotRelabelledError(str(place), f"has code for {old}", expected=expected)
    return retarget_code_object(data, old, new, place=place)


class _Relabel(msgspec.Struct, frozen=True):
    """Puts relabelled entries in the place of those that the pair is about."""

    pair: TargetPair

    def __call__(self, parts: tuple[BundlePart, ...], *, place: Place) -> tuple[BundlePart, ...]:
        """Return the entries of the new bundle."""
        return tuple(self._relabelled(part, place) for part in parts)

    def _relabelled(self, part: BundlePart, place: Place) -> BundlePart:
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
        raise NotRelabelledError(name, f"can't be decompressed ({e})", expected="a zlib stream") from e
    if not stream.eof:
        found = f"decompresses to more than {_TABLE_LIMIT} bytes, or is truncated"
        raise NotRelabelledError(name, found, expected="a whole table")
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
        raise NotRelabelledError(name, f"can't be read ({e})", expected="a table in MessagePack") from e


def _text(text: str) -> bytes:
    """Return a text as Tensile's writer encodes it: MessagePack's shortest form."""
    return msgspec.msgpack.encode(text)


def _write(file: IO[bytes], buffers: Iterable[Data]) -> None:
    for buffer in buffers:
        for piece in iter_pieces(buffer):
            file.write(piece)
