"""Errors, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.cli.output.errors import report_error
from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    import io


def test_an_error_is_one_line_on_standard_error_with_its_brackets(messages: io.StringIO) -> None:
    found = "[bold]not markup[/] " + "x" * 300
    report_error(InputError("libfat.so", found))
    assert messages.getvalue() == f"error: libfat.so: {found}\n"
