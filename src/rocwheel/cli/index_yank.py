"""``rocwheel index yank``: marks files so that installers use them only for an exact version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from rocwheel.cli.app import app
from rocwheel.cli.index import print_notes
from rocwheel.cli.options import Output, shared, takes
from rocwheel.cli.output import print_json, print_line
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.core.errors import InputError
from rocwheel.index.yank import change_marks_of
from rocwheel.index.yanked import Yanking

FilesArgument = Annotated[list[str], argument(metavar="FILE", help="Wheels and sdists: paths, URLs, or file names.")]
IndexOption = Annotated[
    str | None,
    shared(
        "--output",
        metavar="DIR",
        help="Change the index in this folder or at this URL.",
        show_default="the index of FILE's folder",
    ),
]


def _read_undo(
    undo: Annotated[bool, option("--undo", help="Remove the mark and its reason.")] = False,
    reason: Annotated[
        str, option("--reason", metavar="TEXT", help="Set the text that installers print.", show_default=False)
    ] = "",
) -> Callable[[list[str]], Yanking]:
    if undo and reason:
        option, found = "--reason", "can't be used with --undo, which removes reasons"
        raise InputError(option, found, remedy="Remove one of them.")
    if undo:
        return lambda names: Yanking(unyanked=tuple(names))
    return lambda names: Yanking(dict.fromkeys(names, reason))


@app.command("index yank")
@takes(make=_read_undo)
def yank(
    files: FilesArgument,
    make: Callable[[list[str]], Yanking],
    output: IndexOption = None,
    *,
    out: Output,
) -> None:
    """Mark files in an index as yanked, or remove the mark.

    Installers use a yanked file (PEP 592) only if a requirement specifies its exact version. The command also updates
    the index from its folders, and marks the file in the indexes for GPU families. To refer to a folder named yank,
    write ./yank.

    Example: rocwheel index yank packages/dist/rocm-7.0.0.tar.gz --reason "installs nothing for gfx942"
    """
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
