"""Tests of `rocwheel.artifacts.artifact`."""

from __future__ import annotations

import os
import posixpath
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.artifacts.artifact import (
    ArtifactName,
    ancestors,
    format_stages,
    link_fault,
    looks_like_artifact,
    parse_stages,
    path_fault,
)
from rocwheel.core.errors import InputError, ProblemsError


def test_an_artifact_name_has_three_fields_separated_by_underscores() -> None:
    assert ArtifactName.parse("amd-llvm_run_generic") == ArtifactName("amd-llvm", "run", "generic")


@pytest.mark.parametrize("text", ["blas_lib_gfx90a:xnack+", "blas_lib_gfx94X-dcgpu", "host-suite-sparse_dev_generic"])
def test_a_parsed_name_keeps_its_spelling(text: str) -> None:
    assert str(ArtifactName.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    ["blas_lib", "blas_lib_gfx_942", "_lib_generic", "blas__generic", "blas_lib_", "", "a b_lib_generic", "a/b_lib_x",
     "x'_lib_generic", ".blas_lib_generic"],
)  # fmt: skip
def test_text_that_is_not_an_artifact_name_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        ArtifactName.parse(text)
    assert str(caught.value) == (
        f"{text}: is not an artifact name; expected {{name}}_{{component}}_{{target}} "
        "with letters, digits, and '.+:~-', "
        "such as blas_lib_gfx942"
    )


def test_the_error_about_a_name_with_a_newline_is_one_line() -> None:
    with pytest.raises(InputError) as caught:
        ArtifactName.parse("blas_lib_generic\n")
    assert str(caught.value).startswith("blas_lib_generic\\n: is not an artifact name; expected ")


def test_the_error_names_the_file_with_the_bad_name() -> None:
    with pytest.raises(InputError, match=re.escape("artifacts/blas_lib.tar.xz: is not an artifact name")):
        ArtifactName.parse("blas_lib", "artifacts/blas_lib.tar.xz")


@pytest.mark.parametrize(
    ("target", "base"),
    [("generic", "generic"), ("gfx942", "gfx942"), ("gfx90a:xnack+", "gfx90a"), ("gfx90a:sramecc+:xnack-", "gfx90a")],
)
def test_the_base_target_has_no_features(target: str, base: str) -> None:
    assert ArtifactName("blas", "lib", target).base_target == base


def test_names_are_sorted_by_name_then_component_then_target() -> None:
    texts = ["b_lib_gfx900", "a_run_generic", "b_dev_gfx900", "b_lib_gfx1030", "a_lib_generic"]
    assert [str(name) for name in sorted(map(ArtifactName.parse, texts))] == [
        "a_lib_generic", "a_run_generic", "b_dev_gfx900", "b_lib_gfx1030", "b_lib_gfx900",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "looks"), [("a_b_c", True), ("a b_ _c'", True), ("a_b", False), ("a_b_c_d", False), ("a__c", False)]
)
def test_names_that_the_reference_accepts_look_like_artifact_names(text: str, looks: bool) -> None:
    assert looks_like_artifact(text) is looks


paths = st.lists(st.sampled_from(["a", "b", "", ".", ".."]), max_size=5).map("/".join)
good_paths = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=4).map("/".join)


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("lib/libx.so.1", None),
        (".info/version", None),
        ("a..b/...", None),
        ("", "is empty"),
        ("/etc/passwd", "is absolute"),
        ("..", "contains '..'"),
        ("lib/../../x", "contains '..'"),
        ("lib//x", "is not normalized"),
        ("lib/./x", "is not normalized"),
        ("lib/", "is not normalized"),
        ("lib/a\0", "contains a NUL character"),
        ("lib/\udcff", "is not valid UTF-8 text"),
    ],
)
def test_path_fault_describes_an_unsafe_path(path: str, fault: str | None) -> None:
    assert path_fault(path) == fault


@given(paths)
def test_a_path_without_a_fault_stays_inside_the_folder(path: str) -> None:
    if path_fault(path) is None:
        assert posixpath.normpath(f"/root/{path}") == f"/root/{path}" != "/root/"


