"""``rocwheel index``: writes a static package index for a folder of distributions."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import msgspec
from msgspec.structs import replace

from rocwheel.build.cluster.readers import reading, shared_paths
from rocwheel.cli.app import app
from rocwheel.cli.index_links import find_upstreams, index_links
from rocwheel.cli.options import (
    Output,
    SchedulerOption,
    complete_targets,
    shared,
    takes,
)
from rocwheel.cli.output import (
    message_printer,
    messages,
    print_json,
    print_line,
    print_text,
    report_first,
    report_warning,
)
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.messages import count, first_of, in_one_line
from rocwheel.index.extra_files import Extras, NextExtras, no_extras
from rocwheel.index.families import find_groups, write_indexes
from rocwheel.index.folder import folder_names
from rocwheel.index.front_content import front_page, next_front_page
from rocwheel.index.placing import FilePlacement
from rocwheel.index.upload_times import choose_upload_time
from rocwheel.index.write_index import IndexOptions, IndexReport, choose_output
from rocwheel.index.yanked import Yanking
from rocwheel.targets.target_set import parse_target_set
from rocwheel.wheels.variants import drafts, load_draft

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from rocwheel.core.errors import RocwheelError


def print_edited(pages: Iterable[str]) -> None:
    """List the rewritten pages on standard error."""
    for page in pages:
        text = "was edited by hand; it now matches the files again, and yanked files are still yanked"
        messages.print(f"{in_one_line(page)}: {text}", markup=False)


_FrontOption = Annotated[
    bool,
    option(
        "--front-page/--no-front-page", help="Write packages.html, which shows users what to install for their GPU."
    ),
]
_UrlOption = Annotated[
    str | None,
    option("--url", metavar="URL", help="Use this address for the index in packages.html."),
]


def read_extras(front: _FrontOption = True, url: _UrlOption = None) -> Extras:
    """Return the data for the page, or `None` if there is no page. Raises `InputError` for an invalid URL."""
    _check(front=front, url=url)
    return front_page(url or "") if front else no_extras


def read_next_extras(front: _FrontOption = True, url: _UrlOption = None) -> NextExtras | None:
    """Return the data for writing the page again, by default with the previous URL. See `read_extras`."""
    _check(front=front, url=url)
    if not front:
        return None
    given = front_page(url) if url else None
    return lambda page: given or next_front_page(page)


def _check(*, front: bool, url: str | None) -> None:
    if url is not None and not front:
        option, found = "--url", "applies only to the front page"
        raise InputError(option, found, expected="no --url with --no-front-page")


_NAMED = 10
"""The maximum number of file names in a message."""


def print_index(report: IndexReport, *, verbose: bool) -> None:
    """Print the projects in an index, and how to install from it and from its families' indexes."""
    for project, names in report.projects.items():
        yanked = sum(name in report.yanked for name in names)
        print_line(f"{project}: {count(len(names), 'file')}{f', {yanked} yanked' if yanked else ''}")
        if verbose:
            print_text("\n".join(f"  {in_one_line(name)}" for name in names))
    if report.projects or not report.families:
        print_line(f"install with: pip install --index-url {_url(report)} PROJECT")
    for name, family in report.families.items():
        projects = count(len(family.projects), "project")
        print_line(f"for {name}, {projects}: pip install --index-url {_url(family)} PROJECT")


def _url(report: IndexReport) -> str:
    return Path(report.output).resolve().as_uri()


def _path(name: str, dist_dirs: list[Path]) -> str:
    """Return the path of a skipped file, in the first folder that contains it."""
    return str(next((folder for folder in dist_dirs if os.path.lexists(folder / name)), dist_dirs[0]) / name)


def print_notes(report: IndexReport, dist_dirs: list[Path]) -> None:
    """Print notes on standard error about files that the index omits or changes."""
    for name in report.ignored:
        path = in_one_line(_path(name, dist_dirs))
        messages.print(f"not in the index, because it isn't a wheel or a .tar.gz sdist: {path}", markup=False)
    for name in report.subfolders:
        if name not in report.families:
            path = in_one_line(_path(name, dist_dirs))
            text = (
                f"not in the index, because it is a folder: {path}. Index the folder separately, because two "
                "folders can have"
            )
            messages.print(f"{text} different files with the same name.", markup=False)
    if report.future:
        named = f"{count(len(report.future), 'file')} ({first_of(list(report.future), _NAMED)})"
        text = "dated in the future, so the index uses the current time as the upload time"
        messages.print(
            f"{text}: {named}. Check the clocks of this machine and of the machine that created the files.",
            markup=False,
        )
    print_edited(report.edited)


_FOR = "--variants-for"


