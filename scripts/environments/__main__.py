"""Install and test packages in releases of Debian, with several Pythons, as root and as a user; print a table.

Usage: python -m scripts.environments [--release NAME]... [--own] [--limit SECONDS] [--write PAGE]

Chroots are made once, in ``.cache/chroots``. That takes root, apt and an archive of Debian. Checks have no network and
no compiler. The exit status is 1 when a check fails.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.environments import machine
from scripts.environments.matrix import RELEASES, Release, Run, absent_pythons, make_runs
from scripts.environments.table import Result, make_table, read_outcome, replace_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scripts.environments.matrix import Interpreter

_AT_ONCE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the chroots, do the runs, print the table; return the exit status."""
    options = _parse(arguments)
    releases, obstacles = _make_releases(options.release or RELEASES, options.limit)
    if obstacles and options.limit is None:
        return 1
    if not releases:
        return 0
    interpreters = [] if options.own else _find_interpreters(releases)
    results = _do(releases, interpreters)
    table = make_table(results)
    print(f"\n{table}\n{sum(one.passed for one in results)} of {len(results)} runs passed.")
    if options.write:
        page = replace_table(options.write.read_text(encoding="utf-8"), table)
        options.write.write_text(page, encoding="utf-8")
    return 0 if all(one.passed for one in results) else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.environments", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--release", action="append", choices=RELEASES, help="of Debian; repeatable; default: all")
    parser.add_argument("--own", action="store_true", help="the releases' own Pythons alone")
    parser.add_argument("--limit", type=int, metavar="SECONDS", help="skip a release whose chroot is not there by then")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into a page of the documentation")
    return parser.parse_args(arguments)


def _make_releases(names: Sequence[str], limit: int | None) -> tuple[list[Release], int]:
    """Return the releases whose chroots are there, and how many are not; say why."""
    releases = []
    for name in names:
        _tell(f"{name}: making its chroot, unless it is there")
        try:
            releases.append(machine.make_release(name, limit))
        except machine.ObstacleError as e:
            _tell(f"{name}: skipped: {e}" if limit else f"{name}: {e}")
    return releases, len(names) - len(releases)


def _find_interpreters(releases: list[Release]) -> list[Interpreter]:
    """Return this machine's interpreters for the Pythons that no release has; name those that are nowhere."""
    found, notes = machine.find_interpreters(absent_pythons(releases))
    for note in notes:
        _tell(f"left out: {note}")
    return found


def _do(releases: list[Release], interpreters: list[Interpreter]) -> list[Result]:
    dist, version = machine.build_packages()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        done = pool.map(lambda run: _do_one(run, dist, version), make_runs(releases, interpreters))
        return [result for result in done if result]


def _do_one(run: Run, dist: Path, version: str) -> Result | None:
    """Do a run and tell what came out of it, a failed one with all its output; None if its Python doesn't start."""
    if run.interpreter and not _starts(run, dist):
        _tell(f"left out: Python {run.python} of this machine does not start in {run.release.name} as {run.user}")
        return None
    began = time.monotonic()
    status, output = _check(run, dist, version)
    result = Result(run, *read_outcome(status, output))
    where = f"{run.release.name}, glibc {run.release.glibc}, Python {run.python}"
    _tell(f"{where}, {run.subject} as {run.user}: {result.outcome} ({time.monotonic() - began:.0f} s)")
    if not result.passed:
        _tell(output)
    return result


def _starts(run: Run, dist: Path) -> bool:
    """Return whether a Python of this machine starts in the release's chroot: it may need a newer glibc."""
    return _enter(run, dist, "check-python.sh")[0] == 0


def _check(run: Run, dist: Path, version: str) -> tuple[int, str]:
    """Do a run; return its status and output."""
    if run.subject == "packages":
        return _enter(run, dist, "check-packages.sh", version)
    try:
        return _enter(run, machine.fetch_tool(run.python), "check-tool.sh")
    except machine.ObstacleError as e:
        return 1, f"== wheels for Python {run.python}\n{e}"


def _enter(run: Run, dist: Path, check: str, *arguments: str) -> tuple[int, str]:
    program = str(run.interpreter.program) if run.interpreter else "/usr/bin/python3"
    prefix = run.interpreter.prefix if run.interpreter else None
    return machine.enter(run.release, dist, check, run.user, program, *arguments, prefix=prefix)


def _tell(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
