"""``rocwheel artifacts list``: the artifacts of a folder, or their files."""

from __future__ import annotations

from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from rocwheel.artifacts.catalog import open_catalog
from rocwheel.artifacts.summary import CatalogSummary, EntrySummary, explain_absence, summarise
from rocwheel.cli.artifacts.group import artifacts_app
from rocwheel.cli.artifacts.options import DirectoryArgument
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.errors import report_warning
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.output.tables import cell, print_table
from rocwheel.cli.parsing.completion import complete_targets
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.core.errors import RocwheelError
from rocwheel.core.messages import count
from rocwheel.core.workers import raise_all

__all__ = ["list_"]


@artifacts_app.command("list")
def list_(
    directory: DirectoryArgument,
    component: Annotated[
        str | None, typer.Option("--component", metavar="NAME", help="List only this component, such as lib or dev.")
    ] = None,
    target: Annotated[
        str | None,
        shared("--target", "List only this target; gfx90a includes gfx90a:xnack+.", autocompletion=complete_targets),
    ] = None,
    files: Annotated[bool, typer.Option("--files", help="List the contents of the artifacts.")] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """List artifacts, with the number and size of their files.

    The exit status is 2 when an artifact can't be read, after all others.

    Example: rocwheel artifacts list artifacts/ --component lib --target gfx942
    """
    setup_logging(quiet=quiet, verbose=verbose)
    unread: list[RocwheelError] = []
    with open_catalog(directory, progress=make_progress(quiet=quiet), unread=unread) as catalog:
        summary = summarise(catalog, component=component, target=target, with_entries=files)
        absence = "" if summary.artifacts else explain_absence(catalog, component=component, target=target)
    if absence and not quiet:
        report_warning(absence)
    if json:
        print_json("artifacts", 1, summary)
    else:
        print_table(_entry_table(summary) if files else _artifact_table(summary))
    raise_all(str(directory), unread)


def _artifact_table(summary: CatalogSummary) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_footer=True)
    table.add_column("artifact", footer=count(len(summary.artifacts), "artifact"))
    table.add_column("component")
    table.add_column("target")
    table.add_column("files", footer=f"{summary.files}", justify="right")
    table.add_column("symlinks", footer=f"{summary.symlinks}", justify="right")
    table.add_column("bytes", footer=f"{summary.bytes:,}", justify="right")
    for item in summary.artifacts:
        table.add_row(item.name, item.component, item.target, f"{item.files}", f"{item.symlinks}", f"{item.bytes:,}")
    return table


def _entry_table(summary: CatalogSummary) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("artifact", "kind", "mode"):
        table.add_column(name)
    table.add_column("bytes", justify="right")
    table.add_column("path")
    for item in summary.artifacts:
        for entry in item.entries or ():
            table.add_row(item.artifact, entry.kind.value, entry.mode, f"{entry.bytes:,}", _path_text(entry))
    return table


def _path_text(entry: EntrySummary) -> Text:
    text = f"{entry.path} -> {entry.link}" if entry.link else entry.path
    return cell(text)
