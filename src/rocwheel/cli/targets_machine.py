"""``rocwheel targets``: the GPUs of this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from rocwheel.cli.output import JsonOption, QuietOption, VerboseOption, print_json, setup_logging
from rocwheel.cli.targets import targets_app
from rocwheel.targets.check import check_machine
from rocwheel.targets.detection import find_gpus

__all__: list[str] = []

RequireGpu = Annotated[bool, typer.Option("--require-gpu", help="Exit with 1 when there is no GPU.")]


@targets_app.command()
def detect(
    *,
    require_gpu: RequireGpu = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print the target of each GPU of this machine, found in sysfs without running anything.

    Example: rocwheel targets detect --json
    """
    setup_logging(quiet=quiet, verbose=verbose)
    gpus = find_gpus()
    if as_json:
        print_json("gpus", 1, {"gpus": gpus})
    for gpu in gpus if not as_json else ():
        more = [f"node {gpu.node}", gpu.kind, gpu.render_node] if verbose else [gpu.kind]
        typer.echo("  ".join(word for word in [gpu.target, *more] if word))
    if not gpus and not quiet:
        typer.echo("No AMD GPU was found; `rocwheel targets check` tells why.", err=True)
    raise typer.Exit(1 if require_gpu and not gpus else 0)


@targets_app.command()
def check(
    *,
    require_gpu: RequireGpu = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Tell whether this user can use this machine's GPUs, and how to mend what is in the way.

    Exits with 1 when something is. Without a GPU it says so, and exits with 0 unless one is required.
    Example: rocwheel targets check --require-gpu
    """
    setup_logging(quiet=quiet, verbose=verbose)
    report = check_machine()
    usable = report.usable and not (require_gpu and not report.gpus)
    if as_json:
        print_json("gpu-access", 1, {"usable": usable, "gpus": report.gpus, "findings": report.findings})
        raise typer.Exit(0 if usable else 1)
    if report.gpus and not quiet:
        typer.echo(f"GPUs: {', '.join(report.gpus)}")
    for finding in report.findings:
        if not quiet or finding.level == "error":
            typer.echo(f"{finding.level}: {finding.text}" + (f"\n  {finding.remedy}" if finding.remedy else ""))
    raise typer.Exit(0 if usable else 1)
