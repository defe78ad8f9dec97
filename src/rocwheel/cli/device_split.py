"""``rocwheel device split`` and ``join``: separate the code for each GPU, and join it again."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from rich.filesize import decimal

from rocwheel.binary.kpack.archive import Scheme
from rocwheel.binary.kpack.write import LEVELS
from rocwheel.cli.device import (
    JobsOption,
    LevelOption,
    device_app,
    disk_change,
    lacking_line,
    share_line,
    split_libraries,
    zeros_line,
)
from rocwheel.cli.options import Output, shared, takes
from rocwheel.cli.output import print_json, print_line, report_warning
from rocwheel.cli.parameters import argument, option, regular_place, regular_places
from rocwheel.cli.progress import make_progress
from rocwheel.cli.targets import read_targets
from rocwheel.core.compression import DEVICE_CODE_LEVEL
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.workers import map_collecting, raise_all, worker_count
from rocwheel.device.split.join_tree import JoinReport, join_tree
from rocwheel.device.split.join_wheels import join_wheels, resplit_wheels
from rocwheel.device.split.joining import JoinStorage
from rocwheel.device.split.split_tree import SplitOrder, SplitReport, split_tree
from rocwheel.device.split.split_unpacked import is_unpacked_wheel, split_unpacked
from rocwheel.device.split.split_wheel import WheelSplit, split_wheel
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.device.split.units import ARCHIVE_FOLDER, is_archive_folder
from rocwheel.device.split.wheel_metadata import WheelSplitOrder, check_order
from rocwheel.wheels.binaries import is_wheel
from rocwheel.wheels.sdist import SourceDate


class Splitting(Output, frozen=True, kw_only=True):
    """Options for splitting and for the output."""

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
        """The options on the command line."""
        values = (self.overlay_root, self.device_name, self.host_requires, self.device_requires)
        names = ("--overlay-root", "--device-name", "--host-requires-dist", "--device-requires-dist")
        return tuple(name for name, value in zip(names, values, strict=True) if value)


def read_wheel_options(
    overlay_root: Annotated[
        str,
        option(
            metavar="FOLDER",
            advanced=True,
            help="Install device wheels over this folder in the wheel.",
            show_default="the folder with device code",
        ),
    ] = "",
    device_name: Annotated[
        str,
        option(
            metavar="NAME",
            advanced=True,
            help="Use this prefix for the names of device wheels.",
            show_default="the wheel's name, then -device",
        ),
    ] = "",
    host_requires_dist: Annotated[
        list[str] | None,
        option(metavar="REQUIREMENT", advanced=True, help="Add this requirement to the host wheel."),
    ] = None,
    device_requires_dist: Annotated[
        list[str] | None,
        option(
            metavar="REQUIREMENT",
            advanced=True,
            help="Add this requirement to device wheels. @GFXARCH@ stands for the target.",
        ),
    ] = None,
) -> WheelOptions:
    """Return the options for wheels."""
    return WheelOptions(overlay_root, device_name, tuple(host_requires_dist or ()), tuple(device_requires_dist or ()))


def split_wheels(wheels: Sequence[Path], options: WheelOptions, how: Splitting, *, mend: bool) -> None:
    """Split several wheels, or repair host wheels and their device wheels, and print the results."""
    order = _order(options, how)
    check_order(order)
    _check_names(wheels)
    moment = SourceDate.from_environment(os.environ)
    if mend:
        reports: Sequence[WheelSplit] = resplit_wheels(wheels, how.dest_dir, order, moment)
    else:
        reports = map_collecting("wheels", lambda wheel: split_wheel(wheel, how.dest_dir, order, moment), wheels)
    _print(reports, how)


def split_folder(folder: Path, options: WheelOptions, how: Splitting) -> None:
    """Split the folder of an unpacked wheel, and print the result."""
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
    if how.json:
        print_json("device-split-wheels", 1, {"wheels": reports})
    for line in () if how.json or how.quiet else (line for report in reports for line in _wheel_lines(report, how)):
        print_line(line)
    for report in () if how.quiet else reports:
        for warning in (*map(lacking_line, report.lacking), *report.warnings):
            report_warning(warning)


def _check_names(wheels: Sequence[Path]) -> None:
    """Raise `InputError` for wheels with the same name, because their host wheels would be the same file."""
    first: dict[str, Path] = {}
    same = [path for path in wheels if first.setdefault(path.name, path) is not path]
    expected = "each wheel only once"
    raise_all(
        "wheels", [InputError(path, f"has the same name as {first[path.name]}", expected=expected) for path in same]
    )


def _wheel_lines(report: WheelSplit, how: Splitting) -> Iterator[str]:
    for path in report.libraries if how.verbose else ():
        yield f"split: {path}"
    for path in report.left_out if how.verbose else ():
        yield f"left out: {path}"
    for path in report.mended:
        yield f"mended: {path}"
    for path in report.removed:
        yield f"{'would be removed' if how.dry_run else 'removed'}, because it is from an earlier split: {path}"
    if report.replaced:
        wheels = count(len(report.replaced), "wheel")
        yield f"{'would replace' if how.dry_run else 'replaced'} {wheels} from an earlier split"
    for staying in report.staying:
        yield f"stays in the host wheel: {staying.path}: {staying.reason}"
    split = split_libraries(len(report.libraries), len(report.left_out))
    for path, size in report.zeros.items():
        yield zeros_line(path, size)
    sizes = "" if report.host_size is None else f", {decimal(report.size)} -> {decimal(report.host_size)}"
    yield f"{report.host}: {split}{sizes}{disk_change(len(report.libraries), report.disk_before, report.disk_after)}"
    for device in report.devices:
        yield share_line(device.path, device.archives, device.files, device.size)


SplitArgument = Annotated[
    list[Path], argument(metavar="PATH", help="A fat binary, a folder, or wheels.", check=regular_places)
]
KeepOption = Annotated[
    list[str] | None,
    shared("--targets", "Keep only the code for these targets.", show_default="all targets"),
]
MendOption = Annotated[
    bool,
    option(
        "--mend",
        advanced=True,
        help="Split libraries again if another tool split them with wrong indices.",
    ),
]
SchemeOption = Annotated[
    Scheme, option("--scheme", advanced=True, help="Compress each code object in archives, or store it uncompressed.")
]
SplitLevelOption = Annotated[
    int | None,
    option(
        "--level",
        metavar="N",
        min=LEVELS[0],
        max=LEVELS[-1],
        help="Compress at this zstd level.",
        show_default=str(DEVICE_CODE_LEVEL),
    ),
]
ArchivesOption = Annotated[
    str,
    option("--archives", metavar="FOLDER", advanced=True, help="Put archives in this folder inside the tree."),
]


def _read_choice(
    targets: KeepOption = None,
    archives: ArchivesOption = ARCHIVE_FOLDER,
    scheme: SchemeOption = Scheme.ZSTD,
    level: SplitLevelOption = None,
) -> SplitChoice:
    keep = tuple(read_targets(targets, source="--targets")) if targets else ()
    return SplitChoice(keep=keep, scheme=scheme, level=_read_level(level, scheme), archives=_read_folder(archives))


@device_app.command()
@takes(choice=_read_choice, wheel_options=read_wheel_options)
def split(
    paths: SplitArgument,
    dest_dir: Annotated[
        Path,
        shared(
            "--output",
            "Write the parts to this folder. If you split a folder, this folder must be new or empty.",
            metavar="DIR",
        ),
    ],
    *,
    choice: SplitChoice,
    wheel_options: WheelOptions,
    mend: MendOption = False,
    dry_run: Annotated[bool, option("--dry-run", help="Print what would be done, and write nothing.")] = False,
    jobs: JobsOption = 0,
    out: Output,
) -> None:
    """Split device code into a separate part for each GPU target.

    The command splits a folder into a host folder without device code and, for each target, a folder to copy over the
    host folder. It splits a wheel into device wheels and a host wheel with an extra for each target. These wheels
    replace wheels from an earlier split.

    The code goes to archives in .kpack folders, where runtimes with kpack support find it. Kernel files and databases
    move to the parts for their targets. Files that can't be split remain in the host folder, and the output lists them.

    Example: rocwheel device split /opt/rocm --targets gfx906,gfx90a --output split
    """
    how = Splitting(
        choice=choice,
        dest_dir=dest_dir,
        jobs=worker_count(jobs),
        dry_run=dry_run,
        json=out.json,
        quiet=out.quiet,
        verbose=out.verbose,
    )
    if all((path.suffix == ".whl" and not path.is_dir()) or is_wheel(path) for path in paths):
        if choice.archives != ARCHIVE_FOLDER:
            raise InputError(paths[0], "is a wheel", expected="a file or folder for --archives")
        split_wheels(paths, wheel_options, how, mend=mend)
    elif len(paths) == 1 and is_unpacked_wheel(paths[0]):
        if mend or choice.archives != ARCHIVE_FOLDER:
            option = "--mend" if mend else "--archives"
            raise InputError(paths[0], "is an unpacked wheel", expected=f"another folder for {option}")
        split_folder(paths[0], wheel_options, how)
    else:
        _split_tree(paths, wheel_options, how, mend=mend)


def _read_level(level: int | None, scheme: Scheme) -> int:
    if level is not None and scheme is Scheme.NONE:
        option, found = "--level", f"is for compressed code, but --scheme {scheme.value} doesn't compress code"
        raise InputError(option, found, expected=f"--scheme {Scheme.ZSTD.value}")
    return DEVICE_CODE_LEVEL if level is None else level


def _read_folder(text: str) -> str:
    folder = posixpath.normpath(text)
    if not text or not is_archive_folder(folder):
        expected = "a folder in the tree, such as usr/lib/rocm-kpack"
        subject = "--archives"
        raise InputError(subject, f"{text!r} isn't a folder for archives", expected=expected)
    return folder


def _split_tree(paths: Sequence[Path], wheel_options: WheelOptions, how: Splitting, *, mend: bool) -> None:
    path = regular_place(paths[0])
    if len(paths) > 1:
        raise InputError(paths[1], "is passed together with other paths", expected="a single file or folder, or wheels")
    if wheel_options.given:
        raise InputError(path, "isn't a wheel", expected=f"wheels for {', '.join(wheel_options.given)}")
    order = SplitOrder(choice=how.choice, jobs=how.jobs, dry_run=how.dry_run, mend=mend, progress=how.progress)
    report = split_tree(path, how.dest_dir, order)
    if how.json:
        print_json("device-split", 1, report)
    elif not how.quiet:
        for line in _lines(report, how.dest_dir, verbose=how.verbose):
            print_line(line)
    for warning in () if how.quiet else (*map(lacking_line, report.lacking), *report.warnings):
        report_warning(warning)


def _lines(report: SplitReport, dest_dir: Path, *, verbose: bool) -> Iterator[str]:
    for library in report.libraries if verbose else ():
        sizes = f"{decimal(library.size_before)} -> {decimal(library.size_after)}"
        yield f"{library.path}: {count(library.units, 'unit')}, {sizes}, {count(len(library.archives), 'archive')}"
    for path in report.left_out if verbose else ():
        yield f"left out: {path}"
    for path in report.mended:
        yield f"mended: {path}"
    for staying in report.staying:
        yield f"stays in the host folder: {staying.path}: {staying.reason}"
    for library in report.libraries:
        if library.zeros:
            yield zeros_line(library.path, library.zeros)
    split = split_libraries(len(report.libraries), len(report.left_out))
    before = sum(library.size_before for library in report.libraries)
    after = sum(library.size_after for library in report.libraries)
    disk = disk_change(len(report.libraries), before, after)
    yield f"{dest_dir / 'host'}: {count(report.host_files, 'file')}, {split}{disk}"
    for share in report.targets:
        yield share_line(dest_dir / share.target, share.archives, share.files, share.size)


HostArgument = Annotated[
    Path,
    argument(metavar="HOST", help="A host folder, one split library, or a host wheel.", check=regular_place),
]
DeviceArgument = Annotated[
    list[Path] | None,
    argument(metavar="DEVICE", help="Folders for targets, or device wheels.", check=regular_places),
]


@device_app.command()
def join(
    host: HostArgument,
    devices: DeviceArgument = None,
    *,
    dest_dir: Annotated[
        Path,
        shared(
            "--output",
            "Write the result to this folder. If you join folders, this folder must be new or empty.",
            metavar="DIR",
        ),
    ],
    compressed: Annotated[
        bool, option("--compress", help="Compress all bundles, including bundles that were plain before the split.")
    ] = False,
    level: LevelOption = DEVICE_CODE_LEVEL,
    jobs: JobsOption = 0,
    out: Output,
) -> None:
    """Put device code back into a host part.

    Libraries get their code objects back, byte for byte. The output lists code that no folder provides. The command
    recompresses bundles that were compressed before, at a higher level if they don't fit.

    Example: rocwheel device join split/host split/gfx906 split/gfx90a --output fat
    """
    storage = JoinStorage(compress=compressed, level=level)
    if host.suffix == ".whl" or is_wheel(host):
        _join_wheels(host, devices or [], dest_dir, storage, worker_count(jobs), as_json=out.json, quiet=out.quiet)
        return
    report = join_tree(host, devices or [], dest_dir, storage, progress=out.progress)
    if out.json:
        print_json("device-join", 1, report)
    elif not out.quiet:
        for line in _joined_lines(report, dest_dir):
            print_line(line)
    for warning in () if out.quiet else report.warnings:
        report_warning(warning)


def _join_wheels(
    host: Path,
    devices: Sequence[Path],
    dest_dir: Path,
    storage: JoinStorage,
    jobs: int,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    moment, progress = SourceDate.from_environment(os.environ), make_progress(quiet=quiet or as_json)
    report = join_wheels(host, devices, dest_dir, moment, storage, jobs=jobs, progress=progress)
    if as_json:
        print_json("device-join-wheel", 1, report)
    elif not quiet:
        missing = f"; missing: {', '.join(report.missing)}" if report.missing else ""
        libraries = count(len(report.libraries), "library", "libraries")
        print_line(
            f"{report.path}: {libraries} joined for {', '.join(report.targets)}{missing}, {decimal(report.size)}"
        )
    for warning in () if quiet else report.warnings:
        report_warning(warning)


def _joined_lines(report: JoinReport, dest_dir: Path) -> Iterator[str]:
    for library in report.libraries:
        missing = f"; missing: {', '.join(library.missing)}" if library.missing else ""
        code = f"{count(library.bundles, 'bundle')}, {decimal(library.code) if library.code else 'no device code'}"
        targets = f" for {', '.join(library.targets)}" if library.targets else ""
        yield f"{dest_dir / library.path}: {code}{targets}, in a file of {decimal(library.size)}{missing}"
    copied = f", {count(report.copied, 'other file')} copied" if report.copied else ""
    yield f"{dest_dir}: {count(len(report.libraries), 'library', 'libraries')} joined{copied}"
