"""``rocwheel inspect`` and ``report``: describe binaries, and show which files use the most space in packages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
from rich.filesize import decimal

from rocwheel.build.cluster.readers import reading, shared_paths
from rocwheel.cli.app import app
from rocwheel.cli.device import bundle_line, container_line, kernel_files_line, kpack_lines, target_rows
from rocwheel.cli.options import Output, SchedulerOption, shared
from rocwheel.cli.output import message_printer, print_json, report_first, report_warning, results
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.cli.tables import print_target_table
from rocwheel.core.messages import count, in_one_line
from rocwheel.core.workers import raise_all
from rocwheel.device.inspection import file_document, inspect_paths
from rocwheel.report.make_report import make_report
from rocwheel.report.page import check_output, write_page
from rocwheel.targets.kernel_files import group_kernel_files, kernel_folder

if TYPE_CHECKING:
    from rocwheel.core.errors import RocwheelError
    from rocwheel.device.device_facts import DeviceFacts
    from rocwheel.device.inspection import ElfFacts, FileFacts, PeFacts


@app.command()
def inspect(
    paths: Annotated[list[Path], argument(metavar="PATH", help="Files, folders, and wheels.")],
    *,
    deep: Annotated[
        bool,
        option(
            "--deep",
            help="Decompress bundles to check hashes, count kernels, and measure code.",
        ),
    ] = False,
    limit: Annotated[
        int,
        shared("--limit", min=1, help="Unpack libraries and bundles of up to this size in GiB."),
    ] = 4,
    scheduler: SchedulerOption = None,
    out: Output,
) -> None:
    """Print the run paths and device code in binaries.

    PATH is a file, a folder, or a wheel. Kernel files in a folder are counted together; -v describes each file.

    The exit status is 1 if any device code is questionable, such as a bundle that readers interpret differently. It is
    2 if a file can't be read; the other files are still inspected.

    Example: rocwheel inspect dist/*.whl
    """
    files: list[FileFacts] = []
    kernels: list[FileFacts] = []
    paths = shared_paths(scheduler, paths)
    progress = out.progress
    with reading(scheduler, message_printer(quiet=out.quiet)) as readers:
        for facts in inspect_paths(paths, deep=deep, limit=limit << 30, readers=readers, progress=progress):
            files.append(facts)
            if out.json or facts.error:
                continue
            if facts.device and not out.verbose and kernel_folder(facts.path):
                kernels.append(facts)
            else:
                _print_file(facts, verbose=out.verbose)
    for folder, found in group_kernel_files(kernels, lambda facts: facts.path):
        if folder is None:
            _print_file(found[0], verbose=False)
        else:
            unreadable = sum(kernel_folder(facts.path) == folder for facts in files if facts.error)
            _print_kernel_files(folder, found, unreadable)
    empty = [path for path in paths if not any(_is_at(facts.path, str(path)) for facts in files)]
    for path in empty if not out.quiet else ():
        report_warning(f"{path}: contains no binaries")
    if out.json:
        print_json("inspect", 1, {"files": [file_document(facts) for facts in files]})
    _finish(files, quiet=out.quiet)


def _is_at(name: str, path: str) -> bool:
    if path == ".":  # names in the folder don't begin with this prefix
        return not name.startswith("/")
    return name == path or name.startswith((f"{path}/", f"{path}!"))


def _finish(files: list[FileFacts], *, quiet: bool) -> None:
    problems = [problem for facts in files if facts.device for problem in facts.device.problems]
    if not quiet:
        for problem in problems:
            report_warning(problem)
    errors = [facts.error for facts in files if facts.error]
    raise_all("Files that can't be read", errors)
    if problems:
        raise click.exceptions.Exit(1)


def _print_line(text: str) -> None:
    results.print(in_one_line(text), markup=False)


def _print_file(facts: FileFacts, *, verbose: bool) -> None:
    _print_line(f"{facts.path}: {decimal(facts.size)}")
    if facts.elf:
        _print_elf(facts.elf, verbose=verbose)
    if facts.pe:
        _print_pe(facts.pe, verbose=verbose)
    if facts.device:
        _print_device(facts.device, verbose=verbose)


def _print_elf(elf: ElfFacts, *, verbose: bool) -> None:
    _print_line(f"  {elf.kind} {elf.soname or ''}".rstrip())
    for label, value in (("RPATH", elf.rpath), ("RUNPATH", elf.runpath)):
        if value is not None:
            _print_line(f"  {label} {value}")
    if verbose and elf.needed:
        _print_line(f"  NEEDED {' '.join(elf.needed)}")


def _print_pe(pe: PeFacts, *, verbose: bool) -> None:
    parts = [
        "32-bit DLL or program" if pe.kind == "32-bit" else pe.kind,
        pe.name,
        f"for {pe.machine}" if pe.machine else None,
    ]
    parts += [f"version {pe.version}" if pe.version else None, "signed" if pe.is_signed else None]
    _print_line(f"  {' '.join(filter(None, parts))}")
    for label, names in (("imports", pe.imports), ("imports when called", pe.delay_imports)):
        if verbose and names:
            _print_line(f"  {label} {' '.join(names)}")
    if verbose and pe.exports:
        _print_line(f"  exports {count(pe.exports, 'name')}")


def _print_device(device: DeviceFacts, *, verbose: bool) -> None:
    _print_line(f"  {container_line(device)}")
    if verbose:
        for bundle in device.bundles:
            _print_line(f"    {bundle_line(bundle)}")
        for line in kpack_lines(device.kpack) if device.kpack else ():
            _print_line(f"    {line}")
    print_target_table(target_rows(device))


def _print_kernel_files(folder: str, files: list[FileFacts], unreadable: int) -> None:
    devices = [facts.device for facts in files if facts.device]
    _print_line(kernel_files_line(folder, devices, unreadable))
    print_target_table(target_rows(*devices))


_UNREAD = "Inputs that can't be read"


@app.command()
def report(
    paths: Annotated[
        list[Path],
        argument(metavar="PATH", help="Wheels, sdists, builds, indexes, artifacts, environments, or folders."),
    ],
    *,
    output: Annotated[Path | None, shared("--output", "Write the page to this file.")] = None,
    against: Annotated[
        Path | None, option("--against", metavar="OLD", help="Report changes relative to these packages.")
    ] = None,
    estimate: Annotated[
        bool, option("--estimate", help="Estimate possible savings from samples, which is faster.")
    ] = False,
    out: Output,
) -> None:
    """Write a page about package sizes, GPUs, and problems.

    The page is a single HTML file that works offline. It also shows possible savings. The exit status is 2 if a file
    can't be read; the page lists the file.

    Example: rocwheel report dist/ -o report.html
    """
    if output is None and not out.json:
        message = "Choose the page's path (-o report.html), or add --json."
        raise click.BadParameter(message)
    if output:
        check_output(output, [*paths, *([against] if against else [])])
    unread: list[RocwheelError] = []
    found = make_report(
        paths,
        unread=unread,
        left_out=output,
        against=against,
        estimate=estimate,
        progress=make_progress(quiet=out.quiet),
    )
    status = report_first(_UNREAD, unread)
    if output:
        size = write_page(output, found)
        message_printer(quiet=out.quiet or out.json)(f"{output}: {size} bytes")
    if out.json:
        print_json("report", 1, found)
    if status:
        raise click.exceptions.Exit(status)
