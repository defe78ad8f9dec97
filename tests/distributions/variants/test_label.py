"""Labels of wheel variants in file names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.distributions.variants.label import split_label, with_label, without_label


@pytest.mark.parametrize(
    ("name", "plain", "label"),
    [
        ("a-1.0-py3-none-any-gfx942.whl", "a-1.0-py3-none-any.whl", "gfx942"),
        ("a-1.0-py3-none-any-null.whl", "a-1.0-py3-none-any.whl", "null"),
        ("a-1.0-7b-cp312-cp312-linux_x86_64-rocm7.2.whl", "a-1.0-7b-cp312-cp312-linux_x86_64.whl", "rocm7.2"),
        ("a-1.0-py2.py3-none-any-x.whl", "a-1.0-py2.py3-none-any.whl", "x"),
    ],
)
def test_the_last_part_of_a_name_is_its_label(name: str, plain: str, label: str) -> None:
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
def test_a_name_without_a_label_stays_as_it_is(name: str) -> None:
    assert split_label(name) == (name, "")


@given(st.from_regex(r"[0-9a-z_.]{1,20}", fullmatch=True))
def test_a_label_is_found_again_in_a_name_that_got_it(label: str) -> None:
    name = with_label("a-1.0-py3-none-any.whl", label)
    assert (split_label(name)[1], without_label(name)) == (label, "a-1.0-py3-none-any.whl")


@given(st.text())
def test_any_text_is_split(text: str) -> None:
    plain, label = split_label(text)
    assert with_label(plain, label) == text or text == plain
