"""``rocwheel targets detect``: the GPUs of this machine."""

from __future__ import annotations

import typer

from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.errors import report_error
from rocwheel.cli.output.text import print_line, print_text
from rocwheel.cli.parsing.shared_options import takes
from rocwheel.cli.targets.group import targets_app
from rocwheel.cli.targets.options import Machine, read_machine
from rocwheel.targets.machine import check_machine, survey_machine

__all__ = ["detect"]


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
        raise typer.Exit(2)
    if not gpus and not machine.quiet:
        for finding in check_machine(machine.system).findings:
            print_text(finding, err=True)
    raise typer.Exit(1 if machine.require_gpu and not gpus else 0)
