"""Which code objects of a binary a GPU would use, and why."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.binary.bundles.device_code import read_device_code
from rocwheel.binary.code_objects.target_id import TargetId, parse_target_id
from rocwheel.device.reading.kpack.code import open_kpack_code
from rocwheel.device.reading.kpack.given_archives import GivenArchives
from rocwheel.distributions.binaries import Binary, find_all_binaries
from rocwheel.foundation.collecting import convert_all
from rocwheel.foundation.errors import InputError
from rocwheel.targets.compatibility import Fit, Runtime, choose, explain, fit, settings_of
from rocwheel.targets.kernel_files.names import is_kernel_file, targets_in_path, without_targets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rocwheel.binary.bundles.device_code import DeviceCode
    from rocwheel.device.reading.kpack.code import CodeUnit
    from rocwheel.foundation.files.file_view import Data

__all__ = ["FileVerdict", "Use", "judge_file", "judge_files", "judge_targets", "opened_verdicts"]


class Use(msgspec.Struct, frozen=True):
    """Bundles of one file from which the same code is taken; ``code`` is ``None`` where nothing runs."""

    code: TargetId | None
    fit: Fit
    reason: str
    bundles: int


class FileVerdict(msgspec.Struct, frozen=True):
    """What one file offers a GPU under the rules of one runtime."""

    path: str
    place: str
    """Its path below the folder or in the wheel that it was found in; empty for a file that was itself named."""
    gpu: TargetId
    """The GPU, with a setting of each feature that the file's code for it depends on."""
    runtime: Runtime
    uses: tuple[Use, ...]
    kpacked: bool = False
    """Whether the code was moved to kpack archives that are not there, so that nothing is known of GPUs."""

    @property
    def runs(self) -> bool:
        """Whether every bundle has code that runs."""
        return all(use.code is not None for use in self.uses)


def judge_file(path: Path, agent: TargetId) -> tuple[FileVerdict, ...]:
    """Return what a GPU would use of the file, by each runtime's rules; nothing for a file without device code.

    The code of a split library is in the kpack archives that its markers name, which are looked for from where it is.

    There are verdicts for every setting of a feature that ``agent`` leaves open and code for it sets, as it is one of
    them that the GPU has. Raises `InputError` for a file that can't be read or is damaged.
    """
    return judge_files([path], [agent])


def judge_files(paths: Iterable[Path], agents: Iterable[TargetId]) -> tuple[FileVerdict, ...]:
    """Judge every binary at ``paths``, which are files, folders and wheels, for each GPU, as `judge_file` does.

    A split library in a wheel gets its code of the archives in all wheels that are given with it.

    Raises `InputError` for what is damaged or can't be read, `ProblemsError` for several.
    """
    gpus = tuple(agents)
    binaries = list(find_all_binaries(paths))
    archives = GivenArchives(binaries)
    groups = convert_all("binaries", lambda found: tuple(_judge(found, archives, gpus)), binaries)
    return tuple(verdict for verdicts in groups for verdict in verdicts)


def _judge(found: Binary | InputError, archives: GivenArchives, agents: Iterable[TargetId]) -> Iterator[FileVerdict]:
    if isinstance(found, InputError):
        raise found
    with found.view() as data:
        code = _read_code(data, found, archives)
    if code is None:
        return
    for agent in agents:
        for gpu in settings_of(agent, _features_that_matter(code.bundles, agent)):
            for runtime in Runtime:
                uses = judge_targets(code.bundles, gpu, Runtime.STOCK if code.is_archived else runtime)
                yield FileVerdict(found.name, found.place, gpu, runtime, uses, code.is_elsewhere)


class _Code(NamedTuple):
    """The targets of each bundle of a file, in order; or that the code is in archives that are not there."""

    bundles: Sequence[Sequence[TargetId]]
    is_elsewhere: bool = False
    is_archived: bool = False
    """Whether it is in kpack archives, in which every runtime looks for a GPU's own target and a generic one alone."""


def _read_code(data: Data, found: Binary, given: GivenArchives) -> _Code | None:
    with open_kpack_code(data, name=found.name, folder=found.folder) as kpack:
        if kpack is not None:
            bundles = [_unit_targets(unit, found.name) for unit in kpack.units] if kpack.archives else []
            if not kpack.archives and (units := given.units_of(data, found.name)) is not None:
                return _Code(units, is_archived=True)
            return _Code(bundles, is_elsewhere=not kpack.archives, is_archived=True)
    code = read_device_code(data, name=found.name)
    if code is None:
        return None
    is_kpacked = code.fat_binary is not None and code.fat_binary.is_kpacked
    return _Code(list(_bundles(code, data)), is_elsewhere=is_kpacked)


def _unit_targets(unit: CodeUnit, name: str) -> tuple[TargetId, ...]:
    targets = (parse_target_id(target, source=name) for target in unit.targets)
    return tuple(target for target in targets if target.processor.startswith("gfx"))


def opened_verdicts(verdicts: Sequence[FileVerdict]) -> list[FileVerdict]:
    """Return the verdicts on the files that are opened: a kernel library opens none that is named for other targets.

    Names above a folder or a wheel with the library's files say nothing. With an
    extended runtime, a library opens a file for a similar GPU, unless there is the same for the GPU itself.
    """
    named = {v.place: _named_targets(v.place) for v in verdicts}
    own = {
        (v.gpu, without_targets(v.place))
        for v in verdicts
        if any(fit(target, v.gpu) is not Fit.NONE for target in named[v.place])
    }
    return [v for v in verdicts if _is_opened(v, named[v.place], (v.gpu, without_targets(v.place)) in own)]


def _named_targets(place: str) -> tuple[TargetId, ...]:
    return targets_in_path(place) if is_kernel_file(place) else ()


def _is_opened(verdict: FileVerdict, named: Sequence[TargetId], has_own: bool) -> bool:
    runtime = Runtime.STOCK if has_own else verdict.runtime
    return not named or any(fit(target, verdict.gpu, runtime) is not Fit.NONE for target in named)


def judge_targets(bundles: Iterable[Sequence[TargetId]], agent: TargetId, runtime: Runtime) -> tuple[Use, ...]:
    """Return which code is taken from ``bundles``, each given by its targets in order; equal ones count together."""
    counts = Counter(_use(targets, agent, runtime) for targets in bundles)
    return tuple(msgspec.structs.replace(use, bundles=count) for use, count in counts.items())


def _bundles(code: DeviceCode, data: Data) -> Iterator[Sequence[TargetId]]:
    if code.code_object is not None:
        yield (code.code_object.target,) if code.code_object.target else ()
        return
    for bundle in code.iter_bundles(data):
        yield bundle.targets


def _features_that_matter(bundles: Iterable[Sequence[TargetId]], agent: TargetId) -> set[str]:
    codes = {code for targets in bundles for code in targets if code.features}
    suiting = [code for code in codes if fit(TargetId(code.processor), agent, Runtime.EXTENDED) is not Fit.NONE]
    return {name for code in suiting for name in code.features}


def _use(targets: Sequence[TargetId], agent: TargetId, runtime: Runtime) -> Use:
    choice = choose(targets, agent, runtime)
    if choice is not None:
        return Use(choice.code, choice.fit, choice.reason, 1)
    reasons = "; ".join(f"{target}: {explain(target, agent, runtime)}" for target in targets)
    return Use(None, Fit.NONE, reasons or "no device code", 1)
