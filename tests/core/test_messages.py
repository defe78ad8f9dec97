"""Tests of `rocwheel.core.messages`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import read_error
from rocwheel.core.messages import (
    absent_remedy,
    count,
    find_below,
    first_of,
    looks_like_host,
    printable,
    printable_json,
    quoted,
    shortened,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_count_uses_the_singular_only_for_one() -> None:
    assert [count(number, "change") for number in (0, 1, 2)] == ["0 changes", "1 change", "2 changes"]


def test_an_irregular_plural_can_be_given() -> None:
    assert [count(number, "entry", "entries") for number in (1, 2)] == ["1 entry", "2 entries"]


@pytest.mark.parametrize(
    ("texts", "line"),
    [([], ""), (["a"], "a"), (["a", "b", "c"], "a, b, c"), (["a", "b", "c", "d", "e"], "a, b, c and 2 more")],
    ids=["none", "one", "all", "too many"],
)
def test_the_first_three_texts_are_listed_and_the_rest_are_counted(texts: list[str], line: str) -> None:
    assert first_of(texts) == line


def test_the_number_of_listed_texts_and_the_suffix_can_be_chosen() -> None:
    assert first_of(["/a", "/b", "/c"], 1, more=" or {} more folders") == "/a or 2 more folders"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a'b\n", '"a\'b\\n"'),
        ("x" * 200, f"'{'x' * 200}'"),
        ("x" * 201, f"'{'x' * 200}'... (201 characters)"),
        (b"x" * 10_000, f"b'{'x' * 200}'... (10000 bytes)"),
    ],
)
def test_a_long_value_is_truncated_with_its_length(value: str | bytes, text: str) -> None:
    assert quoted(value) == text


def test_a_long_message_is_truncated_with_its_length() -> None:
    assert shortened("x" * 1000) == "x" * 1000
    assert shortened("x" * 1001) == f"{'x' * 1000}... (1001 characters)"


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("pypi.example.org/simple", True),
        ("localhost:8000/simple", True),
        ("10.0.0.1:8000", True),
        ("example.com", True),
        ("./pypi.example.org/simple", False),
        ("/example.org", False),
        ("dist", False),
        ("lib/librocblas.so.5", False),
        ("rocm-7.0.0/lib", False),
        ("https://example.org/simple", False),
    ],
)
def test_a_path_that_begins_with_a_host_name_may_be_a_url(place: str, expected: bool) -> None:
    assert looks_like_host(place) is expected


def test_an_existing_folder_is_not_a_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "example.org").mkdir()
    assert not looks_like_host("example.org/simple")


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("dist/*.whl", "No file matches this pattern."),
        ("dist/[a-z]", "No file matches this pattern."),
        ("example.org/dist", "A URL begins with https:// or s3://."),
        (
            "gfx906",
            "This is a GPU target. See --help for the option that accepts it. Separate several targets with ';'.",
        ),
        (
            "gfx90a:xnack+",
            "This is a GPU target. See --help for the option that accepts it. Separate several targets with ';'.",
        ),
        (
            "gfx1030=gfx1031",
            "This is a GPU target. See --help for the option that accepts it. Separate several targets with ';'.",
        ),
        ("gfx906.so", ""),
        ("gfx906_lib", ""),
        ("dist", ""),
    ],
)
def test_the_remedy_for_a_missing_path_suggests_a_pattern_url_or_gpu(place: str, expected: str) -> None:
    assert absent_remedy(place) == expected


def test_the_suggestion_replaces_the_usual_remedy_only_for_missing_paths() -> None:
    absent, forbidden = FileNotFoundError(2, "No such file or directory"), PermissionError(13, "Permission denied")
    assert read_error("*.so", absent).remedy == "No file matches this pattern."
    assert read_error("*.so", forbidden).remedy == "Check whether it exists and is readable."


def test_the_first_subfolder_with_a_wheel_is_found(tmp_path: Path) -> None:
    for name in ("a", "b/c", "dist", "more"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("one.whl", "b/c/two.whl", "dist/three.whl", "more/four.whl"):
        (tmp_path / name).touch()
    assert find_below(tmp_path, lambda path: path.suffix == ".whl") == tmp_path / "dist"
    assert find_below(tmp_path / "dist", lambda path: path.suffix == ".whl") is None
    assert find_below(tmp_path / "absent", lambda path: path.suffix == ".whl") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("::error::x", r"\x3a:error::x"),
        ("  ::x", r"  \x3a:x"),
        ("a\n::x", "a\n\\x3a:x"),
        ("std::string", "std::string"),
        ("lib ##[error]x", r"lib \x23#[error]x"),
        ("##vso[task.setvariable]", r"\x23#vso[task.setvariable]"),
        ("## 1 [x]", "## 1 [x]"),
    ],
)
def test_no_name_can_start_a_ci_service_command(text: str, expected: str) -> None:
    assert printable(text) == expected


def test_json_preserves_a_name_that_looks_like_a_ci_command() -> None:
    assert json.loads(printable_json('{"x": "##[error]y"}')) == {"x": "##[error]y"}
    assert printable_json('{"x": "##[error]y"}') == r'{"x": "\u0023#[error]y"}'
