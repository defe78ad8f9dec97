"""``rocwheel runpath for``: the run path that a file needs, and how to tell the linker."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.table import Table
from rich.text import Text

from rocwheel.audit.reading import read_tree
from rocwheel.audit.run_path_advice import RunPathAdvice, advise_run_path, library_folders, normalized_place
from rocwheel.audit.sdk_layout import sdk_folders
from rocwheel.audit.spellings import TOOLS, spell_run_path
from rocwheel.audit.systems import AllowedLibraries, system_library_patterns
from rocwheel.binary.elf import Elf, read_elf
from rocwheel.binary.runpath import RunpathTag
from rocwheel.cli.output import JsonOption, QuietOption, VerboseOption, messages, print_json, print_table, setup_logging
from rocwheel.cli.runpath import runpath_app
from rocwheel.errors import InputError
from rocwheel.files import FileRange

__all__ = ["for_"]


@runpath_app.command("for")
def for_(
    file: Annotated[Path, typer.Argument(help="A linked shared library or program.")],
    at: Annotated[str, typer.Option(metavar="PLACE", help="Where it is installed: site-packages/PACKAGE/FILE.")],
    packages: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="PACKAGE", help="A wheel, a folder, or an SDK package by its name."),
    ] = None,
    dlopen: Annotated[list[str] | None, typer.Option(help="A library that it opens by name at run time.")] = None,
    spell: Annotated[list[str] | None, typer.Option(help=f"{', '.join(TOOLS)}, or all.")] = None,
    rpath: Annotated[bool, typer.Option("--rpath", help="The old RPATH, which LD_LIBRARY_PATH can't override.")] = (
        False
    ),
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print the shortest run path that leads a file to its libraries, spelled for build tools.

    Exit status 1 when neither the packages nor every system has one of them.

    Example: rocwheel runpath for _ext.so --at site-packages/my_package/ --with rocm-sdk-core --spell cmake
    """
    setup_logging(quiet=quiet, verbose=verbose)
    advice = _advise(file, at, packages or [], dlopen or [])
    tools = list(TOOLS) if "all" in (spell or ()) else spell or []
    tag = RunpathTag.RPATH if rpath else RunpathTag.RUNPATH
    texts = {tool: spell_run_path(advice.values, tool, tag) for tool in tools}
    if json:
        print_json("runpath.for", 1, {**msgspec.to_builtins(advice), "spellings": texts})
    elif tools:
        _print_texts(texts)
    else:
        print_table(_table(advice))
    for name in advice.missing if not quiet else ():
        messages.print(f"[yellow]{name}[/]: neither in the packages nor on every system")
    if advice.missing:
        sys.exit(1)


def _advise(file: Path, at: str, packages: list[str], dlopen: list[str]) -> RunPathAdvice:
    known = {folder.distribution for folder in sdk_folders()}
    names = [package for package in packages if package in known]
    paths = [Path(package) for package in packages if package not in known]
    for path in paths:
        if not path.exists():
            expected = f"a wheel, a folder, or one of {', '.join(sorted(known))}"
            msg = f"--with {path}"
            raise InputError(msg, "does not exist", expected=expected)
    place = normalized_place(at, file.name)
    folders = library_folders(read_tree(paths), names)
    return advise_run_path(_read(file), place, folders, AllowedLibraries(system_library_patterns()), dlopen)


def _read(file: Path) -> Elf:
    with FileRange.whole(file).map() as data:
        return read_elf(data, name=str(file))


def _print_texts(texts: dict[str, str]) -> None:
    for number, (tool, text) in enumerate(texts.items()):
        if len(texts) > 1:
            typer.echo(f"{'' if number == 0 else chr(10)}[{tool}]")
        typer.echo(text)


def _table(advice: RunPathAdvice) -> Table:
    table = Table("entry", "for", box=box.SIMPLE_HEAD)
    for entry in advice.entries:
        table.add_row(Text(entry.entry), Text(" ".join(entry.libraries)))
    if not advice.entries:
        table.add_row("none needed", "")
    return table
