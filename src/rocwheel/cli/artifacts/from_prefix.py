"""``rocwheel artifacts from-prefix``: make artifacts from an install prefix."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocwheel.artifacts.from_prefix import import_prefixes
from rocwheel.artifacts.import_table import load_table
from rocwheel.cli.artifacts.group import artifacts_app
from rocwheel.cli.artifacts.options import NewDirOption, TableOption
from rocwheel.cli.artifacts.text import print_report
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.targets.kernel_files.names import kernel_targets

__all__ = ["from_prefix"]


@artifacts_app.command("from-prefix")
def from_prefix(
    prefixes: Annotated[
        list[Path],
        typer.Argument(metavar="PREFIX", help="Install prefix, such as /opt/rocm/core. Several are united."),
    ],
    dest_dir: NewDirOption,
    table: TableOption = None,
    strict: Annotated[
        bool, typer.Option(show_default=False, help="Refuse files that no rule of the table matches.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Make artifacts from an install prefix, and print what they need from the system.

    Example: rocwheel artifacts from-prefix /opt/rocm/core --dest-dir artifacts
    """
    setup_logging(quiet=quiet, verbose=verbose)
    progress = make_progress(quiet=quiet)
    rules = load_table(table or "prefix.toml")
    report = import_prefixes(prefixes, dest_dir, rules, strict=strict, progress=progress, targets_of=kernel_targets)
    print_report(report, json=json, verbose=verbose)
