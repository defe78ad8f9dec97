"""What is printed about plans and builds."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from rich import box
from rich.filesize import decimal
from rich.table import Table

from rocwheel.cli.output.consoles import messages
from rocwheel.cli.output.errors import report_warning
from rocwheel.cli.output.tables import print_table
from rocwheel.packages.building.build import BuildResult
from rocwheel.packages.plan import Plan, PlanWarning

__all__ = ["print_distributions", "print_facts"]


def print_distributions(result: BuildResult) -> None:
    """Print what a build made, with sizes."""
    table = Table("distribution", "size", box=box.SIMPLE_HEAD)
    for built in result.distributions:
        table.add_row(built.path, decimal(built.size))
    print_table(table)


def print_facts(made: Plan, warnings: Iterable[PlanWarning]) -> None:
    """Print what to know about a plan: warnings, gaps, version, layout and targets."""
    targets = ", ".join(made.targets) or "none"
    for remedy, group in groupby(warnings, key=lambda warning: warning.remedy):
        for warning in group:
            report_warning(f"{warning.subject}: {warning.found}")
        messages.print(f"  {remedy}", markup=False)
    for gap in made.gaps:
        messages.print(f"not coherent: {gap}", markup=False)
    dropped = f"; left out: {len(made.dropped)} (rocwheel plan -v shows what and why)" if made.dropped else ""
    messages.print(f"version {made.version}, layout {made.layout}, GPU targets: {targets}{dropped}", markup=False)
