"""``rocwheel device compress``, ``prune`` and ``retarget``: device code made smaller, and offered to more GPUs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from rocwheel.binary.bundles.compressed.versions import reader_of
from rocwheel.binary.bundles.storage import Storage
from rocwheel.cli.device import GIB, FileArgument, ForceOption, LimitOption, device_app, regular_path
from rocwheel.cli.device_text import pruning_line, rewrite_line
from rocwheel.cli.output import (
    JsonOption,
    QuietOption,
    VerboseOption,
    make_progress,
    messages,
    print_json,
    printable,
    report_warning,
    setup_logging,
)
from rocwheel.cli.targets import read_targets
from rocwheel.device.editing.bundle import BundleEdit
from rocwheel.device.editing.prune import Prune
from rocwheel.device.editing.prune_tree import TreePruning, prune_tree
from rocwheel.device.editing.retarget import Retarget, find_gaps
from rocwheel.device.editing.rewrite import RewriteReport, rewrite_device_code
from rocwheel.foundation.counting import count
from rocwheel.foundation.errors import InputError
from rocwheel.targets.machine import native_targets
from rocwheel.targets.retarget_pairs import parse_pairs

__all__ = ["compress", "prune", "retarget"]

OutputOption = Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="Write the result to this file.")]
RocmOption = Annotated[
    str,
    typer.Option("--rocm", metavar="VERSION", help="Write what the runtime of this ROCm release and later ones read."),
]
LevelOption = Annotated[int, typer.Option("--level", min=1, max=22, help="Compress with this zstd level.")]
JobsOption = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Work on this many bundles at a time.")]

TrimOption = Annotated[
    bool, typer.Option("--trim", help="Take the freed pages out of a shared library: its bundles move together.")
]

_JOBS = os.cpu_count() or 1


@device_app.command()
def compress(
    file: FileArgument,
    output: OutputOption,
    *,
    rocm: RocmOption = "",
    header_version: Annotated[
        int | None,
        typer.Option(help="Write this header version, 2 or 3.", show_default="what most ROCm releases read"),
    ] = None,
    level: LevelOption = 9,
    limit: LimitOption = 4,
    force: ForceOption = False,
    trim: TrimOption = False,
    jobs: JobsOption = _JOBS,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Turn every plain bundle into a compressed one where it is; no address and no relocation changes.

    Freed space becomes a hole in the file and next to nothing in a wheel; --trim takes it out. Compressed bundles of
    version 2 are read by ROCm 6.2 and later, those of version 3 (from 4 GiB on) by ROCm 7.1 and later.

    Example: rocwheel device compress librocsparse.so -o small/librocsparse.so --rocm 6.4
    """
    setup_logging(quiet=quiet, verbose=verbose)
    storage = Storage(
        compress=True,
        version=header_version,
        rocm=rocm,
        level=level,
        limit=limit * GIB,
        check=True,
        accept_wrong_hash=force,
    )
    _rewrite(file, output, None, storage, trim=trim, jobs=jobs, as_json=as_json, quiet=quiet)


@device_app.command()
def prune(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="A fat binary, a file of bundles, or a folder.", exists=True, callback=regular_path
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="Write the result to this file or folder.")
    ],
    keep: Annotated[
        list[str],
        typer.Option("--keep", "-k", metavar="TARGETS", help="Keep the code for these targets, in any spelling."),
    ],
    *,
    compressed: Annotated[bool, typer.Option("--compress", help="Compress plain bundles, too.")] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Let bundles without any code for the targets become empty.")
    ] = False,
    rocm: RocmOption = "",
    level: LevelOption = 9,
    limit: LimitOption = 4,
    force: ForceOption = False,
    trim: TrimOption = False,
    jobs: JobsOption = _JOBS,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Remove the code for all other targets from every bundle; of a folder also files named for other targets.

    A target without features keeps all variants of its processor. A folder is copied, with all that is below.

    Example: rocwheel device prune librocsparse.so --keep gfx90a,gfx1030 -o small/librocsparse.so
    """
    setup_logging(quiet=quiet, verbose=verbose)
    edit = Prune(tuple(read_targets(keep)), allow_empty)
    storage = Storage(compress=compressed, rocm=rocm, level=level, limit=limit * GIB, accept_wrong_hash=force)
    if trim and path.is_dir():
        raise InputError(path, "a folder", expected="one shared library for --trim")
    if not path.is_dir():
        _rewrite(path, output, edit, storage, trim=trim, jobs=jobs, as_json=as_json, quiet=quiet)
        return
    report = prune_tree(path, output, edit, storage, jobs=jobs, progress=make_progress(quiet=quiet or as_json))
    if as_json:
        print_json("device-prune", 1, report)
    elif not quiet:
        _print_pruning(report, output, verbose=verbose)


def _print_pruning(report: TreePruning, output: Path, *, verbose: bool) -> None:
    if verbose:
        for dropped in report.dropped:
            typer.echo(printable(f"left out: {dropped}"))
    typer.echo(printable(pruning_line(report, output)))


@device_app.command()
def retarget(
    pair: Annotated[
        str,
        typer.Argument(
            metavar="FROM=TO[,TO...]", help="Targets in any spelling; TO may be 'extended': all that are known."
        ),
    ],
    file: FileArgument,
    output: OutputOption,
    *,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Accept pairs that no rule allows and, with a warning, bundles whose hash is wrong."
        ),
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Where a bundle has code for both, make sure that it is the same.")
    ] = False,
    compressed: Annotated[
        bool, typer.Option("--compress", help="Compress plain bundles, too; this makes room.")
    ] = False,
    rocm: RocmOption = "",
    level: LevelOption = 9,
    limit: LimitOption = 4,
    trim: TrimOption = False,
    jobs: JobsOption = _JOBS,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Offer code for one target to GPUs that run the same instructions, so that an unmodified runtime loads it.

    A file without code for FROM is refused; bundles without it are counted in a warning, since a runtime that comes
    across one without code for its GPU may give up.

    Example: rocwheel device retarget gfx1030=gfx1031,gfx1032 librocsparse.so --compress -o more/librocsparse.so
    """
    setup_logging(quiet=quiet, verbose=verbose)
    edit = Retarget(parse_pairs(pair, force=force, native=native_targets), verify)
    gaps = find_gaps(file, edit.pairs)
    storage = Storage(compress=compressed, rocm=rocm, level=level, limit=limit * GIB, accept_wrong_hash=force)
    report = _rewrite(file, output, edit, storage, trim=trim, jobs=jobs, as_json=as_json, quiet=quiet)
    for gap in () if quiet else gaps:
        report_warning(gap)
    if not report.changed and not quiet:
        messages.print(printable(f"note: nothing to do for {pair} in {file}"), markup=False)


def _rewrite(
    file: Path,
    output: Path,
    edit: BundleEdit | None,
    storage: Storage,
    *,
    jobs: int,
    as_json: bool,
    quiet: bool,
    trim: bool,
) -> RewriteReport:
    progress = make_progress(quiet=quiet or as_json)
    report = rewrite_device_code(file, output, edit, storage, trim=trim, jobs=jobs, progress=progress)
    if as_json:
        print_json("device-rewrite", 1, {**msgspec.to_builtins(report), "output": str(output)})
    elif not quiet:
        typer.echo(printable(rewrite_line(report, output)))
    if not quiet:
        _print_remarks(report)
    return report


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
