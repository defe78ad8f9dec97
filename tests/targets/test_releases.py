"""Which targets a ROCm version supports, held against the arms of Gentoo's rocm.eclass."""

from __future__ import annotations

import re

import pytest

from rocwheel.errors import InputError
from rocwheel.targets.errors import UnknownReleaseError
from rocwheel.targets.releases import official_span, release_for

CDNA = ("gfx906", "gfx908", "gfx90a")


@pytest.mark.parametrize(
    ("version", "official"),
    [
        pytest.param("5.1", (*CDNA, "gfx1030"), id="5.1, the example of rocm.eclass"),
        pytest.param("5.7.1", (*CDNA, "gfx1030"), id="5.7.1"),
        pytest.param("6.3", (*CDNA, "gfx942", "gfx1030", "gfx1100"), id="6.3"),
        pytest.param("6.4.2", ("gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100"), id="6.4.2"),
        pytest.param(
            "6.4.3",
            ("gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1101", "gfx1200", "gfx1201"),
            id="6.4.3",
        ),
        pytest.param(
            "7.1.1",
            ("gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1101", "gfx1200", "gfx1201"),
            id="7.1.1",
        ),
    ],
)
def test_official_targets_of_a_version(version: str, official: tuple[str, ...]) -> None:
    assert release_for(version).official == official


@pytest.mark.parametrize(("short", "long"), [("5.3", "5.3.0"), ("6.3", "6.3.0"), ("6.4", "6.4.0"), ("7", "7.0.0")])
def test_two_and_three_part_versions_behave_alike(short: str, long: str) -> None:
    assert release_for(short) == release_for(long)


def test_a_build_of_the_newest_source_has_the_newest_release() -> None:
    assert release_for("9999").since == "10.0"


def test_a_release_candidate_has_the_targets_of_its_release() -> None:
    assert release_for("6.4.3rc1") == release_for("6.4.3")


def test_targets_that_came_in_5_4_are_not_in_5_3() -> None:
    assert "gfx1100" not in release_for("5.3.3").unofficial
    assert "gfx1100" in release_for("5.4.0").unofficial


def test_an_unknown_major_version_is_refused_by_name() -> None:
    message = (
        "ROCM_VERSION: the targets of ROCm 8.0 are not known; expected major version 5, 6, 7, 10. "
        "A new major version needs a [[release]] in targets/catalog.toml that somebody has looked at."
    )
    with pytest.raises(UnknownReleaseError, match=f"^{re.escape(message)}$"):
        release_for("8.0", source="ROCM_VERSION")


def test_what_is_no_version_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"^ROCm version: 'seven' is no version; expected one such as 6\.4 or 7\.1\.1$"
    ):
        release_for("seven")


@pytest.mark.parametrize(
    ("target", "span"),
    [
        pytest.param("gfx906", ("5.0", "6.4"), id="dropped at 6.4"),
        pytest.param("gfx1100", ("6.0", ""), id="official since 6.0"),
        pytest.param("gfx1031", ("", ""), id="never official"),
    ],
)
def test_span_of_official_support(target: str, span: tuple[str, str]) -> None:
    assert official_span(target) == span
