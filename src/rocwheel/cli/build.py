"""``rocwheel build`` and ``demo``: build distributions from artifacts, or from the artifacts of a sample SDK."""

from __future__ import annotations

import os
import shlex
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from rich.filesize import decimal

from rocwheel.artifacts.reading import find_artifacts
from rocwheel.binary.platform import Platform
from rocwheel.build.building import BuildResult
from rocwheel.build.cluster.build_on_cluster import ClusterJob
from rocwheel.build.job import BuildJob, PlanJob, build_trees
from rocwheel.cli.app import app
from rocwheel.cli.options import Output, SchedulerOption, shared, takes
from rocwheel.cli.output import message_printer, messages, print_json, print_line, print_text, report_warning
from rocwheel.cli.parameters import option
from rocwheel.cli.plan import (
    BuildRequest,
    print_built,
    print_distributions,
    print_facts,
    read_build_request,
    show_plan,
    spelled_seconds,
)
from rocwheel.cli.progress import make_progress
from rocwheel.core.cache import packed_cache
from rocwheel.core.compression import WHEEL_LEVEL
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, first_of
from rocwheel.demo import DemoReport, run_demo
from rocwheel.stores.urls import is_url
from rocwheel.wheels.writing import HIGHEST_LEVEL

_CacheOption = Annotated[
    bool,
    option("--cache/--no-cache", help="Reuse packed files from other builds, and keep packed files for later builds."),
]


_STORED = "stored"
"""The value for no compression when the option was called `--compression`."""


def _read_level(
    level: Annotated[
        str | None,
        option(
            "--level",
            metavar="N",
            help="Compress files at this deflate level, from 0 to 12. Level 0 stores them uncompressed.",
            show_default=str(WHEEL_LEVEL),
        ),
    ] = None,
) -> int | None:
    if level is None:
        return None
    if level == _STORED:
        return 0
    if level.isdecimal() and int(level) <= HIGHEST_LEVEL:
        return int(level)
    option, found = "--level", f"is {level!r}"
    raise InputError(option, found, expected=f"a level from 0 to {HIGHEST_LEVEL}")


@app.command()
@takes(request=read_build_request, level=_read_level)
def build(
    request: BuildRequest,
    *,
    level: int | None,
    cache: _CacheOption = False,
    jobs: Annotated[int, shared("--jobs", min=0)] = 0,
    scheduler: SchedulerOption = None,
    no_build_packages: Annotated[
        bool,
        option(
            "--no-build-packages",
            hidden=True,
            help="Write each package's file tree instead of the package itself.",
        ),
    ] = False,
    out: Output,
) -> None:
    """Build wheels and the rocm selector from artifacts.

    With --dry-run, the command prints what a build would produce and writes nothing. With --json, the plan lists every
    file and edit. With --from-manifest, the command repeats an earlier build.

    Example: rocwheel build artifacts --dest-dir packages
    """
    inputs, dest_dir = request
    _check_scheduler(scheduler, jobs, cache=cache)
    if dest_dir is None:
        show_plan(inputs, jobs, out)
        return
    _check_order(inputs, dest_dir)
    if no_build_packages:
        _check_trees(inputs, scheduler, level)
        _show_trees(inputs, dest_dir, jobs, out)
        return
    used_level = _level_again(inputs, level, dest_dir)
    progress, began = make_progress(quiet=out.quiet), time.monotonic()
    try:
        if scheduler is None:
            place = packed_cache(os.environ) if cache else None
            made, result = BuildJob(inputs, Path(dest_dir), used_level, jobs, place).run(
                progress=progress, notice=report_warning
            )
        else:
            made, result = ClusterJob(inputs, dest_dir, scheduler, used_level).run(
                message_printer(quiet=out.quiet), progress=progress
            )
    except KeyboardInterrupt:
        if not out.quiet:
            messages.print(f"the build in {dest_dir} is incomplete; run the same command again", markup=False)
        raise
    if result.removed and not out.quiet:
        names = ", ".join(Path(path).name for path in result.removed)
        messages.print(f"removed unfinished files from a killed build: {names}", markup=False)
    if out.json:
        print_json("build", 1, result)
        return
    print_built(made, result)
    if not out.quiet:
        print_facts(made, result.warnings)
        _print_end(result, dest_dir, time.monotonic() - began, is_here=scheduler is None)


def _check_order(inputs: PlanJob, dest_dir: str) -> None:
    """Raise `InputError` if the folders of the artifacts and the build are in the wrong order."""
    if not is_url(dest_dir) and _has_artifacts(Path(dest_dir)) and not _has_artifacts(inputs.artifact_dir):
        option, found = "--dest-dir", f"is {dest_dir}, a folder of artifacts"
        remedy = f"Run rocwheel build {dest_dir} --dest-dir {inputs.artifact_dir}."
        raise InputError(option, found, expected="a folder for packages", remedy=remedy)


