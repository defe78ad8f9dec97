"""What ``rocwheel device split`` does with wheels: its options for them, and what it prints."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.filesize import decimal

from rocwheel.cli.device.printing import Printing
from rocwheel.cli.device.text import disk_change, lacking_line, share_line, split_libraries, zeros_line
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.errors import report_warning
from rocwheel.cli.output.text import print_line
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.workers import convert_all, raise_all
from rocwheel.device.split.files import SplitChoice
from rocwheel.device.split.join_wheels import mend_wheels
from rocwheel.device.split.split_unpacked import split_unpacked
from rocwheel.device.split.split_wheel import WheelSplit, split_wheel
from rocwheel.device.split.wheel_metadata import WheelSplitOrder, check_order
from rocwheel.wheels.sdist import SourceDate

__all__ = ["Splitting", "WheelOptions", "read_wheel_options", "split_folder", "split_wheels"]


class Splitting(Printing, frozen=True, kw_only=True):
    """How something is split, and what is printed of it."""

    choice: SplitChoice
    dest_dir: Path
    jobs: int
    dry_run: bool


class WheelOptions(msgspec.Struct, frozen=True):
    """The options for wheels."""

    overlay_root: str
    device_name: str
    host_requires: tuple[str, ...]
    device_requires: tuple[str, ...]

    @property
    def given(self) -> tuple[str, ...]:
        """The options that were given."""
        values = (self.overlay_root, self.device_name, self.host_requires, self.device_requires)
        names = ("--overlay-root", "--device-name", "--host-requires-dist", "--device-requires-dist")
        return tuple(name for name, value in zip(names, values, strict=True) if value)


def read_wheel_options(
    overlay_root: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="Lay device wheels over this folder of a wheel.",
            show_default="the one with device code",
        ),
    ] = "",
    device_name: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Begin the names of device wheels like this, as in amd-torch-device.",
            show_default="that of the wheel and -device",
        ),
    ] = "",
    host_requires_dist: Annotated[
        list[str] | None, typer.Option(metavar="REQUIREMENT", help="Have the host wheel require this, too.")
    ] = None,
    device_requires_dist: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REQUIREMENT", help="Have device wheels require this, too; @GFXARCH@ stands for their target."
        ),
    ] = None,
) -> WheelOptions:
    """Return the options for wheels."""
    return WheelOptions(overlay_root, device_name, tuple(host_requires_dist or ()), tuple(device_requires_dist or ()))


def split_wheels(wheels: Sequence[Path], options: WheelOptions, how: Splitting, *, mend: bool) -> None:
    """Split each of several wheels, or mend host wheels and their device wheels, and print what became of them."""
    order = _order(options, how)
    check_order(order)
    _check_names(wheels)
    moment = SourceDate.from_environment(os.environ)
    if mend:
        reports: Sequence[WheelSplit] = mend_wheels(wheels, how.dest_dir, order, moment)
    else:
        reports = convert_all("wheels", lambda wheel: split_wheel(wheel, how.dest_dir, order, moment), wheels)
    _print(reports, how)


def split_folder(folder: Path, options: WheelOptions, how: Splitting) -> None:
    """Split the folder of an unpacked wheel, and print what became of it."""
    moment = SourceDate.from_environment(os.environ)
    _print([split_unpacked(folder, how.dest_dir, _order(options, how), moment)], how)


def _order(options: WheelOptions, how: Splitting) -> WheelSplitOrder:
    return WheelSplitOrder(
        choice=how.choice,
        overlay_root=options.overlay_root,
        device_prefix=options.device_name,
        host_requires=options.host_requires,
        device_requires=options.device_requires,
        jobs=how.jobs,
        dry_run=how.dry_run,
        progress=how.progress,
    )


def _print(reports: Sequence[WheelSplit], how: Splitting) -> None:
    if how.as_json:
        print_json("device-split-wheels", 1, {"wheels": reports})
    for line in () if how.as_json or how.quiet else (line for report in reports for line in _lines(report, how)):
        print_line(line)
    for report in () if how.quiet else reports:
        for warning in (*map(lacking_line, report.lacking), *report.warnings):
            report_warning(warning)


def _check_names(wheels: Sequence[Path]) -> None:
    """Raise `InputError` for wheels of one name, whose host wheels would be one file."""
    first: dict[str, Path] = {}
    same = [path for path in wheels if first.setdefault(path.name, path) is not path]
    expected = "each wheel once"
    raise_all("wheels", [InputError(path, f"has the name of {first[path.name]}", expected=expected) for path in same])


def _lines(report: WheelSplit, how: Splitting) -> Iterator[str]:
    for path in report.libraries if how.verbose else ():
        yield f"split: {path}"
    for path in report.left_out if how.verbose else ():
        yield f"left out: {path}"
    for path in report.mended:
        yield f"mended: {path}"
    for path in report.removed:
        yield f"{'would be removed' if how.dry_run else 'removed'}, as it is of an earlier split: {path}"
    if report.replaced:
        wheels = count(len(report.replaced), "wheel")
        yield f"{'would replace' if how.dry_run else 'replaced'} {wheels} of an earlier split"
    for staying in report.staying:
        yield f"stays in the host wheel: {staying.path}: {staying.reason}"
    split = split_libraries(len(report.libraries), len(report.left_out))
    for path, size in report.zeros.items():
        yield zeros_line(path, size)
    sizes = "" if report.host_size is None else f", {decimal(report.size)} -> {decimal(report.host_size)}"
    yield f"{report.host}: {split}{sizes}{disk_change(len(report.libraries), report.disk_before, report.disk_after)}"
    for device in report.devices:
        yield share_line(device.path, device.archives, device.files, device.size)
