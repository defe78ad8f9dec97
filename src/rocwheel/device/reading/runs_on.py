"""Which code objects of a binary a GPU would use, and why."""

from __future__ import annotations

import os
from collections import Counter
from glob import glob
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.binary.bundles.device_code import read_device_code
from rocwheel.binary.code_objects.target_id import TargetId, parse_target_id
from rocwheel.device.reading.kpack.code import open_kpack_code
from rocwheel.device.reading.kpack.given_archives import GivenArchives, installed_place
from rocwheel.device.reading.use import Use, look_up_old_use, look_up_use, use_of
from rocwheel.distributions.binaries import Binary, find_all_binaries, find_places, tracked_binaries
from rocwheel.foundation.collecting import convert_good, raise_all
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.progress import SILENT, Progress
from rocwheel.targets.compatibility import Fit, Runtime, fit, settings_of
from rocwheel.targets.kernel_files.names import is_kernel_file, targets_in_path, without_targets
from rocwheel.targets.kernel_files.table import Without
from rocwheel.targets.library_code import (
    LAST_STOPPING_RELEASE,
    KernelFolder,
    KernelFolders,
    Lookup,
    SearchedArchive,
    opener_of,
)
from rocwheel.targets.overlay_names import split_overlay_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rocwheel.binary.bundles.device_code import DeviceCode
    from rocwheel.device.reading.kpack.code import CodeUnit, KpackCode
    from rocwheel.foundation.errors import RocwheelError
    from rocwheel.foundation.files.reading.file_view import Data

__all__ = ["FileVerdict", "FolderLack", "Use", "judge_file", "judge_files", "judge_targets", "opened_verdicts"]


class FolderLack(msgspec.Struct, frozen=True):
    """What a folder of kernels lacks for a GPU; ``found`` follows the folder's place and "which"."""

    folder: str
    found: str
    compiles: bool
    """Whether the library compiles the kernels when they are first used."""


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
    """Whether the code was moved to kpack archives of which none is there."""
    up_to: str = ""
    """The last ROCm release that this holds for, where later ones do better; empty if this holds for all."""
    lack: FolderLack | None = None
    """What the folder of kernels lacks that the library opens."""

    @property
    def runs(self) -> bool:
        """Whether every bundle has code that runs, and the folder of kernels what the library can't do without."""
        return all(use.code is not None for use in self.uses) and (self.lack is None or self.lack.compiles)


def judge_file(path: Path, agent: TargetId) -> tuple[FileVerdict, ...]:
    """Return what a GPU would use of the file, by each runtime's rules; nothing for a file without device code.

    The code of a split library is in the kpack archives that its markers name, which are looked for from where it is.

    There are verdicts for every setting of a feature that ``agent`` leaves open and code for it sets: the GPU has one
    of these settings. Raises `InputError` for a file that can't be read or is damaged.
    """
    return judge_files([path], [agent])


def judge_files(
    paths: Iterable[Path],
    agents: Iterable[TargetId],
    *,
    is_machine: bool = False,
    unread: list[RocwheelError] | None = None,
    progress: Progress = SILENT,
) -> tuple[FileVerdict, ...]:
    """Judge every binary at ``paths``, which are files, folders and wheels, for each GPU, as `judge_file` does.

    A split library gets its code from the archives that are installed beside it, and from those in everything that is
    given, as if folders and wheels were laid over each other. With ``is_machine``, all GPUs are in one machine: there,
    an archive that lists one of them and lacks its code keeps the code from all.

    A feature that a GPU leaves open is set in the verdicts on every file once the code or the name of one file sets it.

    Raises `InputError` for what is damaged or can't be read, `ProblemsError` for several. With a list ``unread``, they
    are appended to that, and raised where no other file is there.
    """
    gpus, paths = tuple(dict.fromkeys(agents)), list(paths)
    binaries = list(find_all_binaries(paths))
    archives = GivenArchives(binaries)
    folders = KernelFolders(installed_place(place) for place in find_places(paths))
    given = tracked_binaries(binaries, "reading device code", progress)
    problems = [] if unread is None else unread
    read = convert_good("binaries", lambda found: _read(found, archives), given, problems)
    if unread is None:
        raise_all("binaries", problems)
    kept = [(found, code, _folder_of(found, folders)) for found, code in read]
    files = [(found, code) for found, code, _ in kept if code is not None]
    settings = {agent: settings_of(agent, _features_that_matter(files, agent)) for agent in gpus}
    return tuple(verdict for each in kept for verdict in _judge_with_folder(*each, settings, is_machine))


