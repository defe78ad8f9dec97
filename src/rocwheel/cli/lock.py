"""``rocwheel lock``: writes a lock file for specific GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from rocwheel.cli.app import app
from rocwheel.cli.options import Output, shared, takes
from rocwheel.cli.output import print_json, print_line, report_warning
from rocwheel.cli.parameters import argument, option
from rocwheel.core.messages import count, first_of
from rocwheel.index.lock import Locked, ResolveOptions, make_lock

_TargetsOption = Annotated[
    list[str] | None,
    shared(
        "--targets",
        "Lock the packages for these targets.",
        show_default="the targets in extras",
    ),
]


def _read_options(
    index_url: Annotated[
        str | None, option("--index-url", metavar="URL", help="Search for packages only in this index.")
    ] = None,
    extra_index_url: Annotated[
        list[str] | None,
        option(
            "--extra-index-url",
            metavar="URL",
            help="Search in this index first. It takes priority for the packages that it contains.",
        ),
    ] = None,
    find_links: Annotated[
        list[str] | None, option("--find-links", metavar="PLACE", help="Search for packages in this folder, too.")
    ] = None,
    python_version: Annotated[
        str | None,
        option(
            "--python-version",
            metavar="X.Y",
            help="Lock for this Python version and later versions.",
            show_default="the running version",
        ),
    ] = None,
    pre: Annotated[bool, option("--pre", help="Include prereleases.")] = False,
    universal: Annotated[bool, option("--universal", help="Lock for all platforms, with environment markers.")] = False,
) -> ResolveOptions:
    options = ResolveOptions(
        index_url, tuple(extra_index_url or ()), tuple(find_links or ()), python_version, pre, universal
    )
    options.check()
    return options


@app.command()
@takes(options=_read_options)
def lock(
    requirements: Annotated[
        list[str], argument(metavar="REQUIREMENT", help="Requirements, such as 'rocm[libraries,device-gfx942]'.")
    ],
    *,
    options: ResolveOptions,
    targets: _TargetsOption = None,
    output: Annotated[Path, shared("--output", "Write the lock file to this path.")] = Path("pylock.toml"),
    out: Output,
) -> None:
    """Write a lock file for specific GPUs.

    pip and uv can install from the lock file (PEP 751) on any machine; uv resolves the requirements. The lock file
    refers to local files, such as those in a mirror, by relative path. You can copy the lock file and the local files
    to a machine without a network connection.

    Example: rocwheel lock "rocm[libraries,device-gfx942]" --index-url file://$PWD/mirror/simple -o mirror/pylock.toml
    """
    locked = make_lock(requirements, None if targets is None else ";".join(targets), output, options, out.progress)
    named, projects = locked.targets, locked.file.projects
    if out.json:
        facts = {"output": str(output), "targets": named, "packages": projects, "build_requires": locked.build_requires}
        print_json("lock", 1, facts)
    elif not out.quiet:
        print_line(f"{output}: {count(len(projects), 'package')}{' for ' if named else ''}{', '.join(named)}")
    for warning in () if out.quiet else _warnings(output, locked, is_given=targets is not None):
        report_warning(warning)


def _warnings(output: Path, locked: Locked, *, is_given: bool) -> Iterator[str]:
    if is_given and not locked.has_gpu_packages:
        extras = ", ".join(f"device-{name}" for name in locked.targets)
        remedy = f"If the release has such packages, request an extra: rocm[{extras}]."
        yield f"{output}: has no packages for specific GPUs, so --targets has no effect. {remedy}"
    for target, systems in locked.lacking_systems.items():
        yield f"{target}: has no packages for {' and '.join(systems)}, so installations on these systems lack its code."
    for name, needed in locked.build_requires.items():
        text = (
            f"{name}: is an sdist whose build requires {', '.join(needed)}, but a lock file can't contain build "
            "requirements."
        )
        yield f"{text} To install the lock file, add a folder with these packages: --find-links FOLDER."
    if queries := locked.file.with_queries():  # queries may be secrets, but installers may need them, so they stay
        text = (
            f"{output}: contains the text after the question mark in {first_of(queries)}, because installers may "
            "need it."
        )
        remedy = "If the text is a secret, such as a token, don't share the file, or lock packages that you downloaded"
        yield f"{text} {remedy}: --find-links FOLDER."
