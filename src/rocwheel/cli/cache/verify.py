"""``rocwheel cache verify``: whether the bytes of the cache are right."""

from __future__ import annotations

import os

import msgspec
import typer
from rich.filesize import decimal

from rocwheel.cli.cache.group import cache_app
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.core.cache import Verified, packed_cache
from rocwheel.core.cache import verify as verify_folder
from rocwheel.core.messages import count

__all__ = ["verify"]


@cache_app.command()
def verify(*, json: JsonOption = False, quiet: QuietOption = False, verbose: VerboseOption = False) -> None:
    """Read the whole cache, and remove what is damaged.

    Builds notice damage, too, when they come to it, and pack the file again. This command finds all of it, as on a disk
    that changes bytes. What can't be read is named and stays. The exit status is 1 if anything was damaged or can't be
    read.

    Example: rocwheel cache verify
    """
    setup_logging(quiet=quiet, verbose=verbose)
    place = packed_cache(os.environ)
    found = verify_folder(place.folder, make_progress(quiet=quiet or json))
    if json:
        print_json("cache-verify", 1, {"folder": str(place.folder), **msgspec.to_builtins(found)})
    else:
        _print_found(found, quiet=quiet)
    if found.damaged or found.unreadable:
        raise typer.Exit(1)


def _print_found(found: Verified, *, quiet: bool) -> None:
    for path in found.damaged:
        what = "is damaged, and can't be removed" if path in found.not_removed else "was damaged, and is removed"
        print_line(f"{path}: {what}")
    for one in found.unreadable:
        print_line(f"{one.path}: can't be read ({one.reason}), and stays")
    if not quiet:
        entries = count(found.entries, "entry", "entries")
        unread = f", {len(found.unreadable)} unreadable" if found.unreadable else ""
        print_line(f"{entries} ({decimal(found.bytes)}), {len(found.damaged)} damaged{unread}")
