"""A platform tag that somebody gives, held against the files of the wheel."""

from __future__ import annotations

import pytest

from rocwheel.core.errors import InputError
from rocwheel.distributions.formats.platforms.given_platform import check_platform_of_files
from rocwheel.distributions.formats.platforms.platform_floor import PlatformFloor

GLIBC = PlatformFloor(62, (2, 17), "lib/a.so: GLIBC_2.17", "lib/a.so")
NO_LIBC = PlatformFloor(62, (2, 5), "lib/a.so: oldest tag of its machine")


@pytest.mark.parametrize("tag", ["musllinux_1_2_x86_64", "manylinux_2_17_x86_64.musllinux_1_2_x86_64"])
def test_a_tag_for_musl_is_refused_for_files_that_need_glibc(tag: str) -> None:
    with pytest.raises(InputError) as caught:
        check_platform_of_files(tag, GLIBC)
    assert str(caught.value) == (
        "--platform-tag: is 'musllinux_1_2_x86_64', but lib/a.so needs glibc; "
        "expected a tag such as manylinux_2_17_x86_64"
    )


@pytest.mark.parametrize("floor", [NO_LIBC, None])
def test_a_tag_for_musl_is_taken_for_files_that_do_not_need_glibc(floor: PlatformFloor | None) -> None:
    check_platform_of_files("musllinux_1_2_x86_64", floor)


@pytest.mark.parametrize("tag", ["any", "win_amd64", "manylinux_2_28_aarch64", "musllinux_1_2_aarch64"])
def test_a_tag_for_another_system_or_machine_is_refused(tag: str) -> None:
    with pytest.raises(InputError, match=f"is '{tag}', but the files are for Linux on x86_64"):
        check_platform_of_files(tag, NO_LIBC)
