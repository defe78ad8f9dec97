"""Errors, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.cli.output import report_error, report_warning
from rocwheel.core.errors import InputError, ProblemsError

if TYPE_CHECKING:
    import io


def test_an_error_is_one_line_on_standard_error_with_its_brackets(messages: io.StringIO) -> None:
    found = "[bold]not markup[/] " + "x" * 300
    report_error(InputError("libfat.so", found))
    assert messages.getvalue() == f"error: libfat.so: {found}\n"


def test_each_problem_is_one_line_whatever_names_are_in_it(messages: io.StringIO) -> None:
    problems = [InputError("a\nb", "is for c\nd", expected="e\nf", remedy="Name g\nh."), InputError("i", "j")]
    report_error(ProblemsError("k\nl", problems))
    assert messages.getvalue() == (
        "error: k\\nl: 2 problems\n  a\\nb: is for c\\nd; expected e\\nf. Name g\\nh.\n  i: j\n"
    )


def test_a_warning_is_one_line(messages: io.StringIO) -> None:
    report_warning("no code for gfx942 in a\n::error::[bold]b[/]")
    assert messages.getvalue() == "warning: no code for gfx942 in a\\n::error::[bold]b[/]\n"
