"""``rocwheel lock``: a lock file (PEP 751) for given GPUs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit
from urllib.request import url2pathname

import typer

from rocwheel.cli.lock.builds import find_build_requires
from rocwheel.cli.lock.gpus import check_locked, has_gpu_packages, lacking_systems, parse_requirements, targets_to_lock
from rocwheel.cli.lock.resolve import ResolveOptions, resolve
from rocwheel.cli.lock.users import index_urls
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.errors import report_warning
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.completion import complete_targets
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared, takes
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, first_of, looks_like_host
from rocwheel.core.progress import step
from rocwheel.core.workers import raise_all
from rocwheel.core.writing import atomic_file, check_output
from rocwheel.index.lock_file import LockFile, check_lock_name
from rocwheel.stores.urls import is_url, parse_url

__all__ = ["lock"]

_TargetsOption = Annotated[
    str | None,
    typer.Option(
        "--targets",
        metavar="TARGETS",
        autocompletion=complete_targets,
        help="Lock for these GPUs, whichever this machine has.",
        show_default="those that extras name",
    ),
]

_PYTHON = re.compile(r"3(\.[0-9]{1,3}){1,2}")


def read_resolve_options(
    index_url: Annotated[
        str | None, typer.Option("--index-url", metavar="URL", help="Look for packages in this index alone.")
    ] = None,
    extra_index_url: Annotated[
        list[str] | None,
        typer.Option("--extra-index-url", metavar="URL", help="Look in this index first; what it has comes from it."),
    ] = None,
    find_links: Annotated[
        list[str] | None, typer.Option("--find-links", metavar="PLACE", help="Look for packages in this folder.")
    ] = None,
    python_version: Annotated[
        str | None,
        typer.Option(
            "--python-version", metavar="X.Y", help="Lock for this Python and later ones.", show_default="this one"
        ),
    ] = None,
    pre: Annotated[bool, typer.Option("--pre", show_default=False, help="Take prereleases, too.")] = False,
    universal: Annotated[
        bool, typer.Option("--universal", show_default=False, help="Lock for all platforms, with markers.")
    ] = False,
) -> ResolveOptions:
    """Return where packages are looked for.

    Raises `InputError` for a URL of an index that has no scheme, for a file:// URL that `parse_url` refuses, and for a
    folder that is not there: uv would look elsewhere.
    """
    urls = [url for url in (index_url, *(extra_index_url or ())) if url]
    for url in filter(looks_like_host, urls):
        raise InputError(url, "has no scheme", expected="http://, https://, file:// or a folder")
    for url in (*urls, *(find_links or ())):
        if url.startswith("file:"):
            parse_url(url)
    if python_version is not None and not _PYTHON.fullmatch(python_version):
        option, expected = "--python-version", "a version of Python 3 such as 3.12"
        raise InputError(option, f"is {python_version!r}", expected=expected)
    raise_all("indexes", [InputError(url, "is no folder") for url in urls if not _may_be_there(url)])
    return ResolveOptions(
        index_url, tuple(extra_index_url or ()), tuple(find_links or ()), python_version, pre, universal
    )


def _may_be_there(url: str) -> bool:
    """Return whether an index is a folder, or on a server, where only asking tells."""
    if url.startswith("file:"):
        return Path(url2pathname(urlsplit(url).path)).is_dir()
    return is_url(url) or Path(url).is_dir()


@app.command()
@takes(options=read_resolve_options)
def lock(
    requirements: Annotated[
        list[str], typer.Argument(metavar="REQUIREMENT", help="What to lock, such as 'rocm[libraries,device-gfx942]'.")
    ],
    *,
    options: ResolveOptions,
    targets: _TargetsOption = None,
    output: Annotated[Path, shared("--output", "Write the lock file here.")] = Path("pylock.toml"),
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Write a lock file (PEP 751) that pip and uv install, for given GPUs, on any machine.

    uv resolves the requirements. Files of this machine, such as those of a mirror, are named by their path from the
    lock file, so that both can be copied to where there is no network.

    Example: rocwheel lock "rocm[libraries,device-gfx942]" --index-url file://$PWD/mirror/simple -o mirror/pylock.toml
    """
    setup_logging(quiet=quiet, verbose=verbose)
    check_lock_name(output)
    check_output(output)
    parsed = parse_requirements(requirements)
    named = targets_to_lock(parsed, targets, os.environ)
    texts = [str(requirement) for requirement in parsed]
    with step(make_progress(quiet=quiet or json), "resolving"):
        resolved = resolve(texts, options, named)
    found = LockFile.read(resolved, "the output of uv")
    check_locked(found.projects, parsed, named, str(output), is_given=targets is not None)
    remedy = "Lock from an index that has hashes, such as one of `rocwheel index`."
    raise_all(str(output), [InputError(name, "has no hash in its index", remedy=remedy) for name in found.unhashed()])
    builds = find_build_requires(found, index_urls(options, os.environ))
    made = found.without_users().relative_to(output.absolute().parent).noting(texts, named)
    with atomic_file(output) as file:
        file.write(made.render())
    if json:
        facts = {"output": str(output), "targets": named, "packages": made.projects, "build_requires": builds}
        print_json("lock", 1, facts)
    elif not quiet:
        print_line(f"{output}: {count(len(made.projects), 'package')}{' for ' if named else ''}{', '.join(named)}")
    if not quiet:
        if targets is not None and not has_gpu_packages(made.projects):
            _warn_of_targets(output, named)
        _warn_of_systems(lacking_systems(made.wheels, named))
        _warn_of_builds(builds)
        _warn_of_queries(output, made)


def _warn_of_targets(output: Path, named: Sequence[str]) -> None:
    remedy = f"Where the release has such, ask for an extra: rocm[{', '.join(f'device-{name}' for name in named)}]."
    report_warning(f"{output}: has no package for certain GPUs, so --targets changes nothing. {remedy}")


def _warn_of_systems(lacking: Mapping[str, Sequence[str]]) -> None:
    for target, systems in lacking.items():
        report_warning(
            f"{target}: has no packages for {' and '.join(systems)}: what is installed there lacks its code."
        )


def _warn_of_builds(builds: Mapping[str, Sequence[str]]) -> None:
    for name, needed in builds.items():
        text = f"{name}: is an sdist, whose build needs {', '.join(needed)}, and a lock file has no room for that."
        report_warning(f"{text} Have it at hand where it is installed: --find-links FOLDER.")


def _warn_of_queries(output: Path, made: LockFile) -> None:
    """Warn of queries of addresses, which may be secrets: installers may need them, so they stay."""
    found = made.with_queries()
    if found:
        text = f"{output}: has what follows the question mark in {first_of(found)}, as installers may need it."
        remedy = "If that is a secret, such as a token, keep the file from others, or lock what you have fetched"
        report_warning(f"{text} {remedy}: --find-links FOLDER.")
