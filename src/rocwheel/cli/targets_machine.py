"""``rocwheel targets detect`` and ``check``: the GPUs of this machine, and the access to them."""

from __future__ import annotations

import click

from rocwheel.cli.options import takes
from rocwheel.cli.output import print_json, report_error
from rocwheel.cli.targets import Machine, read_machine, targets_app
from rocwheel.cli.text import print_line, print_text
from rocwheel.targets.machine import check_machine, survey_machine


@targets_app.command()
@takes(machine=read_machine)
def detect(machine: Machine) -> None:
    """Print the target of each GPU of this machine, found in sysfs without running anything.

    Without a GPU it says what was looked at and what may hide one, as `targets check` does. Exits with 2 when a node or
    an environment variable can't be understood, after the GPUs that can.

    Example: rocwheel targets detect --json
    """
    found = survey_machine(machine.system)
    gpus, problems = found.gpus, found.problems
    if machine.json:
        print_json("gpus", 1, {"gpus": gpus, "problems": [str(problem) for problem in problems]})
    for gpu in gpus if not machine.json else ():
        more = [f"node {gpu.node}", gpu.kind, gpu.render_node] if machine.verbose else [gpu.kind]
        print_line("  ".join(word for word in [gpu.target, *more] if word))
    for problem in problems:
        report_error(problem)
    if problems:
        raise click.exceptions.Exit(2)
    if not gpus and not machine.quiet:
        for finding in check_machine(machine.system).findings:
            print_text(finding, err=True)
    raise click.exceptions.Exit(1 if machine.require_gpu and not gpus else 0)


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
        raise click.exceptions.Exit(0 if report.usable else 1)
    if report.gpus and not machine.quiet:
        print_line(f"GPUs: {', '.join(report.gpus)}")
    for finding in report.findings:
        if not machine.quiet or finding.level == "error":
            print_text(str(finding))
    raise click.exceptions.Exit(0 if report.usable else 1)
