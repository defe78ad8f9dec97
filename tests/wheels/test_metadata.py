"""Tests of `rocwheel.wheels.metadata`."""

from __future__ import annotations

from importlib.metadata import EntryPoints, PathDistribution
from typing import TYPE_CHECKING

import pytest
from packaging.metadata import ExceptionGroup, Metadata

import rocwheel
from rocwheel.wheels.metadata import (
    CoreMetadata,
    CoreMetadataError,
    add_requirements,
    drop_values,
    expression_fault,
    join_expressions,
    metadata_files,
    parse_core_metadata,
    render_entry_point_groups,
    render_metadata,
    render_wheel_file,
    set_values,
    set_version,
    set_wheel_fields,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_known_fields_are_read_and_unknown_fields_are_kept_separately() -> None:
    assert parse_core_metadata(b"Name: a\nColor: red\n") == ({"name": "a"}, {"color": ["red"]})


@pytest.mark.parametrize(
    "part",
    ['Content-Type: multipart/mixed; boundary="b{0}"\n\n--b{0}\n', "Content-Type: message/rfc822\n\n"],
    ids=["multipart", "message"],
)
@pytest.mark.parametrize("number", [1, 3000])
def test_messages_within_metadata_are_refused(part: str, number: int) -> None:
    text = "Name: a\n" + "".join(part.format(index) for index in range(number))
    with pytest.raises(CoreMetadataError, match=r"^it contains other messages$"):
        parse_core_metadata(text.encode())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"Name: a\n\n" + b"." * (2 << 20), "it has 2097161 bytes; expected at most 2097152"),
        (b"Provides-Extra: x\n" * 8193, "it has 8193 header lines; expected at most 8192"),
        (b"Provides-Extra: x\r" * 8193, "it has 8193 header lines; expected at most 8192"),
        (b"".join(b"x%d:\n" % number for number in range(257)), "it has 257 different fields; expected at most 256"),
    ],
    ids=["bytes", "lines", "lines that end with CR", "fields"],
)
def test_metadata_far_above_that_of_published_wheels_is_refused(text: bytes, found: str) -> None:
    with pytest.raises(CoreMetadataError, match=f"^{found}$"):
        parse_core_metadata(text)


def test_a_description_has_any_number_of_lines_that_look_like_fields() -> None:
    fields, _ = parse_core_metadata(b"Name: a\n\n" + b"x: y\n" * 10000)
    assert fields["description"] == "x: y\n" * 10000


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
def test_requirements_are_added_in_the_correct_place(before: bytes, after: bytes) -> None:
    assert add_requirements(before, ["c==1.*"]) == after


def test_nothing_changes_without_requirements() -> None:
    assert add_requirements(b"Name: a\n\nText", []) == b"Name: a\n\nText"
    assert add_requirements(b"Name: a", []) == b"Name: a"


WHEEL = b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py2-none-any\nTag: py3-none-any\nBuild: 1\n"


def test_tags_are_replaced_in_the_position_of_the_first_tag() -> None:
    assert set_wheel_fields(WHEEL, tags=["py3-none-linux_x86_64"]) == (
        b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-linux_x86_64\nBuild: 1\n"
    )


def test_a_wheel_can_be_marked_as_not_pure() -> None:
    assert b"Root-Is-Purelib: false\nTag: py2-none-any\n" in set_wheel_fields(WHEEL, platlib=True)


def test_tags_are_appended_to_a_wheel_without_tags() -> None:
    assert set_wheel_fields(b"Wheel-Version: 1.0\n", tags=["a-b-c"]) == b"Wheel-Version: 1.0\nTag: a-b-c\n"


def test_a_tag_on_an_unterminated_last_line_is_replaced_too() -> None:
    assert set_wheel_fields(b"Tag: a-b-c\nTag: d-e-f", tags=["x-y-z"]) == b"Tag: x-y-z\n"


def test_an_unterminated_last_line_is_edited_like_the_others() -> None:
    assert set_values(b"Name: a", "Requires-Dist", ["b"]) == b"Name: a\nRequires-Dist: b\n"
    assert set_values(b"Name: a\nRequires-Dist: c", "Requires-Dist", ["b"]) == b"Name: a\nRequires-Dist: b\n"
    assert drop_values(b"Name: a\nRequires-Dist: c", "Requires-Dist", lambda _: True) == b"Name: a\n"


