"""Splits libraries for runtimes without kpack: one library for all GPUs, and a complete library for each target."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.binary.code_objects import NotTrimmableError, TargetId
from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.pe.header import is_pe64
from rocwheel.core.errors import InputError
from rocwheel.core.reading import FileRange
from rocwheel.core.workers import attempt_all, raise_all
from rocwheel.device.edit_bundles import Prune, needed_code
from rocwheel.device.edit_file import FileRewrite, RewriteOrder
from rocwheel.device.split.splitting import DeviceFile, StayingCode, find_kernels
from rocwheel.device.trim import require_trimmable
from rocwheel.targets.catalog import relabeled_agents, sort_key
from rocwheel.targets.kernel_files import find_family
from rocwheel.targets.serving import overlay_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rocwheel.binary.bundles.plain import BundlePart
    from rocwheel.binary.code_objects import CodePlace
    from rocwheel.core.errors import RocwheelError
    from rocwheel.core.reading import Data
    from rocwheel.device.split.splitting import NamedFile


def default_common(codes: Iterable[TargetId]) -> tuple[TargetId, ...]:
    """Return the generic targets among ``codes``: the smallest amount of code that runs on the most GPUs.

    Without generic targets, return the target whose instructions run on the most other GPUs; if several targets are
    tied, return the newest. To make these GPUs use its code, users set ``HSA_OVERRIDE_GFX_VERSION``.
    """
    processors = {code.processor for code in codes}
    generic = sorted((name for name in processors if TargetId(name).is_generic), key=sort_key)
    specific = sorted((name for name in processors if name.startswith("gfx")), key=sort_key)
    shared = max(specific, key=lambda name: (len(relabeled_agents(name)), specific.index(name)), default=None)
    return tuple(map(TargetId, generic or ([shared] if shared else [])))


class OverlayChoice(msgspec.Struct, frozen=True):
    """The code that libraries keep for all GPUs, and the libraries that can be selected at load time."""

    common: tuple[TargetId, ...]
    """The targets whose code stays, or an empty tuple for the targets from `default_common`."""
    is_chosen: Callable[[str], bool]
    """Whether a library with the given SONAME is loaded by that name, so that a GPU-specific library can replace it."""


class OverlaidLibrary(msgspec.Struct, frozen=True):
    """A library that keeps the code for the common set. Each of ``targets`` gets a complete library."""

    path: str
    content: FileRange
    soname: str
    codes: tuple[TargetId, ...]
    """The targets of the library's code."""
    targets: tuple[str, ...] = ()

    def path_for(self, target: str) -> str:
        """Return the path of the library for a target."""
        return overlay_path(posixpath.join(posixpath.dirname(self.path), self.soname), target)


class OverlayPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan for all files. Files that aren't in any list don't change."""

    common: tuple[TargetId, ...]
    libraries: tuple[OverlaidLibrary, ...]
    device: tuple[DeviceFile, ...]
    """Kernel files, which are put unchanged into the folders for their targets."""
    remarks: dict[str, str]
    """The files that keep their code for all GPUs, with the reasons."""


class PruneToSome(msgspec.Struct, frozen=True):
    """Keeps the code that GPUs in ``keep`` need, or a bundle's smallest code object if they need no code in the bundle.

    No GPU runs that code object, but some runtimes might reject a bundle without device code.
    """

    keep: tuple[TargetId, ...]

    def __call__(self, parts: tuple[BundlePart, ...], *, place: CodePlace) -> tuple[BundlePart, ...]:
        """Return the entries to keep."""
        kept = Prune(self.keep, allow_empty=True)(parts, place=place)
        if any(part.target and part.size for part in kept):
            return kept
        smallest = min((part for part in parts if part.target and part.size), key=lambda part: part.size, default=None)
        if smallest is None or len(parts) == len(kept) + 1:
            return parts
        return tuple(part for part in parts if part.target is None or part is smallest)


def plan_overlays(files: Sequence[NamedFile], choice: OverlayChoice, *, subject: str) -> OverlayPlan:
    """Plan the split of ``files``, whose paths are relative to one root. Only headers are read.

    Kernel files go to their targets' folders. A library stays complete if it isn't always loaded by its SONAME, can't
    be trimmed, or has no code for the common set. In these cases, the plan contains a remark. A target gets a library
    if there is code for it, or generic code outside the common set.

    Raises `InputError` for damaged files, for split libraries (whose code is elsewhere), and if no library has code for
    the common set. Errors for all files are raised together; if there are several, ``subject`` introduces them.
    """
    problems: list[RocwheelError] = []
    ordered = sorted(files, key=lambda file: file.path)
    found = attempt_all(lambda file: _sort(file, choice), ordered, problems)
    raise_all(subject, problems)
    libraries = [one for one in found if isinstance(one, OverlaidLibrary)]
    device = tuple(one for one in found if isinstance(one, DeviceFile))
    common = choice.common or default_common(code for library in libraries for code in library.codes)
    overlaid = [library for library in libraries if needed_code(library.codes, common)]
    if libraries and common and not overlaid:
        offered = sorted({code.processor for library in libraries for code in library.codes}, key=sort_key)
        lack = f"has no library with code for the common set, {_listed(common)}"
        raise InputError(
            subject,
            lack,
            expected=f"code for at least one of {', '.join(offered)}",
            remedy="Specify other targets with --common.",
        )
    remarks = {one.path: one.reason for one in found if isinstance(one, StayingCode)}
    lacking = (
        f"the file has no code for the common set, {_listed(common)}"
        if common
        else "the file's code isn't for specific GPUs"
    )
    remarks |= {one.path: lacking for one in libraries if one not in overlaid}
    processors = {code.processor for library in overlaid for code in library.codes}
    processors |= {file.target for file in device if find_family(file.target) is None}
    targets = tuple(sorted((name for name in processors if name.startswith("gfx")), key=sort_key))
    planned = (msgspec.structs.replace(one, targets=_targets(one, targets, common)) for one in overlaid)
    return OverlayPlan(common=common, libraries=tuple(planned), device=device, remarks=remarks)


def _sort(file: NamedFile, choice: OverlayChoice) -> OverlaidLibrary | DeviceFile | StayingCode | None:
    """Return the kind of a file, or `None` for a file without device code."""
    with file.content.view() as data:
        kernels = find_kernels(data, file)
        if kernels is not None:
            return DeviceFile(file.path, file.content, kernels.target)
        fat = read_fat_binary(data, name=file.path)
        if fat is not None and any(wrapper.is_kpack for wrapper in fat.wrappers):
            raise InputError(
                file.name,
                "is a split library, whose code runtimes without kpack can't find",
                expected="libraries that contain their code",
                remedy="Join the library first: rocwheel device join HOST TARGET... --output FOLDER",
            )
        if fat is None or fat.is_kpacked or fat.is_empty:
            return None
        if is_pe64(data):
            return StayingCode(file.path, "a Windows DLL or program, which can't be replaced by another file")
        codes = device_targets(data, name=file.path)
        reason = _reason_to_keep(data, file.path, choice)
        soname = read_elf(data, name=file.path).soname or ""
    return StayingCode(file.path, reason) if reason else OverlaidLibrary(file.path, file.content, soname, tuple(codes))


def _reason_to_keep(data: Data, path: str, choice: OverlayChoice) -> str:
    elf = read_elf(data, name=path)
    if not elf.is_shared_library or not elf.soname or not choice.is_chosen(elf.soname):
        return "no file depends on this library by SONAME, so a library for one GPU can't replace it"
    try:
        require_trimmable(data, name=path)
    except NotTrimmableError as e:
        return e.reason
    return ""


def _targets(library: OverlaidLibrary, targets: Sequence[str], common: Sequence[TargetId]) -> tuple[str, ...]:
    own = {code.processor for code in library.codes}
    kept = needed_code(library.codes, common)
    return tuple(
        target for target in targets if target in own or not needed_code(library.codes, [TargetId(target)]) <= kept
    )


def _listed(targets: Sequence[TargetId]) -> str:
    return ", ".join(map(str, targets))


class Writing(msgspec.Struct, frozen=True):
    """Settings for writing libraries. Compressed bundles stay compressed, in a version that ``rocm`` reads."""

    common: tuple[TargetId, ...]
    rocm: str = ""
    """The oldest ROCm release that must be able to read the bundles, or an empty string for any release."""
    jobs: int = 1


def write_library(library: OverlaidLibrary, folder: Path, how: Writing) -> tuple[FileRange, dict[str, FileRange]]:
    """Write the library for all GPUs, and a library for each target, below ``folder``.

    Returns the library for all GPUs, and the other libraries, keyed by target. Raises `InputError` for damaged bundles,
    and `OSError` if writing fails.
    """
    host = _write(library, folder / "common" / library.path, how.common, how)
    return host, {
        target: _write(library, folder / target / library.path_for(target), [TargetId(target)], how)
        for target in library.targets
    }


def _write(library: OverlaidLibrary, path: Path, keep: Sequence[TargetId], how: Writing) -> FileRange:
    order = RewriteOrder(edit=PruneToSome(tuple(keep)), storage=Storage(rocm=how.rocm), trim=True, jobs=how.jobs)
    path.parent.mkdir(parents=True, exist_ok=True)
    with library.content.view() as data, path.open("xb") as file:
        FileRewrite(data, library.path, order).write(file, path.parent)
    return FileRange.whole(path)
