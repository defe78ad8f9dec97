"""The check of the style of prose finds what it names, and nothing in code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.check_style import ROOT, Settings, default_files, find

if TYPE_CHECKING:
    from pathlib import Path


def _found(path: Path, text: str) -> list[tuple[int, str, str]]:
    path.write_text(text)
    return [(found.line, found.text, found.advice) for found in find(path)]


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("See whom it breaks.", "name the people"),
        ("This is for Linux alone.", "write 'only' before the word"),
        ("Of a folder, each file counts.", "put the subject first"),
        ("Wheels are made of artifacts.", "write 'from'"),
        ("The default: none.", "write 'empty', 'nothing', or 'no X'"),
        ("Take the second, else the first.", "write 'otherwise'"),
        ("It is a copy of what is there.", "name the thing"),
    ],
)
def test_a_bad_phrase_is_found_and_reported_with_advice(tmp_path: Path, text: str, advice: str) -> None:
    found = _found(tmp_path / "page.md", f"# Title\n\n{text}\n")
    assert [(line, says) for line, _, says in found][:1] == [(3, advice)]


def test_a_sentence_may_have_25_words_but_not_26(tmp_path: Path) -> None:
    most = " ".join(["Word"] * 25)
    assert _found(tmp_path / "good.md", f"{most}.\n\nShort. {most}.\n") == []
    assert _found(tmp_path / "bad.md", f"Short. {most} more.\n") == [
        (1, f"{most} more."[:80], "has 26 words; write at most 25")
    ]


def test_list_items_and_table_cells_are_separate_sentences(tmp_path: Path) -> None:
    half = " ".join(["word"] * 14)
    assert _found(tmp_path / "page.md", f"* {half}\n* {half}\n\n| {half} | {half} |\n|---|---|\n") == []


def test_code_and_links_are_not_checked_as_prose(tmp_path: Path) -> None:
    page = "`alone` and [a page](alone.md)\n\n```sh\nbuild alone\n```\n\n<!-- not run: alone -->\n"
    assert _found(tmp_path / "page.md", page) == []


def test_strings_and_docstrings_in_a_module_are_checked_but_not_its_code(tmp_path: Path) -> None:
    module = '"""Say whom to ask."""\n\nwhom = alone = 1\nprint("this one alone")  # alone\n'
    assert [line for line, *_ in _found(tmp_path / "module.py", module)] == [1, 4]


def test_unfinished_files_and_the_sample_are_skipped() -> None:
    settings = Settings(unfinished=["docs/*", "docs/*/*", "src/rocwheel/build/*.py"])
    names = {str(path.relative_to(ROOT)) for path in default_files(settings, with_unfinished=False)}
    assert {"README.md", "src/rocwheel/api.py"} <= names
    assert not {name for name in names if name.startswith(("docs/", "src/rocwheel/build/re", "src/rocwheel/sample"))}
