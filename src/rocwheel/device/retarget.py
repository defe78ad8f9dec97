"""Making code for one target pass for another that runs the same instructions.

An unmodified runtime distinguishes targets by the entry id in the bundle and by ``e_flags`` in the code object; the
metadata notes name the target for tools. Nothing else in a code object does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.device_code import iter_code_sources
from rocwheel.binary.bundles.plain import BundlePart
from rocwheel.binary.code_objects import BundleEntryId, DeviceCodeError, TargetId, encode_flags, read_code_object
from rocwheel.binary.elf.header import E_FLAGS
from rocwheel.binary.kernel_metadata import rename_target
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.reading import join_data
from rocwheel.targets.retarget_pairs import TargetPair
from rocwheel.wheels.binaries import is_wheel, read_binaries

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rocwheel.binary.code_objects import Place
    from rocwheel.core.reading import Data
    from rocwheel.wheels.binaries import Binary

_OLDEST_VERSION = 4


def retarget_code_object(data: Data, old: TargetId, new: TargetId, *, place: Place) -> tuple[Data, ...]:
    """Return a code object for ``new`` as buffers: ``data``, but for ``e_flags`` and the target in every metadata note.

    Raises `DeviceCodeError` when the code object isn't for ``old``, is older than code object version 4, or can't hold
    the name of ``new`` where it has that of ``old``.
    """
    code = read_code_object(data, place=place)
    if code.version < _OLDEST_VERSION:
        raise DeviceCodeError(place, f"a code object of version {code.version}", expected=f"{_OLDEST_VERSION} or later")
    if code.target != old:
        raise DeviceCodeError(place, f"a code object for {code.target}", expected=f"one for {old}, as its entry says")
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


def same_code(one: BundlePart, other: BundlePart, *, place: Place) -> bool:
    """Return whether two entries hold the same code: equal bytes once the first is relabeled for the second's target.

    Raises `DeviceCodeError` as `retarget_code_object` does.
    """
    old, new = one.target, other.target
    if old is None or new is None or one.size != other.size:
        return False
    mine = retarget_code_object(_joined(one), old, new, place=place)
    return join_data(mine) == join_data(other.payload)


class Retarget(msgspec.Struct, frozen=True):
    """Adds an entry for each pair whose code the bundle has and whose agent it lacks.

    With ``verify``, a bundle that has both must have the same code for both, or `DeviceCodeError` is raised.
    """

    pairs: tuple[TargetPair, ...]
    verify: bool = False

    def __call__(self, parts: tuple[BundlePart, ...], *, place: Place) -> tuple[BundlePart, ...]:
        """Return the entries with the new ones in their places."""
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
                        place, f"its code for {agent} differs from that for {target}", expected="the same instructions"
                    )
                if not present:
                    result = _insert(result, _copy_for(part, target, agent, place), place)
        return parts if len(result) == len(parts) else tuple(result)


def _joined(part: BundlePart) -> Data:
    return part.payload[0] if len(part.payload) == 1 else memoryview(join_data(part.payload))


def _copy_for(part: BundlePart, old: TargetId, new: TargetId, place: Place) -> BundlePart:
    spelling = str(BundleEntryId.parse(part.spelling).retargeted(new))
    return BundlePart(spelling, retarget_code_object(_joined(part), old, new, place=place))


def _insert(parts: list[BundlePart], new: BundlePart, place: Place) -> list[BundlePart]:
    """Insert where a sorted bundle has it, else at the end; readers take the first entry that fits.

    So nothing may fit a GPU of the new target before: a feature is named in all entries of a processor, or in none.
    """
    target = new.target
    for part in parts:
        other = part.target
        if other and target and other.processor == target.processor and set(other.features) != set(target.features):
            raise DeviceCodeError(
                place, f"has code for {other} next to which {target} is ambiguous", expected="the same features named"
            )
    device = [part.spelling for part in parts if part.target]
    if device != sorted(device):
        return [*parts, new]
    index = next((i for i, p in enumerate(parts) if p.target and p.spelling > new.spelling), len(parts))
    return [*parts[:index], new, *parts[index:]]


def find_gaps(path: Path, pairs: Sequence[TargetPair]) -> tuple[str, ...]:
    """Return for which targets of ``pairs`` some bundles of the file will have no code, and for how many bundles.

    Of a wheel, each file with code that a pair is about is judged. Raises `InputError` when the file has device code,
    but none that a pair is about, and as `iter_code_sources` does.
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


def _list_files(path: Path) -> Iterator[tuple[str, tuple[Sequence[TargetId], ...]]]:
    """Yield each file with the targets of its bundles; the files of a wheel that are damaged are left to its edit."""
    for name, listed in read_binaries(path, _list_bundles):
        if not isinstance(listed, InputError):
            yield name, listed


def _list_bundles(data: Data, found: Binary) -> tuple[Sequence[TargetId], ...]:
    return tuple(source.bundle.targets for source in iter_code_sources(data, name=found.name))


def _expected(targets: Sequence[TargetId], pairs: Sequence[TargetPair]) -> str:
    needed = {
        f"code without {name}, which is off on {pair.agent.processor}": None
        for pair in pairs
        for name in pair.unnamed
        if any(target.processor == pair.code.processor and target.features.get(name) for target in targets)
    }
    return " and ".join(needed) or (f"one of its targets {', '.join(map(str, targets))}" if targets else "")


def _offers(targets: Sequence[TargetId], pair: TargetPair) -> bool:
    return any(pair.agent_of(target) for target in targets)


def bundles_without(bundles: Sequence[Sequence[TargetId]], pair: TargetPair) -> str:
    """Return how many of a file's bundles, given by their targets, will lack code for ``pair.agent``; empty if none."""
    processor = pair.agent.processor
    lacking = sum(
        not _offers(targets, pair) and all(target.processor != processor for target in targets) for targets in bundles
    )
    if not lacking:
        return ""
    found = f"{lacking} of {count(len(bundles), 'bundle')} {'has' if lacking == 1 else 'have'} no code for {pair.code}"
    return f"{found}, and so none for {pair.agent}"
