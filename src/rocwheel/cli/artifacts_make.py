"""``rocwheel artifacts``: fetches artifacts, creates them from Debian packages and prefixes, and merges builds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from rich import box
from rich.filesize import decimal
from rich.table import Table

from rocwheel.artifacts.fetching import (
    PACKAGED_COMPONENTS,
    FetchedArchive,
    StoredArchive,
    Wanted,
    choose_archives,
    fetch_files,
    find_stored_archives,
    read_checksums,
    with_sizes,
)
from rocwheel.artifacts.from_deb import import_debs
from rocwheel.artifacts.from_prefix import import_prefixes
from rocwheel.artifacts.import_table import load_import_table
from rocwheel.artifacts.merge import MergeOptions, opened_merge, write_merge
from rocwheel.artifacts.shards import MergeReport
from rocwheel.binary.code_objects import TargetId
from rocwheel.cli.artifacts import NewDirOption, OutputOption, TableOption, artifacts_app, listed, print_report
from rocwheel.cli.options import (
    FetchNothingOption,
    Output,
    TransfersOption,
    shared,
    takes,
)
from rocwheel.cli.output import print_json, print_line
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.cli.tables import cell, print_table
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.writing import check_destination, require_free
from rocwheel.stores.open import open_store
from rocwheel.stores.store import Store, StoredFile
from rocwheel.targets.kernel_files import kernel_targets
from rocwheel.targets.machine import native_targets
from rocwheel.targets.serving import serves
from rocwheel.targets.target_set import parse_target_set

_ALL = "all"
_SHOWN = {"sha256": "verified by checksum", "size": "verified only by size", "nothing": "not verified"}


class _Choice(msgspec.Struct, frozen=True):
    agents: tuple[TargetId, ...]
    wanted: Wanted

    def choose(self, store: Store, files: Iterable[StoredFile]) -> tuple[StoredArchive, ...]:
        """Return the requested archives, with their sizes."""
        serving = {str(agent): partial(serves, wanted=(agent,)) for agent in self.agents}
        found = choose_archives(find_stored_archives(files, store.url), self.wanted, serving, store.url)
        sized = with_sizes(store, [archive.stored for archive in found])
        return tuple(map(StoredArchive, [archive.name for archive in found], sized))


def _read_choice(
    names: Annotated[
        list[str] | None,
        argument(metavar="NAME", help="Artifacts to fetch. Without names, fetch all selected artifacts."),
    ] = None,
    targets: Annotated[
        list[str] | None,
        shared(
            "--targets",
            "Fetch only artifacts for these targets, and artifacts for all GPUs.",
            show_default="all",
        ),
    ] = None,
    components: Annotated[
        str,
        shared("--components", f"Fetch these components, such as 'lib,run', or '{_ALL}'."),
    ] = ",".join(PACKAGED_COMPONENTS),
) -> _Choice:
    agents = parse_target_set(targets, source="--targets", native=native_targets).ids if targets is not None else ()
    return _Choice(tuple(agents), Wanted(tuple(map(str, agents)), _listed(components), tuple(names or ())))


@artifacts_app.command()
@takes(choice=_read_choice)
def fetch(
    url: Annotated[
        str, argument(metavar="URL", help="A store of archives: an s3://, http(s)://, or file:// URL, or a folder.")
    ],
    dest_dir: OutputOption,
    *,
    choice: _Choice,
    jobs: TransfersOption = 4,
    dry_run: FetchNothingOption = False,
    out: Output,
) -> None:
    """Fetch the artifact archives that a build needs.

    The command verifies each file against its checksum (NAME.sha256sum or SHA256SUMS in the store). Without a checksum,
    it compares only the size. A new run resumes an interrupted run and keeps complete files.

    Example: rocwheel artifacts fetch s3://bucket/run-linux --targets gfx942 --components lib,run --output artifacts
    """
    check_destination(dest_dir, option="--output")
    store = open_store(url)
    files = tuple(store.list())
    archives = choice.choose(store, files)
    stored = [archive.stored for archive in archives]
    checksums = read_checksums(store, files, stored)
    if dry_run:
        _print_planned(archives, checksums, json=out.json)
        return
    fetched = fetch_files(store, stored, dest_dir, checksums, jobs=jobs, progress=make_progress(quiet=out.quiet))
    if out.json:
        print_json("artifact-fetch", 1, {"source": store.url, "dest_dir": str(dest_dir), "archives": fetched})
    elif not out.quiet:
        _print_fetched(fetched, verbose=out.verbose)


def _listed(components: str) -> tuple[str, ...]:
    words = listed(components)
    return () if _ALL in words else words


def _print_planned(archives: tuple[StoredArchive, ...], checksums: dict[str, str], *, json: bool) -> None:
    rows = [
        {"name": one.stored.name, "bytes": max(one.stored.size, 0), "sha256": checksums.get(one.stored.name)}
        for one in archives
    ]
    if json:
        print_json("artifact-fetch-plan", 1, {"archives": rows})
        return
    total = sum(max(one.stored.size, 0) for one in archives)
    table = Table(box=box.SIMPLE_HEAD, show_footer=True)
    table.add_column("archive", footer=count(len(archives), "archive"))
    table.add_column("size", footer=decimal(total), justify="right")
    table.add_column("checksum")
    for one in archives:
        size = decimal(one.stored.size) if one.stored.size >= 0 else "unknown"
        table.add_row(cell(one.stored.name), size, checksums.get(one.stored.name, "none"))
    print_table(table)


def _print_fetched(fetched: tuple[FetchedArchive, ...], *, verbose: bool) -> None:
    for one in fetched if verbose else ():
        print_line(f"{one.name}: {decimal(one.bytes)}, {'fetched' if one.is_new else 'already present'}")
    new = sum(one.is_new for one in fetched)
    print_line(f"{count(new, 'archive')} fetched, {len(fetched) - new} already present")
    for kind, words in _SHOWN.items():
        if number := sum(one.verified == kind for one in fetched):
            print_line(f"{words}: {count(number, 'archive')}")


@artifacts_app.command("import")
def import_(
    sources: Annotated[
        list[Path],
        argument(metavar="SOURCE", help="Debian packages (.deb), or install prefixes such as /opt/rocm/core."),
    ],
    dest_dir: NewDirOption,
    table: TableOption = None,
    bundle_sysdeps: Annotated[
        bool,
        option("--bundle-sysdeps", help="Include Debian packages that contain system libraries."),
    ] = False,
    strict: Annotated[bool, option("--strict", help="Refuse prefix files that no rule in the table matches.")] = False,
    *,
    out: Output,
) -> None:
    """Make artifacts from Debian packages or install prefixes.

    If you pass several prefixes, the command merges them. It also prints the system requirements of the artifacts.

    Example: rocwheel artifacts import /opt/rocm/core --output artifacts
    """
    progress = make_progress(quiet=out.quiet)
    if _are_debs(sources):
        _refuse("--strict", "applies only to install prefixes", is_given=strict)
        rules = load_import_table(table or "debian.toml")
        report = import_debs(sources, dest_dir, rules, bundle_system=bundle_sysdeps, progress=progress)
    else:
        _refuse("--bundle-sysdeps", "applies only to Debian packages", is_given=bundle_sysdeps)
        rules = load_import_table(table or "prefix.toml")
        report = import_prefixes(sources, dest_dir, rules, strict=strict, progress=progress, targets_of=kernel_targets)
    print_report(report, json=out.json, verbose=out.verbose)


def _are_debs(sources: Sequence[Path]) -> bool:
    """Return whether the sources are Debian packages instead of prefixes. Raises `InputError` if there are both."""
    packages = [source for source in sources if not source.is_dir() and (source.exists() or source.suffix == ".deb")]
    if packages and len(packages) < len(sources):
        other = next(source for source in sources if source not in packages)
        found = f"isn't a Debian package, unlike {packages[0]}"
        raise InputError(other, found, expected="only .deb files, or only install prefixes")
    return bool(packages)


def _refuse(option: str, found: str, *, is_given: bool) -> None:
    if is_given:
        raise InputError(option, found, remedy="Remove the option.")


def _read_options(
    primary: Annotated[Path, option("--primary", metavar="DIR", help="Use the host files from this folder.")],
    may_differ: Annotated[
        list[str] | None,
        option(
            "--may-differ",
            metavar="PATTERN",
            help="Accept differences in host files that match this pattern.",
        ),
    ] = None,
    allow_missing: Annotated[
        bool,
        option("--allow-missing", help="Merge builds even if files for their targets are missing."),
    ] = False,
) -> MergeOptions:
    return MergeOptions(str(primary), tuple(may_differ or ()), allow_missing)


@artifacts_app.command()
@takes(options=_read_options)
def merge(
    directories: Annotated[list[Path], argument(metavar="DIR", help="Folders of artifacts, one for each build.")],
    options: MergeOptions,
    dest_dir: Annotated[
        Path, shared("--output", "Write the artifacts to this folder, which must be new or empty.", metavar="DIR")
    ],
    files: Annotated[
        Literal["copy", "hardlink"], option("--files", help="Copy the files, or create hard links if possible.")
    ] = "copy",
    dry_run: Annotated[bool, option("--dry-run", help="Print what would be merged, and write nothing.")] = False,
    *,
    out: Output,
) -> None:
    """Merge artifacts from builds for different GPUs.

    Host files come from the primary build, and device files come from all builds. The command compares host files. It
    writes nothing if they differ in anything other than build IDs and accepted patterns. It also writes nothing if two
    builds have different files for the same GPU.

    Example: rocwheel artifacts merge gfx94X/ gfx110X/ --primary gfx94X/ --output artifacts
    """
    require_free(dest_dir, *directories)
    with opened_merge(directories, options, progress=make_progress(quiet=out.quiet)) as plan:
        report = plan.report if dry_run else write_merge(plan, dest_dir, hard_links=files == "hardlink")
    if out.json:
        print_json("artifact-merge", 1, report)
    else:
        _print_merged(report, verbose=out.verbose)


def _print_merged(report: MergeReport, *, verbose: bool) -> None:
    print_table(_table(report))
    if report.targets:
        print_line(f"targets: {', '.join(report.targets)}")
    for missing in report.missing:
        shards = ", ".join(missing.shards)
        if missing.artifact:
            print_line(f"{missing.artifact} has no files for {missing.target}, unlike other artifacts in {shards}")
        else:
            print_line(f"{shards} has no files for {missing.target}, even though dist_info.json lists this target")
    differences = [f"{d.path} in {d.shard} ({d.differs}): {d.outcome}" for d in report.differences]
    _print_list("host files that differ", differences, verbose=verbose)
    _print_list("kernel files that match no rule, kept in their artifacts", report.unknown, verbose=verbose)
    print_line(f"written to {report.dest_dir}" if report.dest_dir else "nothing was written (--dry-run)")


def _print_list(title: str, lines: list[str] | tuple[str, ...], *, verbose: bool) -> None:
    if not lines:
        return
    print_line(f"{title}: {len(lines)}{'' if verbose else ' (-v lists them)'}")
    for line in lines if verbose else ():
        print_line(f"  {line}")


def _table(report: MergeReport) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_footer=True)
    table.add_column("artifact", footer=count(len(report.artifacts), "artifact"))
    table.add_column("files", footer=f"{sum(item.files for item in report.artifacts)}", justify="right")
    table.add_column("bytes", footer=f"{sum(item.bytes for item in report.artifacts):,}", justify="right")
    table.add_column("from")
    for item in report.artifacts:
        table.add_row(cell(item.name), f"{item.files}", f"{item.bytes:,}", cell(", ".join(item.shards)))
    return table
