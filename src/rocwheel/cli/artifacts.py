"""``rocwheel artifacts``: look at, pack and unpack SDK artifacts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from rocwheel.artifacts.archives.write import ArchiveFormat
from rocwheel.artifacts.catalog import open_catalog
from rocwheel.artifacts.summary import CatalogSummary, EntrySummary, explain_absence, summarise
from rocwheel.artifacts.transfer import archive_artifacts, extract_archives
from rocwheel.cli._app import app
from rocwheel.cli.output import (
    JsonOption,
    QuietOption,
    VerboseOption,
    make_progress,
    print_json,
    print_table,
    report_warning,
    setup_logging,
)
from rocwheel.distributions.formats.source_date import SourceDate
from rocwheel.foundation.counting import count

__all__ = ["artifacts_app"]

artifacts_app = typer.Typer(
    name="artifacts", help="Look at, pack, unpack and import SDK artifacts.", no_args_is_help=True
)
app.add_typer(artifacts_app)

DirectoryArgument = Annotated[Path, typer.Argument(help="Folder of artifacts: folders, .tar.xz or .tar.zst archives.")]
DestDirOption = Annotated[Path, typer.Option(help="Write to this folder; it is created if needed.")]


@artifacts_app.callback()
def artifacts() -> None:
    """Group the commands about SDK artifacts."""


@artifacts_app.command("list")
def list_(
    directory: DirectoryArgument,
    component: Annotated[str | None, typer.Option(help="List only this component, such as lib or dev.")] = None,
    target: Annotated[str | None, typer.Option(help="List only this target; gfx90a includes gfx90a:xnack+.")] = None,
    files: Annotated[bool, typer.Option("--files", help="List the contents of the artifacts.")] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """List artifacts, with the number and size of their files.

    Example: rocwheel artifacts list artifacts/ --component lib --target gfx942
    """
    setup_logging(quiet=quiet, verbose=verbose)
    with open_catalog(directory, progress=make_progress(quiet=quiet)) as catalog:
        summary = summarise(catalog, component=component, target=target, with_entries=files)
        absence = "" if summary.artifacts else explain_absence(catalog, component=component, target=target)
    if absence and not quiet:
        report_warning(absence)
    if json:
        print_json("artifacts", 1, summary)
    else:
        print_table(_entry_table(summary) if files else _artifact_table(summary))


@artifacts_app.command()
def archive(
    directory: DirectoryArgument,
    dest_dir: DestDirOption,
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Pack only these artifacts.")] = None,
    archive_format: Annotated[
        ArchiveFormat, typer.Option("--format", help="Compress the archives in this format.")
    ] = ArchiveFormat.ZST,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Pack each artifact into an archive; the same artifact always gives the same bytes.

    Example: rocwheel artifacts archive artifacts/ --dest-dir archives/ blas_lib_gfx942
    """
    setup_logging(quiet=quiet, verbose=verbose)
    date = SourceDate.from_environment(os.environ)
    progress = make_progress(quiet=quiet)
    paths = archive_artifacts(directory, dest_dir, names or (), archive_format, date, progress=progress)
    _print_paths("artifact-archives", paths, json=json)


@artifacts_app.command()
def extract(
    archives: Annotated[list[Path], typer.Argument(metavar="ARCHIVE...", help="Artifact archives.")],
    dest_dir: DestDirOption,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Unpack each artifact archive into a folder of its name; nothing is overwritten.

    Example: rocwheel artifacts extract archives/*.tar.zst --dest-dir artifacts/
    """
    setup_logging(quiet=quiet, verbose=verbose)
    paths = extract_archives(archives, dest_dir, progress=make_progress(quiet=quiet))
    _print_paths("artifact-folders", paths, json=json)


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
    return Text(text if text.isprintable() else ascii(text))


def _print_paths(kind: str, paths: tuple[Path, ...], *, json: bool) -> None:
    if json:
        print_json(kind, 1, {"paths": [str(path) for path in paths]})
        return
    for path in paths:
        typer.echo(path)