class IndexVariants(msgspec.Struct, frozen=True):
    """Options for the wheel variants in an index."""

    make: bool
    machine: tuple[str, ...]
    """The targets of the machines that the index is for, with the preferred target first.

    If empty, the index is for any machine.
    """

    def add(self, groups: Callable[[], Collection[Sequence[Path]]], *, quiet: bool) -> None:
        """Create variant wheels in folders with `add_to_all` if requested."""
        if not self.make:
            return
        from rocwheel.build.variant_wheels import add_to_all  # most indexes take less time than loading this module

        for dist_dir, added in add_to_all(groups()):
            if added.written and not quiet:
                what = count(len(added.written), "wheel that selects", "wheels that select")
                messages.print(f"wrote {what} packages for a GPU in {dist_dir} ({drafts()})", markup=False)
            for name in added.stale if not quiet else ():
                report_warning(f"{dist_dir / name}: selects a package that doesn't exist. Remove this file.")

    def report(self, variants: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
        """Print the labels of the variants that an index lists."""
        for name, labels in variants.items():
            print_line(f"{name}: {count(len(labels), 'variant')} ({drafts()}): {', '.join(sorted(labels))}")

    def warn(self, reports: Iterable[IndexReport]) -> None:
        """Warn about targets for which the indexes have no variant."""
        provider = load_draft().provider
        lists = [labels for report in reports for labels in report.variants.values()]
        known = {word for labels in lists for words in labels.values() for word in words}
        for target in self.machine:
            if f"{provider.namespace} :: {provider.feature} :: {target}" not in known:
                report_warning(
                    f"{_FOR}: there is no variant for {target}; installers choose the variant without a GPU."
                )


def read_index_variants(
    variants: Annotated[
        bool,
        option(
            "--variants",
            help="Write wheel variants (draft PEP 825) of packages for each GPU to DIST_DIR.",
        ),
    ] = False,
    variants_for: Annotated[
        str | None,
        option(
            _FOR,
            advanced=True,
            metavar="TARGETS",
            shell_complete=complete_targets,
            help="List variants for machines with these GPUs, in order of preference.",
            show_default="each machine decides",
        ),
    ] = None,
) -> IndexVariants:
    """Return the options for variants. Raises `InputError` for targets that can't have variants."""
    return IndexVariants(variants, parse_machine(variants_for) if variants_for is not None else ())


def parse_machine(text: str) -> tuple[str, ...]:
    """Return the targets of machines, with the preferred target first.

    Raises `InputError` for targets that can't have variants.
    """
    words = [word for word in text.replace(",", ";").split(";") if word.strip()] or [text]
    targets = [target for word in words for target in parse_target_set((word,), source=_FOR, required=True)]
    for target in targets:
        if target.features or not load_draft().grammar.has("value", target.processor):
            found = f"contains {target}, which can't have a variant"
            raise InputError(_FOR, found, expected="GPU targets without features, such as gfx90a")
    return tuple(dict.fromkeys(target.processor for target in targets))


_OutputOption = Annotated[
    Path | None,
    shared(
        "--output",
        metavar="DIR",
        help="Write the index to this folder.",
        show_default="DIST_DIR/../simple, or simple-NAME if DIST_DIR isn't named dist",
    ),
]


def _read_options(
    files: Annotated[
        FilePlacement,
        option("--files", help="Link to the files where they are, or put hard links or copies in the index."),
    ] = FilePlacement.RELATIVE,
    yank: Annotated[
        list[str] | None,
        option("--yank", hidden=True, metavar="FILE[=REASON]", help="Mark a file as yanked from now on."),
    ] = None,
    unyank: Annotated[
        list[str] | None, option("--unyank", hidden=True, metavar="FILE", help="Mark a file as no longer yanked.")
    ] = None,
    upload_time: Annotated[
        str | None,
        option(
            "--upload-time",
            metavar="TIME",
            help="Set the upload time for new files.",
            show_default="SOURCE_DATE_EPOCH, or when the file was last written",
        ),
    ] = None,
) -> IndexOptions:
    reasons = {name: reason for name, _, reason in (text.partition("=") for text in yank or ())}
    return IndexOptions(
        placement=files,
        yanking=Yanking(reasons, tuple(unyank or ())),
        upload_time=choose_upload_time(upload_time, os.environ, time.time_ns() // 1000),
    )


@app.command()
@takes(options=_read_options, variants=read_index_variants, extras=read_extras)
def index(
    dist_dirs: Annotated[
        list[Path],
        argument(metavar="DIST_DIR", help="Folders of wheels and sdists, or a TOML file that lists other indexes."),
    ],
    *,
    output: _OutputOption = None,
    options: IndexOptions,
    variants: IndexVariants,
    extras: Extras,
    scheduler: SchedulerOption = None,
    out: Output,
) -> None:
    """Write a static package index for wheels and sdists.

    The index follows PEP 503 and PEP 691. It works with file:// URLs and on any static web server. The packages stay
    unchanged, and FILE.metadata next to each file contains its core metadata.

    A folder of packages in DIST_DIR, such as a folder for a GPU family, gets its own index. That index also lists the
    packages that are directly in DIST_DIR. The exit status is 2 if a file can't be read; the index lists all other
    files.

    With a TOML file, the pages link to files in other indexes.

    Example: rocwheel index packages/dist
        pip install rocm-sdk-core --index-url file://$PWD/packages/simple
    """
    if upstreams := find_upstreams(dist_dirs):
        linked = index_links(upstreams, output, out)
        if out.json:
            print_json("index", 1, linked)
        elif not out.quiet:
            print_index(linked, verbose=out.verbose)
        return
    dist_dirs = shared_paths(scheduler, dist_dirs)
    (target,) = shared_paths(scheduler, [choose_output(dist_dirs, output)])
    unread: list[RocwheelError] = []
    variants.add(lambda: find_groups(dist_dirs, target).values(), quiet=out.quiet)
    wanted = replace(options, machine=variants.machine, extras=extras, progress=make_progress(quiet=out.quiet))
    with reading(scheduler, message_printer(quiet=out.quiet)) as readers:
        report = write_indexes(dist_dirs, target, options=replace(wanted, readers=readers), unread=unread)
    status = report_first(folder_names(dist_dirs), unread)
    if not out.quiet:
        print_notes(report, dist_dirs)
        variants.warn([report, *report.families.values()])
    if out.json:
        print_json("index", 1, report)
    elif not out.quiet:
        print_index(report, verbose=out.verbose)
        for one in (report, *report.families.values()):
            variants.report(one.variants)
    if status:
        raise click.exceptions.Exit(status)
