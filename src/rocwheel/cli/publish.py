"""``rocwheel publish``: uploads distributions and their index to a store."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Annotated

from rich.filesize import decimal

from rocwheel.cli.app import app
from rocwheel.cli.index import print_edited, read_next_extras
from rocwheel.cli.index_links import find_upstreams, publish_links
from rocwheel.cli.options import Output, shared, takes
from rocwheel.cli.output import messages, print_json, print_line, report_warning
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.cli.remote import Selection, distributions_in, fetch_folder
from rocwheel.core.cache_folders import keep_published, published_folder
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, first_of, looks_like_host
from rocwheel.index.extra_files import NextExtras
from rocwheel.index.publish import PublishOptions, PublishReport, publish
from rocwheel.index.upload_times import parse_upload_time
from rocwheel.index.uploads import Layout
from rocwheel.stores.open import open_store
from rocwheel.stores.urls import is_url, refuse_web_url

_STORES = "s3://BUCKET/PREFIX, file:///PATH, or a folder"


def _read_store(
    store: Annotated[str, argument(metavar="STORE", help="The store: s3://BUCKET/PREFIX, file:///PATH, or a folder.")],
) -> str:
    refuse_web_url(store)
    if looks_like_host(store):
        remedy = f"A URL begins with s3:// or file://; write ./{store} for a folder with that name."
        raise InputError(store, "has no scheme", expected=_STORES, remedy=remedy)
    scheme, has_scheme, _ = store.partition("://")
    if has_scheme and scheme.lower() not in {"s3", "file"}:
        raise InputError(store, f"has the scheme {scheme!r}", expected=_STORES)
    return store


def _check_order(dist: str, store: str) -> None:
    """Raise `InputError` if the store precedes the folder to publish."""
    if is_url(dist) and not is_url(store) and any(Path(store).glob("*.whl")):
        remedy = f"Run rocwheel publish {store} {dist}."
        raise InputError(store, "is a folder of packages", expected="DIST_DIR before STORE", remedy=remedy)


def _read_layout(
    output: Annotated[
        str, shared("--output", metavar="PREFIX", help="Write the index to this folder in the store.")
    ] = "simple",
    dist_prefix: Annotated[
        str, option("--dist", metavar="PREFIX", help="Write the packages to this folder in the store.")
    ] = "dist",
) -> Layout:
    return Layout(output, dist_prefix)


def _read_upload_time(
    upload_time: Annotated[
        str | None,
        option(
            "--upload-time",
            metavar="TIME",
            help="Set the upload time for new files.",
            show_default="when the store received the file",
        ),
    ] = None,
) -> int | None:
    return parse_upload_time(upload_time, time.time_ns() // 1000) if upload_time is not None else None


@app.command("publish")
@takes(store=_read_store, layout=_read_layout, make_front=read_next_extras, uploaded=_read_upload_time)
def publish_command(
    dist: Annotated[
        str,
        argument(
            metavar="DIST_DIR", help="A folder of wheels and sdists, its URL, or a TOML file that lists other indexes."
        ),
    ],
    store: str,
    *,
    layout: Layout,
    make_front: NextExtras | None,
    uploaded: int | None,
    dry_run: Annotated[bool, option("--dry-run", help="Print what would be published, and write nothing.")] = False,
    out: Output,
) -> None:
    """Upload packages and their index to a store.

    The command checks all files before it uploads anything. It uploads files first and pages last, so the index never
    lists a missing file. Several runs can publish at the same time, and a new run resumes an interrupted run. The
    command never removes a file or replaces it with a different file.

    A folder of packages in DIST_DIR, such as a folder for a GPU family, gets its own index. S3 requires the
    rocwheel[stores] extra. Set its credentials and endpoint with AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, AWS_REGION, and
    so on.

    With a TOML file, the command uploads only pages, which link to files in other indexes.

    Example: rocwheel publish packages/dist s3://my-bucket/rocm --dry-run
    """
    _check_order(dist, store)
    if upstreams := find_upstreams([] if is_url(dist) else [Path(dist)]):
        _show(publish_links(upstreams, open_store(store), layout, out, is_dry_run=dry_run), out)
        return
    families = Selection("distributions of families", partial(distributions_in, depth=1))
    dist_dir = Path(fetch_folder(dist, families, is_quiet=out.quiet) if is_url(dist) else dist)
    cache = _cache_of(dist_dir)
    options = PublishOptions(layout, uploaded, dry_run, make_front, cache)
    report = publish(dist_dir, open_store(store), options, make_progress(quiet=out.quiet))
    if cache:
        keep_published(cache)
    if not out.quiet:
        _print_notes(report, dist_dir)
    _show(report, out)


def _show(report: PublishReport, out: Output) -> None:
    if out.json:
        print_json("publish", 1, report)
    elif not out.quiet:
        _print_report(report, verbose=out.verbose)


def _cache_of(dist_dir: Path) -> Path | None:
    """Return the cache folder for data about a folder's files, or `None` if the user has no cache."""
    try:
        return published_folder(dist_dir)
    except InputError:  # in this case, all files are read
        return None


def _print_notes(report: PublishReport, dist_dir: Path) -> None:
    for name in report.ignored:
        messages.print(f"not published, because it isn't a wheel or a .tar.gz sdist: {dist_dir / name}", markup=False)
    print_edited(report.edited)
    if report.leftovers:
        found = f"{report.store} has {count(len(report.leftovers), 'unfinished upload')}"
        what = f"{found} from runs that were interrupted or are still in progress: {first_of(report.leftovers, 3)}."
        report_warning(
            f"{what} When no upload is in progress, remove them, and configure the bucket to abort unfinished uploads."
        )


def _print_report(report: PublishReport, *, verbose: bool) -> None:
    will, done = ("would be uploaded", "would be indexed") if report.is_dry_run else ("uploaded", "indexed")
    if verbose or report.is_dry_run:
        for name in report.uploaded:
            print_line(f"{will}: {name}")
        for name in report.listed:
            print_line(f"{done}: {name}")
    sent = f"{count(len(report.uploaded), 'file')} {will} ({decimal(report.size)})"
    print_line(f"{sent}, {len(report.present)} already present; {count(len(report.listed), 'file')} {done}")
    print_line(f"index: {report.index}")
    for family, index in report.families.items():
        print_line(f"for {family}, {count(len(index.listed), 'file')} {done}: {index.index}")
