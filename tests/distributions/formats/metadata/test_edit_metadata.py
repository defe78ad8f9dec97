"""Edits of METADATA and WHEEL that leave the rest as it is."""

from __future__ import annotations

import pytest

from rocwheel.distributions.formats.metadata.edit_metadata import (
    add_requirements,
    drop_values,
    set_values,
    set_version,
    set_wheel_fields,
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            b"Name: a\nRequires-Dist: b\nProvides-Extra: x\n\nText\n",
            b"Name: a\nRequires-Dist: b\nRequires-Dist: c==1.*\nProvides-Extra: x\n\nText\n",
        ),
        (
            b"Name: a\n\nRequires-Dist: not a header\n",
            b"Name: a\nRequires-Dist: c==1.*\n\nRequires-Dist: not a header\n",
        ),
        (b"Name: a\n", b"Name: a\nRequires-Dist: c==1.*\n"),
        (b"Name: a", b"Name: a\nRequires-Dist: c==1.*\n"),
        (b"Name: a\r\n\r\nText\r\n", b"Name: a\r\nRequires-Dist: c==1.*\r\n\r\nText\r\n"),
        (
            b"Requires-Dist: b;\n  python_version > '3'\nName: a\n\n",
            b"Requires-Dist: b;\n  python_version > '3'\nRequires-Dist: c==1.*\nName: a\n\n",
        ),
    ],
    ids=["behind the last", "description like a header", "no description", "no end", "line ends", "folded"],
)
def test_requirements_are_added_where_they_belong(before: bytes, after: bytes) -> None:
    assert add_requirements(before, ["c==1.*"]) == after


def test_nothing_changes_without_requirements() -> None:
    assert add_requirements(b"Name: a\n\nText", []) == b"Name: a\n\nText"
    assert add_requirements(b"Name: a", []) == b"Name: a"


WHEEL = b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py2-none-any\nTag: py3-none-any\nBuild: 1\n"


def test_tags_are_replaced_where_the_first_stood() -> None:
    assert set_wheel_fields(WHEEL, tags=["py3-none-linux_x86_64"]) == (
        b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-linux_x86_64\nBuild: 1\n"
    )


def test_a_wheel_can_be_made_no_pure_one() -> None:
    assert b"Root-Is-Purelib: false\nTag: py2-none-any\n" in set_wheel_fields(WHEEL, platlib=True)


def test_a_wheel_without_tags_gets_them_at_the_end() -> None:
    assert set_wheel_fields(b"Wheel-Version: 1.0\n", tags=["a-b-c"]) == b"Wheel-Version: 1.0\nTag: a-b-c\n"


def test_a_tag_on_a_last_line_without_an_end_is_replaced_too() -> None:
    assert set_wheel_fields(b"Tag: a-b-c\nTag: d-e-f", tags=["x-y-z"]) == b"Tag: x-y-z\n"


def test_a_last_line_without_an_end_is_edited_as_others_are() -> None:
    assert set_values(b"Name: a", "Requires-Dist", ["b"]) == b"Name: a\nRequires-Dist: b\n"
    assert set_values(b"Name: a\nRequires-Dist: c", "Requires-Dist", ["b"]) == b"Name: a\nRequires-Dist: b\n"
    assert drop_values(b"Name: a\nRequires-Dist: c", "Requires-Dist", lambda _: True) == b"Name: a\n"


def test_lines_that_end_in_cr_and_lf_keep_doing_so() -> None:
    assert set_values(b"Name: a\r\n", "Requires-Dist", ["b"]) == b"Name: a\r\nRequires-Dist: b\r\n"
    assert set_values(b"Requires-Dist: c\r\nName: a", "Name", ["b"]) == b"Requires-Dist: c\r\nName: b\r\n"
    assert set_wheel_fields(b"Tag: a-b-c\r\nBuild: 1\r\n", tags=["x-y-z"]) == b"Tag: x-y-z\r\nBuild: 1\r\n"
    assert set_wheel_fields(b"Build: 1\r\n", tags=["x-y-z"]) == b"Build: 1\r\nTag: x-y-z\r\n"


def test_a_folded_version_is_replaced_as_a_whole() -> None:
    assert set_version(b"Name: a\nVersion:\n 1.0\nSummary: s\n", "2.0") == b"Name: a\nVersion:2.0\nSummary: s\n"
