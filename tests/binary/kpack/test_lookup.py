"""Which code object a runtime gets, by a reader of its own, out of libraries and archives that we wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.kpack.archive import Scheme
from rocwheel.binary.kpack.markers import Marker
from tests.support.kpack_files import build_split_library, make_kpack
from tests.support.kpack_reader import (
    ARCH_NOT_FOUND,
    ARCHIVE_NOT_FOUND,
    INVALID_IMAGE,
    KERNEL_NOT_FOUND,
    NOT_IMPLEMENTED,
    load_on_machine,
    load_unit,
    units_of,
)
from tests.support.libraries import needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_compiler

NAME = "lib/libx.so"
ALL = Marker(NAME, ("../.kpack/x_@GFXARCH@.kpack",))
PARTIAL = Marker(NAME, ("../.kpack/x.1_@GFXARCH@.kpack",))
BOTH = pytest.mark.parametrize("old", [True, False], ids=["old", "new"])


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Return a library of two units, of which the second has code for gfx90a alone, next to its archives."""
    folder = tmp_path / ".kpack"
    folder.mkdir()
    archives = {
        "x_gfx906.kpack": {(NAME, 0, "gfx906|gfx906:xnack-|gfx906:xnack+"): b"906"},
        "x_gfx90a.kpack": {(NAME, 0, "gfx90a:xnack+"): b"90a+", (NAME, 0, "gfx90a|gfx90a:xnack-"): b"90a-"},
        "x.1_gfx90a.kpack": {(NAME, 1, "gfx90a:xnack-"): b"second"},
        "x_gfx9-generic.kpack": {(NAME, 0, "gfx9-generic"): b"generic"},
    }
    for name, kernels in archives.items():
        (folder / name).write_bytes(make_kpack(kernels))
    return build_split_library(tmp_path / "lib" / "libx.so", [ALL, PARTIAL], [(0, 0), (1, 1)])


@BOTH
@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        (["gfx906:sramecc+:xnack-", "gfx9-generic"], [b"906", ARCHIVE_NOT_FOUND]),
        (["gfx90a:sramecc+:xnack+"], [b"90a+", ARCH_NOT_FOUND]),
        (["gfx90a:sramecc+:xnack-"], [b"90a-", b"second"]),
        (["gfx900:xnack-", "gfx9-generic"], [b"generic", ARCHIVE_NOT_FOUND]),
        (["gfx1030"], [ARCHIVE_NOT_FOUND, ARCHIVE_NOT_FOUND]),
    ],
)
def test_each_device_gets_its_code_or_an_error(
    library: Path,
    targets: list[str],
    expected: list[bytes | str],
    old: bool,
) -> None:
    assert [load_unit(library, unit, targets, old=old) for unit in units_of(library)] == expected


@pytest.mark.parametrize(("old", "expected"), [(True, KERNEL_NOT_FOUND), (False, b"generic")])
def test_an_archive_without_its_listed_code_hides_others_from_an_old_runtime(
    tmp_path: Path,
    old: bool,
    expected: bytes | str,
) -> None:
    (tmp_path / ".kpack").mkdir()
    (tmp_path / ".kpack/x_gfx906.kpack").write_bytes(make_kpack({("other", 0, "gfx906"): b"906"}))
    (tmp_path / ".kpack/x_gfx9-generic.kpack").write_bytes(make_kpack({(NAME, 0, "gfx9-generic"): b"generic"}))
    library = build_split_library(tmp_path / "lib/libx.so", [ALL], [(0, 0)])
    [unit] = units_of(library)
    assert load_unit(library, unit, ["gfx906", "gfx9-generic"], old=old) == expected


@BOTH
def test_a_library_finds_its_archives_through_a_symlink(library: Path, old: bool) -> None:
    link = library.parents[1] / "other" / "libx.so.0"
    link.parent.mkdir()
    link.symlink_to("../lib/libx.so")
    assert load_unit(link, units_of(link)[0], ["gfx906:xnack-"], old=old) == b"906"


@BOTH
def test_wrappers_for_the_same_bundle_get_the_same_code(tmp_path: Path, old: bool) -> None:
    (tmp_path / ".kpack").mkdir()
    data = make_kpack({(NAME, 0, "gfx906"): b"906"}, scheme=Scheme.NONE)
    (tmp_path / ".kpack/x_gfx906.kpack").write_bytes(data)
    library = build_split_library(tmp_path / "lib/libx.so", [ALL], [(0, 0), (0, 0)])
    assert [load_unit(library, unit, ["gfx906"], old=old) for unit in units_of(library)] == [b"906", b"906"]


@BOTH
@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"ROCM_KPACK_PATH": ":MORE:"}, b"given"),
        ({"ROCM_KPACK_PATH": "NONE"}, ARCHIVE_NOT_FOUND),
        ({"ROCM_KPACK_PATH": ""}, b"906"),
        ({"ROCM_KPACK_PATH_PREFIX": "NONE:MORE"}, b"given"),
        ({"ROCM_KPACK_PATH_PREFIX": "NONE"}, b"906"),
        ({"ROCM_KPACK_DISABLE": "1"}, NOT_IMPLEMENTED),
        ({"ROCM_KPACK_DISABLE": "0"}, b"906"),
        ({"ROCM_KPACK_DISABLE": ""}, b"906"),
    ],
)
def test_environment_variables_override_the_search_paths_of_markers(
    library: Path, variables: dict[str, str], expected: bytes | str, old: bool
) -> None:
    more = library.with_name("more.kpack")
    more.write_bytes(make_kpack({(NAME, 0, "gfx906"): b"given"}))
    environ = {name: text.replace("MORE", str(more)).replace("NONE", "/none") for name, text in variables.items()}
    assert load_unit(library, units_of(library)[0], ["gfx906"], old=old, environ=environ) == expected


GFX906, GFX90A, GFX1030 = ["gfx906:xnack-", "gfx9-generic"], ["gfx90a:xnack-"], ["gfx1030"]


@pytest.mark.parametrize(
    ("devices", "new", "old"),
    [
        ([GFX906, GFX906], [b"906", b"906"], [b"906", b"906"]),
        ([GFX906, GFX90A], [b"906", b"90a-"], [INVALID_IMAGE, INVALID_IMAGE]),
        ([GFX1030, GFX906], [ARCHIVE_NOT_FOUND, b"906"], [INVALID_IMAGE, INVALID_IMAGE]),
        ([GFX1030], [ARCHIVE_NOT_FOUND], [ARCHIVE_NOT_FOUND]),
    ],
)
def test_only_a_later_runtime_finds_code_for_each_gpu_of_a_machine(
    library: Path, devices: list[list[str]], new: list[bytes | str], old: list[bytes | str]
) -> None:
    [unit, _] = units_of(library)
    assert load_on_machine(library, unit, devices, old=False) == new
    assert load_on_machine(library, unit, devices, old=True) == old


def test_an_archive_without_a_unit_makes_loading_fail_on_all_gpus(library: Path) -> None:
    archive = library.parents[1] / ".kpack/x_gfx906.kpack"
    archive.write_bytes(make_kpack({(NAME, 7, "gfx906"): b"906"}))
    [unit, _] = units_of(library)
    assert load_on_machine(library, unit, [["gfx906"], GFX90A], old=False) == [INVALID_IMAGE, INVALID_IMAGE]
    archive.unlink()
    assert load_on_machine(library, unit, [["gfx906"], GFX90A], old=False) == [ARCHIVE_NOT_FOUND, b"90a-"]
