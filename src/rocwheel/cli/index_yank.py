"""``rocwheel index yank`` and ``unyank``: marks of files that installers take only when asked for their version."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote, urlsplit

import msgspec

from rocwheel.cli.app import app
from rocwheel.cli.index import print_notes
from rocwheel.cli.options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.cli.output import print_json, setup_logging
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.cli.text import print_line
from rocwheel.index.families import change_marks
from rocwheel.index.folder_notes import KNOWN_NAME
from rocwheel.index.front_content import kept_front_page, next_front_page
from rocwheel.index.publish import change_published_marks, is_family
from rocwheel.index.published import has_root_page
from rocwheel.index.uploads import Layout
from rocwheel.index.write_index import IndexReport, default_output
from rocwheel.index.yanked import Yanking
from rocwheel.stores.open import open_store
from rocwheel.stores.store import StoreError
from rocwheel.stores.urls import is_url, make_address, parse_url, refuse_web_url, split_file_url

if TYPE_CHECKING:
    from rocwheel.index.write_index import IndexReport


def change_published(place: str, yanking: Yanking) -> IndexReport:
    """Change marks in the published index at a URL or path; raises as `change_published_marks` does.

    Where it is that of a family, the page for people of the index above it is brought up to date, too; whoever may not
    read that one changes the marks of the family alone.
    """
    above, _, name = place.rstrip("/").rpartition("/")
    family = unquote(name) if is_url(place) else name
    is_below = bool(above) and not above.endswith("/")  # not the whole bucket
    if is_below and _leads_to(above, family):
        return change_published_marks(open_store(above), yanking, next_front_page, family)
    return change_published_marks(open_store(place), yanking, next_front_page)


def _leads_to(above: str, family: str) -> bool:
    try:
        return is_family(open_store(above), family)
    except StoreError:
        return False


def index_of_file(url: str) -> str:
    """Return the URL of the index of a published file, where `rocwheel publish` has it by default."""
    folder = url.rpartition("/")[0]
    above = [folder.rpartition("/")[0], folder.rpartition("/")[0].rpartition("/")[0]]  # a family's file lies deeper
    places = [f"{one}/{Layout().index}" for one in above]
    return next((place for place in places if place.count("/") > 2 and has_root_page(open_store(place))), places[0])


def file_name(url: str) -> str:
    """Return the name of the file at a URL; raises as `split_file_url` does."""
    return split_file_url(url)[1]


def is_published(folder: str) -> bool:
    """Return whether a folder is an index, whoever has written it."""
    return has_root_page(open_store(folder))


def local_path(url: str) -> str:
    """Return the path that a file:// URL means; raises as `parse_url` does."""
    parse_url(url)
    return unquote(urlsplit(url).path)


FilesArgument = Annotated[
    list[str], argument(metavar="FILE", help="The wheels and sdists, by their paths, URLs or names alone.")
]
IndexOption = Annotated[
    str | None,
    shared(
        "--output",
        metavar="DIR",
        help="Change this index, a folder or a URL.",
        show_default="the one of the folder of FILE",
    ),
]


def change(
    files: list[str], output: str | None, make: Callable[[list[str]], Yanking], *, json: bool, quiet: bool
) -> None:
    """Change the marks of files in their indexes, and print what is yanked there now."""
    for place in [output] if output else files:
        refuse_web_url(place)
    places: dict[str, list[str]] = {}
    for file in map(_local, files):
        place = _local(output) if output else _find_index(file)
        places.setdefault(place, []).append(file)
    for place, given in places.items():
        names = [_name(file) for file in given]
        report = _change(place, msgspec.structs.replace(make(names), files=_by_name(given)), quiet=quiet)
        if not quiet:
            print_notes(report, [Path(place)])
        if json:
            print_json("index", 1, report)
        elif not quiet:
            _print_marks(report, names)


def _change(place: str, yanking: Yanking, *, quiet: bool) -> IndexReport:
    path = Path(place)
    if _is_elsewhere(place) or (not _is_local(path) and _is_index(path)):
        report: IndexReport = _published().change_published(place, yanking)
        return report
    return change_marks(path, yanking, progress=make_progress(quiet=quiet), keep=kept_front_page)


def _name(file: str) -> str:
    return str(_published().file_name(file)) if _is_elsewhere(file) else file.rpartition("/")[2]


def _by_name(files: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the addresses of files that were given with their folders, by name; others mean all of that name."""
    alone = {file for file in files if "/" not in file and not Path(file).exists()}
    found: dict[str, tuple[str, ...]] = {}
    for file in files:
        if file not in alone:
            name = _name(file)
            found[name] = (*found.get(name, ()), make_address(file))
    return found


def _local(place: str) -> str:
    """Return the path of a file:// URL, and other places as they are."""
    return _published().local_path(place) if place.startswith("file:") else place


def _is_elsewhere(place: str) -> bool:
    return "://" in place


def _published() -> Any:
    # Only now, as `rocwheel index --help` would wait for what it imports.
    return import_module("rocwheel.cli.index_yank")


def _find_index(file: str) -> str:
    """Return where the index of a file is by default: of its folder, else of that above it, as for a family's file."""
    if _is_elsewhere(file):
        return str(_published().index_of_file(file))
    folder = Path(file).parent.resolve()
    places = [default_output(folder), default_output(folder.parent)]
    return str(next(filter(_is_index, places), places[0]))


def _is_local(folder: Path) -> bool:
    """Return whether the index is of folders, which are read again, rather than one that was published."""
    return (folder / KNOWN_NAME).is_file()


def _is_index(folder: Path) -> bool:
    return _is_local(folder) or (folder.is_dir() and bool(_published().is_published(str(folder))))


def _print_marks(report: IndexReport, names: list[str]) -> None:
    for index in (report, *report.families.values()):
        listed = {name for files in index.projects.values() for name in files}
        for name in names:
            if name in listed:
                reason = index.yanked.get(name)
                mark = "not yanked" if reason is None else f"yanked: {reason}" if reason else "yanked"
                print_line(f"{index.output}: {name}: {mark}")


@app.command("index yank")
def yank(
    files: FilesArgument,
    reason: Annotated[
        str, option("--reason", metavar="TEXT", help="Have installers print this.", show_default="none")
    ] = "",
    output: IndexOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Mark files of an index as yanked (PEP 592): installers take them only for a requirement of exactly their version.

    The index is brought up to date with its folders. Indexes of families that list the file have the mark, too. It
    stays until `rocwheel index unyank`. For a folder that is called yank, write ./yank.

    Example: rocwheel index yank packages/dist/rocm-7.0.0.tar.gz --reason "installs nothing for gfx942"
    """
    setup_logging(quiet=quiet, verbose=verbose)
    change(files, output, lambda names: Yanking(dict.fromkeys(names, reason)), json=json, quiet=quiet)


@app.command("index unyank")
def unyank(
    files: FilesArgument,
    output: IndexOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Mark files of an index as yanked no longer. The index is brought up to date with its folders.

    Example: rocwheel index unyank packages/dist/rocm-7.0.0.tar.gz
    """
    setup_logging(quiet=quiet, verbose=verbose)
    change(files, output, lambda names: Yanking(unyanked=tuple(names)), json=json, quiet=quiet)