def test_crlf_line_endings_are_kept() -> None:
    assert set_values(b"Name: a\r\n", "Requires-Dist", ["b"]) == b"Name: a\r\nRequires-Dist: b\r\n"
    assert set_values(b"Requires-Dist: c\r\nName: a", "Name", ["b"]) == b"Requires-Dist: c\r\nName: b\r\n"
    assert set_wheel_fields(b"Tag: a-b-c\r\nBuild: 1\r\n", tags=["x-y-z"]) == b"Tag: x-y-z\r\nBuild: 1\r\n"
    assert set_wheel_fields(b"Build: 1\r\n", tags=["x-y-z"]) == b"Build: 1\r\nTag: x-y-z\r\n"


def test_a_folded_version_is_replaced_as_a_whole() -> None:
    assert set_version(b"Name: a\nVersion:\n 1.0\nSummary: s\n", "2.0") == b"Name: a\nVersion:2.0\nSummary: s\n"


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        (["MIT"], "MIT"),
        (["NCSA", "MIT", "MIT"], "MIT AND NCSA"),
        (["Apache-2.0 WITH LLVM-exception AND NCSA", "NCSA"], "Apache-2.0 WITH LLVM-exception AND NCSA"),
        (["MIT", "LGPL-3.0-or-later OR GPL-2.0-or-later"], "(LGPL-3.0-or-later OR GPL-2.0-or-later) AND MIT"),
        (["(0BSD OR MIT) AND Zlib", "MIT"], "(0BSD OR MIT) AND Zlib AND MIT"),
        (["MIT AND (0BSD OR Zlib)", "MIT"], "(MIT AND (0BSD OR Zlib)) AND MIT"),
    ],
)
def test_a_combined_license_names_each_part_once(parts: list[str], whole: str) -> None:
    assert join_expressions(parts) == whole


@pytest.mark.parametrize("parts", [[], ["MIT", None], [None]])
def test_a_part_with_an_unknown_license_makes_the_whole_unknown(parts: list[str | None]) -> None:
    assert join_expressions(parts) is None


@pytest.mark.parametrize("text", ["MIT", "apache-2.0 with LLVM-exception", "(MIT OR 0BSD) AND NCSA", "LicenseRef-Own"])
def test_a_valid_expression_has_no_fault(text: str) -> None:
    assert not expression_fault(text)


@pytest.mark.parametrize("text", ["", "Banana", "MIT AND", "MIT OR (NCSA", "<b>MIT</b>", "MIT\nAND NCSA \0"])
def test_an_invalid_expression_has_a_fault(text: str) -> None:
    assert expression_fault(text)


FULL = CoreMetadata(
    name="rocm-sdk-core",
    version="7.0.0",
    summary="ROCm: what every program needs",
    license_expression="MIT",
    license_files=("share/doc/hip/LICENSE", "LICENSE"),
    requires=("rocm-sdk-libraries==7.0.0; extra == 'libraries'", "rocm-sdk-devel==7.0.0; extra == 'devel'"),
    extras=("libraries", "devel"),
    project_urls={"Source": "https://example.org/rocm"},
    keywords=("rocm", "amdgpu"),
    description="# ROCm\n\nGPU für alle.\n",
)


def test_headers_are_spelled_as_in_the_specification() -> None:
    assert (
        render_metadata(FULL).decode()
        == """\
Metadata-Version: 2.4
Name: rocm-sdk-core
Version: 7.0.0
Summary: ROCm: what every program needs
Description-Content-Type: text/markdown
Keywords: rocm,amdgpu
License-Expression: MIT
License-File: share/doc/hip/LICENSE
License-File: LICENSE
Requires-Dist: rocm-sdk-libraries==7.0.0; extra == "libraries"
Requires-Dist: rocm-sdk-devel==7.0.0; extra == "devel"
Requires-Python: >=3.9
Project-URL: Source, https://example.org/rocm
Provides-Extra: libraries
Provides-Extra: devel

# ROCm

GPU für alle.
"""
    )


def test_packaging_reads_every_field_back() -> None:
    metadata = Metadata.from_email(render_metadata(FULL))
    assert (metadata.name, str(metadata.version), metadata.summary) == (FULL.name, "7.0.0", FULL.summary)
    assert metadata.license_files == list(FULL.license_files)
    assert [requirement.name for requirement in metadata.requires_dist or []] == [
        "rocm-sdk-libraries",
        "rocm-sdk-devel",
    ]
    assert metadata.provides_extra == list(FULL.extras)
    assert metadata.project_urls == FULL.project_urls
    assert metadata.description == FULL.description


def test_the_minimal_metadata_is_name_and_version() -> None:
    least = CoreMetadata("rocm", "7.0.0", requires_python="")
    assert render_metadata(least).decode() == "Metadata-Version: 2.4\nName: rocm\nVersion: 7.0.0\n\n"


