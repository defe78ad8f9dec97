"""Platforms and machines as markers tell them apart."""

from __future__ import annotations

import pytest

from rocwheel.packages.merging.places import Place, find_places, marker_of

LINUX, WINDOWS = Place("linux"), Place("win32")
X86, ARM = Place("linux", "x86_64"), Place("linux", "aarch64")


@pytest.mark.parametrize(
    ("builds", "places"),
    [
        ([{"linux": ["x86_64"]}, {"win32": ["AMD64"]}], [LINUX, WINDOWS]),
        ([{"linux": ["x86_64"]}, {"linux": ["aarch64"]}, {"win32": ["AMD64"]}], [ARM, X86, WINDOWS]),
        ([{"linux": ["x86_64"]}, {"linux": []}], [LINUX]),
        ([{"linux": []}], [LINUX]),
    ],
)
def test_machines_are_told_apart_where_a_platform_has_several(
    builds: list[dict[str, list[str]]], places: list[Place]
) -> None:
    assert find_places(builds) == places


@pytest.mark.parametrize(
    ("some", "marker"),
    [
        ([ARM, X86, WINDOWS], ""),
        ([X86, ARM], "sys_platform == 'linux'"),
        ([WINDOWS], "sys_platform == 'win32'"),
        ([X86], "sys_platform == 'linux' and platform_machine == 'x86_64'"),
        ([WINDOWS, ARM], "sys_platform == 'linux' and platform_machine == 'aarch64' or sys_platform == 'win32'"),
    ],
)
def test_a_marker_holds_in_these_places_alone(some: list[Place], marker: str) -> None:
    among = [ARM, X86, WINDOWS]
    assert marker_of(some, among) == marker
    assert [place for place in among if place.meets(marker)] == [place for place in among if place in some]


def test_a_place_is_called_by_its_platform_and_machine() -> None:
    assert [ARM.key, WINDOWS.key] == ["linux aarch64", "win32"]
