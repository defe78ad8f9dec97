"""``rocwheel artifacts from-deb``: make artifacts from Debian packages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocwheel.artifacts.from_deb import import_debs
from rocwheel.artifacts.import_table import load_table
from rocwheel.cli.artifacts.group import artifacts_app
from rocwheel.cli.artifacts.options import NewDirOption, TableOption
from rocwheel.cli.artifacts.text import print_report
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption

__all__ = ["from_deb"]


@artifacts_app.command("from-deb")
def from_deb(
    packages: Annotated[list[Path], typer.Argument(metavar="DEB", help="Debian packages.")],
    dest_dir: NewDirOption,
    table: TableOption = None,
    bundle_sysdeps: Annotated[
        bool,
        typer.Option(show_default=False, help="Also import packages of system libraries, into lib/rocm_sysdeps/lib."),
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
    print_report(report, json=json, verbose=verbose)
