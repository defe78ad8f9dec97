"""The checkout as the phases change it: every change with its phase and its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.frameworks.jax_checkout.checkout import Checkout, SourceFile, refuse_mixed

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Draft", "Edit", "FileChange"]


class Edit(msgspec.Struct, frozen=True):
    """One change of one file: from a text to a text, where ``None`` is no file."""

    path: str
    before: str | None
    after: str | None
    phase: int
    reason: str


class FileChange(msgspec.Struct, frozen=True):
    """What becomes of one file, with the edits that lead there."""

    path: str
    before: SourceFile | None
    after: SourceFile | None
    edits: tuple[Edit, ...]


class Draft:
    """The texts after the edits so far."""

    def __init__(self, checkout: Checkout) -> None:
        self._before = checkout.files
        self._files = dict(checkout.files)
        self._unread = checkout.unread
        self._edits: list[Edit] = []
        self.phase = 1
        """The phase that edits belong to from now on."""

    @property
    def checkout(self) -> Checkout:
        """The checkout as it is by now."""
        return Checkout(self._files, self._unread)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits so far, in their order."""
        return tuple(self._edits)

    def has(self, path: str) -> bool:
        """Return whether the file is there by now."""
        return path in self._files

    def text(self, path: str) -> str:
        """Return a file's text by now, empty if there is no such file."""
        return self._files[path].text if path in self._files else ""

    def put(self, path: str, text: str, reason: str, *, is_executable: bool = False) -> None:
        """Give a file this text; nothing happens if it has it. Raises `InputError` for a file of mixed line ends."""
        old = self._files.get(path)
        if old is not None and old.text == text:
            return
        if old is not None:
            refuse_mixed(path, old)
        self._edits.append(Edit(path, old.text if old else None, text, self.phase, reason))
        self._files[path] = old.with_text(text) if old else SourceFile(text, is_executable=is_executable)

    def delete(self, path: str, reason: str) -> None:
        """Delete a file, if it is there."""
        old = self._files.pop(path, None)
        if old is not None:
            self._edits.append(Edit(path, old.text, None, self.phase, reason))

    def changes(self) -> Iterator[FileChange]:
        """Yield what has changed, by path; what was edited back and forth has not."""
        for path in sorted({edit.path for edit in self._edits}):
            before, after = self._before.get(path), self._files.get(path)
            if before != after:
                yield FileChange(path, before, after, tuple(edit for edit in self._edits if edit.path == path))
