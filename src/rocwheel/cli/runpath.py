"""``rocwheel runpath``: shows and sets where ELF files search for libraries, and formats run paths for build tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
from rich import box
from rich.markup import escape
from rich.table import Table

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.cli.app import Group, app
from rocwheel.cli.options import Output, complete_tools, shared
from rocwheel.cli.output import messages, print_json, print_line, print_text, printing_errors, report_warning
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.tables import cell, print_table
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.progress import step
from rocwheel.core.workers import raise_all
from rocwheel.environment.link_flags import TOOLS, spell_run_path
from rocwheel.environment.run_path_advice import RunPathAdvice, advise
from rocwheel.environment.run_path_choice import SetRunpath
from rocwheel.environment.run_path_entries import CpuLevel, doubtful_entries, entry_problems, split_run_path
from rocwheel.environment.run_path_files import FileRunPath, read_run_paths, write_run_paths

runpath_app = Group("runpath", help="Show, compute, and set run paths of ELF files.")
app.add_command(runpath_app)


FilesArgument = Annotated[list[Path], argument(metavar="FILE", help="ELF files.")]


@runpath_app.command(hidden=True)
def show(
    files: Annotated[list[Path], argument(metavar="PATH", help="ELF files, wheels, or folders that contain them.")],
    *,
    out: Output,
) -> None:
    """Show the run paths and needed libraries of ELF files.

    The exit status is 2 if a file can't be read; the other files are still shown.

    Example: rocwheel runpath show lib/*.so
    """
    unread: list[RocwheelError] = []
    found = read_run_paths(files, unread, out.progress)
    if out.json:
        print_json("runpath.show", 1, {"files": found})
    else:
        print_table(_search_table(found))
    raise_all("files that can't be used", unread)


def _search_table(files: tuple[FileRunPath, ...]) -> Table:
    table = Table("file", "kind", "SONAME", "tag", "run path", "NEEDED", box=box.SIMPLE_HEAD)
    for file in files:
        tag = file.tag.name if file.tag else "-"
        cells = (
            file.file,
            file.kind.value,
            file.soname or "-",
            tag,
            file.run_path or "-",
            " ".join(file.needed) or "-",
        )
        table.add_row(*map(cell, cells))
    return table


@runpath_app.command("set")
def set_(
    value: Annotated[str, argument(metavar="RUNPATH", help="The new run path. An empty value removes the run path.")],
    files: FilesArgument,
    dest_dir: Annotated[
        Path, shared("--output", "Write the copies to this folder, and create it if needed.", metavar="DIR")
    ],
    rpath: Annotated[bool, shared("--rpath")] = False,
    force: Annotated[
        bool, shared("--force", "Accept a run path that the audit reports as an error, and print a warning.")
    ] = False,
    *,
    out: Output,
) -> None:
    """Write copies of ELF files with a different run path.

    The command checks all files before it writes the first copy. It rejects a run path that the audit reports as an
    error.

    Example: rocwheel runpath set '$ORIGIN:$ORIGIN/../../_rocm_sdk_core/lib' lib/*.so --output fixed/
    """
    tag = RunpathTag.RPATH if rpath else RunpathTag.RUNPATH
    if Path(value).is_file():
        expected = "the run path before the files: rocwheel runpath set RUNPATH FILE..."
        raise InputError(value, "is a file", expected=expected)
    warnings = _check(value, force=force)
    progress, remedy = out.progress, "Choose another folder with --output."
    written = write_run_paths(files, SetRunpath(value, tag), dest_dir, remedy=remedy, progress=progress)
    if out.json:
        print_json("runpath.set", 1, {"tag": tag, "run_path": value, "files": written})
    elif not out.quiet:
        for file in written:
            print_line(f"{file.written}: {'changed' if file.is_changed else 'already correct, copied unchanged'}")
    for warning in () if out.quiet else warnings:
        report_warning(warning)


def _check(value: str, *, force: bool) -> tuple[str, ...]:
    """Return warnings about a run path.

    Raises the errors from the audit's rules, which ``force`` turns into warnings.
    """
    entries = split_run_path(value)
    problems = entry_problems("RUNPATH", entries, remedy="To set it anyway, add --force.")
    if not force:
        raise_all("RUNPATH", problems)
    found = (*(problem.found for problem in problems), *doubtful_entries(entries))
    return tuple(f"the run path {text}" for text in found)


FileArgument = Annotated[Path, argument(metavar="FILE", help="A linked shared library or program.")]
PlaceOption = Annotated[
    str, option(metavar="PLACE", help="Compute the run path for this location: site-packages/PACKAGE/[FILE].")
]
WithOption = Annotated[list[str] | None, shared("--with", "Find libraries in this wheel, folder, or SDK package.")]
DlopenOption = Annotated[list[str] | None, shared("--dlopen")]
ToolOption = Annotated[
    list[str] | None,
    shared(
        "--tool",
        f"Print the run path for this tool: {', '.join(TOOLS)}, or all.",
        shell_complete=complete_tools,
    ),
]
RpathOption = Annotated[bool, shared("--rpath")]
CpuLevelOption = Annotated[
    CpuLevel, option(advanced=True, help="Search the glibc-hwcaps folders for this processor level.")
]


@runpath_app.command("for")
def for_(
    file: FileArgument,
    at: PlaceOption,
    packages: WithOption = None,
    dlopen: DlopenOption = None,
    tool: ToolOption = None,
    rpath: RpathOption = False,
    cpu_level: CpuLevelOption = "x86-64",
    *,
    out: Output,
) -> None:
    """Print the shortest run path that finds a file's libraries.

    The exit status is 1 if a library is neither in the packages nor on every system.

    Example: rocwheel runpath for _ext.so --at site-packages/my_package/ --with rocm-sdk-core --tool cmake
    """
    with step(out.progress, "reading packages"):
        advice = advise(file, at, packages or (), dlopen or (), cpu_level)
    texts = _spelled(advice, tool or [], RunpathTag.RPATH if rpath else RunpathTag.RUNPATH)
    if out.json:
        print_json("runpath.for", 1, {**msgspec.to_builtins(advice), "spellings": texts})
    elif texts:
        _print_texts(texts)
    else:
        print_table(_settings_table(advice))
    with printing_errors():
        for name in advice.missing:
            messages.print(f"[yellow]{escape(name)}[/]: neither in the packages nor on every system")
    if advice.missing:
        sys.exit(1)


def _spelled(advice: RunPathAdvice, words: list[str], tag: RunpathTag) -> dict[str, str]:
    tools = list(TOOLS) if "all" in words else words
    return {tool: spell_run_path(advice.values, tool, tag) for tool in tools}


def _print_texts(texts: dict[str, str]) -> None:
    for number, (tool, text) in enumerate(texts.items()):
        if len(texts) > 1:
            print_text(f"{'' if number == 0 else chr(10)}[{tool}]")
        print_text(text)


def _settings_table(advice: RunPathAdvice) -> Table:
    table = Table("entry", "for", box=box.SIMPLE_HEAD)
    for entry in advice.entries:
        table.add_row(cell(entry.entry), cell(" ".join(entry.libraries)))
    if not advice.entries:
        table.add_row("none needed", "")
    return table
