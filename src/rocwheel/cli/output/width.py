"""How wide standard output is."""

from __future__ import annotations

import shutil
import sys

__all__ = ["output_width"]


def output_width() -> int | None:
    """Return the columns of the terminal that standard output is, or those of ``COLUMNS``; none if it is no terminal.

    What scripts read has no width, even where somebody has exported that variable.
    """
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
