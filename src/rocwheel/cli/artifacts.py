"""``rocwheel artifacts``: lists, packs, and unpacks artifacts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from rich import box
from rich.table import Table
from rich.text import Text

from rocwheel.artifacts.archives import ArchiveFormat
from rocwheel.artifacts.catalog import open_catalog
from rocwheel.artifacts.importer import ImportReport, IncompletePackage, MachineNeed
from rocwheel.artifacts.summary import CatalogSummary, EntrySummary, explain_absence, summarize
from rocwheel.artifacts.transfer import archive_artifacts, extract_archives
from rocwheel.cli.app import Group, app
from rocwheel.cli.options import Output, shared
from rocwheel.cli.output import print_json, print_line, report_warning
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.cli.tables import cell, print_table
from rocwheel.core.errors import RocwheelError
from rocwheel.core.messages import count, first_of
from rocwheel.core.workers import raise_all
from rocwheel.wheels.sdist import SourceDate

artifacts_app = Group("artifacts", help="List, fetch, import, merge, and pack artifacts.")
app.add_command(artifacts_app)


DirectoryArgument = Annotated[
    Path, argument(metavar="DIR", help="A folder of artifacts, which are folders or .tar.xz or .tar.zst archives.")
]
OutputOption = Annotated[Path, shared("--output", "Write to this folder, and create it if needed.", metavar="DIR")]
NewDirOption = Annotated[
    Path, shared("--output", "Write the artifacts to this folder, which must be new or empty.", metavar="DIR")
]
TableOption = Annotated[
    Path | None,
    option("--table", metavar="FILE", advanced=True, help="Use this import table (TOML) instead of rocwheel's own."),
]


def listed(text: str) -> tuple[str, ...]:
    """Split a list at commas, semicolons, or spaces, and return its words."""
    return tuple(dict.fromkeys(text.replace(";", " ").replace(",", " ").split()))


def print_made(kind: str, paths: tuple[Path, ...], *, json: bool) -> None:
    """Print the paths of the created files, one per line."""
    if json:
        print_json(kind, 1, {"paths": [str(path) for path in paths]})
        return
    for path in paths:
        print_line(path)


def print_report(report: ImportReport, *, json: bool, verbose: bool) -> None:
    """Print the created, omitted, and required files of an import."""
    if json:
        print_json("artifact-import", 1, report)
        return
    print_table(_import_table(report))
    print_line(f"SDK version: {report.version or 'unknown, so pass it to `rocwheel build --version`'}")
    for reason, files in report.skipped.items():
        print_line(f"left out, {reason}: {files}")
    if report.left_out:
        print_line(f"left out system packages (--bundle-sysdeps imports them): {', '.join(report.left_out)}")
    if report.unknown:
        print_line(f"packages that aren't in the table, assigned by their contents: {', '.join(report.unknown)}")
    _print_paths("left out packages that nothing needs", report.unneeded, verbose=verbose)
    _print_paths("dropped links to files that aren't in the sources", report.dangling, verbose=verbose)
    _print_paths("files that match no rule, added to the catch-all artifact", report.unmatched, verbose=verbose)
    _print_requirements("packages", report.packages, verbose=verbose)
    _print_requirements("libraries", report.libraries, verbose=verbose)
    _print_requirements("programs", report.programs, verbose=verbose)
    _print_incomplete(report.incomplete, verbose=verbose)


def _import_table(report: ImportReport) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_footer=True)
    table.add_column("artifact", footer=count(len(report.artifacts), "artifact"))
    table.add_column("files", footer=f"{sum(item.files for item in report.artifacts)}", justify="right")
    table.add_column("symlinks", footer=f"{sum(item.links for item in report.artifacts)}", justify="right")
    table.add_column("bytes", footer=f"{sum(item.size for item in report.artifacts):,}", justify="right")
    for item in report.artifacts:
        table.add_row(item.name, f"{item.files}", f"{item.links}", f"{item.size:,}")
    return table


def _print_paths(title: str, paths: tuple[str, ...], *, verbose: bool) -> None:
    if not paths:
        return
    print_line(f"{title}: {len(paths)}{'' if verbose else ' (-v lists them)'}")
    for path in paths if verbose else ():
        print_line(f"  {path}")


def _print_requirements(what: str, requirements: tuple[MachineNeed, ...], *, verbose: bool) -> None:
    """Print the machine's requirements, each with a file that needs it, or with all such files (``verbose``)."""
    if not requirements:
        return
    print_line(f"{what} required from the system:")
    for requirement in requirements:
        most = len(requirement.needed_by) if verbose else 1
        print_line(f"  {requirement.name}  for {first_of(requirement.needed_by, most)}")


