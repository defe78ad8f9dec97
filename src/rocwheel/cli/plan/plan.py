"""``rocwheel plan``: what a build would make."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

import msgspec

from rocwheel.build.job import PlanJob
from rocwheel.cli.output.consoles import messages
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, takes
from rocwheel.cli.plan.options import read_plan_job
from rocwheel.cli.plan.text import print_facts, print_planned, spelled_seconds
from rocwheel.core.messages import count
from rocwheel.core.workers import worker_count

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
    made, estimate = inputs.run_estimated(progress=make_progress(quiet=quiet))
    if json:
        print_json("plan", 1, {**msgspec.to_builtins(made), "sizes": estimate.sizes})
        return
    print_planned(made, estimate.sizes)
    for row in made.dropped if verbose else ():
        messages.print(f"left out: {row.path or 'all'} of {row.artifact}: {row.reason}", markup=False)
    if not quiet:
        print_facts(made, made.warnings)
        workers = worker_count(0)
        seconds = spelled_seconds(estimate.cpu_seconds / workers)
        messages.print(f"packing takes about {seconds} with {count(workers, 'worker')}", markup=False)
        messages.print(f"next: {_build_command(sys.argv[1:])}", markup=False)


def _build_command(arguments: Sequence[str]) -> str:
    """Return the command line that builds what one plans; options of `build` that only name a plan stay out."""
    words = arguments[1:] if arguments[:1] == ["plan"] else ["..."]
    kept = [word for word in words if word not in {"--verbose", "-v"}]
    return f"rocwheel build {shlex.join(kept)} --dest-dir packages"
