"""Tests of `rocwheel.core.names`."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.core.names import (
    LONGEST_PATH,
    find_case_clashes,
    fold_case,
    is_file_name,
    path_length,
    paths_given,
    room_above,
    some_paths_given,
    windows_name_fault,
    windows_path_fault,
)

if TYPE_CHECKING:
    from rocwheel.core.names import GivenPaths


@pytest.mark.parametrize("given", ["a/b", Path("a/b"), ["a/b"], (Path("a/b"),), iter(["a/b"])])
def test_a_single_path_or_an_iterable_of_paths_is_accepted(given: GivenPaths) -> None:
    assert paths_given(given) == (Path("a/b"),)


def test_several_paths_keep_their_order() -> None:
    assert paths_given(["b", Path("a")]) == (Path("b"), Path("a"))


def test_an_empty_list_of_required_paths_is_refused() -> None:
    with pytest.raises(InputError, match=r"^paths: is empty; expected at least one path$"):
        some_paths_given("paths", iter(()))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec="utf-8"), max_size=300))
@example("é" * 128)
@example("x" * 255)
def test_every_valid_file_name_can_be_created(tmp_path: Path, text: str) -> None:
    if is_file_name(text):
        (tmp_path / text).touch()
        assert [path.name for path in tmp_path.iterdir()] == [text]
        (tmp_path / text).unlink()


WINE_TABLE = Path("/usr/share/wine/nls/l_intl.nls")


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("gfx90a:xnack+.kpack", "has a colon, which Windows doesn't allow in names"),
        ("what?.txt", "has a question mark, which Windows doesn't allow in names"),
        ("a*b", "has an asterisk, which Windows doesn't allow in names"),
        ("a\\b", "has a backslash, which Windows doesn't allow in names"),
        ("a\tb", "has a control character, which Windows doesn't allow in names"),
        ("notes.", "ends with a dot, which Windows removes from the name"),
        ("notes ", "ends with a space, which Windows removes from the name"),
        ("CON", "is the name of the device CON on Windows"),
        ("nul.txt", "is the name of the device NUL on Windows"),
        ("aux.tar.gz", "is the name of the device AUX on Windows"),
        ("Com1", "is the name of the device COM1 on Windows"),
        ("LPT².h", "is the name of the device LPT² on Windows"),
        ("n" * 256, "has 256 characters, but Windows allows at most 255 in a name"),
        ("caf\udce9.txt", "isn't UTF-8, but names on Windows are Unicode"),
        ("", "is empty"),
    ],
)
def test_windows_name_fault_describes_names_that_windows_refuses_or_changes(name: str, fault: str) -> None:
    assert windows_name_fault(name) == fault


@pytest.mark.parametrize(
    "name",
    ["amdhip64_7.dll", ".kpack", "gfx90a+xnack.kpack", "console", "nul_", "COM0", "COM10", "a b", "ß.h", "n" * 255],
)
def test_valid_windows_names_have_no_fault(name: str) -> None:
    assert windows_name_fault(name) == ""


def test_the_fault_of_a_path_is_that_of_its_first_bad_name() -> None:
    assert windows_path_fault("bin/aux/a:b") == "'aux' is the name of the device AUX on Windows"
    assert windows_path_fault("../../bin/tool.exe") == ""


def test_path_length_counts_utf16_units() -> None:
    assert (path_length("a/b"), path_length("ü"), path_length("😀")) == (3, 1, 2)


def test_room_above_is_the_length_left_for_parent_folders() -> None:
    # The file of ROCm/TheRock#7537: 142 characters below site-packages leave 116 for that, and one for the slash.
    assert room_above("x" * 142) == 116
    assert room_above("_rocm_sdk_libraries/bin/rocblas/library", 174) == 134
    assert room_above("x" * 300) == -42


@given(st.text(min_size=1, max_size=300))
def test_a_path_with_its_room_above_has_the_maximum_length(path: str) -> None:
    if (room := room_above(path)) > 0:
        assert path_length("C" * room + "\\" + path) == LONGEST_PATH


def test_paths_that_differ_only_in_case_clash() -> None:
    assert [*find_case_clashes(["bin/Tool.dll", "bin/tool.dll", "bin/other.dll", "bin/tool.dll"])] == [
        ("bin/Tool.dll", "bin/tool.dll")
    ]


def test_a_file_clashes_with_a_folder_whose_name_differs_only_in_case() -> None:
    assert [*find_case_clashes(["share/Doc", "share/doc/readme"])] == [("share/Doc", "share/doc")]


def test_a_folder_can_be_spelled_in_different_cases() -> None:
    assert [*find_case_clashes(["share/Doc/a", "share/doc/b"])] == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("a", "A", id="ASCII"),
        pytest.param("éa", "ÉA", id="Latin"),
        pytest.param("ÿ", "Ÿ", id="far apart"),
        pytest.param("\N{GREEK SMALL LETTER SIGMA}", "\N{GREEK SMALL LETTER FINAL SIGMA}", id="both sigmas"),
        pytest.param("\u1f80", "\u1f88", id="alpha with a subscript iota"),
    ],
)
def test_upper_and_lower_case_letters_fold_together(one: str, other: str) -> None:
    assert fold_case(one) == fold_case(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("Straße", "STRASSE", id="sharp s"),
        pytest.param("\N{LATIN SMALL LETTER DOTLESS I}", "I", id="dotless i"),
        pytest.param("i", "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", id="dotted I"),
        pytest.param("\N{LATIN SMALL LETTER LONG S}", "S", id="long s"),
        pytest.param("\N{MICRO SIGN}", "\N{GREEK CAPITAL LETTER MU}", id="micro sign"),
        pytest.param("\u01c5", "\u01c4", id="title case"),
        pytest.param("\U00010428", "\U00010400", id="beyond 16 bits"),
    ],
)
def test_letters_that_ntfs_distinguishes_do_not_fold_together(one: str, other: str) -> None:
    assert fold_case(one) != fold_case(other)


@pytest.mark.skipif(not WINE_TABLE.exists(), reason="Wine's table of upper-case letters isn't installed")
def test_case_folding_matches_wine_except_for_the_final_sigma() -> None:
    # l_intl.nls: numbers of 16 bits, from the third on steps to a letter's upper case, by 8, 4 and 4 of its bits.
    table = memoryview(WINE_TABLE.read_bytes()).cast("H")[2:]
    # Later Pythons know more letters.
    known = {letter for letter in range(0x10000) if unicodedata.ucd_3_2_0.category(chr(letter)) not in {"Cn", "Cs"}}
    letters = [letter for letter in known if ord(fold_case(chr(letter))) in known]
    other = {
        chr(letter)
        for letter in letters
        for step in [table[table[table[letter >> 8] + (letter >> 4 & 15)] + (letter & 15)]]
        if fold_case(chr(letter)) != chr((letter + step) & 0xFFFF)
    }
    assert other == {"\N{GREEK SMALL LETTER FINAL SIGMA}"}
