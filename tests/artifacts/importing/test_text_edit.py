"""Edits of a table change the text of files, are counted, and say where they don't fit."""

from __future__ import annotations

from rocwheel.artifacts.importing.table import Edit
from rocwheel.artifacts.importing.text_edit import TextEdit


def edit(**fields: object) -> TextEdit:
    rule = {"files": ("**/*.cmake",), "find": "/usr", "replace": "${PREFIX}", "reason": "it moves"} | fields
    return TextEdit(Edit(**rule))  # type: ignore[arg-type]


def test_edit_is_made_at_every_occurrence_and_counted() -> None:
    it = edit()

    assert it.make("a /usr b\n/usr\n", "x.cmake") == "a ${PREFIX} b\n${PREFIX}\n"
    assert (it.changes, it.problem) == (2, None)


def test_edit_applies_where_both_its_patterns_match() -> None:
    it = edit(sources=("usr/lib/*-linux-gnu/**",))

    assert it.applies_to("lib/cmake/a.cmake", "usr/lib/x86_64-linux-gnu/cmake/a.cmake")
    assert not it.applies_to("lib/cmake/a.cmake", "usr/lib/cmake/a.cmake")
    assert not it.applies_to("lib/cmake/a.txt", "usr/lib/x86_64-linux-gnu/cmake/a.txt")


def test_edit_that_a_file_does_not_need_is_not_a_problem() -> None:
    it = edit(when="PREFIX /")

    assert it.make("set(PREFIX here)", "a.cmake of one.deb") == "set(PREFIX here)"
    assert (it.changes, it.problem) == (0, None)


def test_edit_that_a_file_needs_and_that_does_not_fit_says_so() -> None:
    it = edit(when="PREFIX /")
    it.make("set(PREFIX /usr)", "a.cmake of one.deb")
    it.make("set(PREFIX /opt)", "b.cmake of two.deb")

    assert str(it.problem) == (
        "the edit '/usr': does not fit b.cmake of two.deb, which says 'PREFIX /'; expected that it fits, "
        "because: it moves. Look at the file and adapt the table (--table)."
    )
