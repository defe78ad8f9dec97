"""``rocwheel targets check``: the access to the GPUs of this machine."""

from __future__ import annotations

from pathlib import Path

import typer

from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.cli.targets.group import targets_app
from rocwheel.cli.targets.options import RequireGpu, RootOption
from rocwheel.targets.machine import System, check_machine

__all__ = ["check"]


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
        print_line(f"GPUs: {', '.join(report.gpus)}")
    for finding in report.findings:
        if not quiet or finding.level == "error":
            print_line(str(finding))
    raise typer.Exit(0 if report.usable else 1)
