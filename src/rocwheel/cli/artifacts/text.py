"""What the commands about artifacts print."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.table import Table

from rocwheel.artifacts.importer import ImportReport, IncompletePackage, MachineNeed
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.tables import print_table
from rocwheel.cli.output.text import print_line
from rocwheel.core.messages import count, first_of

__all__ = ["print_made", "print_report"]


def print_made(kind: str, paths: tuple[Path, ...], *, json: bool) -> None:
    """Print the paths of what was made, one a line."""
    if json:
        print_json(kind, 1, {"paths": [str(path) for path in paths]})
        return
    for path in paths:
        print_line(path)


def print_report(report: ImportReport, *, json: bool, verbose: bool) -> None:
    """Print what an import made, left out and needs."""
    if json:
        print_json("artifact-import", 1, report)
        return
    print_table(_import_table(report))
    print_line(f"SDK version: {report.version or 'unknown, so give one to `rocwheel build --version`'}")
    for reason, files in report.skipped.items():
        print_line(f"left out, {reason}: {files}")
    if report.left_out:
        print_line(f"left out packages of the system (--bundle-sysdeps imports them): {', '.join(report.left_out)}")
    if report.unknown:
        print_line(f"packages that the table does not name, placed by what they hold: {', '.join(report.unknown)}")
    _print_paths("packages that nothing needs, left out", report.unneeded, verbose=verbose)
    _print_paths("dropped links to files that are not among the sources", report.dangling, verbose=verbose)
    _print_paths("files that no rule matches, put into the catch-all artifact", report.unmatched, verbose=verbose)
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
    """Print what the machine must have and a file that needs it; with ``verbose``, all such files."""
    if not requirements:
        return
    print_line(f"{what} required from the system:")
    for requirement in requirements:
        most = len(requirement.needed_by) if verbose else 1
        print_line(f"  {requirement.name}  by {first_of(requirement.needed_by, most)}")


def _print_incomplete(packages: tuple[IncompletePackage, ...], *, verbose: bool) -> None:
    """Print which CMake packages lack which file; with ``verbose``, all such files."""
    if packages:
        print_line("CMake packages that find_package can't load:")
    for package in packages:
        most = len(package.missing) if verbose else 1
        print_line(f"  {package.path}  for want of {first_of(package.missing, most)}")
