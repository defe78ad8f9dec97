"""``rocwheel artifacts merge``: unite the artifacts of several builds, one per family of GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from rocwheel.cli.artifacts.group import artifacts_app
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.output.tables import cell, print_table
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared, takes
from rocwheel.core.messages import count
from rocwheel.core.writing import require_free
from rocwheel.device.merging.merge import MergeOptions, opened_merge, write_merge
from rocwheel.device.merging.shards import MergeReport

__all__ = ["merge"]


def _read_options(
    primary: Annotated[
        Path, typer.Option("--primary", metavar="DIR", help="Take the host files from this one of them.")
    ],
    may_differ: Annotated[
        list[str] | None,
        typer.Option("--may-differ", metavar="PATTERN", help="Accept other bytes in host files that match this."),
    ] = None,
    allow_missing: Annotated[
        bool,
        typer.Option(
            "--allow-missing", show_default=False, help="Merge builds without files for targets that they name."
        ),
    ] = False,
) -> MergeOptions:
    return MergeOptions(str(primary), tuple(may_differ or ()), allow_missing)


@artifacts_app.command()
@takes(options=_read_options)
def merge(
    directories: Annotated[list[Path], typer.Argument(metavar="DIR", help="Folders of artifacts, one for each build.")],
    options: MergeOptions,
    dest_dir: Annotated[Path, shared("--dest-dir", "Write the artifacts to this folder, which must be new or empty.")],
    hard_links: Annotated[
        bool,
        typer.Option("--hard-links", show_default=False, help="Link files instead of copying them, where possible."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", show_default=False, help="Compare and report, and write nothing.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Unite builds for different GPUs: host files of the primary build, device files of all.

    Host files are compared. Nothing is written when they differ in more than build ids and what a table names, or when
    two builds have different files for one GPU.

    Example: rocwheel artifacts merge gfx94X/ gfx110X/ --primary gfx94X/ --dest-dir artifacts
    """
    setup_logging(quiet=quiet, verbose=verbose)
    require_free(dest_dir, *directories)
    with opened_merge(directories, options, progress=make_progress(quiet=quiet)) as plan:
        report = plan.report if dry_run else write_merge(plan, dest_dir, hard_links=hard_links)
    if json:
        print_json("artifact-merge", 1, report)
    else:
        _print(report, verbose=verbose)


def _print(report: MergeReport, *, verbose: bool) -> None:
    print_table(_table(report))
    if report.targets:
        print_line(f"targets: {', '.join(report.targets)}")
    for missing in report.missing:
        shards = ", ".join(missing.shards)
        if missing.artifact:
            print_line(f"{missing.artifact} has nothing for {missing.target}, unlike others of {shards}")
        else:
            print_line(f"{shards} has nothing for {missing.target}, which its dist_info.json names")
    differences = [f"{d.path} of {d.shard} ({d.differs}): {d.outcome}" for d in report.differences]
    _print_list("host files that differ", differences, verbose=verbose)
    _print_list("kernel files that no rule knows, left in the artifacts of their kind", report.unknown, verbose=verbose)
    print_line(f"written to {report.dest_dir}" if report.dest_dir else "nothing was written (--dry-run)")


def _print_list(title: str, lines: list[str] | tuple[str, ...], *, verbose: bool) -> None:
    if not lines:
        return
    print_line(f"{title}: {len(lines)}{'' if verbose else ' (-v lists them)'}")
    for line in lines if verbose else ():
        print_line(f"  {line}")


def _table(report: MergeReport) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_footer=True)
    table.add_column("artifact", footer=count(len(report.artifacts), "artifact"))
    table.add_column("files", footer=f"{sum(item.files for item in report.artifacts)}", justify="right")
    table.add_column("bytes", footer=f"{sum(item.bytes for item in report.artifacts):,}", justify="right")
    table.add_column("from")
    for item in report.artifacts:
        table.add_row(cell(item.name), f"{item.files}", f"{item.bytes:,}", cell(", ".join(item.shards)))
    return table
