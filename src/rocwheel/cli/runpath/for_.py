"""``rocwheel runpath for``: prints the run path that a file needs, in the words of build tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.cli.output.consoles import messages
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.output.tables import cell, print_table
from rocwheel.cli.output.text import print_text
from rocwheel.cli.parsing.completion import complete_tools
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.cli.runpath.group import runpath_app
from rocwheel.core.progress import step
from rocwheel.installed.run_path_advice import RunPathAdvice, advise
from rocwheel.linking.hwcaps import CpuLevel
from rocwheel.linking.link_flags import TOOLS, spell_run_path

__all__ = ["for_"]

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A linked shared library or program.")]
PlaceOption = Annotated[
    str, typer.Option(metavar="PLACE", help="Compute it for a file installed here: site-packages/PACKAGE/[FILE].")
]
WithOption = Annotated[
    list[str] | None, shared("--with", "Find libraries in this wheel, folder, or SDK package (by its name).")
]
DlopenOption = Annotated[list[str] | None, shared("--dlopen")]
SpellOption = Annotated[
    list[str] | None,
    shared(
        "--spell",
        f"Print what to write for this tool: {', '.join(TOOLS)}, or all.",
        autocompletion=complete_tools,
    ),
]
RpathOption = Annotated[bool, shared("--rpath")]
CpuLevelOption = Annotated[
    CpuLevel, typer.Option(help="Count the glibc-hwcaps folders of this processor; by default the oldest.")
]


@runpath_app.command("for")
def for_(
    file: FileArgument,
    at: PlaceOption,
    packages: WithOption = None,
    dlopen: DlopenOption = None,
    spell: SpellOption = None,
    rpath: RpathOption = False,
    cpu_level: CpuLevelOption = "x86-64",
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print the shortest run path that leads a file to its libraries, spelled for build tools.

    The exit status is 1 when a library is neither in the packages nor on every system.

    Example: rocwheel runpath for _ext.so --at site-packages/my_package/ --with rocm-sdk-core --spell cmake
    """
    setup_logging(quiet=quiet, verbose=verbose)
    with step(make_progress(quiet=quiet or json), "reading packages"):
        advice = advise(file, at, packages or (), dlopen or (), cpu_level)
    texts = _spelled(advice, spell or [], RunpathTag.RPATH if rpath else RunpathTag.RUNPATH)
    if json:
        print_json("runpath.for", 1, {**msgspec.to_builtins(advice), "spellings": texts})
    elif texts:
        _print_texts(texts)
    else:
        print_table(_table(advice))
    for name in advice.missing if not quiet else ():
        messages.print(f"[yellow]{escape(name)}[/]: neither in the packages nor on every system")
    if advice.missing:
        sys.exit(1)


def _spelled(advice: RunPathAdvice, words: list[str], tag: RunpathTag) -> dict[str, str]:
    """Return what to write for each tool that is asked for."""
    tools = list(TOOLS) if "all" in words else words
    return {tool: spell_run_path(advice.values, tool, tag) for tool in tools}


def _print_texts(texts: dict[str, str]) -> None:
    for number, (tool, text) in enumerate(texts.items()):
        if len(texts) > 1:
            print_text(f"{'' if number == 0 else chr(10)}[{tool}]")
        print_text(text)


def _table(advice: RunPathAdvice) -> Table:
    table = Table("entry", "for", box=box.SIMPLE_HEAD)
    for entry in advice.entries:
        table.add_row(cell(entry.entry), cell(" ".join(entry.libraries)))
    if not advice.entries:
        table.add_row("none needed", "")
    return table
