"""Options of the reference's packager, in the words of today."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.cli.reference_options import name_as_given, translate_reference_options
from rocwheel.core.errors import InputError


@pytest.mark.parametrize(
    ("old", "now", "note"),
    [
        ("--linux-amdgpu-families gfx94X-dcgpu;gfx906", "--targets gfx94X-dcgpu;gfx906", "is now --targets"),
        ("--linux-amdgpu-families=gfx906", "--targets gfx906", "is now --targets"),
        (
            "--windows-amdgpu-families gfx906",
            "",
            ": left out: Windows has a build of its own, and `rocwheel selector merge` makes one rocm of both",
        ),
        ("--devel-tarball-compression", "--devel-compression xz", "is now --devel-compression xz"),
        ("--no-devel-tarball-compression", "--devel-compression none", "is now --devel-compression none"),
        ("--wheel-compression", "", ": the default"),
        ("--no-wheel-compression", "--level 0", "is now --level 0"),
        ("--build-packages", "", ": the default"),
        ("--no-build-packages", "--dry-run", "is now --dry-run"),
    ],
)
def test_an_old_option_becomes_the_new_one_with_a_note(old: str, now: str, note: str) -> None:
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
def test_other_words_stay_as_they_are(words: str) -> None:
    assert translate_reference_options(words.split()) == (words.split(), [])


def test_an_old_option_beside_its_new_one_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        translate_reference_options(["build", "--targets=gfx906", "--linux-amdgpu-families", "gfx942"])
    assert str(caught.value) == ("--linux-amdgpu-families: is now --targets, which is given, too. Give one of them.")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (
            "--linux-amdgpu-families --artifact-dir s",
            "--linux-amdgpu-families: has no value: --artifact-dir follows it",
        ),
        ("--windows-amdgpu-families", "--windows-amdgpu-families: has no value"),
        ("--linux-amdgpu-families -- x", "--linux-amdgpu-families: has no value"),
    ],
)
def test_an_old_option_without_its_value_is_refused_by_its_name(words: str, found: str) -> None:
    with pytest.raises(InputError) as caught:
        translate_reference_options(["build", *words.split()])
    assert str(caught.value) == f"{found}; expected GPU targets or families, such as gfx94X-dcgpu"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("build --linux-amdgpu-families gfx906", "--linux-amdgpu-families"),
        ("build --linux-amdgpu-families=gfx906", "--linux-amdgpu-families"),
        ("build --targets gfx906 -- --linux-amdgpu-families", "--targets"),
    ],
)
def test_an_option_keeps_the_name_by_which_it_is_given(words: str, name: str) -> None:
    assert name_as_given("--targets", words.split()) == name


WORDS = ["--linux-amdgpu-families", "--linux-amdgpu-families=a", "--no-wheel-compression", "--no-build-packages", "--"]
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
def test_words_of_today_need_no_further_change(options: list[str]) -> None:
    try:
        words, _ = translate_reference_options(["build", *options])
    except InputError:
        return
    assert translate_reference_options(words) == (words, [])
