"""The files of ``.dist-info``, as ``packaging``, ``email`` and ``importlib.metadata`` read them."""

from __future__ import annotations

from importlib.metadata import EntryPoints, PathDistribution
from typing import TYPE_CHECKING

import pytest
from packaging.metadata import ExceptionGroup, Metadata

import rocwheel
from rocwheel.distributions.formats.metadata.metadata import (
    CoreMetadata,
    metadata_files,
    render_entry_point_groups,
    render_metadata,
    render_wheel_file,
)

if TYPE_CHECKING:
    from pathlib import Path

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


def test_the_text_spells_headers_as_the_specification_does() -> None:
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


def test_the_least_metadata_is_name_and_version() -> None:
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
        pytest.param(CoreMetadata("rocm", "7", license_expression="free"), "license-expression", id="no licence"),
        pytest.param(CoreMetadata("rocm", "7", license_files=("../LICENSE",)), "license-file", id="path that leaves"),
    ],
)
def test_a_field_that_breaks_the_standard_is_refused_by_name(metadata: CoreMetadata, field: str) -> None:
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


def test_the_files_of_dist_info_come_in_the_order_in_which_they_are_written() -> None:
    files = metadata_files(
        CoreMetadata("rocm", "7.14.0"),
        "py3-none-any",
        is_purelib=True,
        entry_points={"console_scripts": {"rocm-sdk": "rocm_sdk._cli:main"}},
        others={"rocm_targets.json": b"{}"},
    )
    assert list(files) == ["METADATA", "WHEEL", "rocm_targets.json", "entry_points.txt"]
    assert f"Generator: rocwheel {rocwheel.__version__}\n".encode() in files["WHEEL"]


def test_the_wheel_file_lists_each_tag_of_a_compressed_set_by_itself() -> None:
    tag = "py2.py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64"
    files = metadata_files(CoreMetadata("rocm", "7.14.0"), tag, is_purelib=False, entry_points={})
    assert [line for line in files["WHEEL"].decode().splitlines() if line.startswith("Tag:")] == [
        "Tag: py2-none-manylinux2014_x86_64",
        "Tag: py2-none-manylinux_2_17_x86_64",
        "Tag: py3-none-manylinux2014_x86_64",
        "Tag: py3-none-manylinux_2_17_x86_64",
    ]


def test_a_wheel_without_entry_points_has_no_file_of_them() -> None:
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