@pytest.mark.parametrize(
    ("path", "link", "fault"),
    [
        ("lib/libx.so", "libx.so.1", None),
        ("bin/clang", "../lib/llvm/bin/clang", None),
        ("llvm", "lib/llvm", None),
        ("lib/here", "..", None),
        ("lib/x", "./y//z/", None),
        ("lib/x", "/usr/lib/x", "points to the absolute path '/usr/lib/x'"),
        ("lib/x", "../../x", "points out of the tree through '../../x'"),
        ("x", "..", "points out of the tree through '..'"),
        ("x", "a/../../a", "points out of the tree through 'a/../../a'"),
        ("x", "", "has an empty target"),
        ("x", "\udc80", "points to a name that is not valid UTF-8 text"),
        ("x", "a\nb/../../..", "points out of the tree through 'a\\nb/../../..'"),
    ],
)
def test_link_fault_describes_an_unsafe_link(path: str, link: str, fault: str | None) -> None:
    assert link_fault(path, link) == fault


@given(good_paths, paths)
def test_a_link_without_a_fault_stays_below_the_root(path: str, link: str) -> None:
    if link_fault(path, link) is None:
        target = posixpath.normpath(posixpath.join("/root", posixpath.dirname(path), link))
        assert os.path.commonpath(["/root", target]) == "/root"


def test_ancestors_are_the_parent_folders_outermost_first() -> None:
    assert ancestors("a/b/c") == ["a", "a/b"]
    assert ancestors("a") == []


def test_each_line_of_a_manifest_is_a_stage_folder() -> None:
    data = b"math-libs/BLAS/rocBLAS/stage\nmath-libs/BLAS/hipBLAS/stage\n"
    assert parse_stages(data, "m") == ("math-libs/BLAS/rocBLAS/stage", "math-libs/BLAS/hipBLAS/stage")


@pytest.mark.parametrize(
    "data",
    [b"a/stage", b"\n\na/stage\n\n", b"a/stage\r\n", b"./a/stage/\n", b"a/stage\na/stage\n"],
    ids=["no final newline", "blank lines", "CRLF", "dot and slash", "repeated line"],
)
def test_manifest_lines_are_parsed_leniently(data: bytes) -> None:
    assert parse_stages(data, "m") == ("a/stage",)


def test_a_unicode_line_separator_is_part_of_a_path() -> None:
    assert parse_stages("a\u2028b/stage\n".encode(), "m") == ("a\u2028b/stage",)


@pytest.mark.parametrize("data", [b"", b"\n", b"  \n"])
def test_the_manifest_of_an_empty_artifact_has_no_lines(data: bytes) -> None:
    assert parse_stages(data, "m") == ()


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("/opt/rocm", "'/opt/rocm' is absolute"),
        ("../other/stage", "'../other/stage' contains '..'"),
        ("a/../../b", "'a/../../b' contains '..'"),
        ("a//stage", "'a//stage' is not normalized"),
        (".", "'.' is not normalized"),
        ("/", "'/' is absolute"),
        ("./", "'' is empty"),
        (" /", "' ' is blank"),
        ("a\0b", "'a\\x00b' contains a NUL character"),
    ],
)
def test_a_line_that_is_not_a_path_inside_the_artifact_is_reported(line: str, fault: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        parse_stages(f"{line}\n".encode(), "x/artifact_manifest.txt")
    assert str(caught.value.problems[0]) == (
        f"x/artifact_manifest.txt: the path of the stage folder {fault}; expected a relative path inside the artifact"
    )


def test_every_bad_line_is_reported() -> None:
    with pytest.raises(ProblemsError) as caught:
        parse_stages(b"/a\nfine\n../b\n", "m")
    assert len(caught.value.problems) == 2


def test_a_manifest_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        parse_stages(b"a/\xff\n", "m")
    assert str(caught.value) == "m: is not valid UTF-8 text (byte 2); expected one stage folder per line"


def test_a_manifest_is_written_in_the_format_of_the_reference() -> None:
    assert format_stages(("a/stage", "b/stage")) == b"a/stage\nb/stage\n"
