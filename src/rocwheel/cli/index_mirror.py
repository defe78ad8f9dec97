"""``rocwheel index mirror``: copies the part of a package index for specific GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import msgspec
from rich import box
from rich.filesize import decimal
from rich.table import Table

from rocwheel.cli.app import app
from rocwheel.cli.index import parse_machine
from rocwheel.cli.options import (
    FetchNothingOption,
    Output,
    TransfersOption,
    complete_targets,
    shared,
    takes,
)
from rocwheel.cli.output import print_json, print_line
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.cli.tables import cell, print_table
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, first_of
from rocwheel.core.progress import step
from rocwheel.core.workers import map_collecting, raise_all
from rocwheel.core.writing import check_destination
from rocwheel.index.mirror import (
    FILES_FOLDER,
    INDEX_FOLDER,
    MirrorOptions,
    MirrorPlan,
    MirrorReport,
    check_mirror,
    find_extraneous,
    find_unserved,
    make_mirror,
    plan_mirror,
)
from rocwheel.index.mirror_choice import LATEST, Choice, Machines, normalized_pattern, split_extras
from rocwheel.index.mirror_requirements import DependencyReader
from rocwheel.index.source import IndexSource
from rocwheel.targets.machine import native_targets
from rocwheel.targets.serving import label_of_project, serves
from rocwheel.targets.target_set import parse_target_set


def read_machines(
    platform: Annotated[
        list[str] | None,
        option(
            "--platform-tag",
            metavar="TAG",
            help="Copy wheels with this platform tag, such as linux_x86_64.",
            show_default="all",
        ),
    ] = None,
    python_version: Annotated[
        list[str] | None,
        option("--python-version", metavar="X.Y", help="Copy wheels for this Python version.", show_default="all"),
    ] = None,
) -> Machines:
    """Return the machines that the mirror is for."""
    return Machines(tuple(platform or ()), tuple(python_version or ()))


_ProjectOption = Annotated[
    list[str],
    option(
        "--project", metavar="PATTERN", help="Copy projects with these names. Patterns such as 'rocm*' are accepted."
    ),
]
_VersionOption = Annotated[
    str, shared("--version", f"Copy these versions, such as '==7.2.*' or '{LATEST}'.", show_default="all")
]
_DevelOption = Annotated[bool, option("--devel", help="Include development packages.")]
_RequirementsOption = Annotated[
    bool,
    option("--with-requirements", help="Include the projects' requirements from the same indexes."),
]
_VariantsOption = Annotated[bool, option("--variants", help="Include wheel variants (draft PEP 825).")]
_PoolOption = Annotated[
    list[str] | None,
    option(
        "--pool",
        metavar="PROJECT",
        help="Use the versions of this project from all indexes.",
        show_default="the first index that has the project",
    ),
]


def read_choice(
    project: _ProjectOption,
    version: _VersionOption = "",
    devel: _DevelOption = False,
    requirements: _RequirementsOption = False,
    variants: _VariantsOption = False,
    pool: _PoolOption = None,
) -> Choice:
    """Return the projects and versions to copy. Raises `InputError` for extras if their requirements aren't copied."""
    named = [split_extras(text) if requirements else (text, None) for text in project]
    lone = [text for text in project if not requirements and split_extras(text)[1] is not None and "," in text]
    remedy = "Add --with-requirements, or remove the extras."
    raise_all("--project", [InputError("--project", f"{text} contains extras", remedy=remedy) for text in lone])
    extras = {normalized_pattern(name): asked for name, asked in named if asked is not None}
    return Choice(
        projects=tuple(name for name, _ in named),
        version=version,
        devel=devel,
        extras=extras,
        requirements=requirements,
        variants=variants,
        pooled=frozenset(map(normalized_pattern, pool or ())),
    )


def read_mirror_options(
    jobs: TransfersOption = 4,
    exact: Annotated[
        bool,
        option("--exact", help="Remove unselected files from the mirror."),
    ] = False,
    variants_for: Annotated[
        str | None,
        option(
            "--variants-for",
            advanced=True,
            metavar="TARGETS",
            shell_complete=complete_targets,
            help="List variants for machines with these GPUs, in order of preference.",
            show_default="as in the last run, or each machine decides",
        ),
    ] = None,
) -> MirrorOptions:
    """Return the options for the mirror. Raises `InputError` for targets that can't have variants."""
    return MirrorOptions(jobs, exact, parse_machine(variants_for) if variants_for is not None else None)


_UrlsArgument = Annotated[
    list[str], argument(metavar="URL", help="Package indexes: http(s)://, file://, or s3:// URLs.")
]
_TargetsOption = Annotated[
    list[str] | None,
    shared("--targets", "Copy only packages for these targets, and packages for all GPUs.", show_default="all targets"),
]


