"""``rocwheel runpath set``: copies of ELF files with another run path."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.errors import report_warning
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.cli.runpath.group import runpath_app
from rocwheel.cli.runpath.options import FilesArgument
from rocwheel.core.workers import raise_all
from rocwheel.linking.entries import split_run_path
from rocwheel.linking.entry_rules import doubtful_entries, entry_problems
from rocwheel.linking.run_path_choice import SetRunpath
from rocwheel.linking.run_path_files import write_run_paths

__all__ = ["set_"]


@runpath_app.command("set")
def set_(
    value: Annotated[str, typer.Argument(metavar="RUNPATH", help="The new run path; an empty one removes it.")],
    files: FilesArgument,
    dest_dir: Annotated[
        Path, shared("--dest-dir", "Write the changed copies to this folder; it is created if needed.")
    ],
    rpath: Annotated[bool, shared("--rpath")] = (False),
    force: Annotated[bool, shared("--force", "Set a run path that the audit calls wrong, with a warning.")] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Write copies of ELF files with another run path, without touching the files themselves.

    All are checked before the first copy is written. A run path that the audit would call wrong is refused.

    Example: rocwheel runpath set '$ORIGIN:$ORIGIN/../../_rocm_sdk_core/lib' lib/*.so --dest-dir fixed/
    """
    setup_logging(quiet=quiet, verbose=verbose)
    tag = RunpathTag.RPATH if rpath else RunpathTag.RUNPATH
    warnings = _check(value, force=force)
    progress, remedy = make_progress(quiet=quiet or json), "Name another folder with --dest-dir."
    written = write_run_paths(files, SetRunpath(value, tag), dest_dir, remedy=remedy, progress=progress)
    if json:
        print_json("runpath.set", 1, {"tag": tag, "run_path": value, "files": written})
    elif not quiet:
        for file in written:
            print_line(f"{file.written}: {'changed' if file.is_changed else 'right already, copied as it is'}")
    for warning in () if quiet else warnings:
        report_warning(warning)


def _check(value: str, *, force: bool) -> tuple[str, ...]:
    """Return warnings about a run path; raise the errors by the audit's rules, which ``force`` makes warnings, too."""
    entries = split_run_path(value)
    problems = entry_problems("RUNPATH", entries, remedy="--force sets it all the same.")
    if not force:
        raise_all("RUNPATH", problems)
    found = (*(problem.found for problem in problems), *doubtful_entries(entries))
    return tuple(f"the run path {text}" for text in found)
