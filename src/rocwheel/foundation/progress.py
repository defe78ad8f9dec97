"""How long work reports its progress."""

from __future__ import annotations

from typing import Protocol

__all__ = ["SILENT", "Progress", "Silent"]


class Progress(Protocol):
    """Receives the steps of long work; amounts are bytes unless the label says otherwise."""

    def begin(self, label: str, total: int) -> None:
        """Start a step of ``total`` units, ending the one before."""

    def advance(self, amount: int) -> None:
        """Report that ``amount`` more units of the current step are done."""

    def end(self) -> None:
        """End the current step."""


class Silent:
    """A `Progress` that says nothing."""

    def begin(self, label: str, total: int) -> None:
        """Ignore the step."""

    def advance(self, amount: int) -> None:
        """Ignore the amount."""

    def end(self) -> None:
        """Do nothing."""


SILENT = Silent()
