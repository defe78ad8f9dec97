"""``rocwheel artifacts from-deb`` and ``from-prefix``: make artifacts from packages and prefixes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from rocwheel.artifacts.importing.from_deb import import_debs
from rocwheel.artifacts.importing.from_prefix import import_prefix
from rocwheel.artifacts.importing.report import ImportReport, MachineNeed
from rocwheel.artifacts.importing.table import load_table
from rocwheel.cli.artifacts import artifacts_app
from rocwheel.cli.output import (
    JsonOption,
    QuietOption,
    VerboseOption,
    make_progress,
    print_json,
    print_table,
    setup_logging,
)
from rocwheel.foundation.counting import count, first_of

__all__ = ["from_deb", "from_prefix"]

DestDirOption = Annotated[Path, typer.Option(help="Write the artifacts to this folder, which must be new or empty.")]
TableOption = Annotated[Path | None, typer.Option(help="Use this import table (TOML) instead of rocwheel's own.")]


@artifacts_app.command("from-deb")
def from_deb(
    packages: Annotated[list[Path], typer.Argument(metavar="DEB...", help="Debian packages.")],
    dest_dir: DestDirOption,
    table: TableOption = None,
    bundle_sysdeps: Annotated[
        bool, typer.Option(help="Also import packages of system libraries, into lib/rocm_sysdeps/lib.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Make artifacts from Debian's ROCm packages, and print what they need from the system.

    Example: rocwheel artifacts from-deb debs/*.deb --dest-dir artifacts --bundle-sysdeps
    """
    setup_logging(quiet=quiet, verbose=verbose)
    report = import_debs(
        packages,
        dest_dir,
        load_table(table or "debian.toml"),
        bundle_system=bundle_sysdeps,
        progress=make_progress(quiet=quiet),
    )
    _print_report(report, json=json, verbose=verbose)


@artifacts_app.command("from-prefix")
def from_prefix(
    prefix: Annotated[Path, typer.Argument(help="Install prefix, such as /opt/rocm.")],
    dest_dir: DestDirOption,
    table: TableOption = None,
    strict: Annotated[bool, typer.Option(help="Refuse files that no rule of the table matches.")] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Make artifacts from an install prefix, and print what they need from the system.

    Example: rocwheel artifacts from-prefix /opt/rocm --dest-dir artifacts
    """
    setup_logging(quiet=quiet, verbose=verbose)
    progress = make_progress(quiet=quiet)
    report = import_prefix(prefix, dest_dir, load_table(table or "prefix.toml"), strict=strict, progress=progress)
    _print_report(report, json=json, verbose=verbose)


def _print_report(report: ImportReport, *, json: bool, verbose: bool) -> None:
    if json:
        print_json("artifact-import", 1, report)
        return
    print_table(_artifact_table(report))
    if report.version:
        typer.echo(f"SDK version: {report.version}")
    for reason, files in report.skipped.items():
        typer.echo(f"left out, {reason}: {files}")
    if report.left_out:
        typer.echo(f"left out packages of the system (--bundle-sysdeps imports them): {', '.join(report.left_out)}")
    _print_paths("dropped links to files that are not among the sources", report.dangling, verbose=verbose)
    _print_paths("files that no rule matches, put into the catch-all artifact", report.unmatched, verbose=verbose)
    _print_requirements("libraries", report.libraries, verbose=verbose)
    _print_requirements("programs", report.programs, verbose=verbose)


def _artifact_table(report: ImportReport) -> Table:
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
    typer.echo(f"{title}: {len(paths)}{'' if verbose else ' (-v lists them)'}")
    for path in paths if verbose else ():
        typer.echo(f"  {path}")


def _print_requirements(what: str, requirements: tuple[MachineNeed, ...], *, verbose: bool) -> None:
    """Print what the machine must have and a file that needs it; with ``verbose``, all such files."""
    if not requirements:
        return
    typer.echo(f"{what} required from the system:")
    for requirement in requirements:
        most = len(requirement.needed_by) if verbose else 1
        typer.echo(f"  {requirement.name}  by {first_of(requirement.needed_by, most)}")
