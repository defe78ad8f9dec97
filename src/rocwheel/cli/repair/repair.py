"""``rocwheel repair``: makes wheels that load from wheels that don't."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.errors import report_warning
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared, takes
from rocwheel.cli.repair.options import read_repair_options
from rocwheel.cli.repair.text import show_plans
from rocwheel.core.errors import RocwheelError
from rocwheel.core.workers import raise_all
from rocwheel.repair.job import RepairJob
from rocwheel.repair.options import RepairOptions

__all__ = ["repair"]


@app.command("repair")
@takes(options=read_repair_options)
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
    *,
    options: RepairOptions,
    check: Annotated[bool, shared("--check")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing; show the changes.")] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Fix wrong run paths, add the SDK packages to the requirements, and set the platform tags that the files ask for.

    A repaired run path is the shortest one under which the file finds what it needs and opens by name. Folders that are
    given up are listed, and --keep keeps them. Correct files are not changed, not even by one byte. Without --with,
    ROCm's packages are assumed to have the layout of ROCm 7 and 10. The exit status is 1 when a repair can't fix
    everything, and with --check when anything would change; it is 2 when a wheel can't be read, after all others.

    Example: rocwheel repair dist/*.whl --dest-dir repaired/
    """
    setup_logging(quiet=quiet, verbose=verbose)
    target = None if check or dry_run else dest_dir
    problems: list[RocwheelError] = []
    result = RepairJob(tuple(wheels), tuple(with_packages or ()), target, options).run(
        progress=make_progress(quiet=quiet), problems=problems
    )
    plans = result.wheels
    if options.pin in {"minor", "exact"} and not with_packages and len(plans) == 1 and not problems:
        report_warning(
            f"--pin {options.pin} pins nothing: the wheel gets no requirement of a package given by '--with'"
        )
    if json:
        print_json("repair", 1, result)
    else:
        show_plans(plans, quiet=quiet, verbose=verbose)
    raise_all("wheels", problems)
    if any(plan.unmended for plan in plans) or (check and any(plan.changes for plan in plans)):
        sys.exit(1)
