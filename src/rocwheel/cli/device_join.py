"""``rocwheel device join``: host and device folders into fat libraries again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from rich.filesize import decimal

from rocwheel.cli.device import JobsOption, LevelOption, device_app
from rocwheel.cli.given_paths import regular_place, regular_places
from rocwheel.cli.options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.cli.output import print_json, report_warning, setup_logging
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.cli.text import print_line
from rocwheel.core.compression import DEVICE_CODE_LEVEL
from rocwheel.core.messages import count
from rocwheel.core.workers import worker_count
from rocwheel.device.split.join_tree import JoinReport, join_tree
from rocwheel.device.split.join_wheels import join_wheels
from rocwheel.device.split.joining import JoinStorage
from rocwheel.wheels.binaries import is_wheel
from rocwheel.wheels.sdist import SourceDate

HostArgument = Annotated[
    Path,
    argument(metavar="HOST", help="A host folder, one split library, or a host wheel.", check=regular_place),
]
DeviceArgument = Annotated[
    list[Path] | None,
    argument(metavar="DEVICE", help="Folders of targets, or device wheels.", check=regular_places),
]


@device_app.command()
def join(
    host: HostArgument,
    devices: DeviceArgument = None,
    *,
    dest_dir: Annotated[
        Path, shared("--dest-dir", "Write the tree to this folder, new or empty; or a wheel, to any folder.")
    ],
    compressed: Annotated[
        bool, option("--compress", help="Compress all bundles, also those that were plain before the split.")
    ] = False,
    level: LevelOption = DEVICE_CODE_LEVEL,
    jobs: JobsOption = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Join a host folder and any folders of targets: libraries get their device code back.

    Code objects are those that were split off, byte for byte. What no folder brings is missing in the result, and
    listed. Bundles that were compressed come back compressed, with a higher level where they don't fit otherwise.

    Example: rocwheel device join split/host split/gfx906 split/gfx90a --dest-dir fat
    """
    setup_logging(quiet=quiet, verbose=verbose)
    storage = JoinStorage(compress=compressed, level=level)
    if host.suffix == ".whl" or is_wheel(host):
        _join_wheels(host, devices or [], dest_dir, storage, worker_count(jobs), as_json=as_json, quiet=quiet)
        return
    report = join_tree(host, devices or [], dest_dir, storage, progress=make_progress(quiet=quiet or as_json))
    if as_json:
        print_json("device-join", 1, report)
    elif not quiet:
        for line in _lines(report, dest_dir):
            print_line(line)
    for warning in () if quiet else report.warnings:
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


def _lines(report: JoinReport, dest_dir: Path) -> Iterator[str]:
    for library in report.libraries:
        missing = f"; missing: {', '.join(library.missing)}" if library.missing else ""
        code = f"{count(library.bundles, 'bundle')}, {decimal(library.code) if library.code else 'no device code'}"
        targets = f" for {', '.join(library.targets)}" if library.targets else ""
        yield f"{dest_dir / library.path}: {code}{targets}, in a file of {decimal(library.size)}{missing}"
    copied = f", {count(report.copied, 'other file')} copied" if report.copied else ""
    yield f"{dest_dir}: {count(len(report.libraries), 'library', 'libraries')} joined{copied}"
