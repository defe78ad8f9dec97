"""``rocwheel promote``, ``attest``, and ``selector merge``: turn builds into a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

from rich import box
from rich.filesize import decimal
from rich.table import Table

from rocwheel.build.merging.merge import merge_selectors
from rocwheel.build.promoting.promote import PromoteJob, PromotionResult, checked_version
from rocwheel.cli.app import Group, app
from rocwheel.cli.options import Output, shared, takes
from rocwheel.cli.output import messages, print_json, print_line
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.cli.tables import print_table
from rocwheel.cli.targets import read_targets
from rocwheel.core.errors import InputError
from rocwheel.core.workers import open_workers, worker_count
from rocwheel.targets.target_set import target_of_product
from rocwheel.verify.builds import attest as attest_build
from rocwheel.wheels.build_manifest import DEFAULT_BUILDER


class _Release(NamedTuple):
    version: str
    """The new version, or an empty string to keep the version."""
    targets: tuple[str, ...]
    """The processors whose packages are kept. If empty, all packages are kept."""


def _read_release(
    to: Annotated[
        str | None,
        option(
            "--to", metavar="VERSION", help="Set the version of ROCm in all packages.", show_default="keep the version"
        ),
    ] = None,
    targets: Annotated[
        list[str] | None,
        shared(
            "--targets",
            "Keep only the packages for these targets.",
        ),
    ] = None,
) -> _Release:
    if to is None and targets is None:
        place, found = "rocwheel promote", "the option --to is missing"
        remedy = "To keep the version and only remove targets, use --targets. See rocwheel promote --help."
        raise InputError(place, found, remedy=remedy)
    kept = read_targets(targets, source="--targets").processors if targets is not None else ()
    return _Release("" if to is None else checked_version(to), kept)


@app.command()
@takes(release=_read_release)
def promote(
    dist: Annotated[
        Path, argument(metavar="DIST", help="A folder of release candidates. The originals stay unchanged.")
    ],
    release: _Release,
    output: Annotated[
        Path, shared("--output", "Write the release to this folder, and create it if needed.", metavar="DIR")
    ],
    jobs: Annotated[int, shared("--jobs", min=0)] = 0,
    *,
    out: Output,
) -> None:
    """Turn release candidates into a release.

    The command changes the version in file names, metadata, requirements, the rocm selector, manifests, version.py, and
    _rocm_init.py. It doesn't recompress files. The folder can contain ROCm packages and frameworks, such as
    torch-2.9.0+rocm10.0.0rc1, for one version of ROCm. The command writes either all packages or none.

    Without --to, the version doesn't change, and --targets removes the packages for other targets.

    Example: rocwheel promote packages/dist --to 7.0.0 --output release/dist
    """
    result = PromoteJob(dist, release.version, output, release.targets, jobs).run(
        progress=make_progress(quiet=out.quiet)
    )
    if out.json:
        print_json("promote", 1, result)
    else:
        _show(result, quiet=out.quiet)


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
    change = "is unchanged" if result.version == result.old_version else f"is now {result.version}"
    messages.print(f"version {result.old_version} {change}{kept}", markup=False)


def _read_builder(
    builder_id: Annotated[
        str, option("--builder-id", metavar="URI", advanced=True, help="Set the builder's URI.")
    ] = DEFAULT_BUILDER,
) -> str:
    try:
        has_scheme = bool(urlsplit(builder_id).scheme) and builder_id.isprintable() and " " not in builder_id
    except ValueError:
        has_scheme = False
    if not has_scheme:
        option, found = "--builder-id", f"is {builder_id!r}"
        raise InputError(option, found, expected="a URI, such as https://example.org/builds")
    return builder_id


@app.command()
@takes(builder=_read_builder)
def attest(
    build: Annotated[Path, argument(metavar="BUILD", help="A build folder or its rocwheel-build.json.")],
    *,
    builder: str,
    jobs: Annotated[int, shared("--jobs", min=0)] = 0,
    out: Output,
) -> None:
    """Write unsigned SLSA provenance for each package in a build.

    Each statement uses the in-toto format. The command first compares the packages with the manifest. The exit status
    is 1 if a package doesn't match.

    Example: rocwheel attest packages
    """
    with open_workers(worker_count(jobs)) as executor:
        found = attest_build(build, builder, executor, make_progress(quiet=out.quiet))
    if out.json:
        print_json("attest", 1, found)
        return
    for statement in found.statements.values():
        print_line(statement)
    if not out.quiet:
        messages.print(f"unsigned; the predicate of all statements: {found.predicate}", markup=False)


selector_app = Group("selector", hidden=True, help="Merge the rocm packages from several builds.")
app.add_command(selector_app)


_DEFAULT = "--default-family"


@selector_app.command(hidden=True)
def merge(
    selectors: Annotated[
        list[Path],
        argument(
            metavar="BUILD",
            help="Builds: rocm-VERSION.tar.gz, the JSON output of build --dry-run, a folder, or a URL.",
        ),
    ],
    output: Annotated[
        Path, shared("--output", "Write the merged selector to this folder, and create it if needed.", metavar="DIR")
    ],
    default_family: Annotated[
        str, option(_DEFAULT, metavar="TARGET", help="Install packages for this target on machines without a GPU.")
    ] = "",
    *,
    out: Output,
) -> None:
    """Merge the rocm sdists from several builds or plans into one.

    The builds can be for different GPUs or platforms, but must have the same version and the same packages.
    Requirements for only some platforms get a marker, such as sys_platform == 'linux'. The same inputs, in any order,
    produce identical output.

    Example: rocwheel selector merge linux/dist/rocm-7.0.0.tar.gz windows/dist/rocm-7.0.0.tar.gz --output dist
    """
    default = target_of_product(default_family, source=_DEFAULT) or default_family
    result = merge_selectors(selectors, output, default_family=default)
    if out.json:
        print_json("selector-merge", 1, result)
        return
    for name, platforms in result.families.items():
        print_line(f"{name}: {', '.join(platforms)}")
    if not out.quiet:
        print_line(f"created {result.path} from {len(result.merged)}")
