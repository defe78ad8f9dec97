"""What becomes of each file of a tree or a wheel when its device code is split off."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.bundles.wrappers import FatBinary, read_fat_binary
from rocwheel.binary.code_objects import TargetId, is_code_object
from rocwheel.binary.kind import is_bundle, is_kpack
from rocwheel.core.errors import InputError
from rocwheel.core.workers import attempt_all, raise_all
from rocwheel.device.editing.prune import serves
from rocwheel.device.splitting.files import DeviceFile, HostFile, LackingCode, NamedFile, SplitChoice, SplitPlan
from rocwheel.device.splitting.host.errors import NotSplittableError
from rocwheel.device.splitting.host.host_file import has_code_to_split, plan_host_file
from rocwheel.device.splitting.kernels import find_kernels
from rocwheel.device.splitting.planning.library import plan_library
from rocwheel.device.splitting.planning.names import name_groups
from rocwheel.targets.kernel_files.classify import KernelFile, find_family, is_unknown_kernel_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.core.errors import RocwheelError

__all__ = ["plan_split"]


class _Sorted(msgspec.Struct, frozen=True):
    """A file and what it is: for one target, a fat binary, or neither."""

    file: NamedFile
    kernels: KernelFile | None = None
    has_code: bool = False
    remark: str = ""
    """Why its device code stays in it, where that is known."""


def plan_split(files: Sequence[NamedFile], choice: SplitChoice, *, subject: str) -> SplitPlan:
    """Plan the splitting of ``files``, whose paths begin at one root; nothing but headers is read.

    Kernel files that the table knows go to their target; so do archives. Libraries that can't be split, other files
    with device code, and kernel files that no rule knows stay in the host folder, each with a remark.
    Raises, for all files together and led by ``subject`` if they are several, `InputError` for damaged files, for two
    archives of one name, and when nothing is left for the targets to keep.
    """
    problems: list[RocwheelError] = []
    ordered = sorted(files, key=lambda file: file.path)
    sorted_files = attempt_all(_sort, ordered, problems)
    groups = name_groups(found.file.path for found in sorted_files if found.has_code)
    host = attempt_all(lambda found: _plan_host(found, groups, choice), _host_files(sorted_files), problems)
    kernels = tuple(_kernel_files(sorted_files))
    device = tuple(file for file in kernels if _is_kept(file.target, choice.keep))
    left_out = tuple(file.path for file in kernels if file not in device)
    plan = SplitPlan(host=tuple(host), device=device, left_out=left_out, lacking=tuple(_lacking(host, choice.keep)))
    problems += _conflicts(plan)
    if not problems and choice.keep and not plan.targets and (left_out or groups):
        problems.append(_nothing_left(subject, choice.keep))
    raise_all(subject, problems)
    return plan


def _sort(file: NamedFile) -> _Sorted:
    with file.content.view() as data:
        kernels = find_kernels(data, file)
        if kernels is not None or is_kpack(data):
            return _Sorted(file, kernels)
        try:
            return _Sorted(file, has_code=has_code_to_split(data, name=file.name))
        except NotSplittableError as e:
            return _Sorted(file, remark=e.reason)


def _host_files(files: Sequence[_Sorted]) -> list[_Sorted]:
    return [found for found in files if found.kernels is None]


def _kernel_files(files: Sequence[_Sorted]) -> Iterator[DeviceFile]:
    for found in files:
        if found.kernels is not None:
            yield DeviceFile(found.file.path, found.file.content, found.kernels.target)


def _plan_host(found: _Sorted, groups: dict[str, str], choice: SplitChoice) -> HostFile:
    path, content = found.file.path, found.file.content
    if not found.has_code:
        return HostFile(path=path, content=content, remark=found.remark or _remark(found.file))
    with content.view() as data:
        fat = read_fat_binary(data, name=found.file.name)
        assert isinstance(fat, FatBinary), "it has code to split"
        try:
            library = plan_library(data, fat, path, groups[path], keep=choice.keep, folder=choice.archives)
            patch = plan_host_file(data, library.markers(), library.links(), name=found.file.name)
        except NotSplittableError as e:
            return HostFile(path=path, content=content, remark=e.reason)
    return HostFile(path=path, content=content, library=library, patch=patch)


def _remark(file: NamedFile) -> str:
    """Return why device code stays in a file that is no fat binary; empty if there is none."""
    if is_unknown_kernel_file(file.path):
        return "a kernel file that no rule knows"
    with file.content.view() as data:
        if is_kpack(data):
            return "an archive for several targets"
        targets = device_targets(data, name=file.name)
        is_file_of_code = is_bundle(data) or is_code_object(data)
    what = "device code that no rule knows" if is_file_of_code else "device code that isn't linked"
    return f"{what}, for {', '.join(map(str, targets))}" if targets else ""


def _is_kept(target: str, keep: Sequence[TargetId]) -> bool:
    """Return whether a file for ``target``, which may be a family, serves one of the targets to keep."""
    family = find_family(target)
    members = family.targets if family else (target,)
    return not keep or any(serves(TargetId(member), wanted) for member in members for wanted in keep)


def _lacking(host: Sequence[HostFile], keep: Sequence[TargetId]) -> Iterator[LackingCode]:
    """Yield the targets to keep that some library has no code for."""
    targets = {file.path: {t for unit in file.library.units for t in unit.targets} for file in host if file.library}
    for wanted in keep:
        paths = tuple(path for path, found in targets.items() if not any(serves(t, wanted) for t in found))
        if paths:
            yield LackingCode(str(wanted), paths)


def _conflicts(plan: SplitPlan) -> list[InputError]:
    """Return an error for each archive to write whose name another has, or a file of the tree, or a folder above it."""
    taken = {path.lower() for path in [*(file.path for file in plan.host), *(file.path for file in plan.device)]}
    above = {str(parent) for archive in plan.iter_archives() for parent in PurePosixPath(archive.path).parents}
    in_the_way = [
        InputError(path, "is a file, and archives would be below it", expected="another folder for archives")
        for path in sorted(above)
        if path.lower() in taken
    ]
    there = [
        InputError(
            archive.path, "is in the tree, and would be made", expected="a tree without it", remedy="Join first."
        )
        for archive in plan.iter_archives()
        if archive.path.lower() in taken
    ]
    return _made_twice(plan) + in_the_way + there


def _made_twice(plan: SplitPlan) -> list[InputError]:
    """Return an error for each archive that two libraries would write."""
    users = Counter(archive.path.lower() for archive in plan.iter_archives())
    return [
        InputError(path, "would be made of two libraries", expected="names that differ in more than '-part2'")
        for path in dict.fromkeys(archive.path for archive in plan.iter_archives())
        if users[path.lower()] > 1
    ]


def _nothing_left(subject: str, keep: Sequence[TargetId]) -> InputError:
    return InputError(subject, "has no code for any target to keep", expected=f"code for {', '.join(map(str, keep))}")
