"""Tests of which archives of a store a build needs."""

from __future__ import annotations

from functools import partial

import pytest

from rocwheel.artifacts.fetching.choose import Wanted, choose_archives, find_archives
from rocwheel.core.errors import ProblemsError, RocwheelError
from rocwheel.stores.store import StoredFile
from rocwheel.targets.serving import serves
from rocwheel.targets.spelling.target_set import parse_target_set

NAMES = (
    "base_lib_generic.tar.zst",
    "base_test_generic.tar.zst",
    "blas_dev_generic.tar.xz",
    "blas_lib_generic.tar.xz",
    "blas_lib_gfx1100.tar.zst",
    "blas_lib_gfx90a:xnack+.tar.zst",
    "blas_lib_gfx942.tar.zst",
    "fft_lib_gfx94X-dcgpu.tar.zst",
)


def choose(there: tuple[str, ...] = NAMES, **wanted: tuple[str, ...]) -> list[str]:
    archives = find_archives([StoredFile(name, 1) for name in there], "there")
    agents = parse_target_set(wanted.get("targets", ()), required=False)
    serving = {str(agent): partial(serves, wanted=(agent,)) for agent in agents}
    return [archive.stored.name for archive in choose_archives(archives, Wanted(**wanted), serving, "there")]


def test_tests_of_the_sdk_are_left_out() -> None:
    assert choose() == [name for name in NAMES if "test" not in name]


def test_targets_choose_among_what_is_for_some_gpus() -> None:
    assert choose(targets=("gfx942",)) == [
        "base_lib_generic.tar.zst",
        "blas_dev_generic.tar.xz",
        "blas_lib_generic.tar.xz",
        "blas_lib_gfx942.tar.zst",
        "fft_lib_gfx94X-dcgpu.tar.zst",
    ]


def test_a_target_takes_its_variants_in() -> None:
    assert "blas_lib_gfx90a:xnack+.tar.zst" in choose(targets=("gfx90a",))


def test_components_and_names_narrow_it() -> None:
    assert choose(components=("dev", "test")) == ["base_test_generic.tar.zst", "blas_dev_generic.tar.xz"]
    assert choose(components=(), names=("base",)) == ["base_lib_generic.tar.zst", "base_test_generic.tar.zst"]


def test_of_two_formats_the_faster_one_is_taken() -> None:
    names = ("a_lib_generic.tar.xz", "a_lib_generic.tar.zst")
    assert choose(names) == choose(names[::-1]) == ["a_lib_generic.tar.zst"]


def test_names_that_lead_elsewhere_are_no_archives() -> None:
    names = ("../a_lib_generic.tar.zst", "sub/a_lib_generic.tar.zst", ".a_lib_generic.tar.zst", "a_lib_generic.tar.zst")
    assert choose(names) == ["a_lib_generic.tar.zst"]


def test_a_place_without_archives_is_an_error() -> None:
    with pytest.raises(RocwheelError, match="there: holds no artifact archives"):
        choose(("index.html",))


def test_everything_that_is_absent_is_named_together() -> None:
    with pytest.raises(ProblemsError) as caught:
        choose(targets=("gfx942", "gfx1201"), components=("run",), names=("blas", "rand"))
    assert [str(problem) for problem in caught.value.problems] == [
        "there: has no artifact 'rand'. There are base, blas, fft.",
        "there: has no artifact of the component 'run'. There are dev, lib, test.",
        "there: has no artifact that serves gfx1201. There are gfx1100, gfx90a:xnack+, gfx942, gfx94X-dcgpu.",
    ]


def test_what_no_archive_has_at_once_is_an_error() -> None:
    with pytest.raises(RocwheelError, match="no archive has all that is asked for"):
        choose(components=("test",), names=("blas",))
