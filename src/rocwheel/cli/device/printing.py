"""What a device command prints of its work, by the options that all of them have."""

from __future__ import annotations

import msgspec

from rocwheel.cli.output.progress import make_progress
from rocwheel.core.progress import Progress

__all__ = ["Printing"]


class Printing(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a report is a document, and how much is printed beside it."""

    as_json: bool
    quiet: bool
    verbose: bool

    @property
    def progress(self) -> Progress:
        """Where the work shows how far it is."""
        return make_progress(quiet=self.quiet or self.as_json)
