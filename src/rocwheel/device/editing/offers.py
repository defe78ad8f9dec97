"""Which bundles of a file have the code that pairs of targets offer to more GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.bundles.device_code import iter_code_sources
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files import FileRange

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rocwheel.binary.code_objects.target_id import TargetId
    from rocwheel.device.editing.retarget import TargetPair

__all__ = ["find_gaps"]


def find_gaps(path: Path, pairs: Sequence[TargetPair]) -> tuple[str, ...]:
    """Tell for which targets that ``pairs`` offer code to some bundles of the file will have none, and how many.

    Raises `InputError` when the file has device code, but none that a pair is about, and as `iter_code_sources` does.
    """
    with FileRange.whole(path).map() as data:
        bundles = tuple(source.bundle.targets for source in iter_code_sources(data, name=str(path)))
    if bundles and not any(_offers(targets, pair) for targets in bundles for pair in pairs):
        targets = dict.fromkeys(target for bundle in bundles for target in bundle)
        wanted = ", ".join(dict.fromkeys(str(pair.code) for pair in pairs))
        raise InputError(
            path, f"no code for {wanted} to offer to other GPUs", expected=_expected(tuple(targets), pairs)
        )
    return tuple(gap for pair in pairs if (gap := _gap(path, bundles, pair)))


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


def _gap(path: Path, bundles: Sequence[Sequence[TargetId]], pair: TargetPair) -> str:
    processor = pair.agent.processor
    lacking = sum(
        not _offers(targets, pair) and all(target.processor != processor for target in targets) for targets in bundles
    )
    if not lacking:
        return ""
    return f"{path}: {lacking} of {len(bundles)} bundles have no code for {pair.code}, and so none for {pair.agent}"
