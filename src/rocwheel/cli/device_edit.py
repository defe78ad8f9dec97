"""``rocwheel device compress``, ``prune``, and ``retarget``: reduce device code, or make it available to more GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from rocwheel.binary.bundles.compressed import HIGHEST_LEVEL
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.kind import is_kpack
from rocwheel.cli.device import (
    GIB,
    ForceOption,
    LimitOption,
    OutputOption,
    PathArgument,
    Rewriting,
    RocmOption,
    SourceArgument,
    device_app,
    read_rewriting,
    read_storage,
)
from rocwheel.cli.options import complete_targets, shared, takes
from rocwheel.cli.output import messages, print_json, print_line, report_warning
from rocwheel.cli.parameters import argument, option, regular_place
from rocwheel.cli.targets import read_targets
from rocwheel.core.compression import DEVICE_CODE_LEVEL
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.reading import FileRange
from rocwheel.device.edit_bundles import Prune
from rocwheel.device.retarget import Retarget, find_gaps, find_named_members, why_unchanged
from rocwheel.device.retarget_tree import NewFile, RetargetOrder, TreeRetargeting, copy_archive, copy_tree
from rocwheel.targets.machine import native_targets
from rocwheel.targets.retarget_pairs import parse_pairs
from rocwheel.wheels.binaries import is_given_wheel


def _read_storage(
    rocm: RocmOption = "",
    header_version: Annotated[
        int | None,
        option(
            "--header-version",
            advanced=True,
            metavar="N",
            help="Write header version 2 or 3.",
            show_default="the format for most ROCm releases",
        ),
    ] = None,
    level: Annotated[
        int | None,
        option(
            "--level",
            metavar="N",
            min=1,
            max=HIGHEST_LEVEL,
            help="Compress at this zstd level.",
            show_default=str(DEVICE_CODE_LEVEL),
        ),
    ] = None,
    limit: LimitOption = 4,
    force: ForceOption = False,
) -> Storage:
    return Storage(
        compress=True,
        version=header_version,
        rocm=rocm,
        level=level or DEVICE_CODE_LEVEL,
        archive_level=level,
        recompress=level is not None,
        limit=limit * GIB,
        check=True,
        accept_wrong_hash=force,
    )


@device_app.command()
@takes(storage=_read_storage, rewriting=read_rewriting)
def compress(path: SourceArgument, output: OutputOption, *, storage: Storage, rewriting: Rewriting) -> None:
    """Compress device code in place.

    Addresses and relocations stay the same. Freed space becomes a hole in the file; --trim removes it. ROCm 6.2 and
    later can read version 2 of compressed bundles. ROCm 7.1 and later can read version 3, which is required for bundles
    of 4 GiB or more.

    In kpack archives, the command compresses each code object. It recompresses compressed code only if the code becomes
    smaller at --level. In a folder, it copies all other files, including wheels, unchanged.

    Example: rocwheel device compress librocsparse.so -o small/librocsparse.so --rocm 6.4
    """
    if path.is_dir():
        rewriting.rewrite_folder(path, output, None, storage)
    else:
        rewriting.rewrite(path, output, None, storage)


KeepOption = Annotated[
    list[str],
    option(
        "--targets",
        "-t",
        "-k",
        metavar="TARGETS",
        shell_complete=complete_targets,
        help="Keep only the code for these targets.",
    ),
]
CompressOption = Annotated[bool, option("--compress", help="Compress plain bundles, too.")]
AllowMissingOption = Annotated[
    bool, option("--allow-missing", help="Accept bundles without code for the targets. These bundles become empty.")
]


@device_app.command()
@takes(storage=read_storage, rewriting=read_rewriting)
def prune(
    path: PathArgument,
    output: OutputOption,
    keep: KeepOption,
    *,
    compressed: CompressOption = False,
    allow_missing: AllowMissingOption = False,
    storage: Storage,
    force: ForceOption = False,
    rewriting: Rewriting,
) -> None:
    """Remove device code for all targets except the specified targets.

    For a folder or wheel, the command also removes files for other targets and copies all other files. For a target
    without features, the command keeps all variants of its processor. The command rejects a folder with wheels that
    contain device code; prune each wheel separately.

    Example: rocwheel device prune librocsparse.so --targets gfx90a,gfx1030 -o small/librocsparse.so
    """
    edit = Prune(tuple(read_targets(keep, source="--targets")), allow_missing)
    storage = msgspec.structs.replace(storage, compress=compressed, accept_wrong_hash=force)
    if path.is_dir():
        rewriting.rewrite_folder(path, output, edit, storage)
    else:
        rewriting.rewrite(path, output, edit, storage)


RetargetArgument = Annotated[
    Path,
    argument(
        metavar="PATH",
        help="A fat binary, a bundle file, a code object, a static library, a kpack archive, a wheel, or a folder.",
    ),
]


@device_app.command()
@takes(storage=read_storage, rewriting=read_rewriting)
def retarget(
    pair: Annotated[
        str,
        argument(
            metavar="FROM=TO[,TO...]",
            help="The source target and the new targets. "
            "For TO, 'extended' means all targets that run the same instructions.",
        ),
    ],
    path: RetargetArgument,
    output: OutputOption,
    *,
    force: Annotated[
        bool,
        shared("--force", "Accept pairs that no rule allows and bundles that have a wrong hash, and print a warning."),
    ] = False,
    verify: Annotated[
        bool, option("--verify", help="Check that the code is the same if a bundle has code for both targets.")
    ] = False,
    compressed: Annotated[bool, option("--compress", help="Compress plain bundles, too, to free space.")] = False,
    storage: Storage,
    rewriting: Rewriting,
) -> None:
    """Make device code available to GPUs that run the same instructions.

    Unmodified runtimes can then load the code. The command rejects a file without code for FROM, and warns about
    bundles without such code. A kpack archive becomes an archive for TO. For a folder, the command adds copies of
    archives and kernel files for TO. It warns about code that it can't make available.

    Example: rocwheel device retarget gfx1030=gfx1031,gfx1032 librocsparse.so --compress -o more/librocsparse.so
    """
    _check_order(pair, path)
    regular_place(path)
    edit = Retarget(parse_pairs(pair, force=force, native=native_targets), verify)
    storage = msgspec.structs.replace(storage, compress=compressed, accept_wrong_hash=force)
    if path.is_dir():
        _retarget_folder(path, output, edit, storage, rewriting)
    elif _is_archive(path):
        _retarget_archive(path, output, edit, rewriting)
    else:
        _retarget_file(path, output, edit, storage, rewriting)


def _check_order(pair: str, path: Path) -> None:
    """Raise `InputError` for a path before the targets."""
    if "=" in str(path) and "=" not in pair and Path(pair).exists() and not path.exists():
        found, expected = "is a path, but the targets must come first", f"rocwheel device retarget {path} {pair}"
        raise InputError(pair, found, expected=expected)


def _retarget_file(path: Path, output: Path, edit: Retarget, storage: Storage, rewriting: Rewriting) -> None:
    gaps = find_gaps(path, edit.pairs)
    if is_given_wheel(path):
        gaps += find_named_members(path, edit.pairs)
    changed = rewriting.rewrite(path, output, edit, storage)
    for gap in () if rewriting.quiet else gaps:
        report_warning(gap)
    if not changed and not rewriting.quiet:
        messages.print(f"note: {why_unchanged(path, edit.pairs)}", markup=False)


def _is_archive(path: Path) -> bool:
    with FileRange.whole(path).view() as data:
        return is_kpack(data)


def _retarget_archive(path: Path, output: Path, edit: Retarget, rewriting: Rewriting) -> None:
    if rewriting.trim:
        raise InputError(path, "is a kpack archive", expected="a library or object file for --trim")
    copy_archive(path, output, edit.pairs)
    report = NewFile(str(output), str(path), edit.pairs[0].agent.processor)
    if rewriting.json:
        print_json("device-retarget", 1, TreeRetargeting((), (report,), (), 0))
    elif not rewriting.quiet:
        print_line(f"{output}: the code from {path}, for {edit.pairs[0].agent}")


def _retarget_folder(path: Path, output: Path, edit: Retarget, storage: Storage, rewriting: Rewriting) -> None:
    order = RetargetOrder(
        pairs=edit.pairs,
        storage=storage,
        verify=edit.verify,
        trim=rewriting.trim,
        jobs=rewriting.jobs,
        progress=rewriting.progress,
    )
    report = copy_tree(path, output, order)
    if rewriting.json:
        print_json("device-retarget", 1, report)
    elif not rewriting.quiet:
        for new in report.added if rewriting.verbose else ():
            print_line(f"{new.path}: created from {new.origin}, for {new.target}")
        numbers = {"edited": len(report.edited), "added": len(report.added), "copied": report.copied}
        parts = [f"{count(number, 'file')} {what}" for what, number in numbers.items() if number]
        print_line(f"{output}: {', '.join(parts) or 'no files'}")
    for warning in () if rewriting.quiet else (*report.refused, *report.warnings):
        report_warning(warning)
    if not (report.edited or report.added or report.refused or rewriting.quiet):
        messages.print(f"note: {why_unchanged(path, edit.pairs)}", markup=False)