def _read(found: Binary | InputError, archives: GivenArchives) -> tuple[Binary, _Code | None]:
    if isinstance(found, InputError):
        raise found
    with found.view() as data:
        return found, _read_code(data, found, archives)


def _folder_of(found: Binary, folders: KernelFolders) -> KernelFolder | None:
    """Return the folder of kernels that a library opens, among all that is given or beside it on disk."""
    opener = opener_of(found.name)
    if opener is None or (given := folders.opened_by(installed_place(found.place))) or found.folder is None:
        return given if opener else None
    library = found.folder.resolve() / PurePath(found.name).name
    beside = [folder for pattern in opener.folders for folder in glob(f"{library.parent}/{pattern}")]  # noqa: PTH207
    places = (Path(os.path.normpath(folder), place) for folder in beside for place in find_places([Path(folder)]))
    return KernelFolders(map(str, places)).opened_by(str(library))


def _judge_with_folder(
    found: Binary,
    code: _Code | None,
    folder: KernelFolder | None,
    settings: Mapping[TargetId, Sequence[TargetId]],
    is_machine: bool,
) -> Iterator[FileVerdict]:
    """Yield the verdicts on a file; on a library without code of its own, only those whose folder lacks kernels."""
    for verdict in _judge(found, code or _Code([]), settings, is_machine):
        lacking = folder.find_lack(verdict.gpu, verdict.runtime) if folder else ""
        if folder and lacking:
            lack = FolderLack(folder.place, lacking, folder.opener.without is Without.COMPILES)
            yield msgspec.structs.replace(verdict, lack=lack)
        elif code is not None:
            yield verdict


def _judge(
    found: Binary, code: _Code, settings: Mapping[TargetId, Sequence[TargetId]], is_machine: bool
) -> Iterator[FileVerdict]:
    for agent, gpus in settings.items():
        beside = [gpu for other, others in settings.items() if other != agent for gpu in others] if is_machine else []
        for gpu in gpus:
            for runtime in Runtime:
                uses = _uses(code, gpu, runtime, beside)
                yield FileVerdict(found.name, found.place, gpu, runtime, uses, code.is_elsewhere)
            old = _old_uses(code, gpu, beside)
            if old is not None:
                yield FileVerdict(found.name, found.place, gpu, Runtime.STOCK, old, up_to=LAST_STOPPING_RELEASE)


