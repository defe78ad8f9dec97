"""``rocwheel cache prune``: make the cache smaller."""

from __future__ import annotations

import os
from typing import Annotated

import msgspec
import typer
from rich.filesize import decimal

from rocwheel.cli.cache.group import cache_app
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.foundation.cache.fetched import fetched_cache, prune_fetched
from rocwheel.foundation.cache.place import LIMIT_VARIABLE, packed_cache, parse_size
from rocwheel.foundation.cache.upkeep import prune as prune_folder
from rocwheel.foundation.counting import count

__all__ = ["prune"]

_OPTION = "--max-size"


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

    What killed builds have left in it goes, too. Builds that run meanwhile pack again what they miss. Folders that
    commands have fetched from URLs may have as much again; those under use stay.

    Example: rocwheel cache prune --max-size 2GB
    """
    setup_logging(quiet=quiet, verbose=verbose)
    place = packed_cache(os.environ)
    limit = place.limit if max_size is None else parse_size(max_size, source=_OPTION)
    done = prune_folder(place.folder, limit)
    fetched = prune_fetched(fetched_cache(), limit)
    if json:
        more = {f"fetched_{name}": value for name, value in msgspec.to_builtins(fetched).items()}
        print_json("cache-prune", 1, {"folder": str(place.folder), **msgspec.to_builtins(done), **more})
    elif not quiet:
        removed = f"removed {count(done.removed, 'entry', 'entries')} ({decimal(done.removed_bytes)})"
        print_line(f"{removed}; left: {done.left} ({decimal(done.left_bytes)})")
        if fetched.removed or fetched.left:
            removed = f"removed {count(fetched.removed, 'fetched folder')} ({decimal(fetched.removed_bytes)})"
            print_line(f"{removed}; left: {fetched.left} ({decimal(fetched.left_bytes)})")
