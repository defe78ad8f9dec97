"""``rocwheel promote``: a release from its candidates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

from rich import box
from rich.filesize import decimal
from rich.table import Table

from rocwheel.build.promoting.promote import PromoteJob, PromotionResult, checked_version
from rocwheel.cli.app import app
from rocwheel.cli.options import JsonOption, QuietOption, VerboseOption, complete_targets, shared, takes
from rocwheel.cli.output import messages, print_json, setup_logging
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.cli.tables import print_table
from rocwheel.cli.targets import read_targets


class _Release(NamedTuple):
    version: str
    targets: tuple[str, ...]
    """The processors whose packages stay; empty for all."""


def _read_release(
    to: Annotated[str, option("--to", metavar="VERSION", help="Give all packages this version.")],
    targets: Annotated[
        str | None,
        option(
            "--targets",
            metavar="TARGETS",
            shell_complete=complete_targets,
            help="Keep the packages for these GPU targets alone, in any spelling.",
        ),
    ] = None,
) -> _Release:
    kept = read_targets([targets], source="--targets").processors if targets is not None else ()
    return _Release(checked_version(to), kept)


@app.command()
@takes(release=_read_release)
def promote(
    dist: Annotated[Path, argument(metavar="DIST", help="The folder of the candidates, which stay unchanged.")],
    release: _Release,
    dest_dir: Annotated[Path, shared("--dest-dir", "Write the release to this folder; it is created if needed.")],
    jobs: Annotated[int, shared("--jobs", min=0)] = 0,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Turn release candidates into a release: the same packages with another version, without packing them again.

    The version is changed in file names, metadata, requirements of each other, the rocm selector and manifests. All
    packages of a folder have one version. Either all are written, or none.

    Example: rocwheel promote packages/dist --to 7.0.0 --dest-dir release/dist
    """
    setup_logging(quiet=quiet, verbose=verbose)
    result = PromoteJob(dist, release.version, dest_dir, release.targets, jobs).run(progress=make_progress(quiet=quiet))
    if json:
        print_json("promote", 1, result)
    else:
        _show(result, quiet=quiet)


def _show(result: PromotionResult, *, quiet: bool) -> None:
    table = Table("distribution", "size", box=box.SIMPLE_HEAD)
    for made in result.distributions:
        table.add_row(made.path, decimal(made.size))
    print_table(table)
    if quiet:
        return
    for path in result.left_out:
        messages.print(f"left out: {path}", markup=False)
    kept = f", GPU targets: {', '.join(result.targets)}" if result.targets else ""
    messages.print(f"version {result.old_version} is now {result.version}{kept}", markup=False)
