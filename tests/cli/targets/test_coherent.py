"""``rocwheel targets coherent`` as a user runs it."""

from __future__ import annotations

import io
import json
import tarfile
from typing import TYPE_CHECKING

import pytest

from tests.support.bundles import bundle_of
from tests.support.kpack_files import split_two
from tests.support.libraries import needs_compiler
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


pytestmark = pytest.mark.slow


def _wheel(folder: Path, name: str, *targets: str, requires: str = "") -> Path:
    members = {f"{name}/kernels.hipfb": bundle_of(*targets)}
    return make_wheel(folder, name, members, tag="py3-none-any", requires=(requires,) if requires else ())


def test_coherent_names_each_gap(run_targets: Run, tmp_path: Path) -> None:
    _wheel(tmp_path, "blas", "gfx906")
    _wheel(tmp_path, "torch", "gfx906", "gfx1100", requires="blas")
    assert run_targets("coherent", tmp_path) == (
        1,
        (
            "blas: gfx906\n"
            "torch: gfx906, gfx1100\n"
            "blas lacks gfx1100, which torch asks for; it carries gfx906\n"
            "not coherent; served by all: gfx906\n"
        ),
        "",
    )


def test_coherent_as_json(run_targets: Run, tmp_path: Path) -> None:
    blas = _wheel(tmp_path, "blas", "gfx906")
    assert json.loads(run_targets("coherent", blas, "--require", "gfx906,gfx90a", "--json").stdout) == {
        "schema": "rocwheel.coherence/1",
        "coherent": False,
        "packages": ["blas"],
        "common": ["gfx906"],
        "gaps": [
            {
                "package": "blas",
                "target": "gfx90a",
                "wanted_by": "the list of required targets",
                "carried": ["gfx906"],
            }
        ],
        "absent": [],
        "unusable": [],
        "leaves": [],
        "misdeclared": [],
    }


def test_coherent_names_what_is_needed_and_not_given(run_targets: Run, tmp_path: Path) -> None:
    torch = _wheel(tmp_path, "torch", "gfx906", requires="blas>=2")
    expected = "torch: gfx906\nneeded, but not given, so not compared: blas\ncoherent; served by all: gfx906\n"
    assert run_targets("coherent", torch) == (0, expected, "")


_BUILD_INFO = """
VERSION = "1.0"
LAYOUT = "{layout}"
FAMILIES = {{"gfx906": {{}}, "gfx1030": {{}}}}
PACKAGES = {{"meta": {{"dist": "rocm"}}}}
REQUIRES = ["rocm-core==1.0"]
EXTRAS = {{"libraries": {extras}}}
SELECTED = {selected}
"""


def _selector(folder: Path, build_info: str, name: str = "rocm_sdk/_build_info.py") -> Path:
    path = folder / "rocm-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo(f"rocm-1.0/{name}")
        member.size = len(build_info)
        archive.addfile(member, io.BytesIO(build_info.encode()))
    return path


def test_coherent_follows_the_extras_of_the_sdist_that_chooses_packages(run_targets: Run, tmp_path: Path) -> None:
    extras = """[["libs==1.0", ""], ["dlls", "sys_platform == 'win32'"]]"""
    info = _BUILD_INFO.format(layout="neutral", extras=extras, selected='{"device": "device-{family}==1.0"}')
    sdist = _selector(tmp_path, info)
    torch = _wheel(tmp_path, "torch", "gfx906", "gfx942", requires="rocm[libraries]==1.0")
    libraries = _wheel(tmp_path, "libs", "gfx906")
    gap = "libs lacks gfx942, which torch asks for; it carries gfx906\n"
    assert run_targets("coherent", tmp_path, "--quiet") == (1, gap, "")
    assert run_targets("coherent", torch, libraries, sdist, "--quiet") == (1, gap, "")
    absent = json.loads(run_targets("coherent", tmp_path, "--json").stdout)["absent"]
    assert absent == ["dlls", "rocm-core"]


