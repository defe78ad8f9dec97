"""``rocwheel plan``: what a build would make."""

from __future__ import annotations

from rich import box
from rich.table import Table

from rocwheel.cli.output.consoles import messages
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.output.tables import print_table
from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, takes
from rocwheel.cli.plan.options import read_plan_job
from rocwheel.cli.plan.text import print_facts
from rocwheel.packages.job import PlanJob
from rocwheel.packages.plan import Plan, TarMember

__all__ = ["plan"]


@app.command()
@takes(inputs=read_plan_job)
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
            print_facts(made, made.warnings)


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
