"""What is printed about plans and builds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import PurePath

from rich import box
from rich.filesize import decimal
from rich.table import Table

from rocwheel.binary.stubs import RELAY_SIZE
from rocwheel.build.building import BuildResult, BuiltDistribution
from rocwheel.build.estimate import PlannedSize, planned_sizes
from rocwheel.build.plan import Plan, PlannedWheel, PlanWarning, RelayMember
from rocwheel.cli.output.consoles import messages
from rocwheel.cli.output.errors import report_warning
from rocwheel.cli.output.tables import print_table
from rocwheel.cli.output.width import output_width
from rocwheel.core.messages import count

__all__ = ["print_built", "print_distributions", "print_facts", "print_planned", "spelled_seconds"]


def print_planned(made: Plan, sizes: Sequence[PlannedSize]) -> None:
    """Print what a build would make, with estimated sizes."""
    table = Table(box=box.SIMPLE_HEAD, show_footer=True)
    table.add_column("distribution", footer=count(len(sizes), "package"))
    table.add_column("files", footer=str(sum(size.files for size in sizes)))
    table.add_column("edited", footer=str(sum(map(_edited, made.wheels))))
    table.add_column("tag")
    _add_size(table, "size", [size.size for size in sizes])
    _add_size(table, "packed, about", [size.packed or 0 for size in sizes])
    table.add_column("asked for by")
    facts = [(_edited(wheel), wheel.name.tag.rpartition("-")[2], wheel.floor_reason) for wheel in made.wheels]
    facts += [(0, "sdist", "") for _ in made.sdists]
    for size, (edited, tag, reason) in zip(sizes, facts, strict=True):
        bytes_of = decimal(size.size), decimal(size.packed or 0)
        table.add_row(size.distribution, str(size.files), str(edited), tag, *bytes_of, reason)
    print_table(table)


def _edited(wheel: PlannedWheel) -> int:
    return sum(getattr(member, "run_path", None) is not None for member in wheel.members)


def _add_size(table: Table, heading: str, sizes: Iterable[int]) -> None:
    table.add_column(heading, footer=decimal(sum(sizes)), justify="right")


def print_built(made: Plan, result: BuildResult) -> None:
    """Print what a build made, with sizes: paths of files, or where a terminal has less room the names of packages."""
    sizes = planned_sizes(made)
    table = Table(box=box.SIMPLE_HEAD, show_footer=True)
    table.add_column("distribution", footer=count(len(sizes), "package"))
    _add_size(table, "size", [built.size for built in result.distributions])
    table.add_column("files", footer=str(sum(size.files for size in sizes)), justify="right")
    _add_size(table, "unpacked", [size.size for size in sizes])
    is_pipe = output_width() is None
    for size, built in zip(sizes, result.distributions, strict=True):
        name = built.path if is_pipe else str(PurePath(size.folder, size.distribution))
        table.add_row(name, decimal(built.size), str(size.files), decimal(size.size))
    print_table(table)


def print_distributions(distributions: Sequence[BuiltDistribution]) -> None:
    """Print what was written, with sizes."""
    table = Table(box=box.SIMPLE_HEAD, show_footer=True)
    table.add_column("distribution", footer=count(len(distributions), "package"))
    _add_size(table, "size", [written.size for written in distributions])
    for written in distributions:
        table.add_row(written.path, decimal(written.size))
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
    relays = [member for wheel in made.wheels for member in wheel.members if isinstance(member, RelayMember)]
    if relays:
        sizes = (
            f"{decimal(len(relays) * RELAY_SIZE)} in the place of {decimal(sum(relay.replaced for relay in relays))}"
        )
        messages.print(f"{count(len(relays), 'relay')}: {sizes}", markup=False)
    dropped = f"; left out: {len(made.dropped)} (rocwheel plan -v shows what and why)" if made.dropped else ""
    messages.print(f"version {made.version}, layout {made.layout}, GPU targets: {targets}{dropped}", markup=False)


def spelled_seconds(seconds: float) -> str:
    """Return a time for people, such as ``0.4 s``, ``25 s`` and ``3 min 20 s``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