def _has_artifacts(folder: Path) -> bool:
    with suppress(InputError, OSError):
        return bool(find_artifacts(folder).artifacts)
    return False


def _check_scheduler(scheduler: str | None, jobs: int, *, cache: bool) -> None:
    """Raise `InputError` if options for this machine are combined with --scheduler."""
    if scheduler is None:
        return
    if cache:
        # The cache is on this machine, so packed files from workers would have to go through this machine.
        option, found = (
            "--cache",
            "can't be used with --scheduler, because its workers can't reach this machine's cache",
        )
        raise InputError(option, found, remedy="Remove one of them.")
    if jobs:
        option, found = (
            "--jobs",
            "can't be used with --scheduler, because its workers already have a fixed number of threads",
        )
        raise InputError(option, found, remedy="Remove one of them.")


def _check_trees(inputs: PlanJob, scheduler: str | None, level: int | None) -> None:
    """Raise `InputError` if --no-build-packages is combined with options for packages."""
    others = {"--scheduler": scheduler, "--from-manifest": inputs.repeats, "--level": level}
    if given := [name for name, value in others.items() if value is not None]:
        option, found = "--no-build-packages", f"can't be used with {first_of(given)}, because it builds no packages"
        raise InputError(option, found, remedy="Remove one of them.")


def _show_trees(inputs: PlanJob, dest_dir: str, jobs: int, out: Output) -> None:
    """Write each package's tree, and print its path."""
    made, trees = build_trees(
        BuildJob(inputs, Path(dest_dir), jobs=jobs), progress=make_progress(quiet=out.quiet), notice=report_warning
    )
    if out.json:
        print_json("build", 1, {"version": made.version, "trees": trees})
        return
    for tree in trees:
        print_line(f"{tree.path}: {count(tree.files, 'file')}")


def _print_end(result: BuildResult, dest_dir: str, seconds: float, *, is_here: bool) -> None:
    if is_here:
        messages.print(_packed_line(result), markup=False)
    dist = f"{dest_dir.rstrip('/')}/dist"
    messages.print(f"built in {spelled_seconds(seconds)}: {dist}", markup=False)
    if not is_url(dist):
        folder = shlex.quote(dist)
        messages.print(f"next: rocwheel audit {folder}; rocwheel index {folder}", markup=False)


def _level_again(inputs: PlanJob, level: int | None, dest_dir: str) -> int:
    """Return the requested level, or the default. When a build is repeated, the level of that build is required.

    Raises `InputError` for a different level, and for a build that would overwrite the build that its manifest
    describes.
    """
    again = inputs.repeats
    if again and Path(dest_dir).resolve() == again.source.resolve().parent:
        option, found = "--dest-dir", "is the manifest's folder, and a build removes the manifest first"
        raise InputError(option, found, expected="another folder")
    if again and level not in {None, again.level}:
        option, found = "--level", "can't be used with --from-manifest, which sets all options"
        raise InputError(option, found, remedy="Remove it.")
    if again:
        return again.level
    return WHEEL_LEVEL if level is None else level


def _packed_line(result: BuildResult) -> str:
    members = result.members
    packed, kept = decimal(members.packed_bytes), decimal(members.kept_bytes)
    line = f"packed {count(members.packed, 'file')} ({packed}), reused {members.kept} from the cache ({kept})"
    return f"{line}, kept {count(len(result.standing), 'wheel')} unchanged" if result.standing else line


@app.command()
def demo(
    dest_dir: Annotated[
        Path, shared("--dest-dir", "Write the packages, the index, and the environment to this folder.")
    ] = Path("demo"),
    platform: Annotated[
        Platform,
        option(
            "--platform",
            help="Use the sample SDK for this system. The SDK for Windows is installed with uv, but isn't tested.",
        ),
    ] = Platform.LINUX,
    *,
    out: Output,
) -> None:
    """Build, index, install, and test a sample SDK.

    The sample SDK is small and comes with rocwheel. The command writes packages, an index, and a virtual environment.

    Example: rocwheel demo --dest-dir /tmp/rocwheel-demo
    """
    try:
        report = run_demo(dest_dir, platform=platform, progress=make_progress(quiet=out.quiet))
    except KeyboardInterrupt:
        messages.print(f"finished files stay in {dest_dir}", markup=False)
        raise
    if out.json:
        print_json("demo", 1, report)
        return
    if not out.quiet:
        print_text(report.test_output)
    print_distributions(report.build.distributions)
    print_line(f"index:       {report.index}")
    print_line(f"environment: {report.environment}")
    print_line(f"install it yourself: {_command(report)}")


def _command(report: DemoReport) -> str:
    if report.platform is Platform.LINUX:
        return f"pip install '{report.requirement}' --index-url {report.index}"
    words = "--python-platform x86_64-pc-windows-msvc --target FOLDER"
    return f"uv pip install {words} '{report.requirement}' --index-url {report.index}"
