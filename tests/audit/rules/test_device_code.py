"""Device code: targets in every bundle, versions, compression and compilers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.binary.kpack.archive import KpackArchive, KpackEntry, Scheme
from rocwheel.binary.kpack.markers import Marker, SplitUnit
from rocwheel.environment.file_reports import DeviceReport, MetadataFault
from tests.support.breaches import CORE, USES_CORE, Breach, check_breach, one
from tests.support.trees import code, data, find, library, package, tree

if TYPE_CHECKING:
    from rocwheel.environment.tree import Distribution, InstalledFile

NO_MAP = MetadataFault("has a metadata note that isn't a map", ("map",))
NO_TARGET = MetadataFault("has a metadata note without amdhsa.target", ("amdhsa.target",))
AMD_22, AMD_23 = "AMD clang version 22.0.0git (a)", "AMD clang version 23.0.0git (b)"


def split(path: str, *targets: str, known: bool = True) -> DeviceReport:
    """Return a library of one unit whose code for some targets is in archives beside it."""
    entries = tuple(f"hipv4-amdgcn-amd-amdhsa--{target}" for target in targets) if known else ()
    name = path.rpartition("/")[2]
    marker = Marker(
        path, (f".kpack/{name}_@GFXARCH@.kpack",), ("host-x86_64-unknown-linux-gnu-", *entries) if known else ()
    )
    return DeviceReport(units=(SplitUnit(0, 0, marker),))


def archive(path: str, target: str, *, listed: bool = True, holds: bool = True) -> InstalledFile:
    """Return the archive with the code of a library for one target."""
    folder, _, name = path.rpartition("/")
    place = f"{folder}/.kpack/{name}_{target}.kpack"
    entries = (KpackEntry(path, 0, target, 0, 8, 16, 8),) if holds else ()
    listing = (target,) if listed else ()
    found = KpackArchive(place, listing, Scheme.NONE, "group", target, (), entries, 0)
    return data(place, device=DeviceReport(targets=listing, archive=found))


BREACHES = {
    "device-target-missing": Breach(
        one(library("demo/a.so", device=code(("gfx906", "gfx942"), ("gfx906",)))),
        "demo/a.so",
        "1 of 2 bundles has no code for gfx942: number 1",
    ),
    "device-target-absent": Breach(
        one(library("lib/a.so", device=code(("gfx906",))), owner=package("rocm-sdk-device-gfx942")),
        "rocm_sdk_device_gfx942-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "promises code for gfx942, but contains no code for it",
    ),
    "device-target-uneven": Breach(
        one(
            library("demo/a.so", device=code(("gfx906", "gfx1030"))),
            library("demo/b.so", device=code(("gfx906",), ("gfx942",))),
        ),
        "demo/b.so",
        "has no code for gfx1030, but demo/a.so does",
        {"per_file_ignore": {"demo/a.so": ("device-target-uneven",), "demo/b.so": ("device-target-missing",)}},
    ),
    "kpack-archives": Breach(
        one(
            library("demo/a.so", device=split("demo/a.so", "gfx906", "gfx1030")),
            library("demo/b.so", device=split("demo/b.so", "gfx906", "gfx1030")),
            archive("demo/a.so", "gfx906"),
            archive("demo/a.so", "gfx1030"),
            archive("demo/b.so", "gfx1030"),
        ),
        "demo/b.so",
        "finds no device code for gfx906: no given archive at .kpack/b.so_@GFXARCH@.kpack has code",
    ),
    "kernel-folders": Breach(
        one(
            library("demo/librocblas.so.5", device=code(("gfx906", "gfx1030"))),
            data("demo/rocblas/library/TensileLibrary_lazy_gfx1030.dat"),
        ),
        "demo/librocblas.so.5",
        "opens demo/rocblas/library, which has no index for gfx906, only for gfx1030",
    ),
    "device-code-versions": Breach(
        one(library("demo/a.so", device=code(("gfx906",), versions=(4, 5)))),
        "demo/a.so",
        "mixes code object versions 4, 5",
    ),
    "device-code-plain": Breach(
        one(library("demo/a.so", device=code(("gfx906",), size=5_000_000, compressed=False))),
        "demo/a.so",
        "1 bundle (5.0 MB) is not compressed, even though ROCm 6.2 and later can read compressed bundles",
    ),
    "kernel-metadata": Breach(
        one(
            library(
                "demo/a.so",
                device=code(("gfx906",), faults=(NO_MAP,)),
            )
        ),
        "demo/a.so",
        "has a metadata note that isn't a map",
    ),
    "kernel-metadata-target": Breach(
        one(*(library(f"demo/{name}.so", device=code(("gfx906",), faults=(NO_TARGET,))) for name in "abcd")),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "4 files have kernel metadata without amdhsa.target: demo/a.so, demo/b.so, demo/c.so and 1 more",
    ),
    "device-compilers": Breach(
        one(
            library("demo/a.so", device=code(("gfx906",), compilers=((AMD_22,),))),
            library("demo/b.so", device=code(("gfx906",), compilers=((AMD_23,),))),
        ),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        f"contains device code from 2 compilers: {AMD_22} in demo/a.so; {AMD_23} in demo/b.so",
    ),
    "host-compiler": Breach(
        one(library("demo/a.so", compilers=("clang version 18.1.8", AMD_22), device=code(("gfx906",)))),
        "demo/a.so",
        f"has host code from clang version 18.1.8, but device code from {AMD_22}",
    ),
}


@pytest.mark.parametrize("target", ["gfx1250", "gfx1250-strict"])
def test_the_gfx1250_package_may_contain_only_code_for_early_silicon(target: str) -> None:
    audited = one(library("lib/a.so", device=code((target,))), owner=package("rocm-sdk-device-gfx1250"))
    assert find(audited) == []


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_of_a_rule_is_the_only_finding(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


@pytest.mark.parametrize(("size", "found"), [((1 << 20) - 1, 0), (1 << 20, 1)])
def test_uncompressed_bundles_are_reported_from_one_mebibyte(size: int, found: int) -> None:
    audited = one(library("demo/a.so", device=code(("gfx906",), size=size, compressed=False)))
    assert len(find(audited, select=("device-code-plain",))) == found


@pytest.mark.parametrize(
    ("other", "found"),
    [
        (library("demo/b.so", device=code(("gfx90a",))), None),
        (library("demo/b.so", device=code(("gfx90a:xnack+", "gfx90a:xnack-"))), None),
        (library("demo/b.so", device=code(("gfx90a:xnack+",))), "has no code for gfx90a, but demo/a.so does"),
        (data("demo/b.co", device=code(("gfx942",))), None),
        (library("demo/b.so", device=None), None),
    ],
    ids=["the same", "both settings", "one setting", "kernels alone", "no device code"],
)
def test_all_files_must_have_code_for_the_same_targets(other: InstalledFile, found: str | None) -> None:
    audited = one(library("demo/a.so", device=code(("gfx90a",))), other)
    findings = find(audited, select=("device-target-uneven",))
    assert [finding.found for finding in findings if finding.file.endswith("b.so")] == ([found] if found else [])


def test_missing_targets_are_in_processor_order_and_facts_in_sorted_order() -> None:
    audited = one(
        library("demo/a.so", device=code(("gfx906", "gfx942", "gfx1030"))),
        library("demo/b.so", device=code(("gfx906",))),
    )
    (finding,) = find(audited, select=("device-target-uneven",))
    assert finding.found == "has no code for gfx942, gfx1030, but demo/a.so does"
    assert finding.facts == ("gfx1030", "gfx942")


@pytest.mark.parametrize(
    ("bundles", "found"),
    [
        ((("gfx90a",), ("gfx90a:xnack+", "gfx90a:xnack-")), []),
        ((("gfx90a",), ("gfx90a:xnack+",)), ["1 of 2 bundles has no code for gfx90a: number 1"]),
        (
            (("gfx1100", "gfx1101"), ("gfx11-generic",), ("gfx11-generic",)),
            ["1 of 3 bundles has no code for gfx11-generic: number 0"],
        ),
        ((("gfx906",), ("gfx942",)), ["1 of 2 bundles has no code for gfx906: number 1",
                                      "1 of 2 bundles has no code for gfx942: number 0"]),
        ((("gfx906",), (), (), (), (), ()), ["5 of 6 bundles have no code for gfx906: numbers 1, 2, 3 and 2 more"]),
    ],
    ids=["both settings", "one setting", "a generic target", "others", "many bundles"],
)  # fmt: skip
def test_bundles_may_spell_the_same_targets_differently(bundles: tuple[tuple[str, ...], ...], found: list[str]) -> None:
    findings = find(one(library("demo/a.so", device=code(*bundles))), select=("device-target-missing",))
    assert sorted(finding.found for finding in findings) == found


@pytest.mark.parametrize(
    ("promised", "there", "is_there"),
    [
        ("gfx90a:xnack+", "gfx90a", True),
        ("gfx1100", "gfx11-generic", True),
        ("gfx11-generic", "gfx1100", False),
        ("gfx90a:xnack+", "gfx90a:xnack-", False),
        ("no target", "gfx90a", False),
    ],
)
def test_a_promised_target_is_present_if_other_code_serves_it(promised: str, there: str, is_there: bool) -> None:
    audited = one(library("demo/a.so", device=code((there,))), owner=package(targets=(promised,)))
    found = [] if is_there else [f"promises code for {promised}, but contains no code for it"]
    assert [finding.found for finding in find(audited, select=("device-target-absent",))] == found


def test_sdk_libraries_may_have_different_targets() -> None:
    files = [library("lib/a.so", device=code(("gfx906",))), library("lib/b.so", device=code(("gfx942",)))]
    rule = ("device-target-uneven",)
    assert find(one(*files, owner=package("rocm-sdk-libraries-gfx94x")), select=rule) == []
    assert len(find(one(*files, owner=package("demo")), select=rule)) == 2


def test_a_promised_target_may_be_present_as_a_variant_or_in_a_file_name() -> None:
    owner = package("rocm-sdk-device-gfx90a")
    assert find(one(library("lib/a.so", device=code(("gfx90a:xnack+",))), owner=owner)) == []
    assert find(one(data("lib/blas_lib_gfx90a.kpack"), owner=owner)) == []


def test_uncompressed_code_is_accepted_for_releases_that_need_it() -> None:
    big = library("demo/a.so", device=code(("gfx906",), size=5_000_000, compressed=False))
    assert find(tree((package(), [big]), (package("rocm-sdk-core", version="6.1.0"), []))) == []


def test_declared_targets_must_be_present_with_their_feature_settings() -> None:
    owner = package(targets=("gfx906", "gfx90a:xnack+"))
    found = find(one(library("lib/a.so", device=code(("gfx906", "gfx90a:xnack-"))), owner=owner))
    assert [finding.found for finding in found] == ["promises code for gfx90a:xnack+, but contains no code for it"]


@pytest.mark.parametrize(
    ("host", "device", "found"),
    [
        ((AMD_22,), ((AMD_22,),), []),
        ((AMD_22, "GCC: (Debian 12.2.0) 12.2.0"), ((AMD_22,),), []),
        (("clang version 18.1.8", AMD_22), (), [f"clang version 18.1.8, but device code from {AMD_22}"]),
        (("GCC: (GNU) 12.2.0",), ((AMD_22,),), [f"GCC: (GNU) 12.2.0, but device code from {AMD_22}"]),
        ((AMD_22,), ((AMD_23,),), [f"{AMD_22}, but device code from {AMD_23}"]),
        ((), ((AMD_23,),), []),
        (("Linker: LLD 18.1.8",), ((AMD_23,),), []),
        (("clang version 18.1.8",), (), []),
    ],
    ids=["one", "start files", "told by the host code", "GCC alone", "two of AMD", "stripped", "linker", "unknown"],
)
def test_the_host_compiler_is_compared_with_the_compiler_of_the_device_code(
    host: tuple[str, ...], device: tuple[tuple[str, ...], ...], found: list[str]
) -> None:
    file = library("demo/a.so", compilers=host, device=code(("gfx906",), compilers=device))
    findings = find(one(file), select=("host-compiler",))
    assert [finding.found for finding in findings] == [f"has host code from {text}" for text in found]


def test_the_compiler_of_the_device_libraries_is_not_a_second_compiler() -> None:
    file = library("demo/a.so", device=code(("gfx906",), compilers=((AMD_22, AMD_23), (AMD_23,))))
    assert find(one(file), select=("device-compilers",)) == []


def test_device_code_is_compared_with_the_device_code_of_a_given_sdk() -> None:
    sdk = library("_rocm_sdk_core/lib/libx.so", device=code(("gfx906",), compilers=((AMD_23,),)))
    own = library("demo/a.so", device=code(("gfx906",), compilers=((AMD_22,),)))
    (finding,) = find(tree((USES_CORE, [own]), (CORE, [sdk])), select=("device-compilers",))
    assert finding.found == f"contains device code from {AMD_22} in demo/a.so; the SDK's device code is from {AMD_23}"
    same = msgspec.structs.replace(own, device=sdk.device)
    assert find(tree((USES_CORE, [same]), (CORE, [sdk])), select=("device-compilers",)) == []


HOST = package("torchk")
GFX906 = package("torchk-device-gfx906", requires=("torchk==1.0",))
GFX1030 = package("torchk-device-gfx1030", requires=("torchk==1.0",))


def _gaps(*parts: tuple[Distribution, list[InstalledFile]], rule: str, **settings: object) -> list[tuple[str, str]]:
    found = find(tree(*parts), select=(rule,), **settings)
    return [(finding.severity.value, finding.found) for finding in found]


def test_missing_device_packages_are_an_error_only_in_a_closed_set() -> None:
    host = (HOST, [library("k/a.so", device=split("k/a.so", "gfx906"))])
    found = (
        "has its device code in kpack archives that aren't in any of the given packages: .kpack/a.so_@GFXARCH@.kpack"
    )
    assert _gaps(host, rule="kpack-archives") == [("note", found)]
    assert _gaps(host, rule="kpack-archives", closed=True) == [("error", found)]


def test_archives_in_the_wrong_folder_are_named() -> None:
    host = (HOST, [library("k/lib/a.so", device=split("k/lib/a.so", "gfx906"))])
    misplaced = archive("k/a.so", "gfx906")
    found = (
        "finds no device code for gfx906: no given archive at .kpack/a.so_@GFXARCH@.kpack has code; archives with "
        "these names are at k/.kpack/a.so_gfx906.kpack"
    )
    assert _gaps(host, (GFX906, [misplaced]), rule="kpack-archives") == [("error", found)]


def test_only_gpus_with_given_archives_are_checked() -> None:
    host = (HOST, [library("k/a.so", device=split("k/a.so", "gfx906", "gfx1030", "gfx942"))])
    assert _gaps(host, (GFX906, [archive("k/a.so", "gfx906")]), rule="kpack-archives") == []


def test_a_library_without_code_for_a_gpu_needs_no_archive_for_the_gpu() -> None:
    files = [
        library("k/a.so", device=split("k/a.so", "gfx906", "gfx1030")),
        library("k/b.so", device=split("k/b.so", "gfx906")),
    ]
    device = [
        (GFX906, [archive("k/a.so", "gfx906"), archive("k/b.so", "gfx906")]),
        (GFX1030, [archive("k/a.so", "gfx1030")]),
    ]
    assert _gaps((HOST, files), *device, rule="kpack-archives") == []


def test_without_markers_the_expected_gpus_come_from_other_archives() -> None:
    files = [library(f"k/{name}.so", device=split(f"k/{name}.so", known=False)) for name in "ab"]
    device = (GFX906, [archive("k/a.so", "gfx906")])
    found = "finds no device code for gfx906: no given archive at .kpack/b.so_@GFXARCH@.kpack has code"
    assert _gaps((HOST, files), device, rule="kpack-archives") == [("error", found)]


def test_without_markers_each_sdk_library_is_expected_only_for_its_own_gpus() -> None:
    host = package("rocm-sdk-libraries")
    files = [library(f"k/{name}.so", device=split(f"k/{name}.so", known=False)) for name in "ab"]
    both = [archive("k/a.so", "gfx906"), archive("k/b.so", "gfx906"), archive("k/a.so", "gfx1030")]
    found = "finds no device code for gfx1030: no given archive at .kpack/b.so_@GFXARCH@.kpack has code"
    assert _gaps((host, files), (GFX906, both), rule="kpack-archives") == [("note", found)]
    one_library = [archive("k/a.so", "gfx906")]
    found = "finds no device code for gfx906: no given archive at .kpack/b.so_@GFXARCH@.kpack has code"
    assert _gaps((host, files), (GFX906, one_library), rule="kpack-archives") == [("error", found)]


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        pytest.param(
            archive("k/a.so", "gfx906", holds=False),
            "finds no device code for gfx906: a.so_gfx906.kpack lists gfx906 but lacks k/a.so#0",
            id="lists the target",
        ),
        pytest.param(
            archive("k/a.so", "gfx906", listed=False, holds=False),
            "finds no device code for gfx906: no given archive at .kpack/a.so_@GFXARCH@.kpack has code",
            id="lists nothing",
        ),
        pytest.param(
            data("k/.kpack/a.so_gfx906.kpack", size=0),
            "finds no device code for gfx906: no given archive at .kpack/a.so_@GFXARCH@.kpack has code",
            id="no byte",
        ),
    ],
)
def test_an_empty_archive_is_reported(broken: InstalledFile, found: str) -> None:
    host = (HOST, [library("k/a.so", device=split("k/a.so", "gfx906"))])
    assert _gaps(host, (GFX906, [broken]), rule="kpack-archives") == [("error", found)]


def test_a_library_with_a_marker_that_no_runtime_can_read_is_reported() -> None:
    device = DeviceReport(kpack_fault="a marker without kernel_name")
    found = "can't load its device code: a marker without kernel_name"
    assert _gaps((HOST, [library("k/a.so", device=device)]), rule="kpack-archives") == [("error", found)]


def test_a_unit_can_get_its_code_from_several_archives() -> None:
    host = (HOST, [library("k/a.so", device=split("k/a.so", "gfx942:xnack+", "gfx9-4-generic:xnack-"))])
    both = [archive("k/a.so", "gfx942:xnack+"), archive("k/a.so", "gfx9-4-generic:xnack-")]
    assert _gaps(host, (package("torchk-device-gfx942"), both), rule="kpack-archives") == []


BLAS = library("k/librocblas.so.5", device=code(("gfx906", "gfx1030")))
FOR_906, FOR_1030 = (data(f"k/rocblas/library/TensileLibrary_lazy_{name}.dat") for name in ("gfx906", "gfx1030"))


def test_kernels_from_all_given_packages_are_combined() -> None:
    assert _gaps((HOST, [BLAS]), (GFX906, [FOR_906]), (GFX1030, [FOR_1030]), rule="kernel-folders") == []


def test_device_packages_with_kernels_may_be_omitted() -> None:
    assert _gaps((HOST, [BLAS]), (GFX1030, [FOR_1030]), rule="kernel-folders") == []
    found = "opens k/rocblas/library, which has no index for gfx906, only for gfx1030"
    assert _gaps((HOST, [BLAS]), (GFX1030, [FOR_1030]), rule="kernel-folders", closed=True) == []
    other = data("k/hipblaslt/library/TensileLibrary_lazy_gfx906.dat")
    assert _gaps((HOST, [BLAS]), (GFX906, [other]), (GFX1030, [FOR_1030]), rule="kernel-folders") == [("error", found)]


def test_a_gpu_that_other_libraries_in_the_package_lack_is_only_a_note() -> None:
    main = library("k/libtorch_hip.so", device=code(("gfx1030",)))
    found = "opens k/rocblas/library, which has no index for gfx906, only for gfx1030"
    assert _gaps((HOST, [BLAS, FOR_1030, main]), rule="kernel-folders") == [("note", found)]


def test_missing_databases_are_only_a_note() -> None:
    files = [library("k/lib/libMIOpen.so.1", device=code(("gfx906", "gfx90a"))), data("k/share/miopen/db/gfx90a6e.kdb")]
    found = (
        "opens k/share/miopen/db, which has no kernels for gfx906, only for gfx90a; the library compiles kernels "
        "at first use"
    )
    assert _gaps((HOST, files), rule="kernel-folders") == [("note", found)]


def test_missing_images_are_a_note_if_the_package_is_for_the_gpu() -> None:
    triton = library("k/libaotriton_v2.so")
    images = data("k/aotriton.images/amd-gfx90a/flash/x.aks2")
    main = library("k/libtorch_hip.so", device=code(("gfx906", "gfx90a")))
    found = "opens k/aotriton.images, which has no kernels for gfx906, only for gfx90a"
    assert _gaps((HOST, [triton, images, main]), rule="kernel-folders") == [("note", found)]


ABSENT = "opens k/rocblas/library, which is missing: it finds no kernels for any GPU"
NOT_GIVEN = "opens k/rocblas/library, but no given package has kernels for it"
SDK = package("rocm-sdk-libraries")


def test_a_library_without_its_kernel_folder_is_an_error() -> None:
    assert _gaps((HOST, [BLAS]), rule="kernel-folders") == [("error", ABSENT)]


def test_a_library_with_a_kernel_folder_is_recognized_by_its_soname() -> None:
    renamed = library("k/blas.so", soname="librocblas.so.5", device=code(("gfx906",)))
    assert _gaps((HOST, [renamed]), rule="kernel-folders") == [("error", ABSENT)]


def test_the_kernel_folder_may_be_in_device_packages_that_were_not_given() -> None:
    assert _gaps((SDK, [BLAS]), rule="kernel-folders") == [("note", NOT_GIVEN)]
    split_off = package("torchk", requires=('torchk-device-gfx906==1.0; extra == "device-gfx906"',))
    assert _gaps((split_off, [BLAS]), rule="kernel-folders") == [("note", NOT_GIVEN)]
    assert _gaps((SDK, [BLAS]), rule="kernel-folders", closed=True) == [("error", ABSENT)]


def test_given_device_packages_must_have_the_rocblas_kernels() -> None:
    device = (package("rocm-sdk-device-gfx906"), [data("k/hipblaslt/library/Kernels_gfx906.co")])
    assert _gaps((SDK, [BLAS]), device, rule="kernel-folders") == [("error", ABSENT)]
    others = [library("k/libhipsparselt.so.0")]
    assert _gaps((SDK, others), device, rule="kernel-folders") == []


def test_a_kernel_file_that_is_opened_for_every_gpu_needs_code_for_each_gpu() -> None:
    names = ("TensileLibrary_lazy_gfx906.dat", "TensileLibrary_lazy_gfx908.dat")
    files = [library("k/libhipblaslt.so.1", device=code(("gfx906", "gfx908")))]
    files += [data(f"k/hipblaslt/library/{name}") for name in names]
    transform = data("k/hipblaslt/library/hipblasltTransform.hsaco", device=code(("gfx908",)))
    lack = "has no code in hipblasltTransform.hsaco for gfx906, only for gfx908"
    found = [("error", f"opens k/hipblaslt/library, which {lack}")]
    assert _gaps((HOST, [*files, transform]), rule="kernel-folders") == found


def test_kernels_that_the_library_cannot_open_are_a_note() -> None:
    kernels = data("k/rocblas/library/Kernels_gfx908.co", device=code(("gfx908",)))
    found = "opens k/rocblas/library, which has no index for gfx908, only for gfx1030, gfx906"
    assert _gaps((HOST, [BLAS, FOR_906, FOR_1030, kernels]), rule="kernel-folders")[1:] == [("note", found)]


def test_a_rocblas_without_code_is_expected_for_every_gpu_with_a_device_package() -> None:
    host = [library("k/librocblas.so.5"), library("k/libhipblaslt.so.1")]
    files = [FOR_1030, data("k/hipblaslt/library/TensileLibrary_lazy_gfx1030.dat")]
    device = (GFX906, [data("k/.kpack/blas_lib_gfx906.kpack")])
    found = "opens k/rocblas/library, which has no index for gfx906, only for gfx1030"
    assert _gaps((HOST, host), device, (GFX1030, files), rule="kernel-folders") == [("error", found)]


def test_device_packages_of_other_libraries_are_ignored() -> None:
    other = (package("torch-device-gfx906"), [data("torch/.kpack/torch_gfx906.kpack")])
    assert _gaps((HOST, [BLAS]), other, (GFX1030, [FOR_1030]), rule="kernel-folders") == []
    host = (HOST, [library("k/a.so", device=split("k/a.so", "gfx906"))])
    found = (
        "has its device code in kpack archives that aren't in any of the given packages: .kpack/a.so_@GFXARCH@.kpack"
    )
    assert _gaps(host, other, rule="kpack-archives") == [("note", found)]
