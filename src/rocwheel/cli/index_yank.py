"""``rocwheel index yank`` and ``unyank``: marks of files that installers take only when asked for their version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from rocwheel.cli.app import app
from rocwheel.cli.index import print_notes
from rocwheel.cli.options import Output, shared
from rocwheel.cli.output import print_json, print_line
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.index.yank import change_marks_of
from rocwheel.index.yanked import Yanking

FilesArgument = Annotated[
    list[str], argument(metavar="FILE", help="The wheels and sdists, by their paths, URLs or names alone.")
]
IndexOption = Annotated[
    str | None,
    shared(
        "--output",
        metavar="DIR",
        help="Change this index, a folder or a URL.",
        show_default="the one of the folder of FILE",
    ),
]


def _change(files: list[str], output: str | None, make: Callable[[list[str]], Yanking], out: Output) -> None:
    """Change the marks of files in their indexes, and print what is yanked there now."""
    for place, report, names in change_marks_of(files, output, make, lambda: make_progress(quiet=out.quiet)):
        if not out.quiet:
            print_notes(report, [Path(place)])
        if out.json:
            print_json("index", 1, report)
        for index in (report, *report.families.values()) if not (out.json or out.quiet) else ():
            listed = {name for files in index.projects.values() for name in files}
            for name in filter(listed.__contains__, names):
                reason = index.yanked.get(name)
                mark = "not yanked" if reason is None else f"yanked: {reason}" if reason else "yanked"
                print_line(f"{index.output}: {name}: {mark}")


@app.command("index yank")
def yank(
    files: FilesArgument,
    reason: Annotated[
        str, option("--reason", metavar="TEXT", help="Have installers print this.", show_default="none")
    ] = "",
    output: IndexOption = None,
    *,
    out: Output,
) -> None:
    """Mark files of an index as yanked (PEP 592): installers take them only for a requirement of exactly their version.

    The index is brought up to date with its folders. Indexes of families that list the file have the mark, too. It
    stays until `rocwheel index unyank`. For a folder that is called yank, write ./yank.

    Example: rocwheel index yank packages/dist/rocm-7.0.0.tar.gz --reason "installs nothing for gfx942"
    """
    _change(files, output, lambda names: Yanking(dict.fromkeys(names, reason)), out)


@app.command("index unyank")
def unyank(
    files: FilesArgument,
    output: IndexOption = None,
    *,
    out: Output,
) -> None:
    """Mark files of an index as yanked no longer. The index is brought up to date with its folders.

    Example: rocwheel index unyank packages/dist/rocm-7.0.0.tar.gz
    """
    _change(files, output, lambda names: Yanking(unyanked=tuple(names)), out)