def test_coherent_counts_the_families_that_the_sdist_chooses_from_as_one_package(
    run_targets: Run, tmp_path: Path
) -> None:
    selected = '{"libraries": "libs-{family}==1.0"}'
    _selector(tmp_path, _BUILD_INFO.format(layout="per-family", extras="[]", selected=selected))
    for family in ("gfx906", "gfx1030"):
        _wheel(tmp_path, f"libs-{family}", family)
    torch = _wheel(tmp_path, "torch", "gfx906", "gfx1030", requires="rocm[libraries]")
    assert run_targets("coherent", tmp_path, "--quiet") == (0, "", "")
    torch.unlink()
    _wheel(tmp_path, "torch", "gfx906", "gfx942", requires="rocm[libraries]")
    gap = "rocm lacks gfx942, which torch asks for; it carries gfx906, gfx1030\n"
    assert run_targets("coherent", tmp_path, "--quiet") == (1, gap, "")


def test_coherent_passes_over_other_sdists_in_a_folder(run_targets: Run, tmp_path: Path) -> None:
    _wheel(tmp_path, "blas", "gfx906")
    sdist = _selector(tmp_path, "", "PKG-INFO")
    assert run_targets("coherent", tmp_path, "--quiet") == (0, "", "")
    message = f"error: {sdist}: has no rocm_sdk/_build_info.py; expected a wheel, or the sdist of rocm\n"
    assert run_targets("coherent", sdist) == (2, "", message)


@pytest.mark.parametrize("text", ["VERSION =", "VERSION = open('x')", "VERSION = '1'"])
def test_coherent_refuses_a_damaged_sdist(run_targets: Run, tmp_path: Path, text: str) -> None:
    sdist = _selector(tmp_path, text)
    finished = run_targets("coherent", sdist)
    assert (finished[0], finished[1]) == (2, "")
    assert finished[2].startswith(f"error: {sdist}: its _build_info.py can't be read (")
    sdist.write_bytes(b"x")
    assert run_targets("coherent", sdist)[2].startswith(f"error: {sdist}: not a readable .tar.gz archive (")


@pytest.mark.parametrize("value", ["", " , "])
def test_an_empty_list_of_required_targets_is_wrong_usage(run_targets: Run, tmp_path: Path, value: str) -> None:
    message = "error: --require: names no GPU target; expected at least one, such as gfx1100\n"
    assert run_targets("coherent", _wheel(tmp_path, "blas", "gfx906"), "--require", value) == (2, "", message)


def test_folders_without_wheels_are_refused(run_targets: Run, tmp_path: Path) -> None:
    message = f"error: {tmp_path}: holds no wheel and no .deb; expected a folder of files *.whl or *.deb\n"
    assert run_targets("coherent", tmp_path) == (2, "", message)


def test_coherent_reduces_to_the_largest_set(run_targets: Run, tmp_path: Path) -> None:
    wheels = [_wheel(tmp_path, "blas", "gfx906", "gfx11-generic"), _wheel(tmp_path, "fft", "gfx1100", "gfx906")]
    assert run_targets("coherent", *wheels, "--reduce") == (0, "gfx906\ngfx1100\n", "")
    assert run_targets("coherent", *wheels, "--quiet") == (0, "", "")


def test_a_reduced_set_without_targets_is_reported_with_the_reason(run_targets: Run, tmp_path: Path) -> None:
    _wheel(tmp_path, "blas", "gfx906")
    _wheel(tmp_path, "fft", "gfx1100")
    assert run_targets("coherent", tmp_path, "--reduce") == (
        1,
        "",
        "no target is served by every package with device code\n",
    )


def test_a_reduced_set_that_lacks_what_is_required_is_reported(run_targets: Run, tmp_path: Path) -> None:
    blas = _wheel(tmp_path, "blas", "gfx906", "gfx1100")
    finished = run_targets("coherent", blas, "--reduce", "--require", "gfx1100,gfx90a")
    assert finished == (1, "gfx906\ngfx1100\n", "the set does not serve gfx90a, which --require asks for\n")


