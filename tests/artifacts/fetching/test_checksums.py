"""Tests of files of checksums."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.artifacts.fetching.checksums import match_checksums, parse_checksums
from rocwheel.core.errors import InputError

A, B = "a" * 64, "b" * 64


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{A}  x.tar.zst\n{B}  y.tar.zst\n", {"x.tar.zst": A, "y.tar.zst": B}),
        (f"{A} *x.tar.zst\r\n\r\n# comment\n", {"x.tar.zst": A}),
        (f"{A.upper()}  ./out/x.tar.zst\n", {"out/x.tar.zst": A}),
        (f"SHA256 (x.tar.zst) = {A}\n", {"x.tar.zst": A}),
        (f"\\{A}  a\\nb.tar.zst\n", {"a\nb.tar.zst": A}),
        (f"{A}  x\u2028y.tar.xz\n", {"x\u2028y.tar.xz": A}),
        (A, {"only": A}),
        ("", {}),
        (f"{A}  x\n{A}  y/x\n", {"x": A, "y/x": A}),
    ],
    ids=["list", "binary", "folder", "bsd", "escaped", "line separator", "bare", "empty", "repeated"],
)
def test_every_spelling_of_sha256sum_is_read(text: str, expected: dict[str, str]) -> None:
    assert parse_checksums(text.encode(), "SUMS", "only") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{A}  x\n<html>\n", "SUMS: line 2 is '<html>'; expected a SHA-256 in hexadecimal and the name of a file"),
        (f"{A[:-1]}  x\n", "SUMS: line 1 is "),
        (A, "SUMS: line 1 is "),
        (f"{A}  x\n{B}  x\n", "SUMS: line 2 has another checksum of 'x' than a line before"),
        (f"{A}  y/x\n{B}  ./y/x\n", "SUMS: line 2 has another checksum of 'y/x' than a line before"),
    ],
    ids=["page", "short", "nameless", "contradiction", "contradiction-in-folder"],
)
def test_what_is_no_list_of_checksums_is_an_error(text: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        parse_checksums(text.encode(), "SUMS")


@given(st.binary(max_size=400), st.sampled_from(["", "x"]))
def test_any_bytes_are_read_or_refused(data: bytes, only: str) -> None:
    try:
        found = parse_checksums(data, "SUMS", only)
    except InputError:
        return
    assert all(re.fullmatch("[0-9a-f]{64}", digest) and name for name, digest in found.items())


@pytest.mark.parametrize(
    ("listed", "names", "expected"),
    [
        ({"f/x": A, "g/x": B}, ["f/x", "g/x"], {"f/x": A, "g/x": B}),
        ({"out/f/x": A, "out/g/x": B}, ["f/x", "g/x"], {"f/x": A, "g/x": B}),
        ({"out/x": A}, ["x"], {"x": A}),
        ({"x": A}, ["f/x"], {"f/x": A}),
        ({"x": A}, ["f/x", "g/x"], {}),
        ({"f/x": A, "g/x": B}, ["x"], {}),
        ({"f/x": A, "g/x": A}, ["x"], {"x": A}),
        ({"x": A, "f/x": B}, ["x"], {"x": A}),
        ({"f/x": A}, ["g/x"], {}),
    ],
)
def test_a_full_name_counts_first_and_a_shorter_one_where_it_is_clear(
    listed: dict[str, str], names: list[str], expected: dict[str, str]
) -> None:
    assert match_checksums(listed, names) == expected
