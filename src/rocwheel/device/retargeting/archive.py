"""A kpack archive for another GPU: each code object relabelled, under the keys of the new target."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rocwheel.binary.code_objects import Place, parse_target_id, read_code_object
from rocwheel.binary.kpack.archive import KernelKey, read_archive, read_kernel
from rocwheel.binary.kpack.write import ArchiveFacts, KpackWriter, compress_kernel
from rocwheel.core.reading import join_data
from rocwheel.device.editing.retarget import retarget_code_object
from rocwheel.device.retargeting.relabelled import NotRelabelledError

if TYPE_CHECKING:
    from rocwheel.binary.kpack.archive import KpackArchive, KpackEntry
    from rocwheel.binary.kpack.write import Sink
    from rocwheel.core.reading import Data
    from rocwheel.targets.retarget_pairs import TargetPair

__all__ = ["retarget_archive"]


def retarget_archive(data: Data, file: Sink, pair: TargetPair, *, name: str) -> None:
    """Write the archive ``data`` for the GPUs of ``pair.agent``; one code object is in memory at a time.

    All or nothing: a runtime gives up on every GPU when an archive for one lacks a unit.
    Raises `NotRelabelledError` when some code can't be offered, and `DeviceCodeError` as `retarget_code_object` does
    and for damaged archives.
    """
    archive = read_archive(data, name=name)
    family = archive.family.replace(pair.code.processor, pair.agent.processor)
    writer = KpackWriter(file, ArchiveFacts(archive.group, family, archive.scheme), name=name)
    for entries in _by_ordinal(archive, pair).values():
        code = memoryview(_relabelled(data, archive, entries[0], pair))
        writer.add(_keys(entries, pair, name), compress_kernel(code, archive.scheme), len(code))
    writer.finish()


def _by_ordinal(archive: KpackArchive, pair: TargetPair) -> dict[int, list[KpackEntry]]:
    found: dict[int, list[KpackEntry]] = defaultdict(list)
    for entry in sorted(archive.entries, key=lambda entry: entry.ordinal):
        if parse_target_id(entry.target, source=archive.name).processor == pair.code.processor:
            found[entry.ordinal].append(entry)
    return found


def _keys(entries: list[KpackEntry], pair: TargetPair, name: str) -> list[KernelKey]:
    keys: dict[KernelKey, None] = {}
    for entry in entries:
        agent = pair.agent_of(parse_target_id(entry.target, source=name))
        if entry.index is None:
            found = f"the key {entry.key!r}, which is not ROCm's"
            raise NotRelabelledError(name, found, expected="keys of libraries' units")
        if agent is not None:
            keys[KernelKey(entry.binary, entry.index, str(agent))] = None
    if not keys:
        raise _unfit(name, entries[0].target, pair)
    return list(keys)


def _relabelled(data: Data, archive: KpackArchive, entry: KpackEntry, pair: TargetPair) -> bytes:
    place = Place(archive.name, entry.offset)
    code = read_kernel(data, archive, entry)
    old = read_code_object(code, place=place).target
    new = pair.agent_of(old) if old else None
    if old is None or new is None:
        raise _unfit(archive.name, str(old or entry.target), pair)
    return join_data(retarget_code_object(code, old, new, place=place))


def _unfit(name: str, target: str, pair: TargetPair) -> NotRelabelledError:
    return NotRelabelledError(name, f"has code for {target}", expected=f"code that {pair.agent} runs as {pair.code}")
