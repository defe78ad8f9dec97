"""``rocwheel targets coherent`` on Debian packages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.artifacts.conftest import ar_archive, deb_tar
from tests.support.bundles import bundle_of
from tests.support.debs import write_deb
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

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


def test_gap_between_packages_is_named_as_for_wheels(run_targets: Run, tmp_path: Path) -> None:
    _deb(tmp_path, "librocblas4", "gfx906")
    _deb(tmp_path, "libhipblas2", Depends="librocblas4 (>= 5.0), libc6 (>= 2.38)")
    _deb(tmp_path, "libmiopen1", "gfx906", "gfx1100", Depends="libhipblas2 | other")
    assert run_targets("coherent", tmp_path) == (
        1,
        (
            "libhipblas2: no device code\n"
            "libmiopen1: gfx906, gfx1100\n"
            "librocblas4: gfx906\n"
            "librocblas4 lacks gfx1100, which libmiopen1 asks for; it carries gfx906\n"
            "not coherent; served by all: gfx906\n"
        ),
        "",
    )


@pytest.mark.parametrize(
    ("fields", "absent"),
    [
        ({"Depends": "librocblas4 (>= 6)"}, "librocblas4 (>= 6)"),
        ({"Depends": "librocsparse1, libc6"}, "librocsparse1"),
        ({"Pre-Depends": "libamdhip64-6 (= 6.4.3-1)"}, "libamdhip64-6 (= 6.4.3-1)"),
    ],
    ids=["another version of a given one", "one of ROCm", "before unpacking"],
)
def test_package_that_is_needed_but_not_given_is_named(
    run_targets: Run, tmp_path: Path, fields: dict[str, str], absent: str
) -> None:
    _deb(tmp_path, "librocblas4", "gfx906")
    _deb(tmp_path, "libmiopen1", "gfx906", **fields)
    assert f"needed, but not given, so not compared: {absent}\n" in run_targets("coherent", tmp_path).stdout


_BLAS = {"./usr/lib/librocblas.so.5": bundle_of("gfx906")}
_ABSENT = "usr/lib/librocblas.so.5 opens usr/lib/rocblas/library, which is absent: it finds kernels for no GPU"
_NOT_GIVEN = "usr/lib/librocblas.so.5 opens usr/lib/rocblas/library, of which no given package has kernels"


@pytest.mark.parametrize("fields", ["Depends: libamdhip64-6\n", "Recommends: librocblas5-device\n"])
def test_a_package_that_is_not_given_may_bring_the_folder_of_kernels(
    run_targets: Run, tmp_path: Path, fields: str
) -> None:
    write_deb(tmp_path, "librocblas5", _BLAS, fields=fields)
    write_deb(tmp_path, "libother1", {"./usr/lib/a.hipfb": bundle_of("gfx906")})
    finished = run_targets("coherent", tmp_path)
    assert (finished.status, finished.stdout.splitlines()[2]) == (0, f"librocblas5: {_NOT_GIVEN}")


def test_the_folder_of_a_package_given_alone_is_not_judged(run_targets: Run, tmp_path: Path) -> None:
    finished = run_targets("coherent", write_deb(tmp_path, "librocblas5", _BLAS))
    assert (finished.status, finished.stdout.splitlines()[1]) == (0, f"librocblas5: {_NOT_GIVEN}")


def test_a_folder_that_is_absent_from_all_packages_that_are_needed_is_a_finding(
    run_targets: Run, tmp_path: Path
) -> None:
    write_deb(tmp_path, "librocblas5", _BLAS, fields="Depends: libamdhip64-6, libc6\n")
    write_deb(tmp_path, "libamdhip64-6", {"./usr/lib/libamdhip64.so.6": b""})
    finished = run_targets("coherent", tmp_path)
    assert (finished.status, finished.stdout.splitlines()[2]) == (1, f"librocblas5: {_ABSENT}")


def test_package_that_provides_the_needed_one_is_compared(run_targets: Run, tmp_path: Path) -> None:
    _deb(tmp_path, "librocblas-all", "gfx906", Provides="librocblas4 (= 5.5)")
    _deb(tmp_path, "libmiopen1", "gfx1100", Depends="librocblas4 (>= 5)")
    found = run_targets("coherent", tmp_path).stdout
    assert "librocblas-all lacks gfx1100, which libmiopen1 asks for; it carries gfx906\n" in found


def test_package_without_code_counts_by_what_it_declares(run_targets: Run, tmp_path: Path) -> None:
    _deb(tmp_path, "librocblas-dev", X_ROCm_GPU_Architecture="gfx906 gfx1030")
    _deb(tmp_path, "libmiopen1", "gfx906", "gfx1100", Depends="librocblas-dev")
    found = run_targets("coherent", tmp_path).stdout
    assert "librocblas-dev lacks gfx1100, which libmiopen1 asks for; it carries gfx906, gfx1030\n" in found


def test_declaration_without_features_fits_code_that_has_some(run_targets: Run, tmp_path: Path) -> None:
    _deb(tmp_path, "librocblas4", "gfx90a:xnack+", "gfx90a:xnack-", X_ROCm_GPU_Architecture="gfx90a")
    assert run_targets("coherent", tmp_path).status == 0


def test_declaration_of_other_targets_than_the_codes_is_a_finding_beside_those_on_the_others(
    run_targets: Run, tmp_path: Path
) -> None:
    _deb(tmp_path, "librocblas4", "gfx906", "gfx90a", X_ROCm_GPU_Architecture="gfx906 gfx1100")
    _deb(tmp_path, "librocrand1", "gfx906")
    assert run_targets("coherent", tmp_path) == (
        1,
        (
            "librocblas4: gfx906, gfx90a\n"
            "librocrand1: gfx906\n"
            "librocblas4 declares gfx906, gfx1100 in X-ROCm-GPU-Architecture, and carries gfx906, gfx90a: "
            "gfx90a is in usr/lib/librocblas4.hipfb, and not declared; no file carries gfx1100\n"
            "not coherent; served by all: gfx906\n"
        ),
        "",
    )


def test_json_has_both_lists_of_a_wrong_declaration(run_targets: Run, tmp_path: Path) -> None:
    _deb(tmp_path, "librocblas4", "gfx906", "gfx90a", X_ROCm_GPU_Architecture="gfx906")
    found = json.loads(run_targets("coherent", tmp_path, "--json").stdout)
    assert found["coherent"] is False
    assert found["misdeclared"] == [{"package": "librocblas4", "declared": ["gfx906"], "carried": ["gfx906", "gfx90a"]}]


def test_malformed_word_in_a_declaration_is_refused_with_the_package(run_targets: Run, tmp_path: Path) -> None:
    path = _deb(tmp_path, "librocblas4", X_ROCm_GPU_Architecture="gfx906 gfx90a:xnack")
    finished = run_targets("coherent", tmp_path)
    assert (finished.status, finished.stdout) == (2, "")
    assert finished.stderr.startswith(f"error: {path}: X-ROCm-GPU-Architecture: ")


def test_package_of_another_architecture_is_refused(run_targets: Run, tmp_path: Path) -> None:
    _deb(tmp_path, "librocblas4", "gfx906")
    _deb(tmp_path, "libhipblas2")
    _deb(tmp_path, "rocm-cmake", architecture="all")
    wrong = _deb(tmp_path, "libmiopen1", architecture="arm64")
    assert run_targets("coherent", tmp_path) == (
        2,
        "",
        f"error: {wrong}: is a package for arm64; expected amd64, as most of the packages\n",
    )


def test_two_versions_of_one_package_are_refused(run_targets: Run, tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"rubbish", "not an ar archive; expected a Debian package (.deb)"),
        (b"!<arch>\n", "holds nothing; expected the members debian-binary, control.tar and data.tar"),
        (
            ar_archive({**_FORMAT, "control.tar": deb_tar({}), "data.tar": deb_tar({})}),
            "holds no control file; expected control in control.tar",
        ),
        (
            ar_archive({**_FORMAT, "control.tar": deb_tar({"./control": b"Package: a\n"}), "data.tar": deb_tar({})}),
            "its control file lacks Version, Architecture",
        ),
    ],
    ids=["no archive", "no members", "no control", "control without version"],
)
def test_damaged_package_is_told_after_the_comparison_of_the_others(
    run_targets: Run, tmp_path: Path, data: bytes, found: str
) -> None:
    _deb(tmp_path, "librocblas4", "gfx906")
    (tmp_path / "bad.deb").write_bytes(data)
    finished = run_targets("coherent", tmp_path)
    assert finished == (
        2,
        "librocblas4: gfx906\ncoherent, of what could be read; served by all: gfx906\n",
        f"error: {tmp_path}/bad.deb: {found}\n",
    )


def test_package_cut_off_anywhere_is_refused_not_half_read(run_targets: Run, tmp_path: Path) -> None:
    whole = _deb(tmp_path, "librocblas4", "gfx906").read_bytes()
    for size in range(0, len(whole), len(whole) // 12):
        (tmp_path / "librocblas4_5.5-1_amd64.deb").write_bytes(whole[:size])
        finished = run_targets("coherent", tmp_path)
        assert (finished.status, finished.stdout) == (2, ""), size


def test_wheels_and_debian_packages_are_compared_together(run_targets: Run, tmp_path: Path) -> None:
    _deb(tmp_path, "librocblas4", "gfx906")
    make_wheel(tmp_path, "torch", {"torch/kernels.hipfb": bundle_of("gfx906", "gfx1100")}, tag="py3-none-any")
    assert run_targets("coherent", tmp_path, "--reduce").stdout == "gfx906\n"


def test_code_in_static_libraries_counts(run_targets: Run, tmp_path: Path) -> None:
    library = ar_archive({"conv.o": bundle_of("gfx906"), "gemm.o": bundle_of("gfx90a")})
    files = {"usr/lib/libdevice_operations.a": library}
    write_deb(tmp_path, "libck-dev", files, fields="X-ROCm-GPU-Architecture: gfx906 gfx90a\n")
    assert run_targets("coherent", tmp_path).stdout == (
        "libck-dev: gfx906, gfx90a\ncoherent; served by all: gfx906, gfx90a\n"
    )


def test_code_that_a_static_library_carries_undeclared_is_counted(run_targets: Run, tmp_path: Path) -> None:
    library = ar_archive({"conv.o": bundle_of("gfx906"), "gemm.o": bundle_of("gfx90a"), "pool.o": bundle_of("gfx90a")})
    declared = "X-ROCm-GPU-Architecture: gfx906\n"
    write_deb(tmp_path, "libck-dev", {"usr/lib/libdevice_operations.a": library}, fields=declared)
    assert run_targets("coherent", tmp_path).stdout == (
        "libck-dev: gfx906, gfx90a\n"
        "libck-dev declares gfx906 in X-ROCm-GPU-Architecture, and carries gfx906, gfx90a: "
        "gfx90a is in 2 of 3 bundles of usr/lib/libdevice_operations.a, and not declared\n"
        "not coherent; served by all: gfx906, gfx90a\n"
    )


def test_a_package_that_nobody_needs_may_serve_less(run_targets: Run, tmp_path: Path) -> None:
    _deb(tmp_path, "librocblas4", "gfx906", "gfx1100")
    _deb(tmp_path, "libmiopen1", "gfx906", "gfx1100", Depends="librocblas4")
    _deb(tmp_path, "libck-dev", "gfx90a")
    assert run_targets("coherent", tmp_path) == (
        0,
        (
            "libck-dev: gfx90a\n"
            "libmiopen1: gfx906, gfx1100\n"
            "librocblas4: gfx906, gfx1100\n"
            "libck-dev lacks gfx906, which librocblas4 serves; it carries gfx90a; no package needs it\n"
            "libck-dev lacks gfx1100, which librocblas4 serves; it carries gfx90a; no package needs it\n"
            "coherent; served by all: nothing\n"
        ),
        "",
    )


def test_a_library_that_compiles_what_its_database_lacks_is_noted(run_targets: Run, tmp_path: Path) -> None:
    files = {"usr/lib/librocfft.so.0": bundle_of("gfx906", "gfx90a")}
    files["usr/lib/rocfft/rocfft_kernel_cache_gfx90a.db"] = b""
    write_deb(tmp_path, "librocfft0", files)
    assert run_targets("coherent", tmp_path) == (
        0,
        (
            "librocfft0: gfx906, gfx90a\n"
            "librocfft0: usr/lib/librocfft.so.0 opens usr/lib/rocfft, which has no kernels for gfx906, but has some "
            "for gfx90a; it compiles kernels when they are first used\n"
            "coherent; served by all: gfx906, gfx90a\n"
        ),
        "",
    )
