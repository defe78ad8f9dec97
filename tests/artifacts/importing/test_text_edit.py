"""Edits of a table change the text of files, are counted, and say where they don't fit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from fuzz.attempt import attempt
from fuzz.harness import find_harness
from rocwheel.artifacts.importing.choose_artifact import Destination, ImportRules, Origin
from rocwheel.artifacts.importing.table import Edit, load_table
from rocwheel.artifacts.importing.text_edit import TextEdit
from rocwheel.artifacts.importing.tree import ImportTree
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


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


@pytest.mark.parametrize(
    "word",
    [
        "/llvm",
        "hip::device",
        "BASE_DIR",
        "# Use original install prefix when loaded through\n",
        'get_filename_component(a "${CURRENT_LIST_DIR',
        "CURRENT_LIST_DIR",
    ],
)
def test_a_word_that_is_repeated_without_end_takes_no_long_time(word: str) -> None:
    text = 'get_filename_component(a "${' + word * (600_000 // len(word))
    assert attempt(find_harness("imports.text_edits"), text.encode()) is None


def test_a_file_with_edits_that_is_too_large_for_text_is_refused(tmp_path: Path) -> None:
    tree = ImportTree(tmp_path, ImportRules(load_table("debian.toml")))
    content = SimpleNamespace(read=bytes)
    with pytest.raises(InputError) as caught:
        tree.add_file(
            Destination("hip", "dev", "bin/hipvars.pm"), Origin("usr/bin/hipvars.pm", "a.deb"), content, 0o644
        )
    assert str(caught.value) == (
        "usr/bin/hipvars.pm of a.deb: has more than 16 MiB, and the table changes texts in it; "
        "expected a smaller file, as scripts and CMake files are. "
        "Look at the file, and take its edits out of the table (--table)."
    )
