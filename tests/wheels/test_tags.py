"""Tests of `rocwheel.wheels.tags`."""

from __future__ import annotations

import pytest
from packaging.tags import mac_platforms, platform_tags

from rocwheel.core.errors import InputError
from rocwheel.wheels.platform_floor import PlatformFloor
from rocwheel.wheels.tags import (
    PlatformTag,
    check_platform_of_files,
    expand_tags,
    is_known_platform,
    is_platform,
    lowest_glibc,
    nearest_platform,
    parse_platforms,
)


@pytest.mark.parametrize(
    "tag",
    [
        PlatformTag("manylinux_2_28_x86_64", "glibc", "x86_64", (2, 28)),
        PlatformTag("manylinux1_i686", "glibc", "i686", (2, 5)),
        PlatformTag("manylinux2010_x86_64", "glibc", "x86_64", (2, 12)),
        PlatformTag("manylinux2014_aarch64", "glibc", "aarch64", (2, 17)),
        PlatformTag("linux_armv7l", "glibc", "armv7l"),
        PlatformTag("musllinux_1_2_x86_64", "musl", "x86_64"),
        PlatformTag("macosx_11_0_universal2", "macos", "universal2"),
        PlatformTag("win_amd64", "windows", "amd64"),
        PlatformTag("win32", "windows", "x86"),
        PlatformTag("any", "any"),
        PlatformTag("emscripten_3_1_58_wasm32", "other"),
    ],
    ids=lambda tag: tag.text,
)
def test_a_platform_tag_gives_system_machine_and_glibc(tag: PlatformTag) -> None:
    assert parse_platforms(tag.text) == (tag,)


def test_tags_joined_by_dots_are_expanded() -> None:
    assert expand_tags("py2.py3", "none", "any") == ("py2-none-any", "py3-none-any")


def test_the_oldest_glibc_of_several_tags_is_the_lowest() -> None:
    assert lowest_glibc(parse_platforms("manylinux_2_17_x86_64.manylinux1_x86_64.linux_x86_64")) == (2, 5)


def test_tags_without_a_glibc_have_no_lowest_glibc() -> None:
    assert lowest_glibc(parse_platforms("linux_x86_64.any")) is None


@pytest.mark.parametrize(("text", "fits"), [("linux_x86_64.any", True), ("linux-x86_64", False), ("a..b", False)])
def test_a_platform_has_no_dashes_or_empty_parts(text: str, *, fits: bool) -> None:
    assert is_platform(text) is fits


KNOWN = [
    "any",
    "linux_x86_64",
    "linux_armv7l",
    "linux_loongarch64",
    "manylinux1_i686",
    "manylinux2010_x86_64",
    "manylinux2014_ppc64le",
    "manylinux_2_28_x86_64",
    "manylinux_2_5_i686",
    "manylinux_2_39_riscv64",
    "musllinux_1_2_aarch64",
    "macosx_10_9_intel",
    "macosx_11_0_arm64",
    "macosx_26_0_universal2",
    "win32",
    "win_amd64",
    "win_arm64",
    "ios_13_0_arm64_iphonesimulator",
    "android_21_arm64_v8a",
    "emscripten_3_1_58_wasm32",
    "pyodide_2025_0_wasm32",
    "freebsd_14_1_release_amd64",
]


@pytest.mark.parametrize("tag", KNOWN)
def test_a_tag_accepted_by_some_installer_is_known(tag: str) -> None:
    assert is_known_platform(tag)


@pytest.mark.parametrize(
    ("tag", "nearest"),
    [
        ("manylinx_2_28_x86_64", "manylinux_2_28_x86_64"),
        ("manylinux_2_28_x86-64", "manylinux_2_28_x86_64"),
        ("manylinux_2_17_amd64", "manylinux_2_17_x86_64"),
        ("manylinux_2_17_aarch46", "manylinux_2_17_aarch64"),
        ("manylinux_2_28", "manylinux_2_28_x86_64"),
        ("manylinux2_28_x86_64", "manylinux_2_28_x86_64"),
        ("Linux_x86_64", "linux_x86_64"),
        ("linux", "linux_x86_64"),
        ("musllinux_1_2_x86", "musllinux_1_2_x86_64"),
        ("manylinux_3_0_x86_64", "manylinux_2_28_x86_64"),
        ("win_x64", "win_amd64"),
        ("win64", "win_amd64"),
        ("macosx_11_arm64", "macosx_11_0_arm64"),
        ("foo", ""),
        ("ANY", "any"),
    ],
)
def test_a_tag_accepted_by_no_installer_gets_the_nearest_known_tag(tag: str, nearest: str) -> None:
    assert not is_known_platform(tag)
    assert nearest_platform(tag) == nearest


def test_every_tag_generated_by_packaging_is_known() -> None:
    made = {*mac_platforms((26, 0), "arm64"), *mac_platforms((13, 0), "x86_64"), *platform_tags()}
    assert [tag for tag in sorted(made) if not is_known_platform(tag)] == []


GLIBC = PlatformFloor(62, (2, 17), "lib/a.so: GLIBC_2.17", "lib/a.so")
NO_LIBC = PlatformFloor(62, (2, 5), "lib/a.so: oldest tag for its architecture")


@pytest.mark.parametrize("tag", ["musllinux_1_2_x86_64", "manylinux_2_17_x86_64.musllinux_1_2_x86_64"])
def test_a_musl_tag_is_refused_for_files_that_need_glibc(tag: str) -> None:
    with pytest.raises(InputError) as caught:
        check_platform_of_files(tag, GLIBC)
    assert str(caught.value) == (
        "--platform-tag: is 'musllinux_1_2_x86_64', but lib/a.so needs glibc; "
        "expected a tag such as manylinux_2_17_x86_64"
    )


@pytest.mark.parametrize("floor", [NO_LIBC, None])
def test_a_musl_tag_is_accepted_for_files_that_do_not_need_glibc(floor: PlatformFloor | None) -> None:
    check_platform_of_files("musllinux_1_2_x86_64", floor)


@pytest.mark.parametrize("tag", ["any", "win_amd64", "manylinux_2_28_aarch64", "musllinux_1_2_aarch64"])
def test_a_tag_for_another_system_or_machine_is_refused(tag: str) -> None:
    with pytest.raises(InputError, match=f"is '{tag}', but the files are for Linux on x86_64"):
        check_platform_of_files(tag, NO_LIBC)
