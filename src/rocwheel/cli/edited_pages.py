"""What commands that write pages of an index say of those that somebody has edited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.cli.output.consoles import messages
from rocwheel.cli.output.printable import in_one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["print_edited"]


def print_edited(pages: Iterable[str]) -> None:
    """Name pages that were written again on standard error."""
    for page in pages:
        text = "was edited by somebody; it is again as the files are, and marks of yanked files in it are kept"
        messages.print(f"{in_one_line(page)}: {text}", markup=False)
