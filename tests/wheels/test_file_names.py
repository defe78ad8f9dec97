"""Tests of `rocwheel.wheels.file_names`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.wheels.file_names import (
    is_wheel_file_name,
    name_and_version,
    split_label,
    split_wheel_file_name,
    wheel_platforms,
    with_label,
    without_label,
)


def test_platform_tags_are_read_from_the_wheel_name() -> None:
    platforms = wheel_platforms("a-1-py3-none-manylinux2014_x86_64.linux_x86_64.whl")
    assert [tag.text for tag in platforms] == ["manylinux2014_x86_64", "linux_x86_64"]


def test_a_build_number_is_not_a_tag() -> None:
    assert split_wheel_file_name("a-1.0-7-cp310.cp311-abi3-any.whl").tags == ("cp310.cp311", "abi3", "any")


def test_the_variant_label_is_not_a_tag() -> None:
    name = split_wheel_file_name("a-1.0-7-cp310.cp311-abi3-any-gfx942.whl")
    assert (name.tags, name.label) == (("cp310.cp311", "abi3", "any"), "gfx942")


@pytest.mark.parametrize(
    "name",
    [
        "a-1-py3-none-any.whl",
        "a-1-7-cp312-cp312-linux_x86_64.linux_i686.whl",
        "a-1-py3-none-any-gfx942.whl",
        "a-1-7-py3-none-any-null.whl",
    ],
)
def test_a_split_name_is_reassembled_unchanged(name: str) -> None:
    assert split_wheel_file_name(name).text == name


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("a-1-py3-none-any.whl", True),
        ("a-1-7-py3-none-any.whl", True),
        ("a-py3-none-any.whl", False),
        ("a-1-7-x-py3-none-any.whl", False),
        ("a-1-py3-none-any-gfx942.whl", True),
        ("a-1-7-py3-none-any-gfx942.whl", True),
    ],
)
def test_a_wheel_name_has_five_or_six_parts(name: str, fits: bool) -> None:
    assert is_wheel_file_name(name) is fits


@pytest.mark.parametrize("text", ["A.b-1.0+x-py3-none-any.whl", "A.b-1.0+x.dist-info"])
def test_wheel_and_metadata_folder_names_begin_with_name_and_version(text: str) -> None:
    assert name_and_version(text) == ("A.b", "1.0+x")


@pytest.mark.parametrize(
    ("name", "plain", "label"),
    [
        ("a-1.0-py3-none-any-gfx942.whl", "a-1.0-py3-none-any.whl", "gfx942"),
        ("a-1.0-py3-none-any-null.whl", "a-1.0-py3-none-any.whl", "null"),
        ("a-1.0-7b-cp312-cp312-linux_x86_64-rocm7.2.whl", "a-1.0-7b-cp312-cp312-linux_x86_64.whl", "rocm7.2"),
        ("a-1.0-py2.py3-none-any-x.whl", "a-1.0-py2.py3-none-any.whl", "x"),
    ],
)
def test_the_last_part_of_a_variant_name_is_its_label(name: str, plain: str, label: str) -> None:
    assert split_label(name) == (plain, label)


@pytest.mark.parametrize(
    "name",
    [
        "a-1.0-py3-none-any.whl",
        "a-1.0-7-py3-none-any.whl",
        "a-1.0-7_1-cp312-cp312-linux_x86_64.whl",
        "a-1.0-py3-none-any-GFX942.whl",
        "a-1.0-py3-none-any-gfx90a:xnack+.whl",
        "a-1.0-7-x-py3-none-any.whl",
        "a-1.0-x-py3-none-any.whl",
        "a-1.0-py3-none-any-gfx942-gfx1100.whl",
        "a.whl",
        "",
    ],
)
def test_a_name_without_a_label_is_unchanged(name: str) -> None:
    assert split_label(name) == (name, "")


@given(st.from_regex(r"[0-9a-z_.]{1,20}", fullmatch=True))
def test_a_label_added_to_a_name_is_found_again(label: str) -> None:
    name = with_label("a-1.0-py3-none-any.whl", label)
    assert (split_label(name)[1], without_label(name)) == (label, "a-1.0-py3-none-any.whl")


@given(st.text())
def test_any_text_can_be_split(text: str) -> None:
    plain, label = split_label(text)
    assert with_label(plain, label) == text or text == plain
