"""What compressing, splitting and pruning would save, by what was measured on the files themselves."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rocwheel.binary.code_objects.target_id import TargetId, parse_target_id
from rocwheel.foundation.errors import InputError
from rocwheel.report.values.files import HOST
from rocwheel.report.values.savings import Action, Saving, Savings
from rocwheel.targets.compatibility import Fit, fit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rocwheel.report.measure_code import MeasuredCode
    from rocwheel.report.values.files import FileFacts

__all__ = ["find_savings"]

_Sizes = tuple[int, int]


def find_savings(
    files: Sequence[FileFacts],
    measured: Mapping[int, MeasuredCode],
    gpus: Iterable[str],
    *,
    packed: int | None,
    is_estimated: bool,
) -> Savings | None:
    """Return what each action would leave; ``measured`` has the files with bundles by their place among ``files``.

    Splitting and pruning are reckoned for each of ``gpus`` alone. All is compared with the same: the sizes of all
    files, and ``packed``, what all wheels and sdists take as a whole, if there are any. What no file takes of that
    stays. None where there is no device code.
    """
    if not any(file.parts for file in files):
        return None

    def left(action: Action, gpu: str, after: Callable[[FileFacts, MeasuredCode | None], _Sizes]) -> Saving:
        pairs = [after(file, measured.get(place)) for place, file in enumerate(files)]
        size, in_wheels = (sum(values) for values in zip(*pairs, strict=True))
        return Saving(action, gpu, before, size, packed, None if packed is None else rest + in_wheels)

    before = sum(file.size for file in files)
    rest = (packed or 0) - sum(file.packed or 0 for file in files)
    rows = [left(Action.COMPRESS, "", _compressed)] if measured else []
    for gpu in gpus:
        serves = _Serving(gpu)
        if measured:
            rows.append(left(Action.SPLIT, gpu, partial(_split, serves=serves)))
        rows.append(left(Action.PRUNE, gpu, partial(_pruned, serves=serves)))
    looked_at = sum(code.measured for code in measured.values())
    return Savings(is_estimated, looked_at, sum(code.bundles for code in measured.values()), tuple(rows))


class _Serving:
    """Tells whether code for a target is of use on a GPU, whatever the settings of its features."""

    def __init__(self, gpu: str) -> None:
        self._gpu = TargetId(gpu)
        self._known = {HOST: True}

    def __call__(self, target: str) -> bool:
        if target not in self._known:
            self._known[target] = self._serves(target)
        return self._known[target]

    def _serves(self, text: str) -> bool:
        try:
            code = parse_target_id(text)
        except InputError:
            return False
        return code.processor == self._gpu.processor or fit(code, self._gpu) is not Fit.NONE


def _compressed(file: FileFacts, code: MeasuredCode | None) -> _Sizes:
    if code is None:
        return file.size, file.packed or 0
    return code.host + code.compressed, _if_packed(code.host_packed + code.compressed, file)


def _split(file: FileFacts, code: MeasuredCode | None, serves: _Serving) -> _Sizes:
    if code is None:
        return _pruned(file, code, serves)
    archives = sum(size for target, size in code.archived.items() if serves(target))
    return code.host + archives, _if_packed(code.host_packed + archives, file)


def _pruned(file: FileFacts, code: MeasuredCode | None, serves: _Serving) -> _Sizes:
    if not file.parts:
        return file.size, file.packed or 0
    kept = sum(part.size for part in file.parts if serves(part.target))
    if code is None or file.packed is None:
        return kept, sum(part.packed or 0 for part in file.parts if serves(part.target))
    # Code deflates to another part of its size than the host's bytes do.
    in_bundles = max(file.packed - code.host_packed, 0)
    return kept, file.packed - in_bundles * (file.size - kept) // max(code.bundles, 1)


def _if_packed(packed: int, file: FileFacts) -> int:
    return 0 if file.packed is None else packed
