"""``rocwheel index`` and ``rocwheel publish`` with a TOML file of other indexes: write pages with links."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocwheel.cli.output import messages
from rocwheel.cli.parameters import spelled
from rocwheel.cli.progress import make_progress
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, first_of, in_one_line
from rocwheel.index.publish import PublishedFamily, PublishReport
from rocwheel.index.uploads import Layout
from rocwheel.index.write_index import IndexReport
from rocwheel.stores.folder import FolderStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rocwheel.cli.options import Output
    from rocwheel.index.links import LinkedIndex
    from rocwheel.stores.store import Store

_SUFFIX = ".toml"
_TAKEN = frozenset({"dist_dirs", "dist", "store", "output", "dry_run", "json", "quiet", "verbose"})
"""The parameters that are allowed together with a TOML file."""
_NAMED = 10
"""The maximum number of file names in a message."""


def find_upstreams(paths: Sequence[Path]) -> Path | None:
    """Return the TOML file among the arguments, or `None` if there is no such file.

    Raises `InputError` if there are other arguments, or options that are valid only for folders of files.
    """
    found = next((path for path in paths if path.suffix == _SUFFIX and not path.is_dir()), None)
    if found is None:
        return None
    if len(paths) > 1:
        remedy = "Index the folders separately, and add the URL of their index to the file."
        raise InputError(found, "is a list of indexes", expected="no other arguments", remedy=remedy)
    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in _TAKEN and source is click.core.ParameterSource.COMMANDLINE:
            raise InputError(spelled(parameter), f"is for folders of files, and {found} lists other indexes")
    return found


def index_links(path: Path, output: Path | None, out: Output) -> IndexReport:
    """Write indexes of links to a folder, by default to ``simple`` next to the TOML file."""
    target = output or path.parent / "simple"
    if target.exists() and not target.is_dir():
        raise InputError(target, "isn't a folder", remedy="Choose a folder for the index with --output.")
    written = _write(path, FolderStore(target, str(target)), Layout(""), out)
    reports = {
        stream: IndexReport(str(target / stream), one.projects, (), (), one.yanked) for stream, one in written.items()
    }
    first = reports.pop("")
    return IndexReport(first.output, first.projects, (), (), first.yanked, families=reports)


def publish_links(path: Path, store: Store, layout: Layout, out: Output, *, is_dry_run: bool) -> PublishReport:
    """Write indexes of links to a store."""
    written = _write(path, store, layout, out, is_dry_run=is_dry_run)
    families = {stream: PublishedFamily(one.index, one.new, one.changed) for stream, one in written.items()}
    first = families.pop("")
    return PublishReport(
        store=store.url,
        index=first.index,
        uploaded=(),
        present=(),
        listed=first.listed,
        pages=first.pages,
        ignored=(),
        size=0,
        is_dry_run=is_dry_run,
        families=families,
    )


def _write(
    path: Path, store: Store, layout: Layout, out: Output, *, is_dry_run: bool = False
) -> dict[str, LinkedIndex]:
    from rocwheel.index.links import write_links  # most indexes list files, and take less time than loading this module
    from rocwheel.index.upstreams import read_upstreams

    progress = make_progress(quiet=out.quiet)
    written = write_links(read_upstreams(path), store, layout, is_dry_run=is_dry_run, progress=progress)
    _print_removed(written, out)
    return written


def _print_removed(written: Mapping[str, LinkedIndex], out: Output) -> None:
    for stream, one in written.items():
        if one.removed and not out.quiet:
            where = f"{stream}: " if stream else ""
            names = first_of(list(one.removed), _NAMED)
            text = f"{where}removed {count(len(one.removed), 'file')} that the other indexes no longer list: {names}"
            messages.print(in_one_line(text), markup=False)
