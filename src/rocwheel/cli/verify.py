"""``rocwheel verify``: compares files with a manifest, RECORD, or index."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
from rich.filesize import decimal

from rocwheel.artifacts.fetching import CHECKSUM_FILES
from rocwheel.cli.app import app
from rocwheel.cli.options import Output, shared
from rocwheel.cli.output import first_lines, print_json, print_line, printing_errors, report_first
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.workers import attempt_all, open_workers, raise_all, worker_count
from rocwheel.stores.urls import is_url, local_path, parse_url, shown_url, url_below
from rocwheel.verify.verify import verify as verify_path
from rocwheel.wheels.build_manifest import MANIFEST_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from rocwheel.core.errors import RocwheelError
    from rocwheel.core.progress import Progress
    from rocwheel.verify.files import Verified

_NO_FOLDER = (".tar.gz", *CHECKSUM_FILES)
_UNUSABLE = "Inputs that can't be verified"


@app.command()
def verify(
    paths: Annotated[
        list[str],
        argument(metavar="PATH", help="Manifests, builds, wheels, sdists, SHA256SUMS, indexes, or environments."),
    ],
    *,
    links: Annotated[
        bool, option("--links", help="Fetch and verify the files on other servers that indexes link to.")
    ] = False,
    jobs: Annotated[int, shared("--jobs", min=0)] = 0,
    out: Output,
) -> None:
    """Compare files with a manifest, a RECORD, or an index.

    The exit status is 1 if a file is missing, damaged, or unexpected. It is 2 if there is no readable record; the other
    paths are still verified.

    Example: rocwheel verify packages/rocwheel-build.json
    """
    progress = make_progress(quiet=out.quiet)
    places = [_place(path) for path in paths]
    unread: list[RocwheelError] = []
    found: list[Verified] = []
    with open_workers(worker_count(jobs)) as executor:
        attempt_all(
            lambda place: found.extend(_verify(place, executor, progress, has_links=links, quiet=out.quiet)),
            places,
            unread,
        )
    if not found:
        raise_all(_UNUSABLE, unread)
    status = report_first(_UNUSABLE, unread)
    if out.json and found:
        print_json("verify", 1, {"verified": found})
    elif not out.json:
        _print(found, quiet=out.quiet, verbose=out.verbose)
    if status:
        raise click.exceptions.Exit(status)
    if any(one.faults for one in found):
        raise click.exceptions.Exit(1)


def _place(word: str) -> Path | str:
    """Return the path of a local file or of a file that is read by range, or the URL for anything else."""
    if not is_url(word):
        return Path(word)
    scheme, _, path = parse_url(word)
    if scheme == "file":
        return Path("/", local_path(path))
    inputs = click.get_current_context().obj
    return (inputs and inputs.find(word)) or word


def _verify(
    place: str | Path, executor: Executor, progress: Progress, *, has_links: bool, quiet: bool
) -> Iterator[Verified]:
    """Yield the results for a path, or for the URL of a manifest, a build's folder, an index, or distributions."""
    if isinstance(place, Path):
        yield from verify_path(place, executor, progress, has_links=has_links)
        return
    from rocwheel.cli.remote import Selection, distributions_in, fetch_folder
    from rocwheel.index.source import find_index
    from rocwheel.verify.remote import has_manifest, verify_build_at, verify_index_at

    if place.endswith(_NO_FOLDER):
        raise InputError(shown_url(place), "isn't a folder", remedy="Pass the URL of its folder.")
    if place.endswith(".json"):
        yield verify_build_at(place, executor, progress)
    elif has_manifest(place):
        yield verify_build_at(url_below(place, MANIFEST_NAME), executor, progress)
    elif index := find_index(place):
        yield verify_index_at(index, executor, progress, has_links=has_links)
    else:
        selection = Selection("distributions", distributions_in)
        folder = fetch_folder(place, selection, is_quiet=quiet, is_shown=True)
        yield from verify_path(Path(folder), executor, progress)


def _print(found: list[Verified], *, quiet: bool, verbose: bool) -> None:
    for one in found:
        for kind, alike in groupby(sorted(one.faults, key=attrgetter("kind")), key=attrgetter("kind")):
            faults, more = first_lines(list(alike), verbose=verbose)
            with printing_errors():
                for fault in faults:
                    print_line(f"{kind} {fault.text}")
                if more:
                    print_line(f"{kind}: {more}")
        if not quiet:
            unchecked = f", {one.unchecked} not compared" if one.unchecked else ""
            files = f"{count(one.files, 'file')} ({decimal(one.size)}){unchecked}"
            outcome = count(len(one.faults), "fault") if one.faults else "good"
            print_line(f"{one.path}: {one.kind}, {files}: {outcome}")
