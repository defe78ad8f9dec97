"""``rocwheel device list``, ``extract``, and ``bundle``: list device code, extract it, and bundle it."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import msgspec
from rich import box
from rich.table import Table

from rocwheel.binary.bundles.storage import Storage
from rocwheel.cli.device import (
    GIB,
    KERNEL_HEADINGS,
    CodesArgument,
    ForceOption,
    LevelOption,
    LimitOption,
    RocmOption,
    container_line,
    device_app,
    entry_lines,
    kernel_files_line,
    kernel_rows,
    made_line,
    target_rows,
)
from rocwheel.cli.options import Output, shared
from rocwheel.cli.output import print_json, print_line, report_warning
from rocwheel.cli.parameters import argument, option, regular_place, regular_places
from rocwheel.cli.tables import cell, print_table, print_target_table
from rocwheel.cli.targets import read_targets
from rocwheel.core.compression import DEVICE_CODE_LEVEL
from rocwheel.core.progress import step
from rocwheel.device.device_facts import list_device_code
from rocwheel.device.extract import MatchRule, extract_code
from rocwheel.device.inspection import list_all_device_code, list_folder_device_code
from rocwheel.device.kernels import list_kernels
from rocwheel.device.make_bundle import make_bundle
from rocwheel.targets.kernel_files import group_kernel_files, kernel_folder
from rocwheel.wheels.binaries import is_given_wheel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.device.device_facts import DeviceFacts
    from rocwheel.device.kernels import CodeKernels


@device_app.command("list")
def list_command(
    paths: CodesArgument,
    *,
    kernels: Annotated[
        bool, option("--kernels", help="List kernels instead, with their registers, memory, and limits.")
    ] = False,
    limit: LimitOption = 4,
    out: Output,
) -> None:
    """List the device code in files by target.

    With -v, the command lists every entry of every bundle in file order. It decompresses only the beginning of each
    bundle. Without -v, it counts the kernel files in a folder together. For split libraries, the command also reads the
    archives next to them and in the other paths.

    The exit status is 1 if any device code is questionable or one of several files is damaged. It is 2 if the only file
    is damaged.

    Example: rocwheel device list librocsparse.so
    """
    problems = (_list_kernels if kernels else _list_entries)(paths, limit * GIB, out)
    for problem in () if out.quiet else problems:
        report_warning(problem)
    if problems:
        raise click.exceptions.Exit(1)


def _list_entries(paths: Sequence[Path], limit: int, out: Output) -> tuple[str, ...]:
    path = paths[0]
    if len(paths) == 1 and not path.is_dir() and not is_given_wheel(path):
        facts = list_device_code(path)
        if out.json:
            print_json("device-list", 1, facts)
        else:
            _print_device(None, facts, out)
        return facts.problems
    if len(paths) > 1:
        members, schema = list_all_device_code(paths, limit=limit, progress=out.progress), "device-list-paths"
    else:
        members = list_folder_device_code(path, limit=limit, progress=out.progress)
        schema = "device-list-folder" if path.is_dir() else "device-list-wheel"
    if out.json:
        print_json(schema, 1, members)
    kernels = []
    for member in () if out.json else members.files:
        if not out.verbose and kernel_folder(member.path):
            kernels.append(member)
        else:
            _print_device(member.path, member.device, out)
    for folder, found in group_kernel_files(kernels, lambda member: member.path):
        if folder is None:
            _print_device(found[0].path, found[0].device, out)
            continue
        devices = [member.device for member in found]
        unreadable = sum(kernel_folder(name) == folder for name in members.unreadable)
        print_line(folder if out.quiet else kernel_files_line(folder, devices, unreadable))
        print_target_table(target_rows(*devices))
    return members.problems


def _print_device(path: str | None, facts: DeviceFacts, out: Output) -> None:
    """Print the total for each target, or each entry. The path of a single given file isn't printed."""
    if out.verbose:
        for line in [path] if path else []:
            print_line(line)
        for line in entry_lines(facts):
            print_line(line)
        return
    if not out.quiet:
        print_line(f"{path}: {container_line(facts)}" if path else container_line(facts))
    elif path:
        print_line(path)
    print_target_table(target_rows(facts))


def _list_kernels(paths: Sequence[Path], limit: int, out: Output) -> tuple[str, ...]:
    listing = list_kernels(*paths, limit=limit, progress=out.progress)
    if out.json:
        print_json("device-kernels", 1, listing)
        return listing.problems
    for name, codes in groupby(listing.codes, lambda code: code.file):
        if [name] != list(map(str, paths)) and not out.quiet:
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


_TargetOption = Annotated[
    list[str] | None,
    shared("--targets", "Extract only the code for these targets.", show_default="all targets"),
]
_RuleOption = Annotated[
    MatchRule, option(help="Select code that matches exactly, or code that a stock or extended runtime would load.")
]
_AllowMissingOption = Annotated[bool, option("--allow-missing", help="Skip bundles without code for the targets.")]
_OutputOption = Annotated[
    Path, shared("--output", "Write the files to this folder, and create it if needed.", metavar="DIR")
]


@device_app.command()
def extract(
    paths: CodesArgument,
    target: _TargetOption = None,
    *,
    rule: _RuleOption = MatchRule.EXACT,
    allow_missing: _AllowMissingOption = False,
    limit: LimitOption = 4,
    force: ForceOption = False,
    dest_dir: _OutputOption = Path(),
    out: Output,
) -> None:
    """Extract code objects to separate files.

    The command writes one file for each bundle. It treats an object file or a code object as one bundle. For a wheel or
    a folder, it keeps the folder structure and skips files without code for the targets. For split libraries, it also
    reads the archives next to them and in the other paths.

    Example: rocwheel device extract librocsparse.so --targets gfx90a:xnack- --output code
    """
    targets = read_targets(target, source="--targets").ids if target else ()
    with step(out.progress, "extracting"):
        extracted = extract_code(
            paths,
            dest_dir,
            targets,
            rule=rule,
            allow_missing=allow_missing,
            limit=limit * GIB,
            accept_wrong_hash=force,
        )
    if out.json:
        print_json("device-extract", 1, {"files": extracted})
    elif not out.quiet:
        for code in extracted:
            print_line(code.path)


@device_app.command(hidden=True)
def bundle(
    files: Annotated[
        list[Path],
        argument(metavar="FILE", help="Code objects, one for each target.", check=regular_places),
    ],
    output: Annotated[Path, shared("--output")],
    *,
    compressed: Annotated[bool, option("--compress", help="Compress the bundle.")] = False,
    rocm: RocmOption = "",
    header_version: Annotated[
        int | None,
        option(
            metavar="N",
            advanced=True,
            help="Write header version 2 or 3.",
            show_default="the format for most ROCm releases",
        ),
    ] = None,
    level: LevelOption = DEVICE_CODE_LEVEL,
    out: Output,
) -> None:
    """Make an offload bundle from code objects.

    HIP loads the bundle from a file and chooses the code for each GPU. The command determines the targets from the code
    objects and ignores file names.

    Example: rocwheel device bundle saxpy.gfx906.co saxpy.gfx1030.co -o saxpy.hipfb --compress
    """
    for file in files:
        regular_place(file)
    storage = Storage(compress=compressed, version=header_version, rocm=rocm, level=level)
    with step(out.progress, "bundling"):
        made = make_bundle(files, output, storage)
    if out.json:
        print_json("device-bundle", 1, msgspec.to_builtins(made))
    elif not out.quiet:
        print_line(made_line(made))
