"""The rules that a run path entry can break by its spelling alone: for the audit, and for whoever sets run paths."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.messages import first_of
from rocwheel.linking.entries import (
    is_build_folder,
    is_host_folder,
    is_relative,
    lost_origin,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = [
    "BUILD_FOLDER",
    "EATEN_ORIGIN",
    "ENTRY_RULES",
    "HOST_FOLDER",
    "RELATIVE",
    "EntryRule",
    "doubtful_entries",
    "entry_problems",
]


class EntryRule(msgspec.Struct, frozen=True):
    """A rule by its name in the audit, which entries break it, and what is said of them."""

    name: str
    is_broken_by: Callable[[str], bool]
    words: str
    is_error: bool = True
    """Whether such an entry is always wrong, rather than right on some machines."""

    def describe(self, entries: list[str]) -> str:
        """Return in words what is wrong with entries that break the rule."""
        return self.words.format(first_of(list(map(repr, entries))))


RELATIVE = EntryRule(
    "run-path-relative", is_relative, "searches {} relative to the folder in which the process was started"
)
EATEN_ORIGIN = EntryRule("run-path-eaten-origin", lost_origin, "has {}: a shell or make has removed $ORIGIN")
BUILD_FOLDER = EntryRule("run-path-build-folder", is_build_folder, "searches {}, a folder of the machine that built it")
HOST_FOLDER = EntryRule(
    "run-path-absolute", is_host_folder, "searches {}, absolute folders of the host", is_error=False
)
ENTRY_RULES = (RELATIVE, EATEN_ORIGIN, BUILD_FOLDER, HOST_FOLDER)
_CONTROL = re.compile(r"[\0-\x1f\x7f]")
_QUOTING = "Write $ORIGIN as it is, in single quotes; 'rocwheel runpath for --spell TOOL' prints what build tools take."


def entry_problems(source: Path | str, entries: Sequence[str], *, remedy: str = "") -> tuple[InputError, ...]:
    """Return an error about ``source`` for each rule by which entries are wrong wherever their file is installed.

    Control characters are such a fault, too: no folder of users has them in its name.
    """
    expected = "$ORIGIN, $ORIGIN/FOLDER or an absolute folder that users have"
    advice = f"{_QUOTING} {remedy}".rstrip()
    control = [repr(entry) for entry in entries if _CONTROL.search(entry)]
    found = [f"has control characters in {first_of(control)}"] if control else []
    found += _broken_rules(entries, is_error=True)
    return tuple(InputError(source, text, expected=expected, remedy=advice) for text in found)


def doubtful_entries(entries: Sequence[str]) -> tuple[str, ...]:
    """Return in words what is right on some machines only."""
    return _broken_rules(entries, is_error=False)


def _broken_rules(entries: Sequence[str], *, is_error: bool) -> tuple[str, ...]:
    rules = [rule for rule in ENTRY_RULES if rule.is_error is is_error]
    broken = [(rule, list(filter(rule.is_broken_by, entries))) for rule in rules]
    return tuple(rule.describe(bad) for rule, bad in broken if bad)
