"""Which runs there are: releases of Debian, Pythons, users, and what is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

__all__ = ["PYTHONS", "RELEASES", "USERS", "Interpreter", "Release", "Run", "absent_pythons", "make_runs"]

RELEASES = ("bookworm", "trixie", "sid")
"""Releases of Debian, oldest first."""
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
"""The Pythons that the packages and rocwheel are for."""
USERS = ("root", "user")


class Interpreter(NamedTuple):
    """A Python of this machine."""

    version: str
    """As in ``PYTHONS``."""
    prefix: Path
    """The folder with all that it consists of."""
    program: Path
    """The program, below the prefix."""


class Release(NamedTuple):
    """A release of Debian in a chroot."""

    name: str
    chroot: Path
    glibc: str
    python: str
    """The release's own Python, as in ``PYTHONS``."""


class Run(NamedTuple):
    """A check in one environment."""

    release: Release
    user: str
    subject: str
    """``packages`` or ``rocwheel``."""
    interpreter: Interpreter | None = None
    """None for the release's own Python."""

    @property
    def python(self) -> str:
        """The version of its Python, as in ``PYTHONS``."""
        return self.interpreter.version if self.interpreter else self.release.python


def absent_pythons(releases: Iterable[Release]) -> list[str]:
    """Return the Pythons that none of the releases has, which the build machine's interpreters stand in for."""
    present = {release.python for release in releases}
    return [version for version in PYTHONS if version not in present]


def make_runs(releases: Iterable[Release], interpreters: Sequence[Interpreter]) -> Iterator[Run]:
    """Yield the runs: packages with every Python as each user; rocwheel with the release's own as the ordinary user."""
    for release in releases:
        others = [one for one in interpreters if one.version != release.python]
        for interpreter in (None, *others):
            for user in USERS:
                yield Run(release, user, "packages", interpreter)
        yield Run(release, "user", "rocwheel")