@app.command("index mirror")
@takes(choice=read_choice, machines=read_machines, options=read_mirror_options)
def mirror(
    urls: _UrlsArgument,
    dest_dir: Annotated[
        Path, shared("--output", "Write the mirror to this folder, and create it if needed.", metavar="DIR")
    ],
    *,
    choice: Choice,
    machines: Machines,
    targets: _TargetsOption = None,
    options: MirrorOptions,
    dry_run: FetchNothingOption = False,
    out: Output,
) -> None:
    """Copy the parts of package indexes that your GPUs need.

    The command writes files to dist in the output folder, and their index to simple. It verifies each file and rejects
    files without a SHA-256 hash. A new run resumes an interrupted run and keeps complete files.

    With --with-requirements, the command also copies the packages that pip would choose. If you name extras, as in
    'rocm[libraries]', the command ignores all other extras. Otherwise, it copies the requirements of all extras for the
    GPUs.

    Example: rocwheel index mirror https://host/simple --project 'rocm*' --targets gfx1100 --output mirror
    """
    for folder in (FILES_FOLDER, INDEX_FOLDER):
        check_destination(dest_dir / folder, option="--output")
    agents = parse_target_set(targets, source="--targets", native=native_targets).ids if targets is not None else None
    sources = map_collecting("URLs", IndexSource, dict.fromkeys(urls))

    def serves_project(name: str) -> bool:
        return agents is None or serves(label_of_project(name), agents)

    wanted = msgspec.structs.replace(choice, machines=machines)
    progress = make_progress(quiet=out.quiet)
    with _open_needs(wanted, dest_dir, dry_run=dry_run) as needs, step(progress, "reading the index"):
        plan = plan_mirror(sources, wanted, serves_project, needs)
    raise_all("--targets", list(find_unserved(plan, agents or ())))
    if dry_run:
        check_mirror(plan, dest_dir / FILES_FOLDER, exact=options.exact)
        others = find_extraneous(plan, dest_dir / FILES_FOLDER) if options.exact else ()
        _print_planned(plan, sorted(others), json=out.json)
        return
    report = make_mirror(plan, dest_dir, options, progress)
    if out.json:
        print_json("index-mirror", 1, report)
    elif not out.quiet:
        _print(report, dest_dir, verbose=out.verbose)


@contextmanager
def _open_needs(choice: Choice, dest_dir: Path, *, dry_run: bool) -> Iterator[DependencyReader | None]:
    """Yield the reader for requirements, or `None` if they aren't copied. After a dry run, no fetched files remain."""
    if not choice.requirements:
        yield None
    elif dry_run:
        with TemporaryDirectory() as folder:
            yield DependencyReader(Path(folder))
    else:
        yield DependencyReader(dest_dir / FILES_FOLDER)


def _print_planned(plan: MirrorPlan, removed: Sequence[str], *, json: bool) -> None:
    if json:
        rows = [{"filename": one.filename, "bytes": one.size, "sha256": one.sha256} for one in plan.files]
        found = {"files": rows, "absent": plan.absent, "unusable": plan.unusable, "removed": removed}
        print_json("index-mirror-plan", 1, found)
        return
    table = Table(box=box.SIMPLE_HEAD, show_footer=True)
    table.add_column("file", footer=count(len(plan.files), "file"))
    table.add_column("size", footer=decimal(plan.size), justify="right")
    for one in plan.files:
        table.add_row(cell(one.filename), "unknown" if one.size is None else decimal(one.size))
    print_table(table)
    for name in removed:
        print_line(f"{name}: would be removed")
    _print_gaps(plan.absent, plan.unusable)


def _print(report: MirrorReport, dest_dir: Path, *, verbose: bool) -> None:
    for one in report.files if verbose else ():
        print_line(f"{one.filename}: {decimal(one.bytes)}, {'fetched' if one.is_new else 'already present'}")
    new = sum(one.is_new for one in report.files)
    print_line(f"{count(new, 'file')} fetched to {dest_dir / FILES_FOLDER}, {len(report.files) - new} already present")
    for name in report.removed:
        print_line(f"{name}: removed")
    _print_gaps(report.absent, report.unusable)
    print_line(f"install with: pip install --index-url {Path(report.output).resolve().as_uri()} PROJECT")


def _print_gaps(absent: Sequence[str], unusable: Mapping[str, Sequence[str]]) -> None:
    """Print the packages that can't be installed using only the mirror."""
    if absent:
        print_line(f"required, but not in these indexes: {', '.join(absent)}")
    for name, needed in unusable.items():
        print_line(f"{name}: requires packages for other GPUs: {first_of(list(needed), len(needed))}")
