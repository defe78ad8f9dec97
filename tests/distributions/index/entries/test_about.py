"""What distributions say of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.distributions.formats.metadata.core_metadata import parse_core_metadata
from rocwheel.distributions.index.entries.about import About, describe, read_requires_txt
from rocwheel.distributions.index.entries.entry import read_entry
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.distributions.index.conftest import AddWheel, MakeSdist


def about(*lines: str, declared: bytes = b"") -> About:
    text = "\n".join(["Metadata-Version: 2.4", "Name: a", "Version: 1", *lines, ""])
    return describe(parse_core_metadata(text.encode())[0], declared)


def test_requirements_stand_by_the_extras_that_bring_them() -> None:
    found = about(
        "Summary: It is a",
        "Provides-Extra: Device_GFX90a",
        "Provides-Extra: empty",
        "Requires-Dist: B_b==1",
        'Requires-Dist: c[x]; (sys_platform == "linux") and extra == "device-gfx90a"',
    )
    assert found == About("It is a", (), {"device-gfx90a": (("c", ""), ("c", "x")), "empty": (), "": (("b-b", ""),)})


def test_extras_that_cannot_be_met_are_left_out() -> None:
    found = about(
        "Provides-Extra: device-gfx803",
        "Requires-Dist: core==1+gfx803.is.not.in.this.release.which.has.gfx906; extra == 'device-gfx803'",
    )
    assert found.requires == {}


@pytest.mark.parametrize("extra", ["$(id)", "a b", '"', "\u00e4"])
def test_extras_that_are_no_names_are_left_out(extra: str) -> None:
    assert about(f"Provides-Extra: {extra}").requires == {}


def test_targets_come_from_the_list_in_a_wheel(tmp_path: Path) -> None:
    declared = b'{"schema": "rocwheel.rocm-targets/1", "rocm_targets": ["gfx906", "gfx90a:xnack+", "<b>"]}'
    wheel = make_wheel(tmp_path, "a", {"a-1.0.dist-info/rocm_targets.json": declared})
    assert read_entry(wheel).entry.about.targets == ("gfx906", "gfx90a:xnack+")


@pytest.mark.parametrize("declared", [b"", b"[", b'{"rocm_targets": 5}', b"[" * 100_000, b"\xff"])
def test_a_list_that_cannot_be_read_says_nothing(declared: bytes) -> None:
    assert about(declared=declared).targets == ()


@given(st.binary())
def test_no_bytes_end_it_with_an_error(declared: bytes) -> None:
    assert isinstance(about(declared=declared).targets, tuple)


def test_sections_of_requires_txt_are_extras_and_markers() -> None:
    text = (
        "core==1\n\n[libraries]\nlibs==1\n\n[profiler:sys_platform == 'linux']\nprof==1\n\n[:python_version<'3']\nold\n"
    )
    assert list(read_requires_txt(text)) == [
        ("", "core==1"), ("libraries", "libs==1"), ("profiler", "prof==1"), ("", "old")
    ]  # fmt: skip


def test_a_long_summary_is_cut() -> None:
    assert len(about(f"Summary: {'x' * 10_000}").summary) == 512


def test_malformed_requirements_are_left_out(add_wheel: AddWheel) -> None:
    assert read_entry(add_wheel("a", "1.0", "Requires-Dist: ===", "Requires-Dist: b")).entry.about.requires == {
        "": (("b", ""),)
    }


def test_an_sdist_without_a_list_of_requirements_says_nothing_of_them(make_sdist: MakeSdist) -> None:
    assert read_entry(make_sdist("rocm", "7.0", pkg_info=("Summary: S",))).entry.about == About("S")
