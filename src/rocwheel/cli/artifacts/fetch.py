"""``rocwheel artifacts fetch``: bring what a build needs from a store."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.filesize import decimal
from rich.table import Table

from rocwheel.artifacts.fetching import (
    PACKAGED_COMPONENTS,
    Archive,
    FetchedArchive,
    Wanted,
    choose_archives,
    fetch_files,
    find_archives,
    read_checksums,
    with_sizes,
)
from rocwheel.binary.code_objects import TargetId
from rocwheel.cli.artifacts.group import artifacts_app
from rocwheel.cli.artifacts.options import DestDirOption
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.output.tables import cell, print_table
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.completion import complete_targets
from rocwheel.cli.parsing.shared_options import (
    FetchNothingOption,
    JsonOption,
    QuietOption,
    TransfersOption,
    VerboseOption,
    takes,
)
from rocwheel.core.messages import count
from rocwheel.core.writing import check_destination
from rocwheel.stores.open import open_store
from rocwheel.stores.store import Store, StoredFile
from rocwheel.targets.machine import native_targets
from rocwheel.targets.serving import serves
from rocwheel.targets.spelling.target_set import parse_target_set

__all__ = ["fetch"]

_ALL = "all"
_SHOWN = {"sha256": "its checksum", "size": "its size alone", "nothing": "nothing"}


class _Choice(msgspec.Struct, frozen=True):
    agents: tuple[TargetId, ...]
    wanted: Wanted

    def choose(self, store: Store, files: Iterable[StoredFile]) -> tuple[Archive, ...]:
        """Return the archives that are asked for, with their sizes."""
        serving = {str(agent): partial(serves, wanted=(agent,)) for agent in self.agents}
        found = choose_archives(find_archives(files, store.url), self.wanted, serving, store.url)
        sized = with_sizes(store, [archive.stored for archive in found])
        return tuple(map(Archive, [archive.name for archive in found], sized))


def _read_choice(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Fetch only these artifacts.")] = None,
    targets: Annotated[
        str | None,
        typer.Option(
            "--targets",
            metavar="TARGETS",
            autocompletion=complete_targets,
            help="Fetch what these GPUs need, e.g. 'gfx906;gfx94X-dcgpu', and what is for all GPUs.",
            show_default="all",
        ),
    ] = None,
    components: Annotated[
        str,
        typer.Option("--components", metavar="LIST", help=f"Fetch these components, e.g. 'lib,run', or '{_ALL}'."),
    ] = ",".join(PACKAGED_COMPONENTS),
) -> _Choice:
    agents = parse_target_set([targets], source="--targets", native=native_targets).ids if targets is not None else ()
    return _Choice(tuple(agents), Wanted(tuple(map(str, agents)), _listed(components), tuple(names or ())))


@artifacts_app.command()
@takes(choice=_read_choice)
def fetch(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Store of archives: s3://, http(s)://, file:// or a folder.")
    ],
    dest_dir: DestDirOption,
    *,
    choice: _Choice,
    jobs: TransfersOption = 4,
    dry_run: FetchNothingOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Fetch the artifact archives that a build needs from a store, verified.

    A file gets its name when it is whole and has its checksum (NAME.sha256sum or SHA256SUMS in the store) or, where
    there is none, its size. A run that was broken off goes on where it ended; files that are there already stay.

    Example: rocwheel artifacts fetch s3://bucket/run-linux --targets gfx942 --components lib,run --dest-dir artifacts
    """
    setup_logging(quiet=quiet, verbose=verbose)
    check_destination(dest_dir)
    store = open_store(url)
    files = tuple(store.list())
    archives = choice.choose(store, files)
    stored = [archive.stored for archive in archives]
    checksums = read_checksums(store, files, stored)
    if dry_run:
        _print_planned(archives, checksums, json=json)
        return
    fetched = fetch_files(store, stored, dest_dir, checksums, jobs=jobs, progress=make_progress(quiet=quiet))
    if json:
        print_json("artifact-fetch", 1, {"source": store.url, "dest_dir": str(dest_dir), "archives": fetched})
    elif not quiet:
        _print(fetched, verbose=verbose)


def _listed(components: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(word for word in components.replace(";", ",").replace(" ", ",").split(",") if word))
    return () if _ALL in words else words


def _print_planned(archives: tuple[Archive, ...], checksums: dict[str, str], *, json: bool) -> None:
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


def _print(fetched: tuple[FetchedArchive, ...], *, verbose: bool) -> None:
    for one in fetched if verbose else ():
        print_line(f"{one.name}: {decimal(one.bytes)}, {'fetched' if one.is_new else 'was there'}")
    new = sum(one.is_new for one in fetched)
    print_line(f"{count(new, 'archive')} fetched, {len(fetched) - new} there already")
    for kind, words in _SHOWN.items():
        if number := sum(one.verified == kind for one in fetched):
            print_line(f"compared with {words}: {count(number, 'archive')}")
