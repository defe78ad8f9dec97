"""Which libraries become one with a common set of code and a whole one for each target, and which stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.binary.code_objects import NotTrimmableError, TargetId
from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.pe.header import is_pe64
from rocwheel.core.errors import InputError
from rocwheel.core.workers import attempt_all, raise_all
from rocwheel.device.editing.prune import needed_code
from rocwheel.device.splitting.files import DeviceFile
from rocwheel.device.splitting.kernels import find_kernels
from rocwheel.device.splitting.overlays.common import default_common
from rocwheel.device.splitting.overlays.files import OverlaidLibrary, OverlayPlan
from rocwheel.device.trimming.library import require_trimmable
from rocwheel.targets.catalog.catalog import sort_key
from rocwheel.targets.kernel_files.classify import find_family

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.core.errors import RocwheelError
    from rocwheel.core.reading import Data
    from rocwheel.device.splitting.files import NamedFile
    from rocwheel.device.splitting.overlays.files import OverlayChoice

__all__ = ["plan_overlays"]


class _Kept(msgspec.Struct, frozen=True):
    """A file that keeps its code, and why; for no reason if it has none."""

    path: str
    reason: str = ""


def plan_overlays(files: Sequence[NamedFile], choice: OverlayChoice, *, subject: str) -> OverlayPlan:
    """Plan what becomes of ``files``, whose paths begin at one root; nothing but headers is read.

    Kernel files go to their target. A library stays whole, with a remark, if it is not loaded by its SONAME alone, if
    it can't be trimmed, or if it has no code of the common set. A target gets a library if there is code for it, or
    generic code that the common set lacks.

    Raises, for all files together and led by ``subject`` if they are several, `InputError` for damaged files, for split
    libraries, whose code is elsewhere, and when no library has code of the common set.
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
        raise _nothing_common(subject, libraries, common)
    remarks = {one.path: one.reason for one in found if isinstance(one, _Kept) and one.reason}
    lacking = f"it has none for the common set, {_listed(common)}" if common else "it has only code for any GPU"
    remarks |= {one.path: lacking for one in libraries if one not in overlaid}
    targets = _all_targets(overlaid, device)
    planned = (msgspec.structs.replace(one, targets=_targets(one, targets, common)) for one in overlaid)
    return OverlayPlan(common=common, libraries=tuple(planned), device=device, remarks=remarks)


def _sort(file: NamedFile, choice: OverlayChoice) -> OverlaidLibrary | DeviceFile | _Kept:
    with file.content.view() as data:
        kernels = find_kernels(data, file)
        if kernels is not None:
            return DeviceFile(file.path, file.content, kernels.target)
        fat = read_fat_binary(data, name=file.path)
        if fat is not None and any(wrapper.is_kpack for wrapper in fat.wrappers):
            raise _split_already(file)
        if fat is None or fat.is_kpacked or fat.is_empty:
            return _Kept(file.path)
        if is_pe64(data):
            return _Kept(file.path, "a DLL or program of Windows, where no other file takes the place of one")
        codes = device_targets(data, name=file.path)
        reason = _reason_to_keep(data, file.path, choice)
        soname = read_elf(data, name=file.path).soname or ""
    return _Kept(file.path, reason) if reason else OverlaidLibrary(file.path, file.content, soname, tuple(codes))


def _split_already(file: NamedFile) -> InputError:
    return InputError(
        file.name,
        "is a split library, whose code runtimes without kpack don't find",
        expected="libraries with their code in them, of which each target gets one",
        remedy="Join it first: rocwheel device join HOST TARGET... --dest-dir FOLDER",
    )


def _reason_to_keep(data: Data, path: str, choice: OverlayChoice) -> str:
    elf = read_elf(data, name=path)
    if not elf.is_shared_library or not elf.soname or not choice.is_chosen(elf.soname):
        return "no file needs it by its SONAME, so none for a GPU can take its place"
    try:
        require_trimmable(data, name=path)
    except NotTrimmableError as e:
        return e.reason
    return ""


def _all_targets(libraries: Sequence[OverlaidLibrary], device: Sequence[DeviceFile]) -> tuple[str, ...]:
    processors = {code.processor for library in libraries for code in library.codes}
    processors |= {file.target for file in device if find_family(file.target) is None}
    return tuple(sorted((name for name in processors if name.startswith("gfx")), key=sort_key))


def _targets(library: OverlaidLibrary, targets: Sequence[str], common: Sequence[TargetId]) -> tuple[str, ...]:
    own = {code.processor for code in library.codes}
    kept = needed_code(library.codes, common)
    return tuple(
        target for target in targets if target in own or not needed_code(library.codes, [TargetId(target)]) <= kept
    )


def _nothing_common(subject: str, libraries: Sequence[OverlaidLibrary], common: Sequence[TargetId]) -> InputError:
    offered = sorted({code.processor for library in libraries for code in library.codes}, key=sort_key)
    found = f"has no library with code for the common set, {_listed(common)}"
    return InputError(subject, found, expected=f"some of {', '.join(offered)}", remedy="Give others with --common.")


def _listed(targets: Sequence[TargetId]) -> str:
    return ", ".join(map(str, targets))