def test_fields_that_an_sdist_leaves_open_are_dynamic() -> None:
    text = render_metadata(CoreMetadata("rocm", "7.0.0", dynamic=("requires-dist", "provides-extra"))).decode()
    assert "Dynamic: Requires-Dist\nDynamic: Provides-Extra\n" in text
    assert Metadata.from_email(text).dynamic == ["requires-dist", "provides-extra"]


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        pytest.param(CoreMetadata("rocm sdk", "7.0.0"), "name", id="name with a space"),
        pytest.param(CoreMetadata("rocm", "seven"), "version", id="version that is no version"),
        pytest.param(CoreMetadata("rocm", "7", summary="two\nlines"), "summary", id="summary of two lines"),
        pytest.param(CoreMetadata("rocm", "7", requires=("rocm >",)), "requires-dist", id="half a requirement"),
        pytest.param(CoreMetadata("rocm", "7", requires_python="3"), "requires-python", id="no specifier"),
        pytest.param(CoreMetadata("rocm", "7", license_expression="free"), "license-expression", id="no license"),
        pytest.param(CoreMetadata("rocm", "7", license_files=("../LICENSE",)), "license-file", id="path that leaves"),
    ],
)
def test_the_error_for_an_invalid_field_names_the_field(metadata: CoreMetadata, field: str) -> None:
    with pytest.raises(ExceptionGroup, match="metadata") as caught:
        render_metadata(metadata)
    assert [getattr(problem, "field", None) for problem in caught.value.exceptions] == [field]


def test_the_wheel_file_lists_each_tag() -> None:
    tags = ("py3-none-manylinux_2_28_x86_64", "py3-none-any")
    assert render_wheel_file("rocwheel 1.0", tags, is_purelib=False).decode() == (
        "Wheel-Version: 1.0\n"
        "Generator: rocwheel 1.0\n"
        "Root-Is-Purelib: false\n"
        "Tag: py3-none-manylinux_2_28_x86_64\n"
        "Tag: py3-none-any\n"
    )
    assert b"Root-Is-Purelib: true\n" in render_wheel_file("rocwheel 1.0", tags, is_purelib=True)


def test_dist_info_files_are_in_the_order_of_writing() -> None:
    files = metadata_files(
        CoreMetadata("rocm", "7.14.0"),
        "py3-none-any",
        is_purelib=True,
        entry_points={"console_scripts": {"rocm-sdk": "rocm_sdk._cli:main"}},
        others={"rocm_targets.json": b"{}"},
    )
    assert list(files) == ["METADATA", "WHEEL", "rocm_targets.json", "entry_points.txt"]
    assert f"Generator: rocwheel {rocwheel.__version__}\n".encode() in files["WHEEL"]


def test_the_wheel_file_lists_each_tag_of_a_compressed_set_separately() -> None:
    tag = "py2.py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64"
    files = metadata_files(CoreMetadata("rocm", "7.14.0"), tag, is_purelib=False, entry_points={})
    assert [line for line in files["WHEEL"].decode().splitlines() if line.startswith("Tag:")] == [
        "Tag: py2-none-manylinux2014_x86_64",
        "Tag: py2-none-manylinux_2_17_x86_64",
        "Tag: py3-none-manylinux2014_x86_64",
        "Tag: py3-none-manylinux_2_17_x86_64",
    ]


def test_a_wheel_without_entry_points_has_no_entry_points_file() -> None:
    files = metadata_files(CoreMetadata("rocm", "7.14.0"), "py3-none-any", is_purelib=True, entry_points={})
    assert list(files) == ["METADATA", "WHEEL"]


def test_importlib_metadata_finds_entry_points_sorted_by_name(tmp_path: Path) -> None:
    text = render_entry_point_groups(
        {"console_scripts": {"rocm-sdk": "rocm_sdk._cli:main", "hipcc": "rocm_sdk_core._cli:hipcc"}}
    )
    assert text.decode() == ("[console_scripts]\nhipcc = rocm_sdk_core._cli:hipcc\nrocm-sdk = rocm_sdk._cli:main\n")
    (tmp_path / "entry_points.txt").write_bytes(text)
    found: EntryPoints = PathDistribution(tmp_path).entry_points
    assert [(point.group, point.name, point.value) for point in found] == [
        ("console_scripts", "hipcc", "rocm_sdk_core._cli:hipcc"),
        ("console_scripts", "rocm-sdk", "rocm_sdk._cli:main"),
    ]
