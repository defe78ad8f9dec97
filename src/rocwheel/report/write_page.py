"""Writing the page of a report, never over what it is about."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files.writing.atomic_file import atomic_file
from rocwheel.foundation.files.writing.destination import check_output as check_file
from rocwheel.report.page.make_page import GENERATOR, make_page
from rocwheel.report.page.plotly_script import plotly_script

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rocwheel.report.values.report import Report

__all__ = ["check_output", "write_page"]

_HEAD = 1 << 10


def check_output(output: Path, paths: Sequence[Path]) -> None:
    """Raise `InputError` for an output that is one of the inputs or in one of them, unless an older report is there.

    A folder, or a place below a file, is refused, too, so that nothing is read in vain.
    A symlink in an input is refused even if it leads to a report: writing would put a file in its place.
    Raises `InputError` where plotly is not installed, which pages need.
    """
    plotly_script()
    check_file(output)
    real = os.path.realpath(output)
    # What is replaced is the name itself, not what a symlink of that name leads to.
    own = str(output.parent.resolve() / output.name)
    folders = [os.path.realpath(path) for path in paths]
    is_own_link = output.is_symlink() and any(_is_in(own, folder) for folder in folders)
    is_inside = any(_is_in(place, folder) for place in (real, own) for folder in folders)
    if is_own_link or (is_inside and os.path.lexists(output) and not _is_report(output)):
        raise InputError(output, "is itself reported on", expected="another file to write to")


def _is_in(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder


def _is_report(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return GENERATOR.encode() in file.read(_HEAD)
    except OSError:
        return False


def write_page(output: Path, report: Report) -> int:
    """Write the page, and return its size in bytes. Raises `WorkError` when that fails."""
    page = make_page(report)
    with atomic_file(output) as file:
        file.write(page)
    return len(page)
