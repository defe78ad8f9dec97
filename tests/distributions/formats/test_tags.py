"""Tags of wheels: what each promises, in every spelling."""

from __future__ import annotations

import pytest

from rocwheel.distributions.formats.tags import (
    PlatformTag,
    expand_tags,
    is_platform,
    lowest_glibc,
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
def test_a_platform_tag_names_system_machine_and_glibc(tag: PlatformTag) -> None:
    assert parse_platforms(tag.text) == (tag,)


def test_tags_that_are_joined_by_dots_are_separated() -> None:
    assert expand_tags("py2.py3", "none", "any") == ("py2-none-any", "py3-none-any")


def test_the_oldest_glibc_of_several_tags_is_what_they_promise() -> None:
    assert lowest_glibc(parse_platforms("manylinux_2_17_x86_64.manylinux1_x86_64.linux_x86_64")) == (2, 5)


def test_tags_without_a_glibc_promise_none() -> None:
    assert lowest_glibc(parse_platforms("linux_x86_64.any")) is None


@pytest.mark.parametrize(("text", "fits"), [("linux_x86_64.any", True), ("linux-x86_64", False), ("a..b", False)])
def test_a_platform_has_no_dashes_and_no_empty_parts(text: str, *, fits: bool) -> None:
    assert is_platform(text) is fits
