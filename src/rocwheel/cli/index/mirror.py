"""``rocwheel index mirror``: copy the part of a package index that given GPUs need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.filesize import decimal
from rich.table import Table

from rocwheel.artifacts.model.names import GENERIC
from rocwheel.binary.code_objects.target_id import TargetId
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.printable import cell
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.output.text import print_line, print_table
from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.completion import complete_targets
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared, takes
from rocwheel.distributions.index_reading.source import IndexSource
from rocwheel.distributions.mirroring.choose import LATEST, Choice
from rocwheel.distributions.mirroring.mirror import FILES_FOLDER, MirrorReport, make_mirror
from rocwheel.distributions.mirroring.plan import MirrorPlan, plan_mirror
from rocwheel.foundation.collecting import convert_all, raise_all
from rocwheel.foundation.counting import count, first_of
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files.destination import check_destination
from rocwheel.targets.machine import native_targets
from rocwheel.targets.serving import label_of_project, serves
from rocwheel.targets.spelling.target_set import parse_target_set

__all__ = ["mirror"]


def read_choice(
    project: Annotated[
        list[str], typer.Option("--project", metavar="PATTERN", help="Copy these projects, e.g. rocm or 'rocm*'.")
    ],
    version: Annotated[
        str,
        shared("--version", f"Copy these versions, e.g. '==7.2.*', or '{LATEST}'.", show_default="all"),
    ] = "",
    devel: Annotated[
        bool, typer.Option("--devel", show_default=False, help="Copy packages for development, too.")
    ] = False,
) -> Choice:
    """Return which projects and versions are copied."""
    return Choice(projects=tuple(project), version=version, devel=devel)


@app.command("index mirror")
@takes(choice=read_choice)
def mirror(
    urls: Annotated[
        list[str], typer.Argument(metavar="URL", help="Package index: http(s)://, file:// or s3://, as pip takes it.")
    ],
    dest_dir: Annotated[Path, shared("--dest-dir")],
    *,
    choice: Choice,
    targets: Annotated[
        str | None,
        typer.Option(
            "--targets",
            metavar="TARGETS",
            autocompletion=complete_targets,
            help="Of packages for certain GPUs, copy those for these.",
            show_default="all",
        ),
    ] = None,
    jobs: Annotated[int, shared("--jobs", "Fetch this many files at a time.", min=1)] = 4,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", show_default=False, help="List what would be copied, and copy nothing.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Copy the part of package indexes that given GPUs need, verified by hash, with an index over it.

    Files go to dist in the folder, the index to simple. A run that was ended is taken up; what is there already stays.
    Files without a SHA-256 in their index are refused.

    Example: rocwheel index mirror https://host/simple --project 'rocm*' --targets gfx1100 --dest-dir mirror
    """
    setup_logging(quiet=quiet, verbose=verbose)
    check_destination(dest_dir)
    agents = parse_target_set([targets], source="--targets", native=native_targets).ids if targets is not None else None
    sources = convert_all("URLs", IndexSource, dict.fromkeys(urls))

    def serves_project(name: str) -> bool:
        return agents is None or serves(label_of_project(name), agents)

    plan = plan_mirror(sources, choice, serves_project)
    raise_all("--targets", list(_unserved(plan, agents or ())))
    if dry_run:
        _print_planned(plan, json=json)
        return
    report = make_mirror(plan, dest_dir, jobs=jobs, progress=make_progress(quiet=quiet))
    if json:
        print_json("index-mirror", 1, report)
    elif not quiet:
        _print(report, dest_dir, verbose=verbose)


def _unserved(plan: MirrorPlan, agents: Iterable[TargetId]) -> Iterator[InputError]:
    """Yield an error for each GPU that none of the packages for certain GPUs serves, if there are any such packages."""
    labels = sorted({label_of_project(project) for project in plan.matched} - {GENERIC})
    for agent in agents if labels else ():
        if not any(serves(label, (agent,)) for label in labels):
            found = f"no package of the index serves {agent}"
            yield InputError("--targets", found, remedy=f"There are some for {first_of(labels, len(labels))}.")


def _print_planned(plan: MirrorPlan, *, json: bool) -> None:
    if json:
        rows = [{"filename": one.filename, "bytes": one.size, "sha256": one.sha256} for one in plan.files]
        print_json("index-mirror-plan", 1, {"files": rows})
        return
    table = Table(box=box.SIMPLE_HEAD, show_footer=True)
    table.add_column("file", footer=count(len(plan.files), "file"))
    table.add_column("size", footer=decimal(plan.size), justify="right")
    for one in plan.files:
        table.add_row(cell(one.filename), "unknown" if one.size is None else decimal(one.size))
    print_table(table)


def _print(report: MirrorReport, dest_dir: Path, *, verbose: bool) -> None:
    for one in report.files if verbose else ():
        print_line(f"{one.filename}: {decimal(one.bytes)}, {'fetched' if one.is_new else 'was there'}")
    new = sum(one.is_new for one in report.files)
    print_line(f"{count(new, 'file')} fetched to {dest_dir / FILES_FOLDER}, {len(report.files) - new} there already")
    print_line(f"install with: pip install --index-url {Path(report.output).resolve().as_uri()} PROJECT")