def _print_incomplete(packages: tuple[IncompletePackage, ...], *, verbose: bool) -> None:
    """Print the CMake packages with missing files, each with one of them, or with all of them (``verbose``)."""
    if packages:
        print_line("CMake packages that find_package can't load:")
    for package in packages:
        most = len(package.missing) if verbose else 1
        print_line(f"  {package.path}  without {first_of(package.missing, most)}")


@artifacts_app.command("list")
def list_(
    directory: DirectoryArgument,
    components: Annotated[str, shared("--components", "List only these components, such as 'lib,dev'.")] = "",
    targets: Annotated[
        list[str] | None, shared("--targets", "List only artifacts for these targets, or 'generic'.")
    ] = None,
    *,
    out: Output,
) -> None:
    """List artifacts with the number and total size of their files.

    With -v, the command lists the files in each artifact. The exit status is 2 if an artifact can't be read; the other
    artifacts are still listed.

    Example: rocwheel artifacts list artifacts/ --components lib --targets gfx942
    """
    unread: list[RocwheelError] = []
    with open_catalog(directory, progress=make_progress(quiet=out.quiet), unread=unread) as catalog:
        wanted = {"components": listed(components), "targets": listed(",".join(targets or ()))}
        summary = summarize(catalog, **wanted, with_entries=out.verbose)
        absence = "" if summary.artifacts else explain_absence(catalog, **wanted)
    if absence and not out.quiet:
        report_warning(absence)
    if out.json:
        print_json("artifacts", 1, summary)
    else:
        print_table(_entry_table(summary) if out.verbose else _artifact_table(summary))
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


@artifacts_app.command()
def archive(
    directory: DirectoryArgument,
    dest_dir: OutputOption,
    names: Annotated[
        list[str] | None, argument(metavar="NAME", help="Artifacts to pack. Without names, pack all artifacts.")
    ] = None,
    archive_format: Annotated[
        ArchiveFormat, option("--format", help="Compress the archives in this format.")
    ] = ArchiveFormat.ZST,
    *,
    out: Output,
) -> None:
    """Pack each artifact into an archive.

    The same artifact always produces an identical archive.

    Example: rocwheel artifacts archive artifacts/ --output archives/ blas_lib_gfx942
    """
    date = SourceDate.from_environment(os.environ)
    progress = make_progress(quiet=out.quiet)
    paths = archive_artifacts(directory, dest_dir, names or (), archive_format, date, progress=progress)
    print_made("artifact-archives", paths, json=out.json)


@artifacts_app.command(hidden=True)
def extract(
    archives: Annotated[list[Path], argument(metavar="ARCHIVE", help="Artifact archives.")],
    dest_dir: OutputOption,
    *,
    out: Output,
) -> None:
    """Unpack artifact archives into folders.

    Each folder is named after its artifact. The command never overwrites a file.

    Example: rocwheel artifacts extract archives/*.tar.zst --output artifacts/
    """
    paths = extract_archives(archives, dest_dir, progress=make_progress(quiet=out.quiet))
    print_made("artifact-folders", paths, json=out.json)
