"""The generated modules with a wheel's version and the commits that it was built from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["parse_commits", "render_commit_info", "render_version"]

_OPTION = "--commit"
_COMMIT = re.compile(r"[0-9a-f]{7,64}")


def render_version(version: str) -> str:
    """Return ``version.py``; JAX compares ``__version__`` with its own."""
    return f'"""The version of this package."""\n\n__version__ = "{version}"\n'


def render_commit_info(commits: Mapping[str, str]) -> str:
    """Return ``commit_info.py``: the commit of each repository, sorted by name."""
    rows = "".join(f'    "{name}": "{commit}",\n' for name, commit in sorted(commits.items()))
    return f'"""The commits that this package was built from."""\n\ncommits = {{\n{rows}}}\n'


def parse_commits(texts: Iterable[str], source: str = _OPTION) -> dict[str, str]:
    """Parse ``REPOSITORY=COMMIT`` words, the commit in hexadecimal; raise `InputError` for any other.

    ``source`` is what gave them, for messages.
    """
    commits: dict[str, str] = {}
    for text in texts:
        name, equals, commit = text.rpartition("=")
        if not equals or not re.fullmatch(r"[\w./-]+", name) or not _COMMIT.fullmatch(commit):
            expected = "REPOSITORY=COMMIT, the commit as 7 to 64 hexadecimal digits"
            raise InputError(source, f"is {text!r}", expected=expected, remedy="Check whether looking it up failed.")
        if commits.setdefault(name, commit) != commit:
            raise InputError(
                source, f"gives two commits for {name}: {commits[name]} and {commit}", expected="one commit"
            )
    return commits
