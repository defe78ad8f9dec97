"""The arguments and options that the commands about device code share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from rocwheel.binary.bundles.compressed import HIGHEST_LEVEL
from rocwheel.binary.bundles.runtimes import first_reader
from rocwheel.binary.bundles.storage import DEFAULT_LEVEL, Storage
from rocwheel.cli.device.printing import Printing
from rocwheel.cli.device.text import many_files_line, rewrite_line
from rocwheel.cli.output.consoles import messages
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.errors import report_warning
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.given_places import regular_file, regular_place, regular_places
from rocwheel.cli.parsing.place_words import FolderToMake
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.workers import worker_count
from rocwheel.device.edit_bundles import BundleEdit, Prune
from rocwheel.device.edit_file import RewriteOrder, RewriteReport, rewrite_device_code
from rocwheel.device.edit_tree import edit_tree
from rocwheel.device.edit_wheel import rewrite_wheel
from rocwheel.wheels.binaries import is_given_wheel
from rocwheel.wheels.names import name_and_version
from rocwheel.wheels.sdist import SourceDate

__all__ = [
    "GIB",
    "CodesArgument",
    "ForceOption",
    "JobsOption",
    "LevelOption",
    "LimitOption",
    "OutputOption",
    "PathArgument",
    "Rewriting",
    "RocmOption",
    "SourceArgument",
    "read_rewriting",
    "read_storage",
    "wheel_output",
]


def _code_argument(metavar: str, text: str, *, dir_okay: bool = False) -> Any:
    """Return the argument for a file with device code, or with ``dir_okay`` also a folder of such."""
    return typer.Argument(metavar=metavar, help=text, callback=regular_place if dir_okay else regular_file)


SourceArgument = Annotated[
    Path,
    _code_argument(
        "PATH",
        "A fat binary, a file of bundles, an object file, a static library, a kpack archive, a wheel or a folder.",
        dir_okay=True,
    ),
]
CodesArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH",
        help="Fat binaries, files of bundles, code objects, object files, static libraries, wheels and folders.",
        callback=regular_places,
    ),
]
PathArgument = Annotated[
    Path,
    _code_argument("PATH", "A fat binary, a file of bundles, a kpack archive, a wheel, or a folder.", dir_okay=True),
]
LimitOption = Annotated[
    int,
    shared("--limit", min=1),
]
ForceOption = Annotated[bool, shared("--force")]
GIB = 1 << 30
"""The unit of ``--limit``, in bytes."""
OutputOption = Annotated[Path, shared("--output", "Write the result to this file or folder.", metavar="OUTPUT")]
RocmOption = Annotated[
    str,
    shared("--rocm"),
]
LevelOption = Annotated[
    int, typer.Option("--level", metavar="N", min=1, max=HIGHEST_LEVEL, help="Compress with this zstd level.")
]
JobsOption = Annotated[int, shared("--jobs", min=0)]
TrimOption = Annotated[
    bool,
    typer.Option("--trim", help="Take the freed pages out of a shared library, an object file or a static library."),
]


class Rewriting(Printing, frozen=True, kw_only=True):
    """How device code is rewritten, and what is printed of it."""

    trim: bool
    jobs: int

    def rewrite(self, file: Path, output: Path, edit: BundleEdit | None, storage: Storage) -> int:
        """Write a file or a wheel with edited device code to ``output``, print a report, and return what changed."""
        reports = (self._rewrite_wheel if is_given_wheel(file) else self._rewrite_file)(file, output, edit, storage)
        if not self.quiet:
            _print_remarks(reports)
        return sum(report.changed for report in reports)

    def rewrite_folder(self, folder: Path, output: Path, edit: Prune | None, storage: Storage) -> None:
        """Write a folder with edited device code to ``output``, and print a report.

        Raises `InputError` as `edit_tree` does.
        """
        report = edit_tree(folder, output, edit, storage, trim=self.trim, jobs=self.jobs, progress=self.progress)
        if self.as_json:
            print_json("device-prune" if edit else "device-compress", 1, report)
        elif not self.quiet:
            for dropped in report.dropped if self.verbose else ():
                print_line(f"left out: {dropped}")
            print_line(many_files_line(report, output))
        if not self.quiet:
            _print_remarks(report.edited)
        for warning in () if self.quiet else report.warnings:
            report_warning(warning)

    def _rewrite_file(
        self, file: Path, output: Path, edit: BundleEdit | None, storage: Storage
    ) -> tuple[RewriteReport, ...]:
        if output.is_dir() or isinstance(output, FolderToMake):
            raise InputError(output, "a folder", expected="a file to write to", remedy="Change --output.")
        report = rewrite_device_code(
            file, output, edit, storage, trim=self.trim, jobs=self.jobs, progress=self.progress
        )
        if self.as_json:
            print_json("device-rewrite", 1, {**msgspec.to_builtins(report), "output": str(output)})
        elif not self.quiet:
            print_line(rewrite_line(report, output))
        return (report,)

    def _rewrite_wheel(
        self, file: Path, output: Path, edit: BundleEdit | None, storage: Storage
    ) -> tuple[RewriteReport, ...]:
        target = wheel_output(file, output)
        order = RewriteOrder(edit=edit, storage=storage, trim=self.trim, jobs=self.jobs, progress=self.progress)
        report = rewrite_wheel(file, target, order, SourceDate.from_environment(os.environ))
        if self.as_json:
            print_json("device-rewrite-wheel", 1, {**msgspec.to_builtins(report), "output": str(target)})
        elif not self.quiet:
            for name in report.dropped if self.verbose else ():
                print_line(f"left out: {name}")
            print_line(many_files_line(report, target))
        for warning in () if self.quiet else report.warnings:
            report_warning(warning)
        return report.edited


def wheel_output(wheel: Path, output: Path) -> Path:
    """Return where the edited ``wheel`` goes: to the file ``output``, or under its own name into that folder.

    A name without a suffix, where there is nothing, is that of a folder to make.
    Raises `InputError` for a file whose name would be that of another distribution, which installers refuse.
    """
    if output.is_dir() or not (output.suffix or output.exists()):
        return output / wheel.name
    own, new = name_and_version(wheel.name), name_and_version(output.name)
    if output.suffix != ".whl" or own != new:
        expected = f"a folder, or a name that begins with {'-'.join(own)} and ends with .whl"
        raise InputError(output, f"the edited {wheel.name} can't have this name", expected=expected)
    return output


def read_rewriting(
    trim: TrimOption = False,
    jobs: JobsOption = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> Rewriting:
    """Return how to rewrite, by the options that all such commands end with; set up the logging."""
    setup_logging(quiet=quiet, verbose=verbose)
    return Rewriting(trim=trim, jobs=worker_count(jobs), as_json=as_json, quiet=quiet, verbose=verbose)


def read_storage(rocm: RocmOption = "", level: LevelOption = DEFAULT_LEVEL, limit: LimitOption = 4) -> Storage:
    """Return how edited bundles are stored."""
    return Storage(rocm=rocm, level=level, limit=limit * GIB)


def _print_remarks(reports: Sequence[RewriteReport]) -> None:
    for warning in (warning for report in reports for warning in report.warnings):
        report_warning(warning)
    if hosts_spelled := sum(report.hosts_spelled for report in reports):
        done = f"respelled the host entries of {count(hosts_spelled, 'bundle')} from clang 16's form to clang 17's"
        messages.print(f"note: {done}, since later readers refuse the old form in compressed bundles", markup=False)
    for fault in dict.fromkeys(fault for report in reports for fault in report.faults):
        messages.print(f"note: {fault}", markup=False)
    if versions := [version for report in reports for version in report.versions]:
        since = first_reader(max(versions))
        messages.print(f"note: ROCm {since} and later read the result", markup=False)
