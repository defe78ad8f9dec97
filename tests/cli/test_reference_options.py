"""Options of the reference's packager, in the words of today."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.cli.reference_options import translate_reference_options
from rocwheel.core.errors import InputError


@pytest.mark.parametrize(
    ("old", "now", "note"),
    [
        ("--devel-tarball-compression", "--devel-compression xz", "is now --devel-compression xz"),
        ("--no-devel-tarball-compression", "--devel-compression none", "is now --devel-compression none"),
        ("--wheel-compression", "", ": the default"),
        ("--no-wheel-compression", "--level 0", "is now --level 0"),
        ("--build-packages", "", ": the default"),
    ],
)
def test_an_old_option_is_replaced_with_a_note(old: str, now: str, note: str) -> None:
    words, notes = translate_reference_options(["build", *old.split()])
    assert words == ["build", *now.split()]
    option = old.partition(" ")[0].partition("=")[0]
    assert [text.removeprefix(option).strip() for text in notes] == [note.strip()]


@pytest.mark.parametrize(
    "words",
    [
        "build --artifact-dir a --no-wheel-compression=yes",
        "build --artifact-dir a --dest-dir d",
        "build -- --no-wheel-compression --no-build-packages",
        "index --no-wheel-compression",
        "",
    ],
)
def test_other_arguments_are_left_unchanged(words: str) -> None:
    assert translate_reference_options(words.split()) == (words.split(), [])


def test_an_old_option_together_with_its_replacement_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        translate_reference_options(["build", "--level=6", "--no-wheel-compression"])
    assert (
        str(caught.value)
        == "--no-wheel-compression: is now --level, which is also on the command line. Remove one of them."
    )


WORDS = ["--linux-amdgpu-families", "--linux-amdgpu-families=a", "--no-wheel-compression", "--build-packages", "--"]
WORDS += [
    "--targets",
    "--targets=b",
    "--devel-tarball-compression",
    "--artifact-dir",
    "-d",
    "-jx",
    "-j",
    "value",
    "-q",
    "",
]


@given(st.lists(st.sampled_from(WORDS)))
def test_translated_options_need_no_further_translation(options: list[str]) -> None:
    try:
        words, _ = translate_reference_options(["build", *options])
    except InputError:
        return
    assert translate_reference_options(words) == (words, [])
