"""``rocwheel device list``: the code for each target, every entry of every bundle, or every kernel."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from rocwheel.cli.device.group import device_app
from rocwheel.cli.device.options import GIB, CodesArgument, LimitOption
from rocwheel.cli.device.printing import Printing
from rocwheel.cli.device.text import (
    KERNEL_HEADINGS,
    container_line,
    entry_lines,
    kernel_files_line,
    kernel_rows,
    target_rows,
)
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.errors import report_warning
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.tables import cell, print_table, print_target_table
from rocwheel.cli.output.text import group_kernel_files, kernel_folder, print_line
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.device.facts import list_device_code
from rocwheel.device.inspection import list_all_device_code, list_folder_device_code
from rocwheel.device.kernels import list_kernels
from rocwheel.wheels.binaries import is_given_wheel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rocwheel.device.facts import DeviceFacts
    from rocwheel.device.kernels import CodeKernels

__all__ = ["list_command"]


@device_app.command("list")
def list_command(
    paths: CodesArgument,
    *,
    kernels: Annotated[
        bool, typer.Option("--kernels", help="List every kernel with its registers, memory and limits instead.")
    ] = False,
    limit: LimitOption = 4,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """List the code for each target in files, wheels and folders; with -v, every entry of every bundle, in file order.

    Only heads of bundles are decompressed. The kernel files of a folder count together, unless with -v. Libraries that
    were split are listed with the code in the archives beside them, or in whatever else is given.
    Exit status 1 when device code is doubtful, such as bundles that readers take differently, or a damaged file among
    others; 2 when the only file given is damaged.

    Example: rocwheel device list librocsparse.so
    """
    setup_logging(quiet=quiet, verbose=verbose)
    printing = Printing(as_json=as_json, quiet=quiet, verbose=verbose)
    problems = (_list_kernels if kernels else _list_entries)(paths, limit * GIB, printing)
    for problem in () if quiet else problems:
        report_warning(problem)
    if problems:
        raise typer.Exit(1)


def _list_entries(paths: Sequence[Path], limit: int, printing: Printing) -> tuple[str, ...]:
    path = paths[0]
    if len(paths) == 1 and not path.is_dir() and not is_given_wheel(path):
        facts = list_device_code(path)
        if printing.as_json:
            print_json("device-list", 1, facts)
        else:
            _print_device(None, facts, printing)
        return facts.problems
    if len(paths) > 1:
        members, schema = list_all_device_code(paths, limit=limit, progress=printing.progress), "device-list-paths"
    else:
        members = list_folder_device_code(path, limit=limit, progress=printing.progress)
        schema = "device-list-folder" if path.is_dir() else "device-list-wheel"
    if printing.as_json:
        print_json(schema, 1, members)
    kernels = []
    for member in () if printing.as_json else members.files:
        if not printing.verbose and kernel_folder(member.path):
            kernels.append(member)
        else:
            _print_device(member.path, member.device, printing)
    for folder, found in group_kernel_files(kernels, lambda member: member.path):
        if folder is None:
            _print_device(found[0].path, found[0].device, printing)
            continue
        devices = [member.device for member in found]
        unreadable = sum(kernel_folder(name) == folder for name in members.unreadable)
        print_line(folder if printing.quiet else kernel_files_line(folder, devices, unreadable))
        print_target_table(target_rows(*devices))
    return members.problems


def _print_device(path: str | None, facts: DeviceFacts, printing: Printing) -> None:
    """Print the sum for each target, or each entry; the path of one that was given alone is known."""
    if printing.verbose:
        for line in [path] if path else []:
            print_line(line)
        for line in entry_lines(facts):
            print_line(line)
        return
    if not printing.quiet:
        print_line(f"{path}: {container_line(facts)}" if path else container_line(facts))
    elif path:
        print_line(path)
    print_target_table(target_rows(facts))


def _list_kernels(paths: Sequence[Path], limit: int, printing: Printing) -> tuple[str, ...]:
    listing = list_kernels(*paths, limit=limit, progress=printing.progress)
    if printing.as_json:
        print_json("device-kernels", 1, listing)
        return listing.problems
    for name, codes in groupby(listing.codes, lambda code: code.file):
        if [name] != list(map(str, paths)) and not printing.quiet:
            print_line(name)
        print_table(_kernel_table(codes))
    return listing.problems


def _kernel_table(codes: Iterable[CodeKernels]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for number, heading in enumerate(KERNEL_HEADINGS):
        table.add_column(heading, justify="left" if number in {1, 2} else "right")
    for row in kernel_rows(codes):
        table.add_row(*map(cell, row))
    return table
