"""The arguments and options that the commands about device code share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from rocwheel.binary.bundles.compressed.versions import reader_of
from rocwheel.binary.bundles.storage import Storage
from rocwheel.cli.device_text import rewrite_line
from rocwheel.cli.output import (
    JsonOption,
    QuietOption,
    VerboseOption,
    make_progress,
    messages,
    print_json,
    print_line,
    report_warning,
    setup_logging,
)
from rocwheel.cli.shared_options import shared
from rocwheel.device.editing.bundle import BundleEdit
from rocwheel.device.editing.rewrite import RewriteReport, rewrite_device_code
from rocwheel.foundation.counting import count
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.progress import Progress

__all__ = [
    "GIB",
    "FileArgument",
    "ForceOption",
    "LevelOption",
    "LimitOption",
    "OutputOption",
    "Rewriting",
    "RocmOption",
    "SourceArgument",
    "read_rewriting",
    "read_storage",
    "regular_path",
]


def regular_path(path: Path) -> Path:
    """Return the path of a file or folder; raise `InputError` for anything else."""
    if not path.is_dir() and not path.is_file():
        # A pipe would be waited for, a device read without end.
        raise InputError(path, "is not a regular file", expected="one with device code")
    return path


FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A fat binary, a file of bundles, a code object, an object file or a static library.",
        exists=True,
        dir_okay=False,
        callback=regular_path,
    ),
]
SourceArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A fat binary, a file of bundles, a code object, an object file, a static library or a wheel.",
        exists=True,
        dir_okay=False,
        callback=regular_path,
    ),
]
LimitOption = Annotated[
    int,
    shared("--limit", min=1),
]
ForceOption = Annotated[bool, shared("--force")]
GIB = 1 << 30
"""The unit of ``--limit``, in bytes."""
OutputOption = Annotated[Path, shared("--output")]
RocmOption = Annotated[
    str,
    shared("--rocm"),
]
LevelOption = Annotated[int, typer.Option("--level", metavar="N", min=1, max=22, help="Compress with this zstd level.")]
JobsOption = Annotated[int, shared("--jobs", min=0)]
TrimOption = Annotated[
    bool, typer.Option("--trim", help="Take the freed pages out of a shared library: its bundles move together.")
]


class Rewriting(msgspec.Struct, frozen=True):
    """How device code is rewritten, and what is printed of it."""

    trim: bool
    jobs: int
    as_json: bool
    quiet: bool
    verbose: bool

    @property
    def progress(self) -> Progress:
        """Where the work shows how far it is."""
        return make_progress(quiet=self.quiet or self.as_json)

    def rewrite(self, file: Path, output: Path, edit: BundleEdit | None, storage: Storage) -> RewriteReport:
        """Write a file with edited device code to ``output``, and print a report."""
        report = rewrite_device_code(
            file, output, edit, storage, trim=self.trim, jobs=self.jobs, progress=self.progress
        )
        if self.as_json:
            print_json("device-rewrite", 1, {**msgspec.to_builtins(report), "output": str(output)})
        elif not self.quiet:
            print_line(rewrite_line(report, output))
        if not self.quiet:
            _print_remarks(report)
        return report


def read_rewriting(
    trim: TrimOption = False,
    jobs: JobsOption = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> Rewriting:
    """Return how to rewrite, by the options that all such commands end with; set up the logging."""
    setup_logging(quiet=quiet, verbose=verbose)
    return Rewriting(trim, jobs or os.cpu_count() or 1, as_json, quiet, verbose)


def read_storage(rocm: RocmOption = "", level: LevelOption = 9, limit: LimitOption = 4) -> Storage:
    """Return how edited bundles are stored."""
    return Storage(rocm=rocm, level=level, limit=limit * GIB)


def _print_remarks(report: RewriteReport) -> None:
    for warning in report.warnings:
        report_warning(warning)
    if report.hosts_spelled:
        bundles = count(report.hosts_spelled, "bundle")
        done = f"respelled the host entries of {bundles} from clang 16's form to clang 17's"
        messages.print(f"note: {done}, since later readers refuse the old form in compressed bundles", markup=False)
    if report.versions:
        since = reader_of(report.versions[-1]).since
        messages.print(f"note: ROCm {since} and later read the result", markup=False)
