"""Which code objects of a binary a GPU would use, and why."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.device_code import read_device_code
from rocwheel.binary.target_id import TargetId
from rocwheel.files import FileRange
from rocwheel.targets.compatibility import Fit, Runtime, choose, explain
from rocwheel.targets.errors import convert_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rocwheel.binary.device_code import DeviceCode

__all__ = ["FileVerdict", "Use", "judge_file", "judge_files", "judge_targets"]


class Use(msgspec.Struct, frozen=True):
    """Bundles of one file from which the same code is taken; ``code`` is ``None`` where nothing runs."""

    code: TargetId | None
    fit: Fit
    reason: str
    bundles: int


class FileVerdict(msgspec.Struct, frozen=True):
    """What one file offers a GPU under the rules of one runtime."""

    path: str
    runtime: Runtime
    uses: tuple[Use, ...]
    kpacked: bool = False
    """Whether the code was moved to kpack files, so that this file says nothing about GPUs."""

    @property
    def runs(self) -> bool:
        """Whether every bundle has code that runs."""
        return all(use.code is not None for use in self.uses)


def judge_file(path: Path, agent: TargetId, runtime: Runtime) -> FileVerdict | None:
    """Tell what of the file a GPU would use; ``None`` for a file without device code.

    Raises `InputError` for a file that can't be read or is damaged.
    """
    source = FileRange.whole(path)
    with source.map() as data:
        code = read_device_code(data, name=str(path))
        if code is None:
            return None
        uses = judge_targets(_bundles(code, data), agent, runtime)
    kpacked = code.fat_binary is not None and code.fat_binary.is_kpacked
    return FileVerdict(str(path), runtime, uses, kpacked)


def judge_files(paths: Iterable[Path], agent: TargetId, runtime: Runtime) -> list[FileVerdict]:
    """Judge every file that holds device code; damaged and unreadable ones are reported together."""
    verdicts = convert_all("binaries", lambda path: judge_file(path, agent, runtime), paths)
    return [verdict for verdict in verdicts if verdict is not None]


def judge_targets(bundles: Iterator[Sequence[TargetId]], agent: TargetId, runtime: Runtime) -> tuple[Use, ...]:
    """Tell which code is taken from ``bundles``, each given by its targets in order; like ones are counted together."""
    counts = Counter(_use(targets, agent, runtime) for targets in bundles)
    return tuple(msgspec.structs.replace(use, bundles=count) for use, count in counts.items())


def _bundles(code: DeviceCode, data: memoryview) -> Iterator[Sequence[TargetId]]:
    if code.code_object is not None:
        yield (code.code_object.target,) if code.code_object.target else ()
        return
    for bundle in code.iter_bundles(data):
        yield bundle.targets


def _use(targets: Sequence[TargetId], agent: TargetId, runtime: Runtime) -> Use:
    choice = choose(targets, agent, runtime)
    if choice is not None:
        return Use(choice.code, choice.fit, choice.reason, 1)
    reasons = "; ".join(f"{target}: {explain(target, agent, runtime)}" for target in targets)
    return Use(None, Fit.NONE, reasons or "no device code", 1)
