"""``rocwheel build`` and ``rocwheel plan``: from artifacts to distributions."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.filesize import decimal
from rich.table import Table

from rocwheel.cli._app import app
from rocwheel.cli.output import (
    JsonOption,
    QuietOption,
    VerboseOption,
    make_progress,
    messages,
    print_json,
    print_table,
    report_warning,
    setup_logging,
)
from rocwheel.cli.plan_options import takes_plan_job
from rocwheel.distributions.formats.write_wheel import DEFAULT_LEVEL
from rocwheel.foundation.errors import InputError
from rocwheel.packages.building.build import BuildResult
from rocwheel.packages.job import BuildJob, PlanJob
from rocwheel.packages.plan import Plan, PlanWarning, TarMember

__all__ = ["build", "plan", "print_distributions"]


@app.command()
@takes_plan_job
def build(
    inputs: PlanJob,
    *,
    dest_dir: Annotated[
        Path, typer.Option(help="Write the packages to dist in this folder; both are created if needed.")
    ],
    compression: Annotated[str, typer.Option(help="Deflate files at this level, 0 to 12, or 'stored'.")] = str(
        DEFAULT_LEVEL
    ),
    jobs: Annotated[int, typer.Option(min=0, help="Use this many workers.", show_default="one per core")] = 0,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Build the packages: wheels and the rocm selector.

    Example: rocwheel build --artifact-dir artifacts --dest-dir packages
    """
    setup_logging(quiet=quiet, verbose=verbose)
    made, result = BuildJob(inputs, dest_dir, _level(compression), jobs).run(progress=make_progress(quiet=quiet))
    if result.removed and not quiet:
        names = ", ".join(Path(path).name for path in result.removed)
        messages.print(f"removed unfinished files of a killed build: {names}", markup=False)
    if json:
        print_json("build", 1, result)
    else:
        print_distributions(result)
        if not quiet:
            _print_facts(made, result.warnings)


@app.command()
@takes_plan_job
def plan(
    inputs: PlanJob, *, json: JsonOption = False, quiet: QuietOption = False, verbose: VerboseOption = False
) -> None:
    """Show what a build would make, without making it; --json lists every file and edit.

    Example: rocwheel plan --artifact-dir artifacts --json
    """
    setup_logging(quiet=quiet, verbose=verbose)
    made = inputs.run(progress=make_progress(quiet=quiet))
    if json:
        print_json("plan", 1, made)
    else:
        _print_plan(made, verbose=verbose)
        if not quiet:
            _print_facts(made, made.warnings)


def _level(text: str) -> int:
    if text == "stored":
        return 0
    if text.isdecimal() and int(text) <= 12:
        return int(text)
    option, found = "--compression", f"is {text!r}"
    raise InputError(option, found, expected="a level from 0 to 12, or 'stored'")


def _print_plan(made: Plan, *, verbose: bool) -> None:
    table = Table("distribution", "files", "edited", "tag", "asked for by", box=box.SIMPLE_HEAD)
    for wheel in made.wheels:
        files = sum(len(member.entries) if isinstance(member, TarMember) else 1 for member in wheel.members)
        edited = sum(getattr(member, "run_path", None) is not None for member in wheel.members)
        tag = wheel.name.tag.rpartition("-")[2]
        table.add_row(wheel.name.distribution, str(files), str(edited), tag, wheel.floor_reason)
    for sdist in made.sdists:
        table.add_row(sdist.distribution, str(len(sdist.files)), "0", "sdist", "")
    print_table(table)
    if verbose:
        for row in made.dropped:
            messages.print(f"left out: {row.path or 'all'} of {row.artifact}: {row.reason}", markup=False)


def print_distributions(result: BuildResult) -> None:
    """Print what a build made, with sizes."""
    table = Table("distribution", "size", box=box.SIMPLE_HEAD)
    for built in result.distributions:
        table.add_row(built.path, decimal(built.size))
    print_table(table)


def _print_facts(made: Plan, warnings: Iterable[PlanWarning]) -> None:
    targets = ", ".join(made.targets) or "none"
    for remedy, group in groupby(warnings, key=lambda warning: warning.remedy):
        for warning in group:
            report_warning(f"{warning.subject}: {warning.found}")
        messages.print(f"  {remedy}", markup=False)
    for gap in made.gaps:
        messages.print(f"not coherent: {gap}", markup=False)
    dropped = f"; left out: {len(made.dropped)} (rocwheel plan -v shows what and why)" if made.dropped else ""
    messages.print(f"version {made.version}, layout {made.layout}, GPU targets: {targets}{dropped}", markup=False)
