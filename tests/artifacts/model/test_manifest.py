"""The manifest of one artifact."""

from __future__ import annotations

import pytest

from rocwheel.artifacts.model.manifest import format_manifest, parse_manifest
from rocwheel.core.errors import InputError, ProblemsError


def test_each_line_is_a_stage_folder() -> None:
    data = b"math-libs/BLAS/rocBLAS/stage\nmath-libs/BLAS/hipBLAS/stage\n"
    assert parse_manifest(data, "m") == ("math-libs/BLAS/rocBLAS/stage", "math-libs/BLAS/hipBLAS/stage")


@pytest.mark.parametrize(
    "data",
    [b"a/stage", b"\n\na/stage\n\n", b"a/stage\r\n", b"./a/stage/\n", b"a/stage\na/stage\n"],
    ids=["no final newline", "blank lines", "CRLF", "dot and slash", "repeated line"],
)
def test_lines_are_read_leniently(data: bytes) -> None:
    assert parse_manifest(data, "m") == ("a/stage",)


def test_a_line_separator_of_unicode_is_part_of_a_name() -> None:
    assert parse_manifest("a\u2028b/stage\n".encode(), "m") == ("a\u2028b/stage",)


@pytest.mark.parametrize("data", [b"", b"\n", b"  \n"])
def test_the_manifest_of_an_empty_artifact_lists_nothing(data: bytes) -> None:
    assert parse_manifest(data, "m") == ()


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("/opt/rocm", "'/opt/rocm' is absolute"),
        ("../other/stage", "'../other/stage' climbs with '..'"),
        ("a/../../b", "'a/../../b' climbs with '..'"),
        ("a//stage", "'a//stage' is not in its shortest form"),
        (".", "'.' is not in its shortest form"),
        ("/", "'/' is absolute"),
        ("./", "'' is empty"),
        (" /", "' ' is blank"),
        ("a\0b", "'a\\x00b' holds a NUL character"),
    ],
)
def test_a_line_that_is_not_a_path_inside_is_a_problem(line: str, fault: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        parse_manifest(f"{line}\n".encode(), "x/artifact_manifest.txt")
    assert str(caught.value.problems[0]) == (
        f"x/artifact_manifest.txt: the stage folder {fault}; expected a relative path inside the artifact"
    )


def test_every_bad_line_is_reported() -> None:
    with pytest.raises(ProblemsError) as caught:
        parse_manifest(b"/a\nfine\n../b\n", "m")
    assert len(caught.value.problems) == 2


def test_bytes_that_are_not_text_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        parse_manifest(b"a/\xff\n", "m")
    assert str(caught.value) == "m: is not valid UTF-8 text (byte 2); expected one stage folder per line"


def test_a_manifest_is_written_as_the_reference_writes_it() -> None:
    assert format_manifest(("a/stage", "b/stage")) == b"a/stage\nb/stage\n"
