"""``rocwheel targets detect`` and ``check``: the GPUs of this machine, and the access to them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocwheel.cli.output import JsonOption, QuietOption, VerboseOption, print_json, report_error, setup_logging
from rocwheel.cli.targets import targets_app
from rocwheel.targets.machine import System, check_machine, survey_machine

__all__: list[str] = []

RequireGpu = Annotated[bool, typer.Option("--require-gpu", help="Exit with 1 when there is no GPU.")]
RootOption = Annotated[
    Path,
    typer.Option(
        "--root", exists=True, file_okay=False, help="Look at /sys and /dev of another machine, copied to this folder."
    ),
]


@targets_app.command()
def detect(
    *,
    root: RootOption = Path("/"),
    require_gpu: RequireGpu = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print the target of each GPU of this machine, found in sysfs without running anything.

    Exits with 2 when a node or an environment variable can't be understood, after the GPUs that can.
    Example: rocwheel targets detect --json
    """
    setup_logging(quiet=quiet, verbose=verbose)
    found = survey_machine(System(root))
    gpus, problems = found.gpus, found.problems
    if as_json:
        print_json("gpus", 1, {"gpus": gpus, "problems": [str(problem) for problem in problems]})
    for gpu in gpus if not as_json else ():
        more = [f"node {gpu.node}", gpu.kind, gpu.render_node] if verbose else [gpu.kind]
        typer.echo("  ".join(word for word in [gpu.target, *more] if word))
    for problem in problems:
        report_error(problem)
    if problems:
        raise typer.Exit(2)
    if not gpus and not quiet:
        typer.echo("No AMD GPU was found; `rocwheel targets check` says why.", err=True)
    raise typer.Exit(1 if require_gpu and not gpus else 0)


@targets_app.command()
def check(
    *,
    root: RootOption = Path("/"),
    require_gpu: RequireGpu = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print what keeps this user from the GPUs of this machine, and how to repair it.

    Exits with 1 when something does. Without a GPU it says so, and exits with 0 unless one is required.
    Example: rocwheel targets check --require-gpu
    """
    setup_logging(quiet=quiet, verbose=verbose)
    report = check_machine(System(root), require_gpu=require_gpu)
    if as_json:
        findings = [finding._asdict() for finding in report.findings]
        print_json("gpu-access", 1, {"usable": report.usable, "gpus": report.gpus, "findings": findings})
        raise typer.Exit(0 if report.usable else 1)
    if report.gpus and not quiet:
        typer.echo(f"GPUs: {', '.join(report.gpus)}")
    for finding in report.findings:
        if not quiet or finding.level == "error":
            typer.echo(str(finding))
    raise typer.Exit(0 if report.usable else 1)
