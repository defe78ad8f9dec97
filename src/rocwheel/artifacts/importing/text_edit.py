"""The edits of an import table: how the text of a file changes so that it works from its new place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.artifacts.importing.table import Edit

__all__ = ["TextEdit", "edited_bytes"]


class TextEdit:
    """One edit of the table, and where it was made."""

    def __init__(self, rule: Edit) -> None:
        self.rule = rule
        self.changes = 0
        """How often it has been made so far."""
        self.missed: list[str] = []
        """Files in which ``when`` is found, but not ``find``."""
        self._files = PathPatterns(rule.files)
        self._sources = PathPatterns(rule.sources)
        self._find = re.compile(rule.find, re.MULTILINE)
        self._when = re.compile(rule.when, re.MULTILINE) if rule.when else None

    def applies_to(self, destination: str, source: str) -> bool:
        """Return whether the edit is meant for this file."""
        return self._files.matches(destination) and self._sources.matches(source)

    def make(self, text: str, source: str) -> str:
        """Return the edited text, and count what was changed."""
        edited, changes = self._find.subn(self.rule.replace, text)
        self.changes += changes
        if not changes and self._when and self._when.search(text):
            self.missed.append(source)
        return edited

    @property
    def problem(self) -> InputError | None:
        """The error when a file says that it needs the edit, which does not fit it."""
        if not self.missed:
            return None
        return InputError(
            f"the edit {self.rule.find!r}",
            f"does not fit {', '.join(self.missed)}, which says {self.rule.when!r}",
            expected=f"that it fits, because: {self.rule.reason}",
            remedy="Look at the file and adapt the table (--table).",
        )


def edited_bytes(data: bytes, edits: Iterable[TextEdit], source: str) -> bytes:
    """Return a file after these edits, in their order; bytes that are not UTF-8 stay as they are."""
    text = data.decode("utf-8", "surrogateescape")
    for edit in edits:
        text = edit.make(text, source)
    return text.encode("utf-8", "surrogateescape")