class _Code(NamedTuple):
    """The targets of each bundle of a file, in order."""

    bundles: Sequence[Sequence[TargetId]]
    lookups: tuple[Lookup, ...] = ()
    """Of a split library: the archives of each bundle."""
    is_archived: bool = False
    """Whether it is in kpack archives, in which every runtime looks for a GPU's own target and a generic one alone."""

    @property
    def listed(self) -> Sequence[Sequence[TargetId]]:
        """The targets of each bundle, and those that its archives only list."""
        return [*self.bundles, *(lookup.listed for lookup in self.lookups)]

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is in archives of which none is there."""
        return bool(self.lookups) and not any(lookup.archives for lookup in self.lookups)


def _read_code(data: Data, found: Binary, given: GivenArchives) -> _Code | None:
    with open_kpack_code(data, name=found.name, folder=found.folder, beside=given.beside(found)) as kpack:
        if kpack is not None and kpack.is_library:
            problems = zip(kpack.unreadable, kpack.problems, strict=True)
            raise_all(found.name, [InputError(found.name, text) for name, text in problems if not given.holds(name)])
            lookups = tuple(_look_up(kpack))
            return _Code([lookup.targets for lookup in lookups], lookups, is_archived=True)
        if kpack is not None:
            return _Code([_unit_targets(unit, found.name) for unit in kpack.units], is_archived=True)
    code = read_device_code(data, name=found.name)
    return _Code(list(_bundles(code, data))) if code is not None else None


def _look_up(kpack: KpackCode) -> Iterator[Lookup]:
    archives = {archive.name: archive for archive in kpack.archives}
    for unit in kpack.units:
        if unit.wrapper is not None:
            ways = (SearchedArchive(archives[way.archive], way.path, way.target) for way in unit.ways)
            yield Lookup(unit.wrapper, tuple(ways))


def _unit_targets(unit: CodeUnit, name: str) -> tuple[TargetId, ...]:
    targets = (parse_target_id(target, source=name) for target in unit.targets)
    return tuple(target for target in targets if target.processor.startswith("gfx"))


def _uses(code: _Code, gpu: TargetId, runtime: Runtime, beside: Sequence[TargetId]) -> tuple[Use, ...]:
    if code.lookups:
        return _counted(look_up_use(lookup, gpu, beside) for lookup in code.lookups)
    return judge_targets(code.bundles, gpu, Runtime.STOCK if code.is_archived else runtime)


def _old_uses(code: _Code, gpu: TargetId, beside: Sequence[TargetId]) -> tuple[Use, ...] | None:
    """Return what old runtimes use of a split library, if that is less than what later ones do."""
    new = [look_up_use(lookup, gpu, beside) for lookup in code.lookups]
    old = [look_up_old_use(lookup, gpu, beside) for lookup in code.lookups]
    return _counted(old) if any(one.code != other.code for one, other in zip(new, old, strict=True)) else None


def opened_verdicts(verdicts: Sequence[FileVerdict]) -> list[FileVerdict]:
    """Return the verdicts on the files that are opened: a kernel library opens none that is named for other targets.

    Names above a folder or a wheel with the library's files say nothing. With an
    extended runtime, a library opens a file for a similar GPU, unless there is the same for the GPU itself.
    A library for one target alone takes the place of the one for all GPUs (`rocwheel.targets.overlay_names`).
    """
    verdicts = _chosen(verdicts)
    named = {v.place: _named_targets(v.place) for v in verdicts}
    own = {
        (v.gpu, without_targets(v.place))
        for v in verdicts
        if any(fit(target, v.gpu) is not Fit.NONE for target in named[v.place])
    }
    return [v for v in verdicts if _is_opened(v, named[v.place], (v.gpu, without_targets(v.place)) in own)]


def _chosen(verdicts: Sequence[FileVerdict]) -> list[FileVerdict]:
    """Leave out verdicts on libraries for other targets, and on libraries that those for the GPU stand in for."""
    overlays = {v.place: split for v in verdicts if (split := split_overlay_path(v.place))}
    taken = {(v.gpu, overlays[v.place][0]) for v in verdicts if v.place in overlays and _is_for(v, overlays)}
    return [v for v in verdicts if (_is_for(v, overlays) if v.place in overlays else (v.gpu, v.place) not in taken)]


def _is_for(verdict: FileVerdict, overlays: Mapping[str, tuple[str, str]]) -> bool:
    return fit(TargetId(overlays[verdict.place][1]), verdict.gpu) is not Fit.NONE


def _named_targets(place: str) -> tuple[TargetId, ...]:
    return targets_in_path(place) if is_kernel_file(place) else ()


def _is_opened(verdict: FileVerdict, named: Sequence[TargetId], has_own: bool) -> bool:
    runtime = Runtime.STOCK if has_own else verdict.runtime
    return not named or any(fit(target, verdict.gpu, runtime) is not Fit.NONE for target in named)


def judge_targets(bundles: Iterable[Sequence[TargetId]], agent: TargetId, runtime: Runtime) -> tuple[Use, ...]:
    """Return which code is taken from ``bundles``, each given by its targets in order; equal ones count together."""
    return _counted(use_of(targets, agent, runtime) for targets in bundles)


def _counted(uses: Iterable[Use]) -> tuple[Use, ...]:
    counts = Counter(uses)
    return tuple(msgspec.structs.replace(use, bundles=count) for use, count in counts.items())


def _bundles(code: DeviceCode, data: Data) -> Iterator[Sequence[TargetId]]:
    if code.code_object is not None:
        yield (code.code_object.target,) if code.code_object.target else ()
        return
    for bundle in code.iter_bundles(data):
        yield bundle.targets


def _features_that_matter(files: Iterable[tuple[Binary, _Code]], agent: TargetId) -> set[str]:
    """Return the features that code for the GPU sets in some file, or that a kernel file for it has in its name."""
    bundles = (targets for found, code in files for targets in (*code.listed, _named_targets(found.place)))
    codes = {code for targets in bundles for code in targets if code.features}
    suiting = [code for code in codes if fit(TargetId(code.processor), agent, Runtime.EXTENDED) is not Fit.NONE]
    return {name for code in suiting for name in code.features}
