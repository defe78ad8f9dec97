"""``rocwheel repair``: makes wheels that load from wheels that don't."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.markup import escape

from rocwheel.audit.settings import find_settings
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.cli._app import app
from rocwheel.cli.output import (
    JsonOption,
    QuietOption,
    VerboseOption,
    make_progress,
    messages,
    print_json,
    report_warning,
    results,
    setup_logging,
)
from rocwheel.foundation.counting import count
from rocwheel.foundation.destination import check_destination
from rocwheel.repair.job import RepairJob
from rocwheel.repair.options import RepairOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.repair.plan import RepairPlan
from rocwheel.cli.shared_options import shared

__all__ = ["repair"]

_LONGEST = 160


@app.command("repair")
def repair(
    wheels: Annotated[list[Path], typer.Argument(metavar="WHEEL", help="Repair these wheels. They stay unchanged.")],
    dest_dir: Annotated[
        Path | None, shared("--dest-dir", "Write the repaired wheels to this folder; it is created if needed.")
    ] = None,
    with_packages: Annotated[
        list[Path] | None,
        shared("--with", "Let the wheels load libraries of this package, such as a wheel of the SDK."),
    ] = None,
    dlopen: Annotated[list[str] | None, shared("--dlopen")] = None,
    pin: Annotated[
        Literal["none", "minor", "exact"], typer.Option(help="Pin added requirements to the version at hand.")
    ] = "none",
    init: Annotated[
        bool, typer.Option("--init", help="Add _rocm_init.py, which makes rocm_sdk load the libraries.")
    ] = (False),
    config: Annotated[Path | None, shared("--config")] = None,
    rpath: Annotated[
        bool | None,
        typer.Option(
            "--rpath/--runpath", help="Set all run paths under this tag; by default RPATHs within a release stay."
        ),
    ] = None,
    check: Annotated[bool, shared("--check")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing; show the changes.")] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Fix wrong run paths, add the SDK packages to the requirements, and set the platform tags that the files ask for.

    Correct files are not changed, not even by one byte. Without --with, ROCm's packages are assumed to have the layout
    of ROCm 7. The exit status is 1 when a repair can't fix everything, and with --check when anything would change.

    Example: rocwheel repair dist/*.whl --dest-dir repaired/
    """
    setup_logging(quiet=quiet, verbose=verbose)
    if dest_dir is None and not (check or dry_run):
        message = "Missing option '--dest-dir' (or '--check', or '--dry-run')."
        raise typer.BadParameter(message)
    if dest_dir is not None:
        check_destination(dest_dir)
    tag = None if rpath is None else RunpathTag.RPATH if rpath else RunpathTag.RUNPATH
    settings, _ = find_settings(config)
    options = RepairOptions(tag=tag, pin=pin, dlopen=tuple(dlopen or ()), init=init, settings=settings)
    target = None if check or dry_run else dest_dir
    result = RepairJob(tuple(wheels), tuple(with_packages or ()), target, options).run(
        progress=make_progress(quiet=quiet)
    )
    plans = result.wheels
    if pin != "none" and not with_packages and len(wheels) == 1:
        report_warning(f"--pin {pin} pins nothing: the wheel gets no requirement of a package given by '--with'")
    if json:
        print_json("repair", 1, result)
    else:
        _show(plans, quiet=quiet)
    if any(plan.unmended for plan in plans) or (check and any(plan.changes for plan in plans)):
        sys.exit(1)


def _show(plans: Iterable[RepairPlan], *, quiet: bool) -> None:
    for plan in plans:
        name = Path(plan.wheel).name
        if not quiet:
            renamed = f" -> {plan.file_name}" if plan.file_name != name else ""
            changes = count(len(plan.changes), "change") if plan.changes else "no changes"
            results.print(f"[bold]{escape(name + renamed)}[/]: {changes}")
            for change in plan.changes:
                results.print(f"  {escape(change.file)}: {change.what}")
                if change.before:
                    results.print(f"    - {escape(_shortened(change.before))}")
                if change.after:
                    results.print(f"    + {escape(_shortened(change.after))}")
        for note in () if quiet else plan.notes:
            messages.print(f"[cyan]note[/] {escape(f'{name}: {note}')}")
        for problem in plan.unmended:
            messages.print(f"[yellow]not repaired[/] {escape(f'{name}: {problem}')}")


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({count(text.count(':') + 1, 'entry', 'entries')})"
