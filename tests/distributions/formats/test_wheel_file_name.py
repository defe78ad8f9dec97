"""Names of wheels and of metadata folders, taken apart."""

from __future__ import annotations

import pytest

from rocwheel.distributions.formats.wheel_file_name import (
    is_wheel_file_name,
    name_and_version,
    split_wheel_file_name,
    wheel_platforms,
)


def test_the_platform_tags_of_a_wheel_are_read_from_its_name() -> None:
    platforms = wheel_platforms("a-1-py3-none-manylinux2014_x86_64.linux_x86_64.whl")
    assert [tag.text for tag in platforms] == ["manylinux2014_x86_64", "linux_x86_64"]


def test_a_build_number_is_not_a_tag() -> None:
    assert split_wheel_file_name("a-1.0-7-cp310.cp311-abi3-any.whl").tags == ("cp310.cp311", "abi3", "any")


def test_the_label_of_a_variant_is_not_a_tag() -> None:
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
def test_a_name_is_put_together_again_as_it_was(name: str) -> None:
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
def test_a_wheel_is_named_by_five_parts_or_six(name: str, fits: bool) -> None:
    assert is_wheel_file_name(name) is fits


@pytest.mark.parametrize("text", ["A.b-1.0+x-py3-none-any.whl", "A.b-1.0+x.dist-info"])
def test_wheels_and_metadata_folders_begin_with_name_and_version(text: str) -> None:
    assert name_and_version(text) == ("A.b", "1.0+x")
