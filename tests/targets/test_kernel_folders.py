"""Which GPUs a library serves, wherever its code lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.code_objects import parse_target_id
from rocwheel.targets.compatibility import Runtime
from rocwheel.targets.kernel_folders import KernelFolder, KernelFolders, opener_of

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = "torch/lib/rocblas/library"


def folder_of(library: str, files: Iterable[str]) -> KernelFolder | None:
    """Return the folder that a library opens among files."""
    return KernelFolders(files).opened_by(library, opener_of(library))


@pytest.mark.parametrize(
    ("name", "opener"),
    [
        ("lib/librocblas.so", "rocblas"),
        ("lib/librocblas.so.5.0.70200", "rocblas"),
        ("torch.libs/librocblas-1a2b3c4d.so.4", "rocblas"),
        ("bin/rocblas.dll", "rocblas"),
        ("torch.libs/rocblas-d64049c6e3865410a7dda6a7e9f0c575.dll", "rocblas"),
        ("torch.libs/rocblas-d64049c6e386.dll", None),
        ("bin/libhipblaslt.dll", "hipblaslt"),
        ("bin/hipBLASLt.dll", "hipblaslt"),
        ("lib/libhipsparselt.so.0", "hipsparselt"),
        ("lib/libMIOpen.so.1", "miopen"),
        ("lib/librocfft.so.0", "rocfft"),
        ("torch/lib/libaotriton_v2.so.0.11.1", "aotriton"),
        ("lib/librocblas_extra.so", None),
        ("lib/librocsparse.so.1", None),
        ("lib/librocblas.txt", None),
    ],
)
def test_a_library_without_a_soname_is_identified_by_its_file_name(name: str, opener: str | None) -> None:
    found = opener_of(name)
    assert (found and found.name) == opener


@pytest.mark.parametrize(
    ("path", "soname", "opener"),
    [
        ("lib/blas.so", "librocblas.so.5", "rocblas"),
        ("lib/librocblas.so.5.gfx906", "librocblas.so.5", "rocblas"),
        ("torch.libs/libx.so", "librocblas-1a2b3c4d.so.4", "rocblas"),
        ("lib/librocblas.so.5", "libstub.so", "rocblas"),
    ],
)
def test_a_renamed_library_is_identified_by_its_soname(path: str, soname: str, opener: str | None) -> None:
    found = opener_of(path, soname)
    assert (found and found.name) == opener


@pytest.mark.parametrize(
    ("library", "file"),
    [
        ("lib/librocblas.so.5", "lib/rocblas/library/TensileLibrary_lazy_gfx90a.dat"),
        ("lib/librocblas.so.5", "lib/rocblas/library/gfx90a/TensileLibrary_lazy_gfx90a.dat"),
        ("lib/librocblas.so.5", "lib/library/TensileLibrary_gfx90a.dat"),
        ("lib/asan/librocblas.so.5", "lib/rocblas/library/TensileLibrary_lazy_gfx90a.dat"),
        ("usr/lib/librocblas.so.5", "usr/lib/rocblas/5.2.4/library/TensileLibrary_lazy_gfx90a.dat"),
        ("bin/rocblas.dll", "bin/rocblas/library/TensileLibrary_lazy_gfx90a.dat"),
        ("lib/libhipblaslt.so.1", "lib/hipblaslt/library/gfx90a/TensileLibrary_lazy_gfx90a.dat.zlib"),
        ("lib/libhipsparselt.so.0", "lib/hipsparselt/library/TensileLibrary_gfx90a.dat"),
        ("lib/libMIOpen.so.1", "share/miopen/db/gfx90a6e.kdb"),
        ("lib/librocfft.so.0", "lib/rocfft/rocfft_kernel_cache_gfx90a.db"),
        ("torch/lib/libaotriton_v2.so", "torch/lib/aotriton.images/amd-gfx90a/flash/attn_fwd/x.aks2"),
    ],
)
def test_each_library_opens_its_own_folder(library: str, file: str) -> None:
    folder = folder_of(library, [file])
    assert folder is not None
    assert folder.named == ["gfx90a"]
    assert folder.find_lack(parse_target_id("gfx90a:xnack+")) == ""
    assert folder.find_lack(parse_target_id("gfx906")).endswith("for gfx906, only for gfx90a")


@pytest.mark.parametrize(
    "files",
    [["lib/rocfft/rocfft_kernel_cache.db"], ["lib/rocfft/1.0.36/rocfft_rtc_helper"], []],
    ids=["one cache for all targets", "a helper", "nothing"],
)
def test_rocfft_with_no_cache_for_any_target_lacks_nothing(files: list[str]) -> None:
    assert folder_of("lib/librocfft.so.0", files) is None


@pytest.mark.parametrize(
    ("files", "gpu", "lack"),
    [
        pytest.param(
            ["TensileLibrary_lazy_gfx1030.dat", "Kernels.so-000-gfx1030.hsaco"],
            "gfx1030",
            "",
            id="index and kernels",
        ),
        pytest.param(
            ["TensileLibrary_lazy_gfx1030.dat", "Kernels.so-000-gfx1030.hsaco", "Kernels.so-000-gfx906.hsaco"],
            "gfx906",
            "has no index for gfx906, only for gfx1030",
            id="kernels without an index",
        ),
        pytest.param(
            ["TensileLibrary_lazy_gfx1030.dat", "TensileLibrary_lazy_gfx906.dat", "Kernels.so-000-gfx1030.hsaco"],
            "gfx906",
            "has no kernels for gfx906, only for gfx1030",
            id="an index without kernels",
        ),
        pytest.param(
            ["TensileLibrary_lazy_gfx1030.dat", "TensileLibrary_lazy_gfx906.dat"], "gfx906", "", id="no kernels at all"
        ),
        pytest.param(
            ["TensileLibrary.dat", "TensileLibrary_lazy_gfx1030.dat", "Kernels_gfx906.co"],
            "gfx906",
            "",
            id="one index for all",
        ),
        pytest.param(
            ["TensileLibrary_Type_SS_fallback_gfx906.hsaco", "TensileLibrary_lazy_gfx1030.dat"],
            "gfx906",
            "has no index for gfx906, only for gfx1030",
            id="fallback kernels are not found without an index",
        ),
        pytest.param(
            ["TensileLibrary_lazy_gfx90a.dat", "Kernels.so-000-gfx90a-xnack+.hsaco"],
            "gfx90a:xnack-",
            "has no kernels for gfx90a:xnack-, only for gfx90a:xnack+",
            id="kernels for the other setting",
        ),
        pytest.param(
            ["TensileLibrary_lazy_gfx90a.dat", "Kernels.so-000-gfx90a-xnack+.hsaco"],
            "gfx90a:xnack+",
            "",
            id="kernels for the setting",
        ),
        pytest.param(
            ["TensileLibrary_lazy_gfx11-generic.dat", "Kernels.so-000-gfx11-generic.hsaco"],
            "gfx1152",
            "",
            id="generic files, which patched libraries open",
        ),
    ],
)
def test_a_folder_lacks_a_kind_of_file_only_if_another_target_has_it(files: list[str], gpu: str, lack: str) -> None:
    folder = folder_of("torch/lib/librocblas.so.5", [f"{FOLDER}/{name}" for name in files])
    assert folder is not None
    assert folder.find_lack(parse_target_id(gpu)) == lack


def test_the_folder_of_a_library_below_a_path_with_brackets_is_found() -> None:
    kernel = "a[b]/lib/hipblaslt/gfx906/library/Kernels_gfx906.co"
    folder = folder_of("a[b]/lib/libhipblaslt.so.1", [kernel])
    assert folder is not None
    assert folder.place == "a[b]/lib/hipblaslt/gfx906/library"


@pytest.mark.parametrize(
    ("library", "place"),
    [
        ("lib/librocblas.so.5", "lib/rocblas/library"),
        ("lib/libhipblaslt.so.1", "lib/hipblaslt/library"),
        ("lib/libhipsparselt.so.0", "lib/hipsparselt/library"),
        ("torch/lib/libaotriton_v2.so", "torch/lib/aotriton.images"),
    ],
)
def test_a_library_whose_required_folder_is_missing_lacks_kernels_for_every_gpu(library: str, place: str) -> None:
    folder = folder_of(library, ["lib/other/library/Kernels_gfx906.co"])
    assert folder is not None
    assert (folder.place, folder.is_bare) == (place, True)
    assert folder.find_lack(parse_target_id("gfx906")) == "is missing"


@pytest.mark.parametrize("library", ["lib/libMIOpen.so.1", "lib/librocfft.so.0"])
def test_a_library_that_compiles_its_kernels_needs_no_folder(library: str) -> None:
    assert folder_of(library, []) is None


def test_a_folder_without_files_for_any_gpu_has_no_kernels() -> None:
    folder = folder_of("lib/librocblas.so.5", ["lib/rocblas/library/TensileManifest.txt"])
    assert folder is not None
    assert folder.find_lack(parse_target_id("gfx906")) == "has no kernels for any GPU"


@pytest.mark.parametrize(
    ("places", "divided", "closed", "of_blas", "of_sparse"),
    [
        pytest.param([], False, False, "lost", "lost", id="a whole package"),
        pytest.param([], True, False, "not given", "not given", id="device packages that aren't given"),
        pytest.param(["k/miopen/x_gfx906.co"], True, False, "lost", "none", id="device packages for other libraries"),
        pytest.param(["q/miopen/x_gfx906.co"], True, False, "not given", "not given", id="those of another package"),
        pytest.param([], True, True, "lost", "none", id="an environment"),
    ],
)
def test_kernels_are_lost_if_no_other_package_can_provide_them(
    places: list[str], divided: bool, closed: bool, of_blas: str, of_sparse: str
) -> None:
    folders, losses = KernelFolders(places), list[str]()
    for name in ("librocblas.so.5", "libhipsparselt.so.0"):
        opener = opener_of(name)
        assert opener is not None
        losses.append(folders.find_loss(f"k/{name}", opener, divided=divided, closed=closed).value)
    assert losses == [of_blas, of_sparse]


def test_an_extended_runtime_opens_files_for_a_similar_gpu() -> None:
    folder = folder_of("lib/librocblas.so.5", ["lib/rocblas/library/TensileLibrary_lazy_gfx1030.dat"])
    assert folder is not None
    assert folder.find_lack(parse_target_id("gfx1031"), Runtime.EXTENDED) == ""
    assert folder.find_lack(parse_target_id("gfx1031")) == "has no index for gfx1031, only for gfx1030"


def test_an_image_family_applies_to_each_of_its_targets() -> None:
    folder = folder_of("lib/libaotriton_v2.so", ["lib/aotriton.images/amd-gfx11xx/flash/x.aks2"])
    assert folder is not None
    assert folder.find_lack(parse_target_id("gfx1151")) == ""
    assert folder.find_lack(parse_target_id("gfx942")) != ""