def test_wheels_without_device_code_are_coherent(run_targets: Run, tmp_path: Path) -> None:
    for name in ("compiler", "headers"):
        make_wheel(tmp_path, name, {}, tag="py3-none-any")
    expected = "compiler: no device code\nheaders: no device code\ncoherent; no package has device code\n"
    assert run_targets("coherent", tmp_path) == (0, expected, "")
    assert run_targets("coherent", tmp_path, "--reduce") == (1, "", "no package has device code\n")


def test_code_that_the_catalog_does_not_know_is_compared_by_name(run_targets: Run, tmp_path: Path) -> None:
    _wheel(tmp_path, "blas", "gfx1100", "gfx1999")
    _wheel(tmp_path, "torch", "gfx1100", "gfx1999", "amdgcnspirv", requires="blas")
    finished = run_targets("coherent", tmp_path, "--quiet")
    assert finished == (1, "blas lacks amdgcnspirv, which torch asks for; it carries gfx1100, gfx1999\n", "")


def test_a_reduced_set_can_be_given_to_require(run_targets: Run, tmp_path: Path) -> None:
    wheels = [_wheel(tmp_path, "a", "gfx90a:xnack+"), _wheel(tmp_path, "b", "gfx90a:sramecc+", "gfx90a:sramecc-")]
    reduced = run_targets("coherent", *wheels, "--reduce").stdout
    assert reduced == "gfx90a:xnack+\n"
    assert run_targets("coherent", *wheels, "--require", reduced, "--quiet") == (0, "", "")


def test_coherent_refuses_what_is_not_a_wheel(run_targets: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.whl"
    path.write_bytes(b"no zip")
    assert run_targets("coherent", path) == (
        2,
        "",
        f"error: {path}: a damaged archive (File is not a zip file). Build or download it again.\n",
    )


def test_coherent_counts_no_gpu_as_served_that_a_folder_of_kernels_lacks(run_targets: Run, tmp_path: Path) -> None:
    kernels = "blas/lib/rocblas/library/TensileLibrary_lazy_gfx1030.dat"
    members = {"blas/lib/librocblas.so.5": bundle_of("gfx906", "gfx1030"), kernels: b"x"}
    make_wheel(tmp_path, "blas", members)
    assert run_targets("coherent", tmp_path) == (
        1,
        (
            "blas: gfx906, gfx1030\n"
            "blas: blas/lib/librocblas.so.5 opens blas/lib/rocblas/library, "
            "which has no index for gfx906, but has some for gfx1030\n"
            "not coherent; served by all: gfx1030\n"
        ),
        "",
    )


def test_coherent_counts_no_gpu_as_served_where_the_folder_of_kernels_is_absent(
    run_targets: Run, tmp_path: Path
) -> None:
    make_wheel(tmp_path, "blas", {"blas/lib/librocblas.so.5": bundle_of("gfx906", "gfx1030")})
    assert run_targets("coherent", tmp_path) == (
        1,
        (
            "blas: gfx906, gfx1030\n"
            "blas: blas/lib/librocblas.so.5 opens blas/lib/rocblas/library, "
            "which is absent: it finds kernels for no GPU\n"
            "no target is served by every package with device code\n"
            "not coherent; served by all: nothing\n"
        ),
        "",
    )


@needs_compiler
def test_coherent_counts_no_gpu_as_served_whose_archive_is_lost(run_targets: Run, tmp_path: Path) -> None:
    split_two(tmp_path / "two")
    split_two(tmp_path / "other")
    (tmp_path / "other/.kpack/two_gfx906.kpack").unlink()
    files = {
        f"x/{path.relative_to(tmp_path).as_posix()}": path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.suffix in (".so", ".kpack")
    }
    (tmp_path / "dist").mkdir()
    make_wheel(tmp_path / "dist", "x", files)
    found = run_targets("coherent", tmp_path / "dist")
    assert found.status == 1
    assert found.stdout.splitlines()[1:] == [
        (
            "x: x/other/lib/libtwo.so finds no device code for gfx906: "
            "no given archive at ../.kpack/two_@GFXARCH@.kpack has any"
        ),
        "not coherent; served by all: gfx90a, gfx1030",
    ]
