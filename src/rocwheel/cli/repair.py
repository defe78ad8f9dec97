"""``rocwheel repair``: makes wheels that load from wheels that don't."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from rocwheel.audit.settings import find_settings
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.errors import report_warning
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.cli.repair_text import show_plans
from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.errors import RocwheelError
from rocwheel.repair.job import RepairJob
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.toolkit import ToolkitOption

__all__ = ["repair"]


@app.command("repair")
def repair(
    wheels: Annotated[
        list[Path],
        typer.Argument(metavar="WHEEL", help="Repair these wheels, and those in these folders. They stay unchanged."),
    ],
    dest_dir: Annotated[
        Path, shared("--dest-dir", "Write the repaired wheels to this folder; it is created if needed.")
    ] = Path("repaired"),
    with_packages: Annotated[
        list[Path] | None,
        shared("--with", "Let the wheels load libraries of this package, such as a wheel of the SDK."),
    ] = None,
    dlopen: Annotated[list[str] | None, shared("--dlopen")] = None,
    toolkit: Annotated[
        ToolkitOption,
        typer.Option(help="Take ROCm's libraries from the SDK's packages or the system; by default as the wheel fits."),
    ] = "auto",
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

    Every file finds at least what it found before: a folder of the system stays in its run path unless a required
    package has the very library. Correct files are not changed, not even by one byte. Without --with, ROCm's packages
    are assumed to have the layout of ROCm 7. The exit status is 1 when a repair can't fix everything, and with --check
    when anything would change; it is 2 when a wheel can't be read, after all others.

    Example: rocwheel repair dist/*.whl --dest-dir repaired/
    """
    setup_logging(quiet=quiet, verbose=verbose)
    tag = None if rpath is None else RunpathTag.RPATH if rpath else RunpathTag.RUNPATH
    settings, _ = find_settings(config)
    options = RepairOptions(tag=tag, pin=pin, dlopen=tuple(dlopen or ()), init=init, toolkit=toolkit, settings=settings)
    target = None if check or dry_run else dest_dir
    problems: list[RocwheelError] = []
    result = RepairJob(tuple(wheels), tuple(with_packages or ()), target, options).run(
        progress=make_progress(quiet=quiet), problems=problems
    )
    plans = result.wheels
    if pin != "none" and not with_packages and len(wheels) == 1:
        report_warning(f"--pin {pin} pins nothing: the wheel gets no requirement of a package given by '--with'")
    if json:
        print_json("repair", 1, result)
    else:
        show_plans(plans, quiet=quiet)
    raise_all("wheels", problems)
    if any(plan.unmended for plan in plans) or (check and any(plan.changes for plan in plans)):
        sys.exit(1)
