"""``rocwheel targets coherent``."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.artifacts.conftest import ar_archive, deb_tar
from tests.support.bundles import bundle_of
from tests.support.debs import write_deb
from tests.support.kpack_files import split_two
from tests.support.libraries import needs_compiler
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.command_line import Run


def _wheel(folder: Path, name: str, *targets: str, requires: str = "") -> Path:
    members = {f"{name}/kernels.hipfb": bundle_of(*targets)}
    return make_wheel(folder, name, members, tag="py3-none-any", requires=(requires,) if requires else ())


@pytest.mark.slow
def test_coherent_reports_each_gap(run_targets: Run, tmp_path: Path) -> None:
    _wheel(tmp_path, "blas", "gfx906")
    _wheel(tmp_path, "torch", "gfx906", "gfx1100", requires="blas")
    assert run_targets("coherent", tmp_path) == (
        1,
        (
            "blas: gfx906\n"
            "torch: gfx906, gfx1100\n"
            "blas lacks gfx1100, which torch has; blas has gfx906\n"
            "not coherent; supported by all: gfx906\n"
        ),
        "",
    )


@pytest.mark.slow
def test_coherent_prints_json(run_targets: Run, tmp_path: Path) -> None:
    blas = _wheel(tmp_path, "blas", "gfx906")
    assert json.loads(run_targets("coherent", blas, "--targets", "gfx906,gfx90a", "--json").stdout) == {
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


@pytest.mark.slow
def test_coherent_names_required_packages_that_were_not_given(run_targets: Run, tmp_path: Path) -> None:
    torch = _wheel(tmp_path, "torch", "gfx906", requires="blas>=2")
    expected = (
        "torch: gfx906\nnot compared, because these required packages weren't specified: blas\n"
        "coherent; supported by all: gfx906\n"
    )
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


@pytest.mark.slow
def test_coherent_follows_the_extras_of_the_selector_sdist(run_targets: Run, tmp_path: Path) -> None:
    extras = """[["libs==1.0", ""], ["dlls", "sys_platform == 'win32'"]]"""
    info = _BUILD_INFO.format(layout="neutral", extras=extras, selected='{"device": "device-{family}==1.0"}')
    sdist = _selector(tmp_path, info)
    torch = _wheel(tmp_path, "torch", "gfx906", "gfx942", requires="rocm[libraries]==1.0")
    libraries = _wheel(tmp_path, "libs", "gfx906")
    gap = "libs lacks gfx942, which torch has; libs has gfx906\n"
    assert run_targets("coherent", tmp_path, "--quiet") == (1, gap, "")
    assert run_targets("coherent", torch, libraries, sdist, "--quiet") == (1, gap, "")
    absent = json.loads(run_targets("coherent", tmp_path, "--json").stdout)["absent"]
    assert absent == ["dlls", "rocm-core"]


@pytest.mark.slow
def test_coherent_counts_the_families_of_the_selector_sdist_as_one_package(run_targets: Run, tmp_path: Path) -> None:
    selected = '{"libraries": "libs-{family}==1.0"}'
    _selector(tmp_path, _BUILD_INFO.format(layout="per-family", extras="[]", selected=selected))
    for family in ("gfx906", "gfx1030"):
        _wheel(tmp_path, f"libs-{family}", family)
    torch = _wheel(tmp_path, "torch", "gfx906", "gfx1030", requires="rocm[libraries]")
    assert run_targets("coherent", tmp_path, "--quiet") == (0, "", "")
    torch.unlink()
    _wheel(tmp_path, "torch", "gfx906", "gfx942", requires="rocm[libraries]")
    gap = "rocm lacks gfx942, which torch has; rocm has gfx906, gfx1030\n"
    assert run_targets("coherent", tmp_path, "--quiet") == (1, gap, "")


@pytest.mark.slow
def test_coherent_skips_other_sdists_in_a_folder(run_targets: Run, tmp_path: Path) -> None:
    _wheel(tmp_path, "blas", "gfx906")
    sdist = _selector(tmp_path, "", "PKG-INFO")
    assert run_targets("coherent", tmp_path, "--quiet") == (0, "", "")
    message = f"error: {sdist}: has no rocm_sdk/_build_info.py; expected a wheel, or the sdist of the rocm package\n"
    assert run_targets("coherent", sdist) == (2, "", message)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["VERSION =", "VERSION = open('x')", "VERSION = '1'"])
def test_coherent_refuses_a_damaged_sdist(run_targets: Run, tmp_path: Path, text: str) -> None:
    sdist = _selector(tmp_path, text)
    finished = run_targets("coherent", sdist)
    assert (finished[0], finished[1]) == (2, "")
    assert finished[2].startswith(f"error: {sdist}: its _build_info.py can't be read (")
    sdist.write_bytes(b"x")
    assert run_targets("coherent", sdist)[2].startswith(f"error: {sdist}: isn't a readable .tar.gz archive (")


@pytest.mark.slow
@pytest.mark.parametrize("value", ["", " , "])
def test_an_empty_list_of_required_targets_is_a_usage_error(run_targets: Run, tmp_path: Path, value: str) -> None:
    message = "error: --targets: doesn't specify a GPU target; expected at least one, such as gfx1100\n"
    assert run_targets("coherent", _wheel(tmp_path, "blas", "gfx906"), "--targets", value) == (2, "", message)


@pytest.mark.slow
def test_folders_without_wheels_are_refused(run_targets: Run, tmp_path: Path) -> None:
    message = f"error: {tmp_path}: contains no wheels or .deb files; expected a folder with *.whl or *.deb files\n"
    assert run_targets("coherent", tmp_path) == (2, "", message)


@pytest.mark.slow
def test_coherent_reduce_prints_the_largest_common_set(run_targets: Run, tmp_path: Path) -> None:
    wheels = [_wheel(tmp_path, "blas", "gfx906", "gfx11-generic"), _wheel(tmp_path, "fft", "gfx1100", "gfx906")]
    assert run_targets("coherent", *wheels, "--reduce") == (0, "gfx906\ngfx1100\n", "")
    assert run_targets("coherent", *wheels, "--quiet") == (0, "", "")


@pytest.mark.slow
def test_an_empty_reduced_set_is_reported_with_the_reason(run_targets: Run, tmp_path: Path) -> None:
    _wheel(tmp_path, "blas", "gfx906")
    _wheel(tmp_path, "fft", "gfx1100")
    assert run_targets("coherent", tmp_path, "--reduce") == (
        1,
        "",
        "the packages with device code have no target in common\n",
    )


@pytest.mark.slow
def test_a_reduced_set_without_a_required_target_is_reported(run_targets: Run, tmp_path: Path) -> None:
    blas = _wheel(tmp_path, "blas", "gfx906", "gfx1100")
    finished = run_targets("coherent", blas, "--reduce", "--targets", "gfx1100,gfx90a")
    assert finished == (1, "gfx906\ngfx1100\n", "the set doesn't support gfx90a, which --targets requires\n")


@pytest.mark.slow
def test_wheels_without_device_code_are_coherent(run_targets: Run, tmp_path: Path) -> None:
    for name in ("compiler", "headers"):
        make_wheel(tmp_path, name, {}, tag="py3-none-any")
    expected = "compiler: no device code\nheaders: no device code\ncoherent; no package has device code\n"
    assert run_targets("coherent", tmp_path) == (0, expected, "")
    assert run_targets("coherent", tmp_path, "--reduce") == (1, "", "no package has device code\n")


@pytest.mark.slow
def test_targets_unknown_to_the_catalog_are_compared_by_name(run_targets: Run, tmp_path: Path) -> None:
    _wheel(tmp_path, "blas", "gfx1100", "gfx1999")
    _wheel(tmp_path, "torch", "gfx1100", "gfx1999", "amdgcnspirv", requires="blas")
    finished = run_targets("coherent", tmp_path, "--quiet")
    assert finished == (1, "blas lacks amdgcnspirv, which torch has; blas has gfx1100, gfx1999\n", "")


@pytest.mark.slow
def test_a_reduced_set_can_be_passed_as_required_targets(run_targets: Run, tmp_path: Path) -> None:
    wheels = [_wheel(tmp_path, "a", "gfx90a:xnack+"), _wheel(tmp_path, "b", "gfx90a:sramecc+", "gfx90a:sramecc-")]
    reduced = run_targets("coherent", *wheels, "--reduce").stdout
    assert reduced == "gfx90a:xnack+\n"
    assert run_targets("coherent", *wheels, "--targets", reduced, "--quiet") == (0, "", "")


@pytest.mark.slow
def test_coherent_refuses_a_file_that_is_not_a_wheel(run_targets: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.whl"
    path.write_bytes(b"no zip")
    assert run_targets("coherent", path) == (
        2,
        "",
        f"error: {path}: is a damaged archive (File is not a zip file). Build or download it again.\n",
    )


@pytest.mark.slow
def test_coherent_excludes_gpus_missing_from_a_kernel_folder(run_targets: Run, tmp_path: Path) -> None:
    kernels = "blas/lib/rocblas/library/TensileLibrary_lazy_gfx1030.dat"
    members = {"blas/lib/librocblas.so.5": bundle_of("gfx906", "gfx1030"), kernels: b"x"}
    make_wheel(tmp_path, "blas", members)
    assert run_targets("coherent", tmp_path) == (
        1,
        (
            "blas: gfx906, gfx1030\n"
            "blas: blas/lib/librocblas.so.5 opens blas/lib/rocblas/library, which has no index for gfx906, only "
            "for gfx1030\n"
            "not coherent; supported by all: gfx1030\n"
        ),
        "",
    )


@pytest.mark.slow
def test_coherent_excludes_all_gpus_if_the_kernel_folder_is_missing(run_targets: Run, tmp_path: Path) -> None:
    make_wheel(tmp_path, "blas", {"blas/lib/librocblas.so.5": bundle_of("gfx906", "gfx1030")})
    assert run_targets("coherent", tmp_path) == (
        1,
        (
            "blas: gfx906, gfx1030\n"
            "blas: blas/lib/librocblas.so.5 opens blas/lib/rocblas/library, which is missing: it finds no kernels "
            "for any GPU\n"
            "the packages with device code have no target in common\n"
            "not coherent; supported by all: nothing\n"
        ),
        "",
    )


@pytest.mark.slow
@needs_compiler
def test_coherent_excludes_gpus_whose_archive_is_missing(run_targets: Run, tmp_path: Path) -> None:
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
            "no given archive at ../.kpack/two_@GFXARCH@.kpack has code"
        ),
        "not coherent; supported by all: gfx90a, gfx1030",
    ]


BRACKETS = f"a; {'(' * 5000}python_version > '3'{')' * 5000}"


def _requiring(requirement: str) -> Callable[[Path], Path]:
    return lambda folder: make_wheel(folder, "bad", {}, tag="py3-none-any", requires=(requirement,))


def _truncated(folder: Path) -> Path:
    path = make_wheel(folder, "bad", {"bad/kernels.hipfb": bundle_of("gfx906")}, tag="py3-none-any")
    path.write_bytes(path.read_bytes()[:-30])
    return path


def _without_dist_info(folder: Path) -> Path:
    path = folder / "bad-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bad/__init__.py", "")
    return path


DAMAGES = {
    "thousands of brackets": (_requiring(BRACKETS), "has a malformed Requires-Dist (more than 32 nested brackets"),
    "no requirement": (_requiring("= 1"), "has a malformed Requires-Dist ("),
    "a marker without order": (_requiring("a; sys_platform > 'a' and extra ~= 'b'"), "has a "),
    "truncated": (_truncated, "is a damaged archive ("),
    "without .dist-info": (_without_dist_info, "has no .dist-info folder"),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_wheel_does_not_prevent_comparison_of_the_others(
    run_targets: Run, tmp_path: Path, damage: str
) -> None:
    damaged, said = DAMAGES[damage]
    for name in ("blas", "fft"):
        files = {f"{name}/kernels.hipfb": bundle_of("gfx906")}
        make_wheel(tmp_path, name, files, tag="py3-none-any")
    path = damaged(tmp_path)
    status, printed, errors = run_targets("coherent", tmp_path)
    assert (status, printed) == (
        2,
        "blas: gfx906\nfft: gfx906\ncoherent, based on the readable files; supported by all: gfx906\n",
    )
    assert errors.startswith(f"error: {path}: {said}")


@pytest.mark.slow
def test_all_damaged_wheels_are_reported_together(run_targets: Run, tmp_path: Path) -> None:
    make_wheel(tmp_path, "blas", {"blas/kernels.hipfb": bundle_of("gfx906")}, tag="py3-none-any")
    paths = []
    for number, (damaged, _) in enumerate(DAMAGES.values()):
        (tmp_path / str(number)).mkdir()
        paths.append(damaged(tmp_path / str(number)))
    status, printed, errors = run_targets("coherent", tmp_path)
    assert (status, printed) == (2, "blas: gfx906\ncoherent, based on the readable files; supported by all: gfx906\n")
    assert [str(path) in errors for path in paths] == [True] * len(DAMAGES)


@pytest.mark.slow
def test_conflicting_versions_are_reported_along_with_damaged_wheels(run_targets: Run, tmp_path: Path) -> None:
    for version in ("1.0", "2.0"):
        make_wheel(tmp_path, "blas", {}, version=version, tag="py3-none-any")
    path = _truncated(tmp_path)
    status, printed, errors = run_targets("coherent", tmp_path)
    assert (status, printed) == (2, "")
    assert f"{path}: is a damaged archive (" in errors
    assert "blas-1.0-py3-none-any.whl: is version 1.0 of blas, but" in errors


_FORMAT = {"debian-binary": b"2.0\n"}


def _deb(
    folder: Path, name: str, *targets: str, version: str = "5.5-1", architecture: str = "amd64", **fields: str
) -> Path:
    control = f"Package: {name}\nVersion: {version}\nArchitecture: {architecture}\nDescription: text\n"
    control += "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in fields.items())
    files = {"./usr/share/doc/copyright": b"text"}
    files |= {f"./usr/lib/{name}.hipfb": bundle_of(*targets)} if targets else {}
    parts = {"control.tar": deb_tar({"./control": control.encode()}), "data.tar": deb_tar(files)}
    path = folder / f"{name}_{version}_{architecture}.deb"
    path.write_bytes(ar_archive({**_FORMAT, **parts}))
    return path


@pytest.mark.slow
def test_a_gap_between_debian_packages_is_reported_as_for_wheels(run_targets: Run, tmp_path: Path) -> None:
    _deb(tmp_path, "librocblas4", "gfx906")
    _deb(tmp_path, "libhipblas2", Depends="librocblas4 (>= 5.0), libc6 (>= 2.38)")
    _deb(tmp_path, "libmiopen1", "gfx906", "gfx1100", Depends="libhipblas2 | other")
    assert run_targets("coherent", tmp_path) == (
        1,
        (
            "libhipblas2: no device code\n"
            "libmiopen1: gfx906, gfx1100\n"
            "librocblas4: gfx906\n"
            "librocblas4 lacks gfx1100, which libmiopen1 has; librocblas4 has gfx906\n"
            "not coherent; supported by all: gfx906\n"
        ),
        "",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "absent"),
    [
        ({"Depends": "librocblas4 (>= 6)"}, "librocblas4 (>= 6)"),
        ({"Depends": "librocsparse1, libc6"}, "librocsparse1"),
        ({"Pre-Depends": "libamdhip64-6 (= 6.4.3-1)"}, "libamdhip64-6 (= 6.4.3-1)"),
    ],
    ids=["another version of a given one", "one of ROCm", "before unpacking"],
)
def test_a_required_package_that_was_not_given_is_reported(
    run_targets: Run, tmp_path: Path, fields: dict[str, str], absent: str
) -> None:
    _deb(tmp_path, "librocblas4", "gfx906")
    _deb(tmp_path, "libmiopen1", "gfx906", **fields)
    assert (
        f"not compared, because these required packages weren't specified: {absent}\n"
        in run_targets("coherent", tmp_path).stdout
    )


_BLAS = {"./usr/lib/librocblas.so.5": bundle_of("gfx906")}
_ABSENT = "usr/lib/librocblas.so.5 opens usr/lib/rocblas/library, which is missing: it finds no kernels for any GPU"
_NOT_GIVEN = "usr/lib/librocblas.so.5 opens usr/lib/rocblas/library, but no given package has kernels for it"


@pytest.mark.slow
@pytest.mark.parametrize("fields", ["Depends: libamdhip64-6\n", "Recommends: librocblas5-device\n"])
def test_a_required_package_that_was_not_given_may_contain_the_kernel_folder(
    run_targets: Run, tmp_path: Path, fields: str
) -> None:
    write_deb(tmp_path, "librocblas5", _BLAS, fields=fields)
    write_deb(tmp_path, "libother1", {"./usr/lib/a.hipfb": bundle_of("gfx906")})
    finished = run_targets("coherent", tmp_path)
    assert (finished.status, finished.stdout.splitlines()[2]) == (0, f"librocblas5: {_NOT_GIVEN}")


@pytest.mark.slow
def test_the_kernel_folder_of_a_single_package_is_not_checked(run_targets: Run, tmp_path: Path) -> None:
    finished = run_targets("coherent", write_deb(tmp_path, "librocblas5", _BLAS))
    assert (finished.status, finished.stdout.splitlines()[1]) == (0, f"librocblas5: {_NOT_GIVEN}")


@pytest.mark.slow
def test_a_kernel_folder_missing_from_all_required_packages_is_a_finding(run_targets: Run, tmp_path: Path) -> None:
    write_deb(tmp_path, "librocblas5", _BLAS, fields="Depends: libamdhip64-6, libc6\n")
    write_deb(tmp_path, "libamdhip64-6", {"./usr/lib/libamdhip64.so.6": b""})
    finished = run_targets("coherent", tmp_path)
    assert (finished.status, finished.stdout.splitlines()[2]) == (1, f"librocblas5: {_ABSENT}")


@pytest.mark.slow
def test_a_package_that_provides_the_required_package_is_compared(run_targets: Run, tmp_path: Path) -> None:
    _deb(tmp_path, "librocblas-all", "gfx906", Provides="librocblas4 (= 5.5)")
    _deb(tmp_path, "libmiopen1", "gfx1100", Depends="librocblas4 (>= 5)")
    found = run_targets("coherent", tmp_path).stdout
    assert "librocblas-all lacks gfx1100, which libmiopen1 has; librocblas-all has gfx906\n" in found


@pytest.mark.slow
def test_a_package_without_code_counts_by_its_declaration(run_targets: Run, tmp_path: Path) -> None:
    _deb(tmp_path, "librocblas-dev", X_ROCm_GPU_Architecture="gfx906 gfx1030")
    _deb(tmp_path, "libmiopen1", "gfx906", "gfx1100", Depends="librocblas-dev")
    found = run_targets("coherent", tmp_path).stdout
    assert "librocblas-dev lacks gfx1100, which libmiopen1 has; librocblas-dev has gfx906, gfx1030\n" in found


@pytest.mark.slow
def test_a_declaration_without_features_matches_code_with_features(run_targets: Run, tmp_path: Path) -> None:
    _deb(tmp_path, "librocblas4", "gfx90a:xnack+", "gfx90a:xnack-", X_ROCm_GPU_Architecture="gfx90a")
    assert run_targets("coherent", tmp_path).status == 0


@pytest.mark.slow
def test_a_declaration_that_differs_from_the_code_is_a_finding(run_targets: Run, tmp_path: Path) -> None:
    _deb(tmp_path, "librocblas4", "gfx906", "gfx90a", X_ROCm_GPU_Architecture="gfx906 gfx1100")
    _deb(tmp_path, "librocrand1", "gfx906")
    assert run_targets("coherent", tmp_path) == (
        1,
        (
            "librocblas4: gfx906, gfx90a\n"
            "librocrand1: gfx906\n"
            "librocblas4 declares gfx906, gfx1100 in X-ROCm-GPU-Architecture, but its files have code for "
            "gfx906, gfx90a: gfx90a is in usr/lib/librocblas4.hipfb but not declared; no file has code for gfx1100\n"
            "not coherent; supported by all: gfx906\n"
        ),
        "",
    )


@pytest.mark.slow
def test_json_has_both_lists_of_an_incorrect_declaration(run_targets: Run, tmp_path: Path) -> None:
    _deb(tmp_path, "librocblas4", "gfx906", "gfx90a", X_ROCm_GPU_Architecture="gfx906")
    found = json.loads(run_targets("coherent", tmp_path, "--json").stdout)
    assert found["coherent"] is False
    assert found["misdeclared"] == [{"package": "librocblas4", "declared": ["gfx906"], "carried": ["gfx906", "gfx90a"]}]


@pytest.mark.slow
def test_a_malformed_declaration_is_refused_with_the_package_name(run_targets: Run, tmp_path: Path) -> None:
    path = _deb(tmp_path, "librocblas4", X_ROCm_GPU_Architecture="gfx906 gfx90a:xnack")
    finished = run_targets("coherent", tmp_path)
    assert (finished.status, finished.stdout) == (2, "")
    assert finished.stderr.startswith(f"error: {path}: X-ROCm-GPU-Architecture: ")


@pytest.mark.slow
def test_a_package_for_another_architecture_is_refused(run_targets: Run, tmp_path: Path) -> None:
    _deb(tmp_path, "librocblas4", "gfx906")
    _deb(tmp_path, "libhipblas2")
    _deb(tmp_path, "rocm-cmake", architecture="all")
    wrong = _deb(tmp_path, "libmiopen1", architecture="arm64")
    assert run_targets("coherent", tmp_path) == (
        2,
        "",
        f"error: {wrong}: is a package for arm64; expected amd64, like most of the packages\n",
    )


@pytest.mark.slow
def test_two_versions_of_a_package_are_refused(run_targets: Run, tmp_path: Path) -> None:
    first = _deb(tmp_path, "librocblas4", "gfx906")
    second = _deb(tmp_path, "librocblas4", "gfx906", version="6.1-1")
    assert run_targets("coherent", tmp_path) == (
        2,
        "",
        (
            f"error: {first}: is version 5.5-1 of librocblas4, but {second} is version 6.1-1; "
            "expected one version of each package\n"
        ),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"rubbish", "is not an ar archive; expected a Debian package (.deb)"),
        (b"!<arch>\n", "is empty; expected the members debian-binary, control.tar, and data.tar"),
        (
            ar_archive({**_FORMAT, "control.tar": deb_tar({}), "data.tar": deb_tar({})}),
            "does not contain a control file; expected a file named control in control.tar",
        ),
        (
            ar_archive({**_FORMAT, "control.tar": deb_tar({"./control": b"Package: a\n"}), "data.tar": deb_tar({})}),
            "has a control file without Version, Architecture",
        ),
    ],
    ids=["no archive", "no members", "no control", "control without version"],
)
def test_a_damaged_package_is_reported_after_comparing_the_others(
    run_targets: Run, tmp_path: Path, data: bytes, found: str
) -> None:
    _deb(tmp_path, "librocblas4", "gfx906")
    (tmp_path / "bad.deb").write_bytes(data)
    finished = run_targets("coherent", tmp_path)
    assert finished == (
        2,
        "librocblas4: gfx906\ncoherent, based on the readable files; supported by all: gfx906\n",
        f"error: {tmp_path}/bad.deb: {found}\n",
    )


@pytest.mark.slow
def test_a_package_truncated_anywhere_is_refused(run_targets: Run, tmp_path: Path) -> None:
    whole = _deb(tmp_path, "librocblas4", "gfx906").read_bytes()
    for size in range(0, len(whole), len(whole) // 12):
        (tmp_path / "librocblas4_5.5-1_amd64.deb").write_bytes(whole[:size])
        finished = run_targets("coherent", tmp_path)
        assert (finished.status, finished.stdout) == (2, ""), size


@pytest.mark.slow
def test_wheels_and_debian_packages_are_compared_together(run_targets: Run, tmp_path: Path) -> None:
    _deb(tmp_path, "librocblas4", "gfx906")
    make_wheel(tmp_path, "torch", {"torch/kernels.hipfb": bundle_of("gfx906", "gfx1100")}, tag="py3-none-any")
    assert run_targets("coherent", tmp_path, "--reduce").stdout == "gfx906\n"


@pytest.mark.slow
def test_code_in_static_libraries_is_included(run_targets: Run, tmp_path: Path) -> None:
    library = ar_archive({"conv.o": bundle_of("gfx906"), "gemm.o": bundle_of("gfx90a")})
    files = {"usr/lib/libdevice_operations.a": library}
    write_deb(tmp_path, "libck-dev", files, fields="X-ROCm-GPU-Architecture: gfx906 gfx90a\n")
    assert run_targets("coherent", tmp_path).stdout == (
        "libck-dev: gfx906, gfx90a\ncoherent; supported by all: gfx906, gfx90a\n"
    )


@pytest.mark.slow
def test_undeclared_code_in_a_static_library_is_reported(run_targets: Run, tmp_path: Path) -> None:
    library = ar_archive({"conv.o": bundle_of("gfx906"), "gemm.o": bundle_of("gfx90a"), "pool.o": bundle_of("gfx90a")})
    declared = "X-ROCm-GPU-Architecture: gfx906\n"
    write_deb(tmp_path, "libck-dev", {"usr/lib/libdevice_operations.a": library}, fields=declared)
    assert run_targets("coherent", tmp_path).stdout == (
        "libck-dev: gfx906, gfx90a\n"
        "libck-dev declares gfx906 in X-ROCm-GPU-Architecture, but its files have code for gfx906, gfx90a: "
        "gfx90a is in 2 of 3 bundles in usr/lib/libdevice_operations.a but not declared\n"
        "not coherent; supported by all: gfx906, gfx90a\n"
    )


@pytest.mark.slow
def test_a_package_that_no_other_package_requires_may_support_fewer_targets(run_targets: Run, tmp_path: Path) -> None:
    _deb(tmp_path, "librocblas4", "gfx906", "gfx1100")
    _deb(tmp_path, "libmiopen1", "gfx906", "gfx1100", Depends="librocblas4")
    _deb(tmp_path, "libck-dev", "gfx90a")
    assert run_targets("coherent", tmp_path) == (
        0,
        (
            "libck-dev: gfx90a\n"
            "libmiopen1: gfx906, gfx1100\n"
            "librocblas4: gfx906, gfx1100\n"
            "libck-dev has gfx90a, but lacks gfx906, which librocblas4 supports; no package requires libck-dev\n"
            "libck-dev has gfx90a, but lacks gfx1100, which librocblas4 supports; no package requires libck-dev\n"
            "coherent; supported by all: nothing\n"
        ),
        "",
    )


@pytest.mark.slow
def test_a_library_that_compiles_missing_kernels_at_first_use_is_noted(run_targets: Run, tmp_path: Path) -> None:
    files = {"usr/lib/librocfft.so.0": bundle_of("gfx906", "gfx90a")}
    files["usr/lib/rocfft/rocfft_kernel_cache_gfx90a.db"] = b""
    write_deb(tmp_path, "librocfft0", files)
    assert run_targets("coherent", tmp_path) == (
        0,
        (
            "librocfft0: gfx906, gfx90a\n"
            "librocfft0: usr/lib/librocfft.so.0 opens usr/lib/rocfft, which has no kernels for gfx906, only "
            "for gfx90a; the library compiles kernels at first use\n"
            "coherent; supported by all: gfx906, gfx90a\n"
        ),
        "",
    )
