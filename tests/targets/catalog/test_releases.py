"""Which targets a ROCm version supports, held against the lists of Gentoo's rocm.eclass and of AMD."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import pytest

from rocwheel.core.errors import InputError
from rocwheel.targets.catalog import matrix_for, official_span, release_for
from rocwheel.targets.errors import UnknownReleaseError

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


ARMS = {
    "5.[0-3].*": ("906 908 90a 1030", "803 900 1010 1011 1012 1031"),
    "5.*": ("906 908 90a 1030", "803 900 1010 1011 1012 1031 1100 1101 1102"),
    "6.[0-3].*": ("906 908 90a 942 1030 1100", "803 900 940 941 1010 1011 1012 1031 1101 1102"),
    "6.4.[0-2]": ("908 90a 942 1030 1100", "803 900 906 940 941 1010 1011 1012 1031 1101 1102 1200 1201"),
    "6.*": ("908 90a 942 1030 1100 1101 1200 1201", "803 900 906 940 941 1010 1011 1012 1031 1102 1103 1150 1151"),
    "7.*": ("908 90a 942 950 1030 1100 1101 1200 1201", "803 900 906 940 941 1010 1011 1012 1031 1102 1103 1150 1151"),
}
"""The official and unofficial targets of rocm.eclass, by the pattern of the version; the first that matches counts."""

VERSIONS = ["5.0.0", "5.1.3", "5.3.3", "5.4.0", "5.7.1", "6.0.0", "6.3.4", "6.4.0", "6.4.2", "6.4.3", "7.0.0", "7.2.1"]


@pytest.mark.parametrize("version", VERSIONS)
def test_targets_of_a_version_are_those_of_the_eclass(version: str) -> None:
    arm = next(lists for pattern, lists in ARMS.items() if fnmatchcase(version, pattern))
    official, unofficial = (tuple(f"gfx{number}" for number in numbers.split()) for numbers in arm)
    assert (release_for(version).official, release_for(version).unofficial) == (official, unofficial)


@pytest.mark.parametrize(
    ("version", "targets"),
    [
        pytest.param("6.0", "908 90a 942 1030 1100", id="6.0, without gfx906"),
        pytest.param("6.4.0", "908 90a 942 1030 1100", id="6.4.0"),
        pytest.param("6.4.1", "908 90a 942 1030 1100 1101 1200 1201", id="6.4.1, which has more than Gentoo's"),
        pytest.param("6.4.2", "908 90a 942 1030 1100 1101 1200 1201", id="6.4.2"),
        pytest.param("7.1.0", "908 90a 942 950 1030 1100 1101 1200 1201", id="7.1.0"),
        pytest.param("7.2.4", "908 90a 942 950 1030 1100 1101 1200 1201", id="7.2.4"),
        pytest.param("7.9", "942 950 1151", id="7.9, the first preview"),
        pytest.param("7.11.0", "90a 942 950 1100 1101 1150 1151 1200 1201", id="7.11.0"),
        pytest.param("7.12", "908 90a 942 950 1100 1101 1102 1103 1150 1151 1200 1201", id="7.12"),
        pytest.param("7.14.1", "908 90a 942 950 1030 1100 1101 1102 1103 1150 1151 1152 1153 1200 1201", id="7.14.1"),
        pytest.param("10.0", "908 90a 942 950 1030 1100 1101 1102 1103 1150 1151 1152 1153 1200 1201", id="10.0"),
        pytest.param("10.1", "908 90a 942 950 1030 1100 1101 1102 1103 1150 1151 1152 1153 1200 1201", id="10.1"),
    ],
)
def test_targets_that_amd_lists_for_a_version(version: str, targets: str) -> None:
    assert " ".join(matrix_for(version).targets).replace("gfx", "") == targets


@pytest.mark.parametrize("version", ["5.7", "6.5", "7.3", "7.8.1", "7.15", "10.2", "9999"])
def test_a_version_whose_matrix_nobody_read_is_refused(version: str) -> None:
    message = (
        f"amd: the targets of ROCm {version} are not known; expected 6.0 to 6.4, 7.0 to 7.2, 7.9 to 7.14, "
        "10.0 to 10.1. A newer rocwheel may know more versions."
    )
    with pytest.raises(UnknownReleaseError, match=f"^{re.escape(message)}$"):
        matrix_for(version, source="amd")


def test_targets_of_10_are_those_of_the_overlay_s_eclass() -> None:
    release = release_for("10.0")
    official, unofficial = (" ".join(targets).replace("gfx", "") for targets in (release.official, release.unofficial))
    assert official == "908 90a 942 950 1100 1101 1102 1150 1151 1152 1153 1200 1201"
    assert unofficial == "803 900 906 1010 1011 1012 1030 1031 1103"


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
        "A newer rocwheel may know more versions."
    )
    with pytest.raises(UnknownReleaseError, match=f"^{re.escape(message)}$"):
        release_for("8.0", source="ROCM_VERSION")


def test_what_is_not_a_version_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"^ROCm version: 'seven' is not a version; expected one such as 6\.4 or 7\.1\.1$"
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
