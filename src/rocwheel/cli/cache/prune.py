"""``rocwheel cache prune``: make the cache smaller."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.filesize import decimal

from rocwheel.cli.cache.group import cache_app
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.core.cache import LIMIT_VARIABLE, packed_cache, parse_size
from rocwheel.core.cache import prune as prune_folder
from rocwheel.core.cache_folders import fetched_cache, prune_folders, published_cache
from rocwheel.core.errors import ProblemsError, WorkError
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rocwheel.core.cache import Pruned

__all__ = ["prune"]

_OPTION = "--max-size"
_NAMES = {
    "fetched": ("fetched folder", "fetched folders"),
    "published": ("folder of publishing notes", "folders of publishing notes"),
}


@cache_app.command()
def prune(
    *,
    max_size: Annotated[
        str | None,
        typer.Option(
            _OPTION,
            metavar="SIZE",
            help="Leave at most this much, e.g. 2GB; 0 removes all.",
            show_default=f"${LIMIT_VARIABLE}, else 10GB",
        ),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Remove what was not used for longest, until the cache is small enough.

    What killed builds have left in it goes, too. Builds that run meanwhile pack again what they miss. Folders fetched
    from URLs may take as much again, and so may the notes of publish; folders in use stay.

    The exit status is 1 if something can't be removed or read.

    Example: rocwheel cache prune --max-size 2GB
    """
    setup_logging(quiet=quiet, verbose=verbose)
    place = packed_cache(os.environ)
    limit = place.limit if max_size is None else parse_size(max_size, source=_OPTION)
    done = prune_folder(place.folder, limit)
    folders = {
        "fetched": prune_folders(fetched_cache(), limit),
        "published": prune_folders(published_cache(), limit, needs_lock=False),
    }
    if json:
        more = {f"{kind}_{name}": value for kind, one in folders.items() for name, value in _values(one).items()}
        print_json("cache-prune", 1, {"folder": str(place.folder), **msgspec.to_builtins(done), **more})
    elif not quiet:
        _print_pruned(done, "entry", "entries")
        for kind, one in folders.items():
            if one.removed or one.left:
                _print_pruned(one, *_NAMES[kind])
    if problems := list(_problems(place.folder, done)):
        raise problems[0] if len(problems) == 1 else ProblemsError(str(place.folder), problems)


def _values(done: Pruned) -> dict[str, int]:
    names = ("removed", "removed_bytes", "left", "left_bytes")
    return {name: getattr(done, name) for name in names}


def _print_pruned(done: Pruned, one: str, several: str) -> None:
    removed = f"removed {count(done.removed, one, several)} ({decimal(done.removed_bytes)})"
    print_line(f"{removed}; left: {done.left} ({decimal(done.left_bytes)})")


def _problems(folder: Path, done: Pruned) -> Iterator[WorkError]:
    """Yield what could not be done; a reason that many entries have, once."""
    for reason, number in Counter(one.reason for one in done.not_removed).items():
        first = next(one.path for one in done.not_removed if one.reason == reason)
        found = f"{count(number, 'entry', 'entries')} can't be removed ({reason}), such as {first}"
        yield WorkError(folder, found, remedy="Check its permissions, that its disk may be written, and what is there.")
    for one in done.unreadable:
        yield WorkError(one.path, f"can't be read ({one.reason})", remedy="Check its permissions.")
