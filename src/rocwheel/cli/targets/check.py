"""``rocwheel targets check``: the access to the GPUs of this machine."""

from __future__ import annotations

import typer

from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.text import print_line, print_text
from rocwheel.cli.parsing.shared_options import takes
from rocwheel.cli.targets.group import targets_app
from rocwheel.cli.targets.options import Machine, read_machine
from rocwheel.targets.machine import check_machine

__all__ = ["check"]


@targets_app.command()
@takes(machine=read_machine)
def check(machine: Machine) -> None:
    """Print what keeps this user from the GPUs of this machine, and how to repair it.

    Exits with 1 when something does. Without a GPU it says so, and exits with 0 unless one is required.

    Example: rocwheel targets check --require-gpu
    """
    report = check_machine(machine.system, require_gpu=machine.require_gpu)
    if machine.json:
        findings = [finding._asdict() for finding in report.findings]
        print_json("gpu-access", 1, {"usable": report.usable, "gpus": report.gpus, "findings": findings})
        raise typer.Exit(0 if report.usable else 1)
    if report.gpus and not machine.quiet:
        print_line(f"GPUs: {', '.join(report.gpus)}")
    for finding in report.findings:
        if not machine.quiet or finding.level == "error":
            print_text(str(finding))
    raise typer.Exit(0 if report.usable else 1)
