"""Splitting a finished wheel into a host wheel, and a device wheel for each target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.workers import raise_all
from rocwheel.device.splitting.files import LackingCode, NamedFile
from rocwheel.device.splitting.joining.checked_files import checked_files
from rocwheel.device.splitting.plan import plan_split
from rocwheel.device.splitting.wheels.device_wheels import is_device_wheel
from rocwheel.device.splitting.wheels.earlier_split import find_earlier
from rocwheel.device.splitting.wheels.finished_wheel import FinishedWheel, read_finished_wheel
from rocwheel.device.splitting.wheels.metadata import check_copied
from rocwheel.device.splitting.wheels.names import DeviceNames
from rocwheel.device.splitting.wheels.order import check_order
from rocwheel.device.splitting.wheels.overlay_root import choose_overlay_root
from rocwheel.device.splitting.wheels.report import DeviceWheel, StayingFile, WheelSplit
from rocwheel.device.splitting.wheels.unpacked import unpack_code
from rocwheel.device.splitting.wheels.write_split import SplitWheels
from rocwheel.targets.catalog.catalog import load_catalog
from rocwheel.targets.kernel_files.classify import classify_path, is_unknown_kernel_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rocwheel.core.reading import FileRange
    from rocwheel.device.splitting.files import SplitChoice, SplitPlan
    from rocwheel.device.splitting.joining.checked_files import CheckedFiles
    from rocwheel.device.splitting.wheels.earlier_split import EarlierSplit
    from rocwheel.device.splitting.wheels.order import WheelSplitOrder
    from rocwheel.wheels.sdist import SourceDate

__all__ = ["split_members", "split_wheel"]

_OUTSIDE = "not below the overlay root"


def split_wheel(
    source: Path, dest_dir: Path, order: WheelSplitOrder, source_date: SourceDate, *, shown: str = ""
) -> WheelSplit:
    """Write to ``dest_dir`` the host wheel of ``source``, under its name, and the device wheel of each target.

    Laid over the host wheel, a device wheel brings the code for its target. Members that stay are copied as they are
    packed; the same wheel gives the same bytes. Signatures of RECORD, which no longer hold, are left out. Wheels of an
    earlier split of the same wheel are replaced, or removed where this one has none for their target. Messages call the
    wheel ``shown``, or by its path.
    Raises `InputError` as `check_order`, `read_finished_wheel`, `check_copied`, `choose_overlay_root`, `plan_split` and
    `find_earlier` do, `ProblemsError` for several problems, and `WorkError` when writing fails; then no wheel stays
    that is not whole.
    """
    check_order(order)
    wheel = read_finished_wheel(source, shown)
    if is_device_wheel(wheel):
        raise InputError(wheel.source, "is a device wheel", expected="a wheel with a fat binary or kernel files")
    return split_members(wheel, dest_dir, order, source_date)


def split_members(
    wheel: FinishedWheel, dest_dir: Path, order: WheelSplitOrder, source_date: SourceDate, *, mend: bool = False
) -> WheelSplit:
    """Split a wheel as `split_wheel` does, whose members may be those of several files.

    With ``mend``, libraries that another tool has split with wrong indices are split again; raises as `checked_files`.
    """
    check_copied(wheel)
    source = Path(wheel.path)
    output = dest_dir / source.name
    if output.exists() and output.samefile(source):
        raise InputError(source, "would be overwritten by its host wheel", remedy="Name another folder.")
    with unpack_code(wheel.kept_members, wheel.source) as code:
        root = choose_overlay_root(wheel, code, order.overlay_root)
        with checked_files(_below(root, code, wheel), wheel.source, mend=mend) as checked:
            plan = _plan(wheel, root, checked.files, order.choice)
            names = DeviceNames(
                prefix=order.device_prefix or f"{wheel.name}-device", version=wheel.version, targets=plan.packages
            )
            wheels = SplitWheels(wheel, root, plan, names, dest_dir)
            earlier = find_earlier(wheel, wheels.host_path, wheels.device_paths)
            staying = (*wheels.staying, *_outside(root, code, wheel.shown_names))
            if not order.dry_run:
                wheels.write(order, source_date, before_host=earlier.remove_stale)
    return _report(wheels, staying, order, checked, earlier)


def _outside(root: str, code: Mapping[str, FileRange], shown: Mapping[str, str]) -> Iterator[StayingFile]:
    """Yield the files with device code, or for a target by their name, that are elsewhere in the wheel."""
    for name, content in sorted(code.items()):
        if name.startswith(f"{root}/"):
            continue
        is_kernels = classify_path(name) is not None or is_unknown_kernel_file(name)
        with content.view() as data:
            if is_kernels or device_targets(data, name=shown[name]):
                yield StayingFile(name, _OUTSIDE)


def _below(root: str, code: Mapping[str, FileRange], wheel: FinishedWheel) -> list[NamedFile]:
    start, shown = f"{root}/", wheel.shown_names
    below = ((name, content) for name, content in code.items() if name.startswith(start))
    return [NamedFile(name[len(start) :], content, shown[name]) for name, content in below]


def _plan(wheel: FinishedWheel, root: str, files: Sequence[NamedFile], choice: SplitChoice) -> SplitPlan:
    try:
        plan = plan_split(files, choice, subject=wheel.source)
    except InputError as e:
        if str(e.source).startswith(wheel.source):
            raise
        raise ProblemsError(wheel.source, [e]) from e  # about a path that would be made
    if not plan.targets:
        staying = [file for file in plan.host if file.remark]
        names = {file.path: file.name for file in files}
        problems = [InputError(names[file.path], f"can't be split: {file.remark}") for file in staying]
        raise_all(wheel.source, problems)
        expected = "a wheel with a fat binary or kernel files"
        raise InputError(wheel.source, f"no device code to split off below {root}", expected=expected)
    return plan


def _report(
    wheels: SplitWheels,
    staying: tuple[StayingFile, ...],
    order: WheelSplitOrder,
    checked: CheckedFiles,
    earlier: EarlierSplit,
) -> WheelSplit:
    wheel, root, plan = wheels.wheel, wheels.root, wheels.plan
    split = [file for file in plan.host if file.library is not None]
    return WheelSplit(
        source=wheel.source,
        size=Path(wheel.path).stat().st_size,
        overlay_root=root,
        host=str(wheels.host_path),
        host_size=_size(wheels.host_path, order),
        libraries=tuple(f"{root}/{file.path}" for file in split),
        disk_before=sum(file.content.size for file in split),
        disk_after=sum(file.size for file in split),
        zeros={f"{root}/{file.path}": file.zeros for file in split if file.zeros},
        devices=tuple(_device(wheels, target, order) for target in plan.packages),
        staying=staying,
        left_out=tuple(f"{root}/{path}" for path in plan.left_out),
        lacking=tuple(
            LackingCode(found.target, tuple(f"{root}/{path}" for path in found.paths)) for found in plan.lacking
        ),
        warnings=(*wheels.warnings, *checked.warnings),
        mended=tuple(f"{root}/{path}" for path in checked.mended),
        replaced=tuple(map(str, earlier.replaced)),
        removed=tuple(map(str, earlier.stale)),
    )


def _device(wheels: SplitWheels, target: str, order: WheelSplitOrder) -> DeviceWheel:
    path = wheels.device_path(target)
    package_of = load_catalog().package_of
    archives = sum(package_of(archive.target) == target for archive in wheels.plan.iter_archives())
    files = sum(package_of(file.target) == target for file in wheels.plan.device)
    return DeviceWheel(str(path), target, archives, files, _size(path, order))


def _size(path: Path, order: WheelSplitOrder) -> int | None:
    return None if order.dry_run else path.stat().st_size
